// Host memory that a training job's offloaded tensors take.
#ifndef SLICEPLAN_SERVER_PLANNER_HOST_MEMORY_H_
#define SLICEPLAN_SERVER_PLANNER_HOST_MEMORY_H_

#include <algorithm>
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
inline int64_t HostShortfallBytes(const MemoryUse& use) {
  return use.host_capacity_bytes > 0 ? std::max<int64_t>(0, use.host_bytes - use.host_capacity_bytes) : 0;
}

// Headroom in HBM, or what the host lacks, negative, where that is less.
inline int64_t SlackBytes(const MemoryUse& use) {
  const int64_t short_of = HostShortfallBytes(use);
  return short_of > 0 ? std::min(use.headroom_bytes, -short_of) : use.headroom_bytes;
}

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_HOST_MEMORY_H_
