// FLOPs of one token, forward and in training. Convention: a multiply and an add are two FLOPs; training is three times
// forward; model FLOPs are the matmuls with weights (the embedding lookup is free, the output head counts) plus
// attention as the kernel computes it. Recompute is not counted. Book, chapter 4.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_FLOPS_H_
#define SLICEPLAN_SERVER_TRANSFORMER_FLOPS_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "server/transformer/operations.h"

namespace sliceplan::transformer {

// Causal kernels skip the half of the scores that the mask removes.
enum class AttentionMask { kCausal, kFull };

// Backward computes two products for each one of the forward pass.
inline constexpr double kTrainingPasses = 3;

// Keys that a query sees on average in one sequence of `sequence_length` tokens; the diagonal counts half when causal,
// so that causal is exactly half of full. Window, chunk and selection limit it. `sequence_length` is at least 1.
double AverageKeys(const SoftmaxAttention& attention, int64_t sequence_length, AttentionMask mask);

struct FlopsPerToken {
  double forward = 0;                                   // the main model, attention included
  double forward_matmuls = 0;                           // matmuls with weights, output head included
  double forward_attention = 0;                         // scores, context and scans of all layers
  std::array<double, kComponentCount> components = {};  // forward, by Component; sums to `forward` (kMtp is 0)
  // Multi-token-prediction layers with their passes through the output head. Not part of `forward`: they run in
  // pre-training and in speculative decoding only.
  double forward_mtp = 0;

  double training() const { return kTrainingPasses * forward; }
  double training_mtp() const { return kTrainingPasses * forward_mtp; }
};

// FLOPs of one token of a sequence of `sequence_length` (at least 1), averaged over the sequence.
FlopsPerToken CountFlops(const ModelOperations& model, int64_t sequence_length, AttentionMask mask);

// Forward FLOPs per token of the scores, context and scan of one layer.
double AttentionFlops(const LayerOperations& layer, int64_t sequence_length, AttentionMask mask);

// The share of attention (scores and scans) in all FLOPs.
double AttentionShare(const FlopsPerToken& flops);

// The shortest sequence at which attention costs as much as the layers' matmuls with weights (the output head left
// out): 8 x hidden_dim tokens for the book's layer (full mask, ffn_dim = 4 x hidden_dim). Empty when no length up to
// 2^40 does.
std::optional<double> AttentionEqualLength(const ModelOperations& model, AttentionMask mask);

}  // namespace sliceplan::transformer

#endif  // SLICEPLAN_SERVER_TRANSFORMER_FLOPS_H_
