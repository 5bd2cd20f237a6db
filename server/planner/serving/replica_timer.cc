#include "server/planner/serving/replica_timer.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sliceplan::planner {
namespace {

using transformer::Component;

// A step takes some time whatever it does; also what keeps rates finite.
constexpr double kLeastSeconds = 1e-9;

StepResource ResourceOfTier(roofline::Tier tier) {
  switch (tier) {
    case roofline::Tier::kScaleUp: return StepResource::kScaleUp;
    case roofline::Tier::kScaleOut: return StepResource::kScaleOut;
    case roofline::Tier::kDcn: return StepResource::kDcn;
    case roofline::Tier::kNone:
    case roofline::Tier::kIci: break;
  }
  return StepResource::kIci;
}

roofline::Tier TierOf(LogicalAxis axis, const PlanLaws& laws) {
  switch (axis) {
    case LogicalAxis::kTensor: return laws.tensor_gather.slowest_tier;
    case LogicalAxis::kContext: return laws.context_gather.slowest_tier;
    case LogicalAxis::kExpert: return laws.expert_exchange.slowest_tier;
    case LogicalAxis::kPipeline: return laws.pipeline_permute.slowest_tier;
    case LogicalAxis::kFsdp: return laws.weights_gather.slowest_tier;
    case LogicalAxis::kData: break;
  }
  return roofline::Tier::kNone;
}

// The slowest axis.
std::pair<LogicalAxis, double> Busiest(const PassCounts& counts) {
  std::pair<LogicalAxis, double> busiest = {LogicalAxis::kTensor, 0};
  for (const LogicalAxis axis : kLogicalAxes) {
    const double seconds = counts.traffic[static_cast<size_t>(axis)].floored_seconds;
    if (seconds > busiest.second) busiest = {axis, seconds};
  }
  return busiest;
}

}  // namespace

double PassSeconds::Total() const {
  double seconds = matmul_compute + weights + kv + attention + activations + host;
  for (const double axis : network) seconds += axis;
  return seconds;
}

ReplicaTimer::ReplicaTimer(const ReplicaLoad& load, const hardware::Slice& slice, const PlanLaws& laws,
                           const roofline::ServingEfficiency* efficiency)
    : load_(load), laws_(laws), rates_(PassRatesOf(slice.accelerator)), roofline_(efficiency == nullptr) {
  if (efficiency != nullptr) efficiency_ = *efficiency;
}

double ReplicaTimer::Lower(const PassCounts& counts) const {
  const double kv = counts.kv_bytes / rates_.hbm_bytes_per_second;
  if (counts.prefill_rows > 0) return std::max(kLeastSeconds, kv + counts.lower_seconds);
  // Contract and book: in decode only the largest of three, over the whole step.
  return std::max(kLeastSeconds, kv + std::max({counts.ComputeSeconds(), counts.NetworkSeconds(),
                                                counts.WeightBytes() / rates_.hbm_bytes_per_second}));
}

double ReplicaTimer::Upper(const PassCounts& counts) const {
  const double bytes = counts.kv_bytes + counts.WeightBytes() + counts.activation_bytes;
  const double attention =
      (counts.prefill_attention_flops + counts.decode_attention_flops) / rates_.flops_per_second;
  return std::max(Lower(counts), bytes / rates_.hbm_bytes_per_second + counts.ComputeSeconds() + attention +
                                     counts.NetworkSeconds());
}

