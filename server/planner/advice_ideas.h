// Ideas of the advice before they are worded: advice.cc finds them, advice_words.cc words them.
#ifndef SLICEPLAN_SERVER_PLANNER_ADVICE_IDEAS_H_
#define SLICEPLAN_SERVER_PLANNER_ADVICE_IDEAS_H_

#include <cstdint>

#include "server/planner/parallelism.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// Checkpoints written this much faster: asynchronous ones, or more writers.
inline constexpr double kFasterCheckpoints = 4;

enum class AdviceKind {
  kAddTensor,
  kReduceTensor,
  kLargerBatch,
  kLargerBatchPerSlice,
  kMoreMicrobatches,
  kMergeAccumulation,
  kInterleave,
  kZeroBubble,
  kKeepMore,
  kLessAccumulation,
  kShardOptimizer,
  kLowerPrecision,
  kIdleChips,
  kFasterCheckpoints,
  kLargerMicrobatches,
};

// An idea before it is worded; `number` and `value` mean what its kind needs.
struct AdviceIdea {
  AdviceKind kind;
  double step_time_ratio = 1;
  double memory_bytes = 0;
  int64_t number = 0;
  double value = 0;
};

// Parts of the expected step, as shares of it.
struct StepShares {
  double weights_traffic = 0;  // FSDP and data inside a slice
  double tensor_traffic = 0;
  double dcn = 0;
  double bubble = 0;
  double recompute = 0;
  double host = 0;
  double low_precision_matmuls = 0;  // those that a narrower type would speed up
};

struct AdviceContext {
  const TrainingJob& job;
  const TrainingEstimate& estimate;
  StepShares shares;
};

// A plan with another tensor degree, and the axis that gave or took the factor.
struct TensorChange {
  Parallelism parallelism;
  LogicalAxis other = LogicalAxis::kFsdp;
  bool possible = false;
};
// `factor` times the tensor degree, taken from context, FSDP or data inside a slice, the first that divides.
TensorChange MoreTensor(const Parallelism& plan, int64_t factor);
// Half of it, given to FSDP.
TensorChange LessTensor(const Parallelism& plan);

Advice WordIdea(const AdviceContext& context, const AdviceIdea& idea);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_ADVICE_IDEAS_H_
