// One microbatch through one pipeline stage, and what the stage does once per step: the parts that TimeStep adds up.
#ifndef SLICEPLAN_SERVER_PLANNER_STAGE_TIME_H_
#define SLICEPLAN_SERVER_PLANNER_STAGE_TIME_H_

#include "server/planner/step_time.h"

namespace sliceplan::planner {

// Everything that the stages of one plan have in common.
struct StageContext {
  const TrainingJob& job;
  const StepPlan& plan;
  const StepLoad& load;
  const PlanLaws& laws;
  const StageSplit& stages;
  const WeightSharding sharding;
  const LayerRates& rates;
  const roofline::EfficiencyProfile* profile;  // null in roofline mode
};

inline double& Busy(BusySeconds& busy, StepResource resource) { return busy[static_cast<size_t>(resource)]; }

// Requires the layers of `details`; sets its head and embedding where the stage has them.
StageTime TimeStage(const StageContext& context, int32_t index, StepDetails& details, BusySeconds& busy);

// Replaces the expected network terms of a stage, whose layers have been retimed. Calibrated only.
void RetimeStage(const StageContext& context, int32_t index, StepDetails& details);
// The same for its gradients.
void RetimeGradients(const StageContext& context, StageTime& stage);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_STAGE_TIME_H_
