// The smallest change that makes a job feasible, found by trying changes in the order of how little they change.
#ifndef SLICEPLAN_SERVER_PLANNER_SMALLEST_FIX_H_
#define SLICEPLAN_SERVER_PLANNER_SMALLEST_FIX_H_

#include <optional>

#include "absl/functional/function_ref.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// What a changed job comes to.
struct Trial {
  Outcome outcome = Outcome::kNoLegalPlan;
  double expected_seconds = 0;  // of a step
  double wall_seconds = 0;      // of the training, 0 when unknown
};
// nullopt: the changed job makes no sense (an illegal plan).
using TryJob = absl::FunctionRef<std::optional<Trial>(const TrainingJob&)>;

// Changes are tried in groups: one field of the workload or plan; several of them together; number formats; another
// plan, a little padding or idle chips; more slices; fewer tokens. The first group with a feasible change wins, and in
// it the shortest step (of the training, where that is what lacks). `estimate` is the job's own: its plan is the one
// changed. At most about a hundred trials. nullopt: feasible already, or nothing found.
std::optional<Fix> SmallestFix(const TrainingJob& job, const TrainingEstimate& estimate, TryJob try_job);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SMALLEST_FIX_H_
