// What the chips of a replica hold: weights, caches, activations. Chapter 7 of "How To Scale Your Model"; pages as in
// vLLM (Kwon et al. 2023).
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_MEMORY_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_MEMORY_H_

#include <optional>
#include <vector>

#include "server/planner/serving/replica_load.h"
#include "server/planner/serving/serving_estimate.h"
#include "server/planner/stage_split.h"

namespace sliceplan::planner {

// The memory of one plan. Copies what it needs but the load, which must outlive it.
class ReplicaMemory {
 public:
  // `draft_weights_bytes`: of a draft model, on the chips of the last stage.
  ReplicaMemory(const ServingJob& job, const ServingPool& pool, const ServingPolicy& policy, const ReplicaLoad& load,
                const Parallelism& parallelism, double draft_weights_bytes);

  // With `batch_size` sequences of `context_tokens` each, all its data ranks together; of the fullest stage.
  ServingMemory Of(int64_t batch_size, int64_t context_tokens) const;
  // Fills in what is said about the stage alone, whatever is resident: layers, cache per token, longest context.
  void Describe(ServingMemory& memory) const;
  // Every stage, described; empty without a pipeline.
  std::vector<ServingMemory> Stages(int64_t batch_size, int64_t context_tokens) const;
  // Most sequences of that length, and the longest context of one sequence alone; 0 when the weights do not fit.
  int32_t MaxBatch(int64_t context_tokens) const;
  int32_t MaxContext() const;
  // Tokens of sequences of that length that fit into the pool of one replica.
  int64_t PoolTokens(int64_t context_tokens) const;
  // What the engine takes of a chip, for everything; `memory` is of this plan.
  double UsableBytes(const ServingMemory& memory) const;
  // Bytes of one sequence's cache on all chips that hold it once.
  double KvBytesPerSequence(int64_t context_tokens) const;

 private:
  struct Stage {
    double weights_bytes = 0;
    double activations_bytes = 0;
    double buffers_bytes = 0;
    bool drafts = false;  // holds the multi-token-prediction layers
    absl::InlinedVector<double, 4> layer_counts;
  };
  void AddStages(const ServingJob& job, const Parallelism& parallelism, double draft_weights_bytes);
  void SetRuntime(const ServingJob& job, const ServingPool& pool, const ServingPolicy& policy);
  ServingMemory OfStage(size_t index, int64_t batch_size, int64_t context_tokens) const;
  double SequenceBytes(const Stage& stage, int64_t context_tokens) const;  // on one chip, whole blocks
  double FreeBytes(const Stage& stage) const;                              // for caches
  int64_t BatchOf(const Stage& stage, int64_t context_tokens) const;
  std::optional<int64_t> PoolTokensOf(const Stage& stage, int64_t context_tokens) const;  // none: it keeps no cache
  int32_t MaxContextOf(const Stage& stage) const;

  const ReplicaLoad& load_;
  absl::InlinedVector<Stage, 4> stages_;
  double block_tokens_ = 16;
  WindowedKvPolicy windowed_ = WindowedKvPolicy::kFree;
  double capacity_bytes_ = 0;
  double utilization_ = 1;
  enum class Share { kOfAll, kOfWhatTheRestLeaves, kBeforeActivations } share_ = Share::kOfAll;
  double reserve_bytes_ = 0;
  double index_bytes_ = 0;  // the part of the reserve that is tables of requests
  std::optional<int32_t> max_batch_size_;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_MEMORY_H_
