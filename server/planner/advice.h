// What to try, from the numbers of one estimate alone: nothing is evaluated again, so each effect is what the numbers
// at hand allow at best.
#ifndef SLICEPLAN_SERVER_PLANNER_ADVICE_H_
#define SLICEPLAN_SERVER_PLANNER_ADVICE_H_

#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// Fills `advice`, at most kMaxAdvice of it, the shortest step first, and the sentences of `bottleneck` and `shortfall`.
// Everything else of the estimate must be complete. Codes:
//   ADD_TENSOR_PARALLELISM, REDUCE_TENSOR_PARALLELISM, LARGER_BATCH, LARGER_BATCH_PER_SLICE   thresholds against tokens
//   MORE_MICROBATCHES, MERGE_ACCUMULATION, INTERLEAVE_STAGES, ZERO_BUBBLE_SCHEDULE            the pipeline bubble
//   KEEP_MORE_ACTIVATIONS, LESS_ACCUMULATION, SHARD_OPTIMIZER_STATE                           memory to spare or to
//   gain LOWER_PRECISION, IDLE_CHIPS, FASTER_CHECKPOINTS, LARGER_MICROBATCHES
inline constexpr int kMaxAdvice = 4;
void Advise(const TrainingJob& job, TrainingEstimate& estimate);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_ADVICE_H_
