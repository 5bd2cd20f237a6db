// A plan as fields of the request, for changes that a job without a plan of its own can apply.
#ifndef SLICEPLAN_SERVER_PLANNER_PLAN_FIELDS_H_
#define SLICEPLAN_SERVER_PLANNER_PLAN_FIELDS_H_

#include <vector>

#include "server/planner/parallelism.h"
#include "server/planner/training_estimate.h"

namespace sliceplan::planner {

// Completes `changes`, which change some fields of a plan: without them the same plan again, every other field of it is
// put before them. What a request means by an absent field stays absent. Nothing happens to changes that touch no field
// of the plan.
void CompletePlan(const Parallelism& plan, std::vector<FieldChange>& changes);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_PLAN_FIELDS_H_
