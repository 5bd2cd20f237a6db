#include "server/planner/serving/replica_timer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "server/planner/layer_time.h"
#include "server/planner/step_interval.h"

namespace sliceplan::planner {
namespace {

using transformer::Component;

// A step takes some time whatever it does; also what keeps rates finite.
constexpr double kLeastSeconds = 1e-9;

// Latent attention launches about twice as many kernels for a prompt.
constexpr double kLatentLaunches = 2;

// How reading and computing join: close to the larger, more where both are alike. Fitted between 3 and 6; kept at 4.
double SmoothMax(double a, double b) {
  const double a2 = a * a;
  const double b2 = b * b;
  return std::sqrt(std::sqrt(a2 * a2 + b2 * b2));
}

bool LeavesDomain(roofline::Tier tier) { return tier == roofline::Tier::kScaleOut || tier == roofline::Tier::kDcn; }

}  // namespace

double PassSeconds::Total() const {
  return std::accumulate(network.begin(), network.end(), weights + matmul_compute + kv + attention + kernels + host);
}

ReplicaTimer::ReplicaTimer(const ReplicaLoad& load, const hardware::Slice& slice, const PlanLaws& laws,
                           const roofline::ServingEfficiency* efficiency)
    : load_(load), laws_(laws), rates_(PassRatesOf(slice.accelerator)), roofline_(efficiency == nullptr) {
  traffic_ = TrafficOf(load, laws);
  if (efficiency == nullptr) return;
  efficiency_ = *efficiency;
  const roofline::ServingEfficiency& e = efficiency_;
  host_seconds_per_step_ = load.pipeline * e.seconds_per_step;
  for (const PassLayer& layer : load.layers) {
    double one = e.seconds_per_layer * (1 + (layer.latent_attention ? e.latent_layer_ratio : 0));
    if (layer.four_bit_attention) one += e.four_bit_attention_seconds_per_layer;
    if (layer.has_experts) one += e.seconds_per_expert_layer;
    if (layer.unpacked_experts) one += e.unpacked_expert_seconds_per_layer;
    if (layer.has_experts && e.expert_decode_low_ratio > 0) {
      efficiency_.decode_low_ratio = e.expert_decode_low_ratio;
      efficiency_.decode_high_ratio = e.expert_decode_high_ratio;
    }
    host_seconds_per_step_ += layer.count * one;
    eager_seconds_per_prompt_ +=
        layer.count * e.eager_seconds_per_layer * (layer.latent_attention ? kLatentLaunches : 1);
  }
}

ReplicaTimer::Pass ReplicaTimer::PassOf(const StepShape& shape) const {
  Pass pass;
  pass.shape = shape;
  pass.counts = CountPass(load_, traffic_, 1, shape);
  pass.bounds = BoundPass(load_, laws_, rates_, shape, pass.counts);
  return pass;
}

double ReplicaTimer::NetworkSeconds(const StepShape& shape) const { return PassOf(shape).bounds.NetworkSeconds(); }

double ReplicaTimer::Lower(const Pass& pass) const {
  const PassCounts& counts = pass.counts;
  const double kv = counts.kv_bytes / rates_.hbm_bytes_per_second;
  if (counts.prefill_rows > 0) return std::max(kLeastSeconds, kv + pass.bounds.lower_seconds);
  // Contract and book: in decode only the largest of three, over the whole step.
  return std::max(kLeastSeconds, kv + std::max({counts.ComputeSeconds(), pass.bounds.NetworkSeconds(),
                                                counts.WeightBytes() / rates_.hbm_bytes_per_second}));
}

double ReplicaTimer::Upper(const Pass& pass) const {
  const PassCounts& counts = pass.counts;
  const double bytes = counts.kv_bytes + counts.WeightBytes() + counts.activation_bytes;
  const double attention_flops = counts.prefill_attention_flops + counts.decode_attention_flops;
  return std::max(Lower(pass), bytes / rates_.hbm_bytes_per_second + counts.ComputeSeconds() +
                                   attention_flops / rates_.flops_per_second + pass.bounds.NetworkSeconds());
}

LogicalAxis ReplicaTimer::BusiestAxis(const PassBounds& bounds) const {
  LogicalAxis busiest = LogicalAxis::kTensor;
  for (const LogicalAxis axis : kLogicalAxes) {
    if (bounds.network_seconds[static_cast<size_t>(axis)] > bounds.network_seconds[static_cast<size_t>(busiest)]) {
      busiest = axis;
    }
  }
  return busiest;
}

StepResource ReplicaTimer::Bound(const Pass& pass) const {
  const PassCounts& counts = pass.counts;
  const bool prefill = counts.prefill_rows > 0;
  const double bytes = counts.kv_bytes + counts.WeightBytes() + (prefill ? counts.activation_bytes : 0);
  const double hbm = bytes / rates_.hbm_bytes_per_second;
  const double compute =
      counts.ComputeSeconds() + (prefill ? counts.prefill_attention_flops / rates_.flops_per_second : 0);
  const double network = pass.bounds.NetworkSeconds();
  if (network > hbm && network > compute) return ResourceOf(SlowestTierOf(laws_, BusiestAxis(pass.bounds)));
  return hbm >= compute ? StepResource::kHbm : StepResource::kMatrixUnit;
}

PassSeconds ReplicaTimer::Ideal(const Pass& pass) const {
  const PassCounts& counts = pass.counts;
  PassSeconds seconds;
  seconds.kv = counts.kv_bytes / rates_.hbm_bytes_per_second;
  const double rest = Lower(pass) - seconds.kv;
  const double network = pass.bounds.NetworkSeconds();
  const double weights = counts.WeightBytes() / rates_.hbm_bytes_per_second;
  const double compute = counts.ComputeSeconds() + counts.prefill_attention_flops / rates_.flops_per_second;
  if (network > weights && network > compute) {
    seconds.network[static_cast<size_t>(BusiestAxis(pass.bounds))] = rest;
  } else {
    (weights >= compute ? seconds.weights : seconds.matmul_compute) = rest;
  }
  return seconds;
}

double ReplicaTimer::ClassTime(const ClassSeconds& seconds, double ratio) const {
  const auto of = [&](RateClass c) { return seconds[static_cast<size_t>(c)]; };
  return (of(RateClass::kWide) + of(RateClass::kEightBit) / efficiency_.eight_bit_ratio +
          of(RateClass::kFourBit) / efficiency_.four_bit_ratio +
          of(RateClass::kUnpackedFourBit) / efficiency_.unpacked_four_bit_ratio) /
         ratio;
}

double ReplicaTimer::NetworkOf(LogicalAxis axis, const PassTraffic& traffic, bool decodes) const {
  const roofline::ServingEfficiency& e = efficiency_;
  const double doublings = std::log2(std::max(2.0, load_.tensor));
  if (LeavesDomain(SlowestTierOf(laws_, axis))) {
    const double floor = axis == LogicalAxis::kExpert
                             ? e.exchange_seconds
                             : e.outer_reduce_seconds + e.reduce_seconds_per_doubling * doublings;
    return (traffic.decode_seconds + traffic.prefill_seconds) / e.outer_collective_ratio +
           (decodes ? traffic.count * floor : 0);
  }
  if (axis == LogicalAxis::kExpert) {
    return traffic.decode_seconds / e.exchange_collective_ratio + traffic.prefill_seconds / e.ring_collective_ratio +
           (decodes ? traffic.count * e.exchange_seconds : 0);
  }
  const auto reduce = [&](double link_seconds) {
    const double ring = traffic.count * e.ring_seconds + link_seconds / e.ring_collective_ratio;
    if (e.one_shot_collective_ratio <= 0) return ring;
    return std::min(ring, link_seconds * load_.tensor / 2 / e.one_shot_collective_ratio);
  };
  return (traffic.decode_seconds > 0 ? reduce(traffic.decode_seconds) : 0) +
         (traffic.prefill_seconds > 0 ? reduce(traffic.prefill_seconds) : 0) +
         (decodes ? traffic.count * e.reduce_seconds_per_doubling * doublings : 0);
}

PassSeconds ReplicaTimer::Expected(const PassCounts& counts) const {
  const roofline::ServingEfficiency& e = efficiency_;
  const double hbm = rates_.hbm_bytes_per_second;
  PassSeconds seconds;
  const double unpacked = counts.unpacked_expert_weight_bytes;
  const double widened = counts.widened_weight_bytes;
  seconds.weights =
      (counts.dense_weight_bytes - widened + widened / e.weight_only_hbm_ratio) / (hbm * e.weights_hbm_ratio) +
      (counts.expert_weight_bytes - unpacked + unpacked / e.unpacked_expert_hbm_ratio) / (hbm * e.expert_hbm_ratio);
  const double compute = ClassTime(counts.decode_seconds, e.decode_matmul_ratio) +
                         ClassTime(counts.prefill_seconds, e.prefill_matmul_ratio);
  seconds.matmul_compute = SmoothMax(seconds.weights, compute) - seconds.weights;
  seconds.kv = counts.kv_bytes / (hbm * e.kv_hbm_ratio);
  const double decode_attention = counts.decode_attention_flops / (rates_.flops_per_second * e.decode_attention_ratio);
  seconds.attention = SmoothMax(seconds.kv, decode_attention) - seconds.kv +
                      counts.prefill_attention_flops / (rates_.flops_per_second * e.prefill_attention_ratio);
  seconds.kernels = e.activation_passes * counts.kernel_bytes / hbm;

  const bool decodes = counts.decode_rows > 0;
  for (const LogicalAxis axis : kLogicalAxes) {
    const PassTraffic& traffic = counts.traffic[static_cast<size_t>(axis)];
    if (traffic.count > 0) seconds.network[static_cast<size_t>(axis)] = NetworkOf(axis, traffic, decodes);
  }
  if (decodes) {
    seconds.host = host_seconds_per_step_ + counts.resident_sequences * e.seconds_per_sequence +
                   counts.prefill_sequences * e.seconds_per_prompt;
  } else {
    // Launches of a prompt hide behind its work, where there is enough.
    const double work = seconds.Total();
    seconds.host = std::sqrt(work * work + eager_seconds_per_prompt_ * eager_seconds_per_prompt_) - work +
                   counts.prefill_sequences * e.seconds_per_prompt;
  }
  return seconds;
}

double ReplicaTimer::Seconds(const StepShape& shape) const {
  if (roofline_) return Lower(PassOf(shape));
  return std::max(kLeastSeconds, Expected(CountPass(load_, traffic_, efficiency_.expert_choice_ratio, shape)).Total());
}

void ReplicaTimer::AddParts(const PassCounts& counts, const PassSeconds& seconds, double scale, PassTime& time) const {
  const auto add = [&](Component component, StepResource resource, double part, std::optional<LogicalAxis> axis = {}) {
    if (part <= 0) return;
    for (PassPart& known : time.parts) {
      if (known.component == component && known.resource == resource && known.axis == axis) {
        known.seconds += part * scale;
        return;
      }
    }
    time.parts.push_back({component, resource, axis, part * scale});
  };
  const double bytes = std::max(1.0, counts.WeightBytes());
  const double experts = counts.expert_weight_bytes / bytes;
  const double head = load_.head.weight_bytes / bytes;
  add(Component::kFeedForward, StepResource::kHbm, seconds.weights * experts);
  add(Component::kOutputHead, StepResource::kHbm, seconds.weights * head);
  add(Component::kOther, StepResource::kHbm, seconds.weights * std::max(0.0, 1 - experts - head));
  add(Component::kOther, StepResource::kMatrixUnit, seconds.matmul_compute);
  add(Component::kAttentionScores, StepResource::kHbm, seconds.kv);
  add(Component::kAttentionScores, StepResource::kMatrixUnit, seconds.attention);
  add(Component::kNorm, StepResource::kHbm, seconds.kernels);
  for (const LogicalAxis axis : kLogicalAxes) {
    add(Component::kOther, ResourceOf(SlowestTierOf(laws_, axis)), seconds.network[static_cast<size_t>(axis)], axis);
  }
  add(Component::kOther, StepResource::kHost, seconds.host);
}

PassTime ReplicaTimer::Decode(int64_t sequences, double context_tokens, int64_t tokens_per_sequence) const {
  StepShape shape;
  shape.decode_sequences = sequences;
  shape.decode_context_tokens = context_tokens;
  shape.tokens_per_sequence = tokens_per_sequence;
  const Pass pass = PassOf(shape);
  const double hbm = rates_.hbm_bytes_per_second;
  PassTime time;
  const PassCounts expected_counts = CountPass(load_, traffic_, efficiency_.expert_choice_ratio, shape);
  const PassSeconds seconds = roofline_ ? Ideal(pass) : Expected(expected_counts);
  time.time.roofline_lower_seconds = Lower(pass);
  time.time.roofline_upper_seconds = Upper(pass);
  time.time.expected_seconds = std::max(kLeastSeconds, roofline_ ? time.time.roofline_lower_seconds : seconds.Total());
  if (!roofline_) SetStepInterval(efficiency_.decode_low_ratio, efficiency_.decode_high_ratio, time.time);
  time.kv_seconds = pass.counts.kv_bytes / hbm;
  time.weights_seconds = pass.counts.WeightBytes() / hbm;
  time.compute_seconds = pass.counts.ComputeSeconds();
  time.hbm_seconds = time.kv_seconds + time.weights_seconds;
  time.network_seconds = pass.bounds.NetworkSeconds();
  time.bound = Bound(pass);
  AddParts(expected_counts, seconds, 1, time);
  return time;
}

// Whole chunks are alike but for the keys that they see: linear, so their mean stands for all; then the rest.
std::array<ReplicaTimer::Chunks, 2> ReplicaTimer::ChunksOf(int64_t prompts, double tokens, double cached_tokens,
                                                           double chunk_tokens) const {
  // Data ranks read side by side; the busiest decides.
  const double ranks = std::min(load_.data_ranks, static_cast<double>(prompts));
  const double own_prompts = std::ceil(static_cast<double>(prompts) / load_.data_ranks);
  const double all = std::max(1.0, tokens - cached_tokens) * own_prompts;
  const double chunk = chunk_tokens > 0 ? std::min(chunk_tokens, all) : all;
  const double whole = std::floor(all / chunk);
  const double rest = all - whole * chunk;
  const double own_prior = own_prompts == 1 ? 1 : 0;  // chunks of several prompts see little of their own past
  const double prompts_per_chunk = std::max(1.0, std::round(own_prompts / std::ceil(all / chunk)));
  const auto shape = [&](double size, double prior) {
    StepShape made;
    made.prefill_tokens = std::max<int64_t>(1, std::llround(size * ranks));
    made.prefill_sequences = std::max<int64_t>(1, std::llround(prompts_per_chunk * ranks));
    made.prefill_context_tokens = prior;
    return made;
  };
  return {Chunks{rest > 0 ? 1.0 : 0.0, shape(rest, cached_tokens + own_prior * whole * chunk)},
          Chunks{whole, shape(chunk, cached_tokens + own_prior * (whole - 1) * chunk / 2)}};
}

// Chunks, and prompts of a batch, follow each other through the stages.
double ReplicaTimer::PipelineShare(int64_t prompts, const std::array<Chunks, 2>& chunks) const {
  constexpr double kMicrobatchesPerStage = 4;
  const double pieces =
      std::max(chunks[0].count + chunks[1].count,
               std::min<double>(static_cast<double>(prompts), kMicrobatchesPerStage * load_.pipeline));
  return (pieces + load_.pipeline - 1) / (pieces * load_.pipeline);
}

double ReplicaTimer::PrefillSeconds(int64_t prompts, double tokens, double cached_tokens, double chunk_tokens) const {
  const std::array<Chunks, 2> chunks = ChunksOf(prompts, tokens, cached_tokens, chunk_tokens);
  double seconds = 0;
  for (const Chunks& some : chunks) {
    if (some.count > 0) seconds += some.count * PromptSeconds(some.shape);
  }
  return seconds * (load_.pipeline > 1 ? PipelineShare(prompts, chunks) : 1);
}

double ReplicaTimer::PromptSeconds(const StepShape& shape) const {
  if (roofline_) return Lower(PassOf(shape));
  return std::max(kLeastSeconds, Expected(CountPass(load_, traffic_, 1, shape)).Total());
}

PassTime ReplicaTimer::Prefill(int64_t prompts, double tokens, double cached_tokens, double chunk_tokens) const {
  PassTime time;
  const double hbm = rates_.hbm_bytes_per_second;
  const std::array<Chunks, 2> chunks = ChunksOf(prompts, tokens, cached_tokens, chunk_tokens);
  for (const Chunks& some : chunks) {
    if (some.count <= 0) continue;
    const double count = some.count;
    const Pass pass = PassOf(some.shape);
    const PassSeconds seconds = roofline_ ? Ideal(pass) : Expected(pass.counts);
    time.time.roofline_lower_seconds += count * Lower(pass);
    time.time.roofline_upper_seconds += count * Upper(pass);
    time.time.expected_seconds += count * std::max(kLeastSeconds, roofline_ ? Lower(pass) : seconds.Total());
    time.compute_seconds +=
        count * (pass.counts.ComputeSeconds() + pass.counts.prefill_attention_flops / rates_.flops_per_second);
    time.weights_seconds += count * pass.counts.WeightBytes() / hbm;
    time.hbm_seconds += count * (pass.counts.WeightBytes() + pass.counts.activation_bytes) / hbm;
    time.network_seconds += count * pass.bounds.NetworkSeconds();
    time.bound = Bound(pass);
    AddParts(pass.counts, seconds, count, time);
  }
  if (load_.pipeline > 1) {
    const double share = PipelineShare(prompts, chunks);
    time.time.expected_seconds *= share;
    time.time.roofline_lower_seconds *= share;
    for (PassPart& part : time.parts) part.seconds *= share;
  }
  if (!roofline_) SetStepInterval(efficiency_.prefill_low_ratio, efficiency_.prefill_high_ratio, time.time);
  time.mfu_ratio = std::min(1.0, time.compute_seconds / load_.pipeline / time.time.expected_seconds);
  return time;
}

}  // namespace sliceplan::planner
