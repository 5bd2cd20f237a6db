#include "server/transformer/flops.h"

#include <algorithm>
#include <cmath>

namespace sliceplan::transformer {
namespace {

constexpr double kFlopsPerMultiplyAdd = 2;
constexpr double kLongestSequence = 1099511627776.0;  // 2^40

double MatmulFlops(const WeightMatmul& matmul) {
  return kFlopsPerMultiplyAdd * matmul.rows_per_token * static_cast<double>(matmul.k) * static_cast<double>(matmul.n);
}

// Sum over the queries of one sequence of the keys that each sees, per query. `length` is at least 1.
double AverageUnlimitedKeys(double length, AttentionMask mask) {
  return mask == AttentionMask::kCausal ? length / 2 : length;
}

// No query sees more than `limit` keys: the first `limit` queries see a growing number when causal.
double AverageLimitedKeys(double length, double limit, AttentionMask mask) {
  if (length <= limit) return AverageUnlimitedKeys(length, mask);
  return mask == AttentionMask::kCausal ? limit - limit * limit / (2 * length) : limit;
}

// Queries see their own chunk only; the last chunk may be short.
double AverageChunkKeys(double length, double chunk, AttentionMask mask) {
  const double whole = std::floor(length / chunk);
  const double rest = length - whole * chunk;
  const double squares = (whole * chunk * chunk + rest * rest) / length;
  return mask == AttentionMask::kCausal ? squares / 2 : squares;
}

// Earlier positions that are pooled to entries; no query sees more than `attention.selected_key_count` of those.
double AverageEntries(const SoftmaxAttention& attention, double length, AttentionMask mask) {
  const double compression = attention.compression;
  const double positions = attention.selected_key_count > 0
                               ? AverageLimitedKeys(length, attention.selected_key_count * compression, mask)
                               : AverageUnlimitedKeys(length, mask);
  return positions / compression;
}

double AverageKeys(const SoftmaxAttention& attention, double length, AttentionMask mask) {
  if (attention.compression > 0) {
    return AverageLimitedKeys(length, attention.window, mask) + AverageEntries(attention, length, mask);
  }
  if (attention.window > 0) return AverageLimitedKeys(length, attention.window, mask);
  if (attention.chunk > 0) return AverageChunkKeys(length, attention.chunk, mask);
  if (attention.selected_key_count > 0) return AverageLimitedKeys(length, attention.selected_key_count, mask);
  return AverageUnlimitedKeys(length, mask);
}

double AttentionFlops(const LayerOperations& layer, double length, AttentionMask mask) {
  double flops = layer.has_scan ? layer.scan.flops_per_token : 0;
  if (layer.has_softmax) {
    const SoftmaxAttention& softmax = layer.softmax;
    flops += kFlopsPerMultiplyAdd * AverageKeys(softmax, length, mask) * softmax.query_head_count *
             (static_cast<double>(softmax.qk_head_dim) + softmax.value_head_dim);
    // The indexer scores every key, or every entry of a compressed past.
    flops += kFlopsPerMultiplyAdd * AverageUnlimitedKeys(length, mask) / std::max(softmax.compression, 1) *
             softmax.indexer_head_count * softmax.indexer_head_dim;
  }
  return flops;
}

double AttentionFlops(const ModelOperations& model, double length, AttentionMask mask) {
  double flops = 0;
  for (const LayerOperations& layer : model.layers) {
    flops += static_cast<double>(layer.count) * AttentionFlops(layer, length, mask);
  }
  return flops;
}

double LayerMatmulFlops(const ModelOperations& model) {
  double flops = 0;
  for (const LayerOperations& layer : model.layers) {
    double one = 0;
    for (const WeightMatmul& matmul : layer.matmuls) one += MatmulFlops(matmul);
    flops += static_cast<double>(layer.count) * one;
  }
  return flops;
}

double HeadFlops(const ModelOperations& model) {
  double flops = MatmulFlops(model.head);
  for (const WeightMatmul& matmul : model.embedding_projections) {
    if (matmul.component == Component::kOutputHead) flops += MatmulFlops(matmul);
  }
  return flops;
}

}  // namespace

double AverageKeys(const SoftmaxAttention& attention, int64_t sequence_length, AttentionMask mask) {
  return AverageKeys(attention, static_cast<double>(sequence_length), mask);
}

double AttentionFlops(const LayerOperations& layer, int64_t sequence_length, AttentionMask mask) {
  return AttentionFlops(layer, static_cast<double>(sequence_length), mask);
}

FlopsPerToken CountFlops(const ModelOperations& model, int64_t sequence_length, AttentionMask mask) {
  FlopsPerToken flops;
  const auto at = [&flops](Component component) -> double& { return flops.components[static_cast<size_t>(component)]; };
  at(Component::kOutputHead) += MatmulFlops(model.head);
  for (const WeightMatmul& matmul : model.embedding_projections) at(matmul.component) += MatmulFlops(matmul);
  for (const LayerOperations& layer : model.layers) {
    const double count = static_cast<double>(layer.count);
    for (const WeightMatmul& matmul : layer.matmuls) at(matmul.component) += count * MatmulFlops(matmul);
    at(Component::kAttentionScores) += count * AttentionFlops(layer, sequence_length, mask);
  }
  for (const double component : flops.components) flops.forward += component;
  flops.forward_attention = at(Component::kAttentionScores);
  flops.forward_matmuls = flops.forward - flops.forward_attention;
  if (model.mtp_layer_count > 0) {
    double one = HeadFlops(model) + AttentionFlops(model.mtp, sequence_length, mask);
    for (const WeightMatmul& matmul : model.mtp.matmuls) one += MatmulFlops(matmul);
    flops.forward_mtp = model.mtp_layer_count * one;
  }
  return flops;
}

double AttentionShare(const FlopsPerToken& flops) {
  return flops.forward > 0 ? flops.forward_attention / flops.forward : 0;
}

std::optional<double> AttentionEqualLength(const ModelOperations& model, AttentionMask mask) {
  const double matmuls = LayerMatmulFlops(model);
  const auto reaches = [&](double length) { return AttentionFlops(model, length, mask) >= matmuls; };
  if (reaches(1)) return 1;
  if (!reaches(kLongestSequence)) return std::nullopt;
  double low = 1;
  double high = kLongestSequence;
  // Attention per token never falls with the length (but for the last, short chunk of a chunked window): bisection ends
  // at the crossing, to a thousandth of a token.
  while (high - low > 1e-3) {
    const double middle = low + (high - low) / 2;
    (reaches(middle) ? high : low) = middle;
  }
  return std::round(high * 1000) / 1000;
}

}  // namespace sliceplan::transformer
