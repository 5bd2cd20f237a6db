#include "client/sliceplan/methods.h"

#include <algorithm>

namespace sliceplan {

const std::vector<MethodDefaults>& AllMethods() {
  static const auto* const methods = new std::vector<MethodDefaults>{
      {kEstimateTraining, &Deadlines::estimate},   {kEstimateServing, &Deadlines::estimate},
      {kProposeSharding, &Deadlines::search},      {kDescribeModel, &Deadlines::analysis},
      {kAnalyzeOperation, &Deadlines::analysis},   {kAnalyzeCollective, &Deadlines::analysis},
      {kCompareMeasurement, &Deadlines::analysis}, {kListAccelerators, &Deadlines::catalog},
      {kListSlices, &Deadlines::catalog},          {kListPrices, &Deadlines::catalog},
      {kListModels, &Deadlines::catalog},
  };
  return *methods;
}

absl::Duration DefaultTimeout(const std::string& method, const Deadlines& deadlines) {
  for (const MethodDefaults& known : AllMethods()) {
    if (method == known.name) return deadlines.*known.deadline;
  }
  return std::min({deadlines.estimate, deadlines.search, deadlines.analysis, deadlines.catalog});
}

}  // namespace sliceplan