PassSeconds ReplicaTimer::Expected(const PassCounts& counts) const {
  PassSeconds seconds;
  const double hbm = rates_.hbm_bytes_per_second;
  if (roofline_) {
    const double weights = counts.WeightBytes() / hbm;
    const double network = counts.NetworkSeconds();
    seconds.kv = counts.kv_bytes / hbm;
    const double rest = Lower(counts) - seconds.kv;
    const double compute =
        counts.ComputeSeconds() + (counts.prefill_rows > 0 ? counts.prefill_attention_flops / rates_.flops_per_second
                                                           : 0);
    if (network > weights && network > compute) {
      const auto [axis, busiest] = Busiest(counts);
      seconds.network[static_cast<size_t>(axis)] = rest;
    } else {
      (weights >= compute ? seconds.weights : seconds.matmul_compute) = rest;
    }
    return seconds;
  }
  const roofline::ServingEfficiency& e = efficiency_;
  const double weights =
      counts.dense_weight_bytes / (hbm * e.weights_hbm_ratio) + counts.expert_weight_bytes / (hbm * e.expert_hbm_ratio);
  const double compute =
      (counts.wide_seconds + counts.narrow_seconds / e.low_precision_ratio) / e.matmul_ratio;
  const double joined = e.overlap_exponent <= 0
                            ? std::max(weights, compute)
                            : std::pow(std::pow(weights, e.overlap_exponent) + std::pow(compute, e.overlap_exponent),
                                       1 / e.overlap_exponent);
  seconds.weights = std::min(weights, joined);
  seconds.matmul_compute = joined - seconds.weights;
  seconds.kv = counts.kv_bytes / (hbm * e.kv_hbm_ratio);
  const double attention_rate = rates_.flops_per_second * e.attention_ratio;
  seconds.attention = counts.prefill_attention_flops / attention_rate +
                      std::max(0.0, counts.decode_attention_flops / attention_rate - seconds.kv);
  seconds.activations = counts.activation_bytes / hbm;
  for (size_t axis = 0; axis < seconds.network.size(); ++axis) {
    const PassTraffic& traffic = counts.traffic[axis];
    seconds.network[axis] =
        traffic.bandwidth_seconds / e.collective_ratio + traffic.collective_count * e.collective_seconds;
  }
  seconds.host = e.seconds_per_step + counts.layer_count * e.seconds_per_layer +
                 counts.expert_layer_count * e.seconds_per_expert_layer +
                 counts.resident_sequences * e.seconds_per_sequence + counts.prefill_sequences * e.seconds_per_prefill;
  return seconds;
}

double ReplicaTimer::Seconds(const StepShape& shape) const {
  const PassCounts counts = Count(shape);
  return roofline_ ? Lower(counts) : std::max(kLeastSeconds, Expected(counts).Total());
}

StepResource ReplicaTimer::Bound(const PassCounts& counts, double extra_hbm_seconds) const {
  const double hbm = counts.WeightBytes() / rates_.hbm_bytes_per_second + extra_hbm_seconds;
  const double compute = counts.ComputeSeconds() +
                         (counts.prefill_rows > 0 ? counts.prefill_attention_flops / rates_.flops_per_second : 0);
  const double network = counts.NetworkSeconds();
  if (network > hbm && network > compute) return ResourceOfTier(TierOf(Busiest(counts).first, laws_));
  return hbm >= compute ? StepResource::kHbm : StepResource::kMatrixUnit;
}

void ReplicaTimer::AddParts(const PassCounts& counts, const PassSeconds& seconds, double scale, PassTime& time) const {
  const auto add = [&](Component component, StepResource resource, double part, std::optional<LogicalAxis> axis = {}) {
    if (part > 0) time.parts.push_back({component, resource, axis, part * scale});
  };
  // Weights and compute by the bytes of experts and of everything else.
  const double bytes = counts.WeightBytes();
  const double experts = bytes > 0 ? counts.expert_weight_bytes / bytes : 0;
  const double head = bytes > 0 ? load_.head.weight_bytes / bytes : 0;
  add(Component::kFeedForward, StepResource::kHbm, seconds.weights * experts);
  add(Component::kOther, StepResource::kHbm, seconds.weights * (1 - experts - head));
  add(Component::kOutputHead, StepResource::kHbm, seconds.weights * head);
  add(Component::kOther, StepResource::kMatrixUnit, seconds.matmul_compute);
  add(Component::kAttentionScores, StepResource::kHbm, seconds.kv);
  add(Component::kAttentionScores, StepResource::kMatrixUnit, seconds.attention);
  add(Component::kNorm, StepResource::kHbm, seconds.activations);
  for (const LogicalAxis axis : kLogicalAxes) {
    add(Component::kOther, ResourceOfTier(TierOf(axis, laws_)), seconds.network[static_cast<size_t>(axis)], axis);
  }
  add(Component::kOther, StepResource::kHost, seconds.host);
}

