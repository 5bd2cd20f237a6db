// From an evaluated plan to everything that an estimate says about it.
#ifndef SLICEPLAN_SERVER_PLANNER_FILL_ESTIMATE_H_
#define SLICEPLAN_SERVER_PLANNER_FILL_ESTIMATE_H_

#include <vector>

#include "server/hardware/violation.h"
#include "server/planner/plan_evaluator.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// Adds a violation for every constant of the chip that any training question needs and that is not known; network
// figures are checked when a plan needs them.
void CheckAccelerator(const TrainingJob& job, std::vector<hardware::Violation>& violations);

// `evaluator` evaluated the plan. Assumptions and warnings are added to those that are there.
void FillEstimate(const TrainingJob& job, const EvaluatedPlan& evaluated, PlanEvaluator& evaluator,
                  TrainingEstimate& estimate);

// A job for which no plan exists: the outcome, and what an assumed MFU still says.
void FillWithoutPlan(const TrainingJob& job, TrainingEstimate& estimate);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_FILL_ESTIMATE_H_
