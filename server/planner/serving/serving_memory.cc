#include "server/planner/serving/serving_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sliceplan::planner {
namespace {

constexpr double kMostTokens = 1 << 30;  // of the contract
constexpr int64_t kMostSequences = int64_t{1} << 20;
// Sampled from in fp32, of the whole vocabulary on every chip.
constexpr double kLogitBytes = 4;

int64_t Bytes(double bytes) { return static_cast<int64_t>(std::llround(bytes)); }

}  // namespace

ReplicaMemory::ReplicaMemory(const ServingJob& job, const ServingPool& pool, const ServingPolicy& policy,
                             const ReplicaLoad& load, const Parallelism& parallelism)
    : load_(load),
      block_tokens_(job.workload.kv_block_tokens),
      windowed_(policy.windowed_kv_policy),
      max_batch_size_(policy.max_batch_size) {
  StageSplit split;
  SplitStages(*job.model.operations, parallelism, split);
  for (int32_t s = 0; s < split.stage_count; ++s) {
    Stage stage;
    const absl::Span<const int32_t> counts = split.OfStage(s);
    for (size_t kind = 0; kind < counts.size(); ++kind) {
      stage.layer_counts.push_back(counts[kind]);
      stage.weights_bytes += counts[kind] * load.layers[kind].resident_bytes;
    }
    if (s == 0) stage.weights_bytes += load.embedding_resident_bytes;
    if (s == split.stage_count - 1) {
      stage.weights_bytes += load.head_resident_bytes;
      // A tied table is needed at both ends.
      if (s > 0 && load.head_resident_bytes == 0) stage.weights_bytes += load.head.weight_bytes;
    }
    stages_.push_back(std::move(stage));
  }
  capacity_bytes_ = static_cast<double>(pool.slice.accelerator.AllocatableBytes().value_or(0));
  usable_bytes_ = policy.hbm_utilization_ratio * capacity_bytes_;
  if (job.mode == EstimationMode::kRoofline || pool.efficiency == nullptr) return;  // book: the rest is negligible
  const roofline::ServingEfficiency& runtime = *pool.efficiency;
  reserve_bytes_ = runtime.reserved_bytes + (load.tensor > 1 ? runtime.collective_buffer_bytes : 0);
  double tokens = std::ceil(job.workload.prompt.Mean() * (1 - job.workload.prefix_cache_hit_ratio));
  if (policy.prefill_chunk_tokens) tokens = *policy.prefill_chunk_tokens;  // engines try a full chunk when they start
  tokens = std::ceil(std::max(1.0, tokens) / load.context);
  const double logits = kLogitBytes * job.model.operations->vocab_size;
  activations_bytes_ = std::max(runtime.activation_copies * tokens * load.activation_bytes_per_token,
                                runtime.logit_copies * runtime.max_sequences * logits);
  if (load.tensor > 1 || load.expert_ranks > 1) buffers_bytes_ = tokens * load.embedding_bytes_per_token;
  if (runtime.utilization_of_free_hbm) utilization_of_free_ = policy.hbm_utilization_ratio;
}

double ReplicaMemory::SequenceBytes(const Stage& stage, int64_t context_tokens) const {
  const double blocks = std::ceil(static_cast<double>(context_tokens) / block_tokens_) * block_tokens_;
  double bytes = 0;
  for (size_t kind = 0; kind < stage.layer_counts.size(); ++kind) {
    const PassAttention& attention = load_.layers[kind].attention;
    if (!attention.present) continue;
    const double entries = attention.compression > 0 ? blocks / attention.compression : blocks;
    bytes += stage.layer_counts[kind] * (KeysStored(attention, blocks, windowed_) * attention.kv_bytes_per_stored_key +
                                         entries * attention.indexer_bytes_per_stored_key + attention.state_held_bytes);
  }
  return bytes;
}

double ReplicaMemory::FreeBytes(const Stage& stage) const {
  const double rest = stage.weights_bytes + activations_bytes_ + buffers_bytes_ + reserve_bytes_;
  return utilization_of_free_ > 0 ? utilization_of_free_ * (capacity_bytes_ - rest) : usable_bytes_ - rest;
}

