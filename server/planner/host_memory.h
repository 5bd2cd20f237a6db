// Host memory that a training job's offloaded tensors take.
#ifndef SLICEPLAN_SERVER_PLANNER_HOST_MEMORY_H_
#define SLICEPLAN_SERVER_PLANNER_HOST_MEMORY_H_

#include <cstdint>

#include "server/planner/stage_split.h"
#include "server/planner/step_load.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// Sets host_bytes and host_capacity_bytes of `use`, which belongs to pipeline stage use.stage: optimizer state, and
// saved activations of all microbatches in flight, as far as the job offloads them.
void SetHostMemory(const TrainingJob& job, const StepPlan& plan, const StepLoad& load, const StageSplit& stages,
                   MemoryUse& use);

// Bytes by which the host falls short, per chip; 0 when it holds everything or its memory is not known.
int64_t HostShortfallBytes(const MemoryUse& use);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_HOST_MEMORY_H_
