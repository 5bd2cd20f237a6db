#include "server/rpc/handlers/planner_handlers.h"

#include <utility>

#include "server/planner/estimate_training.h"
#include "server/rpc/convert/model.h"
#include "server/rpc/convert/training_estimate.h"
#include "server/rpc/convert/training_job.h"
#include "server/rpc/errors.h"
#include "server/rpc/field_path.h"
#include "server/rpc/handlers/endings.h"
#include "server/rpc/version.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

Result PlannerHandlers::EstimateTraining(const v1::EstimateTrainingRequest& request,
                                         v1::EstimateTrainingResponse* response, const CallContext& call) {
  const auto catalog = engine_.catalogs.Snapshot();
  const FieldPath path;
  Violations violations;
  TrainingQuestion question;
  v1::TrainingEstimate* const estimate = response->mutable_estimate();
  ToTrainingJob(request, *catalog, engine_.models, engine_.profiles, path, question,
                estimate->mutable_cost()->mutable_price(), violations);
  if (!violations.empty()) return violations.ToResult();

  planner::TrainingAnswer answer =
      planner::EstimateTraining(question.job, engine_.mappings, [&call] { return call.Stopped(); });
  if (answer.cancelled) return Stopped(call);
  AddEngineViolations(request, path, std::move(answer.violations), violations);
  if (!violations.empty()) return violations.ToResult();

  ToProto(question, answer.estimate, estimate);
  response->set_engine_version(EngineVersion());
  response->set_catalog_version(catalog->version());
  return Result();
}

Effort PlannerHandlers::EffortOf(const v1::EstimateTrainingRequest& request) const {
  const bool given = request.has_parallelism() && request.parallelism().has_ici();
  return given && IsQuicklyRead(request.model(), engine_.models) ? Effort::kShort : Effort::kLong;
}

Result PlannerHandlers::EstimateServing(const v1::EstimateServingRequest&, v1::EstimateServingResponse*,
                                        const CallContext&) {
  return Unimplemented("sliceplan.v1.PlannerService/EstimateServing",
                       "Serving estimates (latency, throughput, memory and cost of inference) come in a later release. "
                       "Meanwhile AnalysisService/DescribeModel counts weights and KV cache, and "
                       "AnalysisService/AnalyzeOperation times the matmuls and the attention of a decode step.");
}

Result PlannerHandlers::ProposeSharding(const v1::ProposeShardingRequest&, v1::ProposeShardingResponse*,
                                        const CallContext&) {
  return Unimplemented(
      "sliceplan.v1.PlannerService/ProposeSharding",
      "The search over slices comes in a later release. Meanwhile EstimateTraining without parallelism "
      "finds the best plan of one slice, and CatalogService/ListSlices names the slices to ask about.");
}

}  // namespace sliceplan::rpc
