// Names of the RPCs, as Connection takes them, and which of the deadlines each has.
#ifndef SLICEPLAN_CLIENT_SLICEPLAN_METHODS_H_
#define SLICEPLAN_CLIENT_SLICEPLAN_METHODS_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/sliceplan/options.h"

namespace sliceplan {

inline constexpr char kEstimateTraining[] = "sliceplan.v1.PlannerService/EstimateTraining";
inline constexpr char kEstimateServing[] = "sliceplan.v1.PlannerService/EstimateServing";
inline constexpr char kProposeSharding[] = "sliceplan.v1.PlannerService/ProposeSharding";
inline constexpr char kDescribeModel[] = "sliceplan.v1.AnalysisService/DescribeModel";
inline constexpr char kAnalyzeOperation[] = "sliceplan.v1.AnalysisService/AnalyzeOperation";
inline constexpr char kAnalyzeCollective[] = "sliceplan.v1.AnalysisService/AnalyzeCollective";
inline constexpr char kCompareMeasurement[] = "sliceplan.v1.AnalysisService/CompareMeasurement";
inline constexpr char kListAccelerators[] = "sliceplan.v1.CatalogService/ListAccelerators";
inline constexpr char kListSlices[] = "sliceplan.v1.CatalogService/ListSlices";
inline constexpr char kListPrices[] = "sliceplan.v1.CatalogService/ListPrices";
inline constexpr char kListModels[] = "sliceplan.v1.CatalogService/ListModels";

struct MethodDefaults {
  const char* name;
  absl::Duration Deadlines::*deadline;
};

// Every RPC, in the order above.
const std::vector<MethodDefaults>& AllMethods();

// The deadline of a method; of one that the service does not have, the shortest.
absl::Duration DefaultTimeout(const std::string& method, const Deadlines& deadlines);

}  // namespace sliceplan

#endif  // SLICEPLAN_CLIENT_SLICEPLAN_METHODS_H_
