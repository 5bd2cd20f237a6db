#include "server/rpc/handlers/register.h"

#include <memory>

#include "server/rpc/handlers/analysis_handlers.h"
#include "server/rpc/handlers/catalog_handlers.h"
#include "server/rpc/handlers/planner_handlers.h"

namespace sliceplan::rpc {
namespace {

// Adds `Handlers::method`, which the table keeps alive.
template <typename Handlers, typename Request, typename Response, typename EffortOf>
void Add(MethodTable& table, absl::string_view service, absl::string_view name, std::shared_ptr<Handlers> handlers,
         Result (Handlers::*method)(const Request&, Response*, const CallContext&), EffortOf effort) {
  table.Add<Request, Response>(
      service, name,
      [handlers, method](const Request& request, Response* response, const CallContext& call) {
        return (handlers.get()->*method)(request, response, call);
      },
      effort);
}

constexpr auto kAlwaysShort = [](const auto&) { return Effort::kShort; };
constexpr auto kAlwaysLong = [](const auto&) { return Effort::kLong; };
// A filter looks at every item.
constexpr auto kLongWithFilter = [](const auto& request) {
  return request.filter().empty() ? Effort::kShort : Effort::kLong;
};

}  // namespace

MethodTable MakeMethodTable(Engine* engine) {
  MethodTable table;
  const auto planner = std::make_shared<PlannerHandlers>(engine);
  const auto planner_effort = [planner](const auto& request) { return planner->EffortOf(request); };
  constexpr absl::string_view kPlanner = "sliceplan.v1.PlannerService";
  Add(table, kPlanner, "EstimateTraining", planner, &PlannerHandlers::EstimateTraining, planner_effort);
  Add(table, kPlanner, "EstimateServing", planner, &PlannerHandlers::EstimateServing, planner_effort);
  Add(table, kPlanner, "ProposeSharding", planner, &PlannerHandlers::ProposeSharding, planner_effort);

  const auto analysis = std::make_shared<AnalysisHandlers>(engine);
  const auto analysis_effort = [analysis](const auto& request) { return analysis->EffortOf(request); };
  constexpr absl::string_view kAnalysis = "sliceplan.v1.AnalysisService";
  Add(table, kAnalysis, "DescribeModel", analysis, &AnalysisHandlers::DescribeModel, analysis_effort);
  Add(table, kAnalysis, "AnalyzeOperation", analysis, &AnalysisHandlers::AnalyzeOperation, analysis_effort);
  Add(table, kAnalysis, "AnalyzeCollective", analysis, &AnalysisHandlers::AnalyzeCollective, kAlwaysShort);
  Add(table, kAnalysis, "CompareMeasurement", analysis, &AnalysisHandlers::CompareMeasurement, kAlwaysShort);

  const auto catalog = std::make_shared<CatalogHandlers>(engine);
  constexpr absl::string_view kCatalog = "sliceplan.v1.CatalogService";
  Add(table, kCatalog, "ListAccelerators", catalog, &CatalogHandlers::ListAccelerators, kLongWithFilter);
  Add(table, kCatalog, "ListSlices", catalog, &CatalogHandlers::ListSlices, kLongWithFilter);
  Add(table, kCatalog, "ListPrices", catalog, &CatalogHandlers::ListPrices, kLongWithFilter);
  Add(table, kCatalog, "ListModels", catalog, &CatalogHandlers::ListModels, kAlwaysLong);
  return table;
}

}  // namespace sliceplan::rpc
