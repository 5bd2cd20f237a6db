// The best way to spread a replica over the chips of one slice.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_PLAN_CHOICE_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_PLAN_CHOICE_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "server/planner/serving/replica_count.h"
#include "server/planner/serving/replica_plan.h"
#include "server/planner/serving/serving_estimate.h"

namespace sliceplan::planner {

struct PlanChoice {
  std::unique_ptr<ReplicaPlan> plan;  // nullptr: no legal plan
  bool fits = false;
  int64_t considered_count = 0;        // legal plans
  absl::Status figure_missing;         // a network figure without which no plan can be timed
  std::vector<ServingPoint> frontier;  // batches of all plans that fit
  ReplicaTrials trials;                // of `plan`, as far as choosing it took any
  bool cancelled = false;
};

// All legal splits of the slice over tensor, expert, data and pipeline, and over context or (on a torus) fsdp where
// tensor has reached the KV heads, none larger than an engine gains from; several slices over data or pipeline. Those
// that fit come first; of those, by plan_merit.h: the most output per chip, and at a rate, which all serve alike, the
// shorter request. With targets that only a replay can tell, the first that meets them there, or the first of all.
PlanChoice ChoosePlan(const ServingJob& job, const ServingPool& pool, MappingCache& mappings,
                      const std::function<bool()>& cancelled);

// Legal plans in the order that they are tried.
std::vector<Parallelism> ServingPlansOf(const ServingJob& job, const ServingPool& pool);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_PLAN_CHOICE_H_
