// One layer under each training strategy, and the split of a slice that suits a batch best: the closed forms behind the
// thresholds (thresholds.h). "How To Scale Your Model", chapters 5 (tori) and 12 (GPUs): a two-matrix MLP, activations
// [B, D], weights [D, F] and [F, D], two-byte elements. Rates are those of all axes that a strategy spans together. All
// arguments positive.
#ifndef SLICEPLAN_SERVER_PLANNER_CLOSED_FORM_H_
#define SLICEPLAN_SERVER_PLANNER_CLOSED_FORM_H_

#include <cstdint>

namespace sliceplan::planner {

struct MlpLayer {
  double tokens = 0;      // B, of the whole batch
  double hidden_dim = 0;  // D
  double ffn_dim = 0;     // F
};

// The two axis groups overlap with each other and with compute: the slowest decides.
struct LayerTimes {
  double compute_seconds = 0;
  double weights_seconds = 0;      // data or FSDP: gradients or weights
  double activations_seconds = 0;  // tensor or expert
  double Seconds() const;
  bool IsComputeBound() const;
};

// Backward: 8BDF / (X C) and gradients all-reduced, 8DF / W.
LayerTimes DataParallelBackward(const MlpLayer& layer, double data_degree, double flops_per_second,
                                double data_bytes_per_second);
// Forward: 4BDF / (X C) and weights gathered, 4DF / W.
LayerTimes FsdpForward(const MlpLayer& layer, double fsdp_degree, double flops_per_second,
                       double fsdp_bytes_per_second);
// Forward: 4BDF / (X Y C), 4DF / (Y W_X) and 4BD / (X W_Y). A degree of 1 moves nothing.
LayerTimes FsdpTensorForward(const MlpLayer& layer, double fsdp_degree, double tensor_degree, double flops_per_second,
                             double fsdp_bytes_per_second, double tensor_bytes_per_second);
// Backward between slices of `chips_per_slice`: 8BDF / (n C) and 8DF / (M W_dcn), W_dcn of one chip.
LayerTimes DataParallelBetweenSlicesBackward(const MlpLayer& layer, double chip_count, double chips_per_slice,
                                             double flops_per_second, double dcn_bytes_per_second);
// Forward over Z chips in switched domains of S: 4BkDF / (Z C) and two all-to-alls of [B, D]. `ffn_dim` of one expert.
LayerTimes ExpertParallelForward(const MlpLayer& layer, double experts_per_token, double expert_degree,
                                 double domain_size, double flops_per_second, double domain_bytes_per_second);

// Forward and backward of one layer: FLOPs of a chip, and bytes whose time is bytes / W, all-reduces counted twice.
struct StrategyVolume {
  double flops = 0;
  double forward_bytes = 0;
  double backward_weight_bytes = 0;
  double backward_activation_bytes = 0;
  // When the backward pass gathers its input again instead of keeping it from the forward pass.
  double backward_activation_bytes_regathered = 0;
  double Bytes() const { return forward_bytes + backward_weight_bytes + backward_activation_bytes; }
};
StrategyVolume DataParallelVolume(const MlpLayer& layer, double data_degree);
StrategyVolume FsdpVolume(const MlpLayer& layer, double fsdp_degree);
StrategyVolume TensorVolume(const MlpLayer& layer, double tensor_degree);
StrategyVolume FsdpTensorVolume(const MlpLayer& layer, double fsdp_degree, double tensor_degree);

// The FSDP degree at which weights and activations take equally long: sqrt((B / F) x (M_X / M_Y) x n).
double OptimalFsdpDegree(double tokens, double ffn_dim, double chip_count, double data_axes, double tensor_axes);
// Rounded to powers of two: FSDP to the nearest one, tensor to what the chips still hold.
struct Split {
  int64_t fsdp_degree = 1;
  int64_t tensor_degree = 1;
  int64_t Chips() const { return fsdp_degree * tensor_degree; }
};
Split PowerOfTwoSplit(double optimal_fsdp_degree, int64_t chip_count);
// Compute over network time at the optimal split: sqrt(B F M_X M_Y) / (alpha sqrt(n)); above 1 is bound by compute.
double ComputeOverNetworkAtOptimum(double tokens, double ffn_dim, double chip_count, double alpha, double data_axes,
                                   double tensor_axes);

// Chips that a batch keeps bound by compute, and the batch that a number of chips needs.
double MaximumChips(double global_batch_tokens, double tokens_per_chip_needed);
double MinimumGlobalBatchTokens(double chip_count, double tokens_per_chip_needed);
// The width that lets `tensor_degree` chips share a layer: Y x alpha / M_Y.
double MinimumFfnDim(double tensor_degree, double alpha, double tensor_axes);
// Without sharding the sequence at least one whole sequence lies on each shard.
int64_t MaximumFsdpDegree(int64_t global_batch_tokens, int64_t sequence_length);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_CLOSED_FORM_H_
