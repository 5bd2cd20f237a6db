// One training estimate: the plan given, or the best plan of the slice. Chapters 5 and 6 of "How To Scale Your Model".
#ifndef SLICEPLAN_SERVER_PLANNER_ESTIMATE_TRAINING_H_
#define SLICEPLAN_SERVER_PLANNER_ESTIMATE_TRAINING_H_

#include <functional>
#include <vector>

#include "server/hardware/violation.h"
#include "server/planner/mapping.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// Either an estimate (also when nothing fits: see `outcome`) or what makes the request senseless: field names are
// relative to the request ("parallelism.ici.tensor"). `cancelled` is polled by the search.
struct TrainingAnswer {
  std::vector<hardware::Violation> violations;  // non-empty: no estimate
  bool cancelled = false;
  TrainingEstimate estimate;
};

TrainingAnswer EstimateTraining(const TrainingJob& job, MappingCache& mappings,
                                const std::function<bool()>& cancelled = nullptr);

// The same without the smallest fix. Requires job.parallelism.
TrainingAnswer EstimateGivenPlan(const TrainingJob& job, MappingCache& mappings);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_ESTIMATE_TRAINING_H_
