#include "server/planner/serving/serving_memory.h"

#include <algorithm>
#include <cmath>

#include "server/planner/serving/batch_point.h"

namespace sliceplan::planner {
namespace {

constexpr double kMostTokens = 1 << 30;  // of the contract
constexpr int64_t kMostSequences = int64_t{1} << 20;
// Sampled from in fp32, of the whole vocabulary on every chip.
constexpr double kLogitBytes = 4;
// Between pipeline stages: the residual stream and what is added to it next.
constexpr double kHandedOver = 2;

int64_t Bytes(double bytes) { return static_cast<int64_t>(std::llround(std::min(bytes, 9.2e18))); }

}  // namespace

ReplicaMemory::ReplicaMemory(const ServingJob& job, const ServingPool& pool, const ServingPolicy& policy,
                             const ReplicaLoad& load, const Parallelism& parallelism, double draft_weights_bytes)
    : load_(load),
      block_tokens_(job.workload.kv_block_tokens),
      windowed_(policy.windowed_kv_policy),
      capacity_bytes_(static_cast<double>(pool.slice.accelerator.AllocatableBytes().value_or(0))),
      utilization_(policy.hbm_utilization_ratio),
      max_batch_size_(policy.max_batch_size) {
  AddStages(job, parallelism, draft_weights_bytes);
  // Book: the rest is negligible.
  if (job.mode != EstimationMode::kRoofline && pool.efficiency != nullptr) SetRuntime(job, pool, policy);
}

void ReplicaMemory::AddStages(const ServingJob& job, const Parallelism& parallelism, double draft_weights_bytes) {
  StageSplit split;
  SplitStages(*job.model.operations, parallelism, split);
  const bool own_drafts = job.workload.speculation && !job.workload.speculation->draft_model && load_.mtp.count > 0;
  for (int32_t s = 0; s < split.stage_count; ++s) {
    Stage stage;
    const absl::Span<const int32_t> counts = split.OfStage(s);
    for (size_t kind = 0; kind < counts.size(); ++kind) {
      stage.layer_counts.push_back(counts[kind]);
      stage.weights_bytes += counts[kind] * load_.layers[kind].resident_bytes;
    }
    if (s == 0) stage.weights_bytes += load_.embedding_resident_bytes;
    if (s == split.stage_count - 1) {
      stage.weights_bytes += load_.head_resident_bytes + draft_weights_bytes;
      // A tied table is needed at both ends.
      if (s > 0 && load_.head_resident_bytes == 0) stage.weights_bytes += load_.head.weight_bytes;
      stage.drafts = own_drafts;
      if (own_drafts) stage.weights_bytes += load_.mtp.count * load_.mtp.resident_bytes;
    }
    stages_.push_back(std::move(stage));
  }
}

void ReplicaMemory::SetRuntime(const ServingJob& job, const ServingPool& pool, const ServingPolicy& policy) {
  const roofline::ServingEfficiency& runtime = *pool.efficiency;
  if (runtime.utilization_of_free_hbm) share_ = Share::kOfWhatTheRestLeaves;
  if (runtime.pool_before_activations) share_ = Share::kBeforeActivations;
  const int64_t longest = job.workload.max_context_tokens.value_or(FullContext(job.workload));
  index_bytes_ = runtime.index_rows * runtime.index_bytes_per_position * static_cast<double>(longest);
  reserve_bytes_ = runtime.reserved_bytes + index_bytes_;

  double tokens = std::ceil(job.workload.prompt.Mean() * (1 - job.workload.prefix_cache_hit_ratio));
  if (policy.prefill_chunk_tokens) tokens = *policy.prefill_chunk_tokens;  // engines try a full chunk when they start
  tokens = std::ceil(std::max(1.0, tokens) / load_.context);
  const double hidden = tokens * load_.embedding_bytes_per_token;
  const double logits = kLogitBytes * static_cast<double>(job.model.operations->vocab_size);
  const double workspace = runtime.activation_copies > 0 ? tokens * load_.expert_workspace_bytes_per_token : 0;
  const double layer = runtime.activation_copies > 0
                           ? runtime.activation_copies * hidden + tokens * load_.projection_bytes_per_token + workspace
                           : 0;
  double rows = runtime.logit_copies * runtime.max_sequences;
  if (job.workload.prompt_logprobs) rows = std::max(rows, std::max(1.0, runtime.prompt_logit_copies) * tokens);
  const double sampling =
      runtime.sampling_activation_copies * hidden + rows * logits + (runtime.keeps_expert_workspace ? workspace : 0);
  const bool exchanges = load_.tensor > 1 || load_.expert_ranks > 1;
  for (size_t s = 0; s < stages_.size(); ++s) {
    Stage& stage = stages_[s];
    const bool samples = s + 1 == stages_.size();
    stage.activations_bytes = std::max(layer, samples ? sampling : 0) + runtime.kernel_workspace_bytes;
    if (runtime.collective_buffer_bytes > 0) {
      stage.buffers_bytes = load_.tensor > 1 ? runtime.collective_buffer_bytes : 0;
    } else if (exchanges) {
      stage.buffers_bytes = hidden;
    }
    if (stages_.size() > 1) stage.buffers_bytes += kHandedOver * hidden;
    if (runtime.keeps_rotary_tables) stage.weights_bytes += load_.rotary_table_bytes;
    if (!runtime.keeps_absorbed_copy) continue;
    for (size_t kind = 0; kind < stage.layer_counts.size(); ++kind) {
      stage.weights_bytes += stage.layer_counts[kind] * load_.layers[kind].absorbed_copy_bytes;
    }
    if (stage.drafts) stage.weights_bytes += load_.mtp.count * load_.mtp.absorbed_copy_bytes;
  }
}

double ReplicaMemory::SequenceBytes(const Stage& stage, int64_t context_tokens) const {
  const double blocks = std::ceil(static_cast<double>(context_tokens) / block_tokens_) * block_tokens_;
  double bytes = 0;
  const auto add = [&](double count, const PassAttention& attention) {
    if (!attention.present) return;
    const double entries = attention.compression > 0 ? blocks / attention.compression : blocks;
    bytes += count * (KeysStored(attention, blocks, windowed_) * attention.kv_bytes_per_stored_key +
                      entries * attention.indexer_bytes_per_stored_key + attention.state_held_bytes);
  };
  for (size_t kind = 0; kind < stage.layer_counts.size(); ++kind) {
    add(stage.layer_counts[kind], load_.layers[kind].attention);
  }
  if (stage.drafts) add(load_.mtp.count, load_.mtp.attention);
  return bytes;
}

double ReplicaMemory::FreeBytes(const Stage& stage) const {
  const double rest = stage.weights_bytes + stage.activations_bytes + stage.buffers_bytes + reserve_bytes_;
  switch (share_) {
    case Share::kOfWhatTheRestLeaves: return utilization_ * (capacity_bytes_ - rest);
    case Share::kBeforeActivations:
      return std::min(utilization_ * (capacity_bytes_ - (reserve_bytes_ - index_bytes_) - stage.buffers_bytes) -
                          stage.weights_bytes,
                      capacity_bytes_ - rest);
    case Share::kOfAll: break;
  }
  return utilization_ * capacity_bytes_ - rest;
}

ServingMemory ReplicaMemory::OfStage(size_t index, int64_t batch_size, int64_t context_tokens) const {
  const Stage& stage = stages_[index];
  const double sequences = std::ceil(static_cast<double>(batch_size) / load_.data_ranks);
  ServingMemory memory;
  memory.stage = static_cast<int32_t>(index);
  memory.weights_bytes = Bytes(stage.weights_bytes);
  memory.kv_cache_bytes = Bytes(std::min(sequences * SequenceBytes(stage, context_tokens), 9e18));
  memory.activations_bytes = Bytes(stage.activations_bytes);
  memory.buffers_bytes = Bytes(stage.buffers_bytes);
  memory.reserve_bytes = Bytes(reserve_bytes_);
  const double used = static_cast<double>(memory.weights_bytes) + static_cast<double>(memory.kv_cache_bytes) +
                      static_cast<double>(memory.activations_bytes + memory.buffers_bytes + memory.reserve_bytes);
  memory.used_bytes = Bytes(used);
  memory.capacity_bytes = Bytes(capacity_bytes_);
  memory.headroom_bytes = memory.capacity_bytes - memory.used_bytes;
  memory.kv_pool_bytes = Bytes(std::max(0.0, FreeBytes(stage)));
  return memory;
}

void ReplicaMemory::Describe(ServingMemory& memory) const {
  const Stage& stage = stages_[static_cast<size_t>(memory.stage)];
  memory.layer_count = 0;
  for (const double count : stage.layer_counts) memory.layer_count += static_cast<int32_t>(count);
  // Windows are full long before.
  constexpr int64_t kLong = int64_t{1} << 29;
  memory.kv_bytes_per_token =
      Bytes((SequenceBytes(stage, 2 * kLong) - SequenceBytes(stage, kLong)) / static_cast<double>(kLong));
  memory.max_context_tokens = MaxContextOf(stage);
}

std::vector<ServingMemory> ReplicaMemory::Stages(int64_t batch_size, int64_t context_tokens) const {
  std::vector<ServingMemory> stages;
  for (size_t s = 0; stages_.size() > 1 && s < stages_.size(); ++s) {
    ServingMemory memory = OfStage(s, batch_size, context_tokens);
    memory.kv_pool_tokens = PoolTokensOf(stages_[s], context_tokens).value_or(0);
    Describe(memory);
    stages.push_back(memory);
  }
  return stages;
}

ServingMemory ReplicaMemory::Of(int64_t batch_size, int64_t context_tokens) const {
  ServingMemory fullest = OfStage(0, batch_size, context_tokens);
  for (size_t s = 1; s < stages_.size(); ++s) {
    const ServingMemory memory = OfStage(s, batch_size, context_tokens);
    if (memory.used_bytes > fullest.used_bytes) fullest = memory;
  }
  fullest.kv_pool_tokens = PoolTokens(context_tokens);
  return fullest;
}

double ReplicaMemory::UsableBytes(const ServingMemory& memory) const {
  if (share_ == Share::kOfAll) return utilization_ * capacity_bytes_;
  const double rest = static_cast<double>(memory.used_bytes) - static_cast<double>(memory.kv_cache_bytes);
  return rest + std::max(0.0, FreeBytes(stages_[static_cast<size_t>(memory.stage)]));
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

int32_t ReplicaMemory::MaxContextOf(const Stage& stage) const {
  if (BatchOf(stage, 1) < 1) return 0;
  int64_t low = 1;
  int64_t high = static_cast<int64_t>(kMostTokens);
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (BatchOf(stage, middle) >= 1) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return static_cast<int32_t>(low);
}

int32_t ReplicaMemory::MaxContext() const {
  int32_t tokens = MaxContextOf(stages_[0]);
  for (const Stage& stage : stages_) tokens = std::min(tokens, MaxContextOf(stage));
  return tokens;
}

std::optional<int64_t> ReplicaMemory::PoolTokensOf(const Stage& stage, int64_t context_tokens) const {
  const double blocks = std::ceil(static_cast<double>(context_tokens) / block_tokens_) * block_tokens_;
  const double bytes = SequenceBytes(stage, context_tokens);
  if (bytes <= 0) return std::nullopt;
  const double tokens = std::max(0.0, FreeBytes(stage)) / bytes * blocks;
  return static_cast<int64_t>(std::min(std::floor(tokens / block_tokens_) * block_tokens_ * load_.data_ranks, 9e18));
}

int64_t ReplicaMemory::PoolTokens(int64_t context_tokens) const {
  std::optional<int64_t> least;
  for (const Stage& stage : stages_) {
    const std::optional<int64_t> tokens = PoolTokensOf(stage, context_tokens);
    if (tokens) least = std::min(least.value_or(*tokens), *tokens);
  }
  return least.value_or(0);
}

double ReplicaMemory::KvBytesPerSequence(int64_t context_tokens) const {
  double bytes = 0;
  for (const Stage& stage : stages_) bytes += SequenceBytes(stage, context_tokens);
  return bytes * load_.tensor;
}

}  // namespace sliceplan::planner
