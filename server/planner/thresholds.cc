#include "server/planner/thresholds.h"

#include <algorithm>
#include <cmath>

namespace sliceplan::planner {
namespace {

using hardware::FabricKind;
using hardware::Slice;
using hardware::TorusAxis;

// The thresholds are written for two-byte elements: 8BDF FLOPs against 8DF bytes.
constexpr double kBookBytesPerElement = 2;
// Up to this many domains the book keeps (X - 1) / X.
constexpr double kFewDomains = 4;

double RingEquivalents(const TorusAxis& axis) {
  if (axis.size <= 1) return 0;
  return axis.wraps && axis.size > 2 ? 1 : 0.5;
}

double LargestPowerOfTwo(double limit) { return limit < 1 ? 1 : std::exp2(std::floor(std::log2(limit))); }

// A plan whose weights or activations travel in b bytes needs b / 2 of the tokens.
double ScaledRate(double flops_per_second, const ThresholdQuestion& question) {
  return flops_per_second * question.communicated_bytes_per_element / kBookBytesPerElement;
}

void TorusThresholds(const Slice& slice, const ThresholdQuestion& question, double rate, TrainingThresholds& result) {
  const auto& link = slice.accelerator.ici_link_bytes_per_second;
  if (!link || slice.chip_count <= 1) return;
  const StrategyAxes axes = question.axes.value_or(AxesOf(slice));
  if (axes.all <= 0) return;
  const double alpha = ComputeToNetworkRatio(rate, 2 * *link);
  const double sparsity = static_cast<double>(question.expert_count) / static_cast<double>(question.experts_per_token);
  const double active_ffn_dim = question.ffn_dim * static_cast<double>(question.experts_per_token);
  const double stages = static_cast<double>(question.pipeline_degree);
  const double tensor = static_cast<double>(question.tensor_degree);
  const double data = DataTokensPerChip(alpha, axes.all, sparsity) / stages;
  result.data_tokens_per_chip = data;
  result.tensor_degree_limit = TensorDegreeLimit(alpha, axes.tensor, active_ffn_dim);
  // Mixing never needs more than FSDP alone, which is one of its splits; on one axis there is nothing to mix.
  const bool mixes = axes.data + axes.tensor <= axes.all;
  result.fsdp_tensor_tokens_per_chip =
      mixes ? std::min(data, FsdpTensorTokensPerChip(alpha, axes.data, axes.tensor, active_ffn_dim, sparsity) / stages)
            : data;
  result.own_split_tokens_per_chip =
      question.tensor_degree > 1 ? DataTokensPerChip(alpha, axes.data, sparsity) / (stages * tensor) : data;
}

void SwitchedThresholds(const Slice& slice, const ThresholdQuestion& question, double rate,
                        TrainingThresholds& result) {
  const auto& scale_up = slice.accelerator.scale_up_bytes_per_second;
  const auto& network = slice.accelerator.network_bytes_per_second;
  const double domain_size = std::max<double>(1, slice.domain_size);
  const double chips = static_cast<double>(slice.chip_count);
  const bool has_inner = domain_size > 1 && scale_up.has_value();
  const bool leaves_domain = chips > domain_size;
  if (chips <= 1 || (domain_size > 1 && !scale_up) || (leaves_domain && !network)) return;
  const double sparsity = static_cast<double>(question.expert_count) / static_cast<double>(question.experts_per_token);
  const double active_ffn_dim = question.ffn_dim * static_cast<double>(question.experts_per_token);
  const double inner_alpha = has_inner ? ComputeToNetworkRatio(rate, *scale_up) : 0;
  const double outer_alpha = leaves_domain ? ComputeToNetworkRatio(rate, *network * domain_size) : 0;
  const double domains = chips / domain_size;

  const auto beside = [&](double tensor) {
    const double model = tensor * static_cast<double>(question.pipeline_degree);
    const double inside = model >= domain_size ? 0 : inner_alpha / model;
    const double outside =
        leaves_domain ? DomainTokensPerChip(outer_alpha, domains, std::max(1.0, model / domain_size)) : 0;
    return sparsity * std::max(inside, outside);
  };
  const double limit =
      has_inner ? TensorDegreeLimit(inner_alpha, 1, active_ffn_dim) : TensorDegreeLimit(outer_alpha, 1, active_ffn_dim);
  const double tensor = static_cast<double>(question.tensor_degree);
  result.data_tokens_per_chip = beside(tensor);
  result.own_split_tokens_per_chip = result.data_tokens_per_chip;
  result.tensor_degree_limit = limit;
  result.fsdp_tensor_tokens_per_chip =
      question.tensor_degree > 1 ? beside(tensor) : beside(LargestPowerOfTwo(std::min(limit, domain_size)));
}

}  // namespace

double ComputeToNetworkRatio(double flops_per_second, double bytes_per_second) {
  return flops_per_second / bytes_per_second;
}

double DataTokensPerChip(double alpha, double data_axes, double sparsity) { return sparsity * alpha / data_axes; }

double TensorDegreeLimit(double alpha, double tensor_axes, double ffn_dim) { return tensor_axes * ffn_dim / alpha; }

double FsdpTensorTokensPerChip(double alpha, double data_axes, double tensor_axes, double ffn_dim, double sparsity) {
  return sparsity * alpha * alpha / (data_axes * tensor_axes * ffn_dim);
}

double DcnTokensPerSlice(double flops_per_second, double dcn_bytes_per_second, double sparsity) {
  return sparsity * flops_per_second / dcn_bytes_per_second;
}

double DomainTokensPerChip(double outer_alpha, double domain_count, double model_parallel_domains) {
  const double groups = domain_count / model_parallel_domains;
  if (groups <= 1) return 0;
  const double share = groups <= kFewDomains ? (groups - 1) / groups : 1;
  return outer_alpha / model_parallel_domains * share;
}

double TwoDomainTensorLimit(double outer_alpha, double domain_size, double ffn_dim) {
  return domain_size + ffn_dim / outer_alpha;
}

double ExpertFfnDimNeeded(double outer_alpha, double expert_degree, double domain_size, double experts_per_token) {
  // 4BkDF / (Z C) > 4BD (Z - S) / (Z W) min(S k / Z, 1)
  const double filled = std::min(domain_size * experts_per_token / expert_degree, 1.0);
  return outer_alpha * (expert_degree - domain_size) * filled / experts_per_token;
}

StrategyAxes AxesOf(const Slice& slice) {
  StrategyAxes result;
  int axis_count = 0;
  for (const TorusAxis& axis : slice.axes) {
    const double rings = RingEquivalents(axis);
    if (rings > 0) ++axis_count;
    result.all += rings;
    result.tensor = std::max(result.tensor, rings);
  }
  result.data = axis_count > 1 ? result.all - result.tensor : result.all;
  return result;
}

TrainingThresholds ThresholdsOf(const Slice& slice, const ThresholdQuestion& question) {
  TrainingThresholds result;
  result.tokens_per_chip = question.global_batch_tokens / static_cast<double>(slice.TotalChips());
  const std::optional<double> peak = slice.accelerator.MatmulRate(question.compute);
  if (!peak) return result;
  const double rate = ScaledRate(*peak, question);
  if (slice.accelerator.fabric == FabricKind::kTorus) {
    TorusThresholds(slice, question, rate, result);
  } else {
    SwitchedThresholds(slice, question, rate, result);
  }
  if (slice.accelerator.dcn_bytes_per_second) {
    const double sparsity =
        static_cast<double>(question.expert_count) / static_cast<double>(question.experts_per_token);
    result.dcn_tokens_per_slice = DcnTokensPerSlice(rate, *slice.accelerator.dcn_bytes_per_second, sparsity);
  }
  return result;
}

}  // namespace sliceplan::planner
