// Bytes of one chip at the worst moment of a training step, by tensor class and pipeline stage.
// Chapters 5 and 6 of "How To Scale Your Model"; docs/training.md lists what is alive when.
#ifndef SLICEPLAN_SERVER_PLANNER_TRAINING_MEMORY_H_
#define SLICEPLAN_SERVER_PLANNER_TRAINING_MEMORY_H_

#include "server/planner/plan_laws.h"
#include "server/planner/stage_split.h"
#include "server/planner/step_load.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// One stage. Requires the counts of CountStep for the plan. used_bytes is the largest of three moments: the loss, a
// layer's backward pass with its weights gathered, and the optimizer update.
MemoryUse StageMemory(const TrainingJob& job, const StepPlan& plan, const StepLoad& load, const StageSplit& stages,
                      int32_t stage);

// The stage with the least headroom; the first of equals.
MemoryUse FullestStageMemory(const TrainingJob& job, const StepPlan& plan, const StepLoad& load,
                             const StageSplit& stages);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_TRAINING_MEMORY_H_
