#include "server/planner/serving/pass_counts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sliceplan::planner {
namespace {

using roofline::CollectiveLaw;

// A residual branch is gathered before its first matmul and reduced after its last.
constexpr double kHalfOfAReduction = 0.5;
constexpr double kDispatchAndCombine = 2;
constexpr double kThereAndBack = 2;

// An all-to-all of bytes that a group holds moves a quarter of what its all-gather moves on a ring and 1/N behind a
// switch (book, chapters 3 and 18); the latency is the same.
double ExchangeShare(const CollectiveLaw& gather, double degree) {
  constexpr double kRingShare = 0.25;
  return gather.ici_seconds_per_byte > 0 ? kRingShare : 1 / std::max(1.0, degree);
}

double Sum(const ClassSeconds& seconds) { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

// Calls visit(axis, law, bytes per token, collectives) for everything that a layer sends once per pass; the messages of
// operations (`group`) and those between them apart.
template <typename Visit>
void ForGroupTraffic(const PassGroup& group, const PlanLaws& laws, Visit&& visit) {
  if (group.gather_bytes_per_token > 0) {
    visit(LogicalAxis::kTensor, laws.tensor_gather, group.gather_bytes_per_token, kHalfOfAReduction);
  }
  if (group.reduce_bytes_per_token > 0) {
    visit(LogicalAxis::kTensor, laws.tensor_scatter, group.reduce_bytes_per_token, kHalfOfAReduction);
  }
  if (group.hidden_reduce_bytes_per_token > 0) {
    visit(LogicalAxis::kFsdp, laws.weights_scatter, group.hidden_reduce_bytes_per_token, kHalfOfAReduction);
    visit(LogicalAxis::kFsdp, laws.weights_gather, group.hidden_reduce_bytes_per_token, kHalfOfAReduction);
  }
}

template <typename Visit>
void ForLayerTraffic(const ReplicaLoad& load, const PassLayer& layer, const PlanLaws& laws, Visit&& visit) {
  if (layer.expert_exchange_bytes_per_token > 0) {
    for (int i = 0; i < kDispatchAndCombine; ++i) {
      visit(LogicalAxis::kExpert, laws.expert_exchange, layer.expert_exchange_bytes_per_token, 1.0);
    }
  }
  const PassAttention& attention = layer.attention;
  if (attention.exchange_bytes_per_token > 0 && load.tensor > 1) {
    const double bytes =
        attention.exchange_bytes_per_token / kThereAndBack * ExchangeShare(laws.tensor_gather, load.tensor);
    for (int i = 0; i < kThereAndBack; ++i) visit(LogicalAxis::kTensor, laws.tensor_gather, bytes, 1.0);
  }
  if (attention.context_bytes_per_token > 0) {
    visit(LogicalAxis::kContext, laws.context_gather, attention.context_bytes_per_token, 1.0);
  }
}

// Tokens of the busiest data rank, before the split over context.
double PromptTokens(const ReplicaLoad& load, const PassCounts& counts) { return counts.prefill_rows * load.context; }

double KeysPerPrompt(const ReplicaLoad& load, const PassCounts& counts) {
  return counts.prefill_sequences > 0 ? PromptTokens(load, counts) / counts.prefill_sequences : 0;
}

// Experts of the chip that the tokens of its group visit, choosing at random: as many as a share of them would.
double TouchedExperts(const ReplicaLoad& load, const PassLayer& layer, const StepShape& shape, double rows,
                      double expert_choice_ratio) {
  if (!layer.has_experts) return 0;
  const double all_tokens =
      static_cast<double>(shape.decode_sequences) * static_cast<double>(shape.tokens_per_sequence) +
      static_cast<double>(shape.prefill_tokens);
  const double tokens = std::min(rows * load.expert_ranks, all_tokens) * expert_choice_ratio;
  return layer.experts_on_chip * (1 - std::pow(1 - layer.choice_ratio, std::max(1.0, tokens)));
}

struct AttentionWork {
  double flops = 0;
  double bytes = 0;
};

AttentionWork PrefillAttention(const ReplicaLoad& load, const PassAttention& attention, const PassCounts& counts,
                               double prior) {
  const double tokens = KeysPerPrompt(load, counts);
  const double pairs = counts.prefill_sequences * KeysSeenByPrompt(attention, prior, tokens);
  const double all_pairs = PromptTokens(load, counts) * (prior + tokens / 2) / std::max(1.0, attention.compression);
  return {pairs * attention.prefill_flops_per_key + all_pairs * attention.indexer_flops_per_key +
              counts.prefill_rows * attention.scan_flops_per_token,
          // Keys of earlier chunks are read once per chunk, those of this one written.
          counts.prefill_sequences * (prior + tokens) * attention.kv_bytes_per_key +
              counts.prefill_rows * attention.scan_bytes_per_token};
}

}  // namespace

double PassCounts::ComputeSeconds() const { return Sum(decode_seconds) + Sum(prefill_seconds); }

double PassBounds::NetworkSeconds() const {
  return std::accumulate(network_seconds.begin(), network_seconds.end(), 0.0);
}

PassRates PassRatesOf(const hardware::AcceleratorSpec& accelerator) {
  // Unknown figures are refused before (serving_limits.h).
  return {accelerator.hbm_bytes_per_second.value_or(1), accelerator.MatmulRate(hardware::DataType::kBf16).value_or(1)};
}

TrafficSums TrafficOf(const ReplicaLoad& load, const PlanLaws& laws) {
  TrafficSums sums = {};
  for (const PassLayer& layer : load.layers) {
    const auto send = [&](LogicalAxis axis, const CollectiveLaw& law, double bytes_per_token, double collectives) {
      AxisTraffic& traffic = sums[static_cast<size_t>(axis)];
      traffic.seconds_per_token += layer.count * law.BandwidthSeconds(bytes_per_token);
      traffic.count += layer.count * collectives;
    };
    for (const PassGroup& group : layer.groups) ForGroupTraffic(group, laws, send);
    ForLayerTraffic(load, layer, laws, send);
  }
  if (load.pipeline > 1) {
    AxisTraffic& traffic = sums[static_cast<size_t>(LogicalAxis::kPipeline)];
    traffic.seconds_per_token +=
        (load.pipeline - 1) * laws.pipeline_permute.BandwidthSeconds(load.permute_bytes_per_token);
    traffic.count += load.pipeline - 1;
  }
  return sums;
}

PassCounts CountPass(const ReplicaLoad& load, const TrafficSums& traffic, double expert_choice_ratio,
                     const StepShape& shape) {
  PassCounts counts;
  if (shape.decode_sequences > 0) {
    const auto sequences = static_cast<double>(shape.decode_sequences);
    counts.resident_sequences = std::ceil(sequences / load.data_ranks);
    counts.decode_sequences = std::ceil(counts.resident_sequences / load.pipeline);
    counts.decode_rows =
        std::ceil(counts.decode_sequences / load.context) * static_cast<double>(shape.tokens_per_sequence);
  }
  if (shape.prefill_tokens > 0) {
    // A prompt is one rank's; the busiest rank has the most of them.
    const auto prompts = static_cast<double>(std::max<int64_t>(1, shape.prefill_sequences));
    counts.prefill_sequences = std::ceil(prompts / load.data_ranks);
    counts.prefill_rows =
        static_cast<double>(shape.prefill_tokens) * (counts.prefill_sequences / prompts) / load.context;
  }
  const double rows = counts.decode_rows + counts.prefill_rows;
  const double context = shape.decode_context_tokens;

  for (size_t c = 0; c < kRateClassCount; ++c) {
    counts.decode_seconds[c] = counts.decode_rows * (load.seconds_per_token[c] + load.head.seconds_per_row[c]);
    counts.prefill_seconds[c] =
        counts.prefill_rows * load.seconds_per_token[c] + counts.prefill_sequences * load.head.seconds_per_row[c];
  }
  counts.dense_weight_bytes = load.dense_weight_bytes + load.head.weight_bytes;
  counts.widened_weight_bytes = load.widened_weight_bytes;
  counts.activation_bytes = rows * (load.all_activation_bytes_per_token + load.embedding_bytes_per_token) +
                            (counts.decode_rows + counts.prefill_sequences) * load.head.activation_bytes_per_row;
  counts.kernel_bytes = counts.prefill_rows * load.kernel_bytes_per_token;
  for (size_t axis = 0; axis < traffic.size(); ++axis) {
    counts.traffic[axis] = {counts.decode_rows * traffic[axis].seconds_per_token,
                            counts.prefill_rows * traffic[axis].seconds_per_token, traffic[axis].count};
  }
  for (const PassLayer& layer : load.layers) {
    if (layer.has_experts) {
      const double touched = TouchedExperts(load, layer, shape, rows, expert_choice_ratio);
      const double bytes = layer.count * layer.expert_weight_bytes * touched;
      counts.expert_weight_bytes += bytes;
      if (layer.unpacked_experts) counts.unpacked_expert_weight_bytes += bytes;
    }
    const PassAttention& attention = layer.attention;
    if (!attention.present) continue;
    const double entries = attention.compression > 0 ? context / attention.compression : context;
    const double keys = KeysSeen(attention, context);
    counts.kv_bytes +=
        layer.count * counts.decode_sequences *
        (keys * attention.kv_bytes_per_key + entries * attention.indexer_bytes_per_key + attention.state_bytes);
    counts.decode_attention_flops += layer.count * counts.decode_sequences *
                                     static_cast<double>(shape.tokens_per_sequence) *
                                     (keys * attention.decode_flops_per_key +
                                      entries * attention.indexer_flops_per_key + attention.scan_flops_per_token);
    if (counts.prefill_rows > 0) {
      const AttentionWork work = PrefillAttention(load, attention, counts, shape.prefill_context_tokens);
      counts.prefill_attention_flops += layer.count * work.flops;
      counts.activation_bytes += layer.count * work.bytes;
    }
  }

  return counts;
}

PassBounds BoundPass(const ReplicaLoad& load, const PlanLaws& laws, const PassRates& rates, const StepShape& shape,
                     const PassCounts& counts) {
  PassBounds bounds;
  const double rows = counts.decode_rows + counts.prefill_rows;
  for (const PassLayer& layer : load.layers) {
    double lower = 0;
    double network = 0;
    const auto send = [&](LogicalAxis axis, const CollectiveLaw& law, double bytes_per_token, double) {
      const double seconds = law.Seconds(rows * bytes_per_token);
      bounds.network_seconds[static_cast<size_t>(axis)] += layer.count * seconds;
      network += seconds;
    };
    const double touched = TouchedExperts(load, layer, shape, rows, 1);
    for (const PassGroup& group : layer.groups) {
      if (group.flops_per_row <= 0) continue;
      network = 0;
      ForGroupTraffic(group, laws, send);
      const double group_rows = group.experts ? rows * layer.routed_rows_per_token : rows;
      const double bytes =
          group.weight_bytes * (group.experts ? touched : 1) + group_rows * group.activation_bytes_per_row;
      lower += std::max({group_rows * Sum(group.seconds_per_row), bytes / rates.hbm_bytes_per_second, network});
    }
    network = 0;
    ForLayerTraffic(load, layer, laws, send);
    lower += network;
    if (layer.attention.present && counts.prefill_rows > 0) {
      const AttentionWork work = PrefillAttention(load, layer.attention, counts, shape.prefill_context_tokens);
      lower += std::max(work.flops / rates.flops_per_second, work.bytes / rates.hbm_bytes_per_second);
    }
    bounds.lower_seconds += layer.count * lower;
  }
  const double sampled_rows = counts.decode_rows + counts.prefill_sequences;
  bounds.lower_seconds += std::max(
      sampled_rows * Sum(load.head.seconds_per_row),
      (load.head.weight_bytes + sampled_rows * load.head.activation_bytes_per_row) / rates.hbm_bytes_per_second);
  if (load.pipeline > 1) {
    const double seconds = (load.pipeline - 1) * laws.pipeline_permute.Seconds(rows * load.permute_bytes_per_token);
    bounds.network_seconds[static_cast<size_t>(LogicalAxis::kPipeline)] += seconds;
    bounds.lower_seconds += seconds;
  }
  return bounds;
}

}  // namespace sliceplan::planner