ServingMemory ReplicaMemory::Of(int64_t batch_size, int64_t context_tokens) const {
  const double sequences = std::ceil(static_cast<double>(batch_size) / load_.data_ranks);
  ServingMemory fullest;
  bool first = true;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const Stage& stage = stages_[s];
    ServingMemory memory;
    memory.stage = static_cast<int32_t>(s);
    memory.weights_bytes = Bytes(stage.weights_bytes);
    memory.kv_cache_bytes = Bytes(std::min(sequences * SequenceBytes(stage, context_tokens), 9e18));
    memory.activations_bytes = Bytes(activations_bytes_);
    memory.buffers_bytes = Bytes(buffers_bytes_);
    memory.reserve_bytes = Bytes(reserve_bytes_);
    const double used = static_cast<double>(memory.weights_bytes) + static_cast<double>(memory.kv_cache_bytes) +
                        static_cast<double>(memory.activations_bytes + memory.buffers_bytes + memory.reserve_bytes);
    memory.used_bytes = Bytes(std::min(used, 9.2e18));
    memory.capacity_bytes = Bytes(capacity_bytes_);
    memory.headroom_bytes = memory.capacity_bytes - memory.used_bytes;
    memory.kv_pool_bytes = Bytes(std::max(0.0, FreeBytes(stage)));
    if (first || memory.used_bytes > fullest.used_bytes) fullest = memory;
    first = false;
  }
  fullest.kv_pool_tokens = PoolTokens(context_tokens);
  return fullest;
}

double ReplicaMemory::UsableBytes(const ServingMemory& memory) const {
  if (utilization_of_free_ <= 0) return usable_bytes_;
  const double rest = static_cast<double>(memory.used_bytes) - static_cast<double>(memory.kv_cache_bytes);
  return rest + std::max(0.0, utilization_of_free_ * (capacity_bytes_ - rest));
}

int64_t ReplicaMemory::BatchOf(const Stage& stage, int64_t context_tokens) const {
  const double free = FreeBytes(stage);
  if (free < 0) return 0;
  const double bytes = SequenceBytes(stage, context_tokens);
  if (bytes <= 0) return kMostSequences;
  // The last sequence fits exactly where sums of round numbers say so.
  constexpr double kRounding = 1e-9;
  return static_cast<int64_t>(std::min<double>(std::floor(free / bytes * (1 + kRounding)), kMostSequences));
}

int32_t ReplicaMemory::MaxBatch(int64_t context_tokens) const {
  int64_t batch = kMostSequences;
  for (const Stage& stage : stages_) batch = std::min(batch, BatchOf(stage, context_tokens));
  batch = std::min<int64_t>(batch * static_cast<int64_t>(load_.data_ranks), kMostSequences);
  if (max_batch_size_) batch = std::min<int64_t>(batch, *max_batch_size_);
  return static_cast<int32_t>(batch);
}

int32_t ReplicaMemory::MaxContext() const {
  const auto fits = [&](int64_t tokens) {
    return std::all_of(stages_.begin(), stages_.end(), [&](const Stage& s) { return BatchOf(s, tokens) >= 1; });
  };
  if (!fits(1)) return 0;
  int64_t low = 1;
  int64_t high = static_cast<int64_t>(kMostTokens);
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return static_cast<int32_t>(low);
}

int64_t ReplicaMemory::PoolTokens(int64_t context_tokens) const {
  double tokens = std::numeric_limits<double>::max();
  for (const Stage& stage : stages_) {
    const double blocks = std::ceil(static_cast<double>(context_tokens) / block_tokens_) * block_tokens_;
    const double bytes = SequenceBytes(stage, context_tokens);
    if (bytes > 0) tokens = std::min(tokens, std::max(0.0, FreeBytes(stage)) / bytes * blocks);
  }
  if (tokens == std::numeric_limits<double>::max()) return 0;
  return static_cast<int64_t>(std::min(std::floor(tokens / block_tokens_) * block_tokens_ * load_.data_ranks, 9e18));
}

double ReplicaMemory::KvBytesPerSequence(int64_t context_tokens) const {
  double bytes = 0;
  for (const Stage& stage : stages_) bytes += SequenceBytes(stage, context_tokens);
  return bytes * load_.tensor;
}

}  // namespace sliceplan::planner
