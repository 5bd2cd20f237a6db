#include "server/planner/closed_form.h"

#include <algorithm>
#include <cmath>

#include "server/roofline/fat_tree.h"

namespace sliceplan::planner {
namespace {

constexpr double kBytes = 2;            // of an element
constexpr double kMatrices = 2;         // of the MLP
constexpr double kFlopsPerWeight = 2;   // forward, per token
constexpr double kAllReducePasses = 2;  // reduce-scatter, then all-gather

double ForwardFlopsOf(const MlpLayer& layer) {
  return kFlopsPerWeight * kMatrices * layer.tokens * layer.hidden_dim * layer.ffn_dim;
}

double BackwardFlopsOf(const MlpLayer& layer) { return 2 * ForwardFlopsOf(layer); }

double WeightBytes(const MlpLayer& layer) { return kBytes * kMatrices * layer.hidden_dim * layer.ffn_dim; }

double ActivationBytes(const MlpLayer& layer) { return kBytes * layer.tokens * layer.hidden_dim; }

int64_t PowerOfTwo(double exponent) { return int64_t{1} << static_cast<int>(std::clamp(exponent, 0.0, 62.0)); }

}  // namespace

double LayerTimes::Seconds() const { return std::max({compute_seconds, weights_seconds, activations_seconds}); }

bool LayerTimes::IsComputeBound() const { return compute_seconds >= std::max(weights_seconds, activations_seconds); }

LayerTimes DataParallelBackward(const MlpLayer& layer, double data_degree, double flops_per_second,
                                double data_bytes_per_second) {
  return {.compute_seconds = BackwardFlopsOf(layer) / (data_degree * flops_per_second),
          .weights_seconds = data_degree > 1 ? kAllReducePasses * WeightBytes(layer) / data_bytes_per_second : 0};
}

LayerTimes FsdpForward(const MlpLayer& layer, double fsdp_degree, double flops_per_second,
                       double fsdp_bytes_per_second) {
  return FsdpTensorForward(layer, fsdp_degree, /*tensor_degree=*/1, flops_per_second, fsdp_bytes_per_second,
                           /*tensor_bytes_per_second=*/1);
}

LayerTimes FsdpTensorForward(const MlpLayer& layer, double fsdp_degree, double tensor_degree, double flops_per_second,
                             double fsdp_bytes_per_second, double tensor_bytes_per_second) {
  LayerTimes times;
  times.compute_seconds = ForwardFlopsOf(layer) / (fsdp_degree * tensor_degree * flops_per_second);
  if (fsdp_degree > 1) times.weights_seconds = WeightBytes(layer) / (tensor_degree * fsdp_bytes_per_second);
  if (tensor_degree > 1) {
    // The input is gathered and the output is reduced and scattered.
    times.activations_seconds = 2 * ActivationBytes(layer) / (fsdp_degree * tensor_bytes_per_second);
  }
  return times;
}

LayerTimes DataParallelBetweenSlicesBackward(const MlpLayer& layer, double chip_count, double chips_per_slice,
                                             double flops_per_second, double dcn_bytes_per_second) {
  return {.compute_seconds = BackwardFlopsOf(layer) / (chip_count * flops_per_second),
          .weights_seconds = kAllReducePasses * WeightBytes(layer) / (chips_per_slice * dcn_bytes_per_second)};
}

LayerTimes ExpertParallelForward(const MlpLayer& layer, double experts_per_token, double expert_degree,
                                 double domain_size, double flops_per_second, double domain_bytes_per_second) {
  LayerTimes times;
  times.compute_seconds = ForwardFlopsOf(layer) * experts_per_token / (expert_degree * flops_per_second);
  times.activations_seconds = 2 * roofline::ExpertAllToAllSeconds(ActivationBytes(layer), expert_degree, domain_size,
                                                                  experts_per_token, domain_bytes_per_second);
  return times;
}

StrategyVolume DataParallelVolume(const MlpLayer& layer, double data_degree) {
  StrategyVolume volume;
  volume.flops = (ForwardFlopsOf(layer) + BackwardFlopsOf(layer)) / data_degree;
  volume.backward_weight_bytes = kAllReducePasses * WeightBytes(layer);
  return volume;
}

StrategyVolume FsdpVolume(const MlpLayer& layer, double fsdp_degree) {
  StrategyVolume volume;
  volume.flops = (ForwardFlopsOf(layer) + BackwardFlopsOf(layer)) / fsdp_degree;
  volume.forward_bytes = WeightBytes(layer);
  volume.backward_weight_bytes = 2 * WeightBytes(layer);  // gathered again, gradients scattered
  return volume;
}

StrategyVolume TensorVolume(const MlpLayer& layer, double tensor_degree) {
  StrategyVolume volume;
  volume.flops = (ForwardFlopsOf(layer) + BackwardFlopsOf(layer)) / tensor_degree;
  volume.forward_bytes = 2 * ActivationBytes(layer);
  volume.backward_activation_bytes = 2 * ActivationBytes(layer);
  volume.backward_activation_bytes_regathered = 3 * ActivationBytes(layer);
  return volume;
}

StrategyVolume FsdpTensorVolume(const MlpLayer& layer, double fsdp_degree, double tensor_degree) {
  const StrategyVolume fsdp = FsdpVolume(layer, fsdp_degree);
  const StrategyVolume tensor = TensorVolume(layer, tensor_degree);
  StrategyVolume volume;
  volume.flops = fsdp.flops / tensor_degree;
  volume.forward_bytes = tensor.forward_bytes / fsdp_degree + fsdp.forward_bytes / tensor_degree;
  volume.backward_weight_bytes = fsdp.backward_weight_bytes / tensor_degree;
  volume.backward_activation_bytes = tensor.backward_activation_bytes / fsdp_degree;
  volume.backward_activation_bytes_regathered = tensor.backward_activation_bytes_regathered / fsdp_degree;
  return volume;
}

double OptimalFsdpDegree(double tokens, double ffn_dim, double chip_count, double data_axes, double tensor_axes) {
  return std::sqrt(tokens / ffn_dim * (data_axes / tensor_axes) * chip_count);
}

Split PowerOfTwoSplit(double optimal_fsdp_degree, int64_t chip_count) {
  const double largest = std::floor(std::log2(static_cast<double>(chip_count)));
  const double fsdp = std::clamp(std::round(std::log2(optimal_fsdp_degree)), 0.0, largest);
  return {PowerOfTwo(fsdp), PowerOfTwo(largest - fsdp)};
}

double ComputeOverNetworkAtOptimum(double tokens, double ffn_dim, double chip_count, double alpha, double data_axes,
                                   double tensor_axes) {
  return std::sqrt(tokens * ffn_dim * data_axes * tensor_axes) / (alpha * std::sqrt(chip_count));
}

double MaximumChips(double global_batch_tokens, double tokens_per_chip_needed) {
  return global_batch_tokens / tokens_per_chip_needed;
}

double MinimumGlobalBatchTokens(double chip_count, double tokens_per_chip_needed) {
  return chip_count * tokens_per_chip_needed;
}

double MinimumFfnDim(double tensor_degree, double alpha, double tensor_axes) {
  return tensor_degree * alpha / tensor_axes;
}

int64_t MaximumFsdpDegree(int64_t global_batch_tokens, int64_t sequence_length) {
  return global_batch_tokens / sequence_length;
}

}  // namespace sliceplan::planner