PassTime ReplicaTimer::Decode(int64_t sequences, double context_tokens, int64_t tokens_per_sequence) const {
  StepShape shape;
  shape.decode_sequences = sequences;
  shape.decode_context_tokens = context_tokens;
  shape.tokens_per_sequence = tokens_per_sequence;
  const PassCounts counts = Count(shape);
  PassTime time;
  const PassSeconds seconds = Expected(counts);
  time.time.roofline_lower_seconds = Lower(counts);
  time.time.roofline_upper_seconds = Upper(counts);
  time.time.expected_seconds = roofline_ ? time.time.roofline_lower_seconds : std::max(kLeastSeconds, seconds.Total());
  if (!roofline_ && efficiency_.decode_low_ratio > 0) {
    time.time.p05_seconds = efficiency_.decode_low_ratio * time.time.expected_seconds;
    time.time.p95_seconds = efficiency_.decode_high_ratio * time.time.expected_seconds;
  }
  time.kv_seconds = counts.kv_bytes / rates_.hbm_bytes_per_second;
  time.weights_seconds = counts.WeightBytes() / rates_.hbm_bytes_per_second;
  time.compute_seconds = counts.ComputeSeconds();
  time.hbm_seconds = time.kv_seconds + time.weights_seconds + counts.activation_bytes / rates_.hbm_bytes_per_second;
  time.network_seconds = counts.NetworkSeconds();
  time.bound = Bound(counts, time.kv_seconds);
  AddParts(counts, seconds, 1, time);
  return time;
}

double ReplicaTimer::PrefillSeconds(int64_t prompts, double tokens, double cached_tokens, double chunk_tokens) const {
  return Prefill(prompts, tokens, cached_tokens, chunk_tokens).time.expected_seconds;
}

PassTime ReplicaTimer::Prefill(int64_t prompts, double tokens, double cached_tokens, double chunk_tokens) const {
  const double work = std::max(1.0, tokens - cached_tokens);
  const double all = work * static_cast<double>(prompts);
  const double chunk = chunk_tokens > 0 ? std::min(chunk_tokens, all) : all;
  const double chunks = std::ceil(all / chunk);
  PassTime time;
  double flops_seconds = 0;
  // Whole chunks are alike but for the keys that they see: linear, so the mean stands for all.
  const auto add = [&](double count, double size, double prior) {
    if (count <= 0 || size <= 0) return;
    StepShape shape;
    shape.prefill_tokens = std::max<int64_t>(1, std::llround(size));
    shape.prefill_sequences = std::max<int64_t>(1, std::llround(static_cast<double>(prompts) / chunks));
    shape.prefill_context_tokens = prior;
    const PassCounts counts = Count(shape);
    const PassSeconds seconds = Expected(counts);
    const double hbm = rates_.hbm_bytes_per_second;
    const double compute = counts.ComputeSeconds() + counts.prefill_attention_flops / rates_.flops_per_second;
    time.time.roofline_lower_seconds += count * Lower(counts);
    time.time.roofline_upper_seconds += count * Upper(counts);
    time.time.expected_seconds += count * (roofline_ ? Lower(counts) : std::max(kLeastSeconds, seconds.Total()));
    time.compute_seconds += count * compute;
    time.weights_seconds += count * counts.WeightBytes() / hbm;
    time.hbm_seconds += count * (counts.WeightBytes() + counts.activation_bytes) / hbm;
    time.network_seconds += count * counts.NetworkSeconds();
    flops_seconds += count * compute;
    time.bound = Bound(counts, counts.activation_bytes / hbm);
    AddParts(counts, seconds, count, time);
  };
  const double whole = std::floor(all / chunk);
  const double rest = all - whole * chunk;
  const double per_prompt_prior = prompts == 1 ? 1 : 0;  // several whole prompts share a chunk
  add(whole, chunk, cached_tokens + per_prompt_prior * (whole - 1) * chunk / 2);
  add(rest > 0 ? 1 : 0, rest, cached_tokens + per_prompt_prior * whole * chunk);
  if (load_.pipeline > 1 && chunks > 1) {
    // Chunks follow each other through the stages.
    const double share = (chunks + load_.pipeline - 1) / (chunks * load_.pipeline);
    time.time.expected_seconds *= share;
    time.time.roofline_lower_seconds *= share;
    for (PassPart& part : time.parts) part.seconds *= share;
  }
  if (!roofline_ && efficiency_.prefill_low_ratio > 0) {
    time.time.p05_seconds = efficiency_.prefill_low_ratio * time.time.expected_seconds;
    time.time.p95_seconds = efficiency_.prefill_high_ratio * time.time.expected_seconds;
  }
  if (time.time.expected_seconds > 0) {
    time.mfu_ratio = std::min(1.0, flops_seconds / load_.pipeline / time.time.expected_seconds);
  }
  return time;
}

}  // namespace sliceplan::planner
