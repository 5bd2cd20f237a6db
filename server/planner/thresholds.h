// How many tokens a chip must have in a step for each training strategy to be limited by compute and not by the
// network. "How To Scale Your Model", chapters 5 (tori) and 12 (GPUs): a stack of two-matrix MLPs with D x F weights.
// All forms are the limits of large groups; on few switched domains the factor (X - 1) / X is kept.
#ifndef SLICEPLAN_SERVER_PLANNER_THRESHOLDS_H_
#define SLICEPLAN_SERVER_PLANNER_THRESHOLDS_H_

#include <cstdint>
#include <optional>

#include "server/hardware/data_type.h"
#include "server/hardware/slice.h"

namespace sliceplan::planner {

// FLOPs that a chip does in the time that one byte takes: peak over bandwidth of one ring axis, both directions
// (torus), or over the egress of a chip or domain (switched). Book: alpha = C / W.
double ComputeToNetworkRatio(double flops_per_second, double bytes_per_second);

// ---- One formula each. `alpha` as above, of two-byte elements; axis counts: 1 for a ring, 1/2 for a line. All
// positive.

// Data parallelism and FSDP: B / n > alpha / M_X. Mixture of experts: times `sparsity`, E / k.
double DataTokensPerChip(double alpha, double data_axes, double sparsity = 1);
// Tensor parallelism: Y < M_Y * F / alpha, whatever the batch. Mixture of experts: F counts `experts_per_token` times,
// because the gathered activations are those before routing.
double TensorDegreeLimit(double alpha, double tensor_axes, double ffn_dim);
// FSDP x tensor at its best split: B / n > alpha^2 / (M_X * M_Y * F).
double FsdpTensorTokensPerChip(double alpha, double data_axes, double tensor_axes, double ffn_dim, double sparsity = 1);
// Data parallelism between slices: B per slice > C / W_dcn, with W_dcn the egress of one chip.
double DcnTokensPerSlice(double flops_per_second, double dcn_bytes_per_second, double sparsity = 1);
// Tokens per chip over `domain_count` switched domains: the outer threshold shrinks by the domains that model
// parallelism spans and, on few domains, by (X - 1) / X. 0 for one domain: nothing leaves it.
double DomainTokensPerChip(double outer_alpha, double domain_count, double model_parallel_domains = 1);
// Tensor parallelism of more than one domain: inside it everything fits, and outside F / alpha more. Y < S + F / alpha.
double TwoDomainTensorLimit(double outer_alpha, double domain_size, double ffn_dim);
// Expert parallelism over Z chips of switched domains of S (Z > S): the F that hides the all-to-all. Both branches of
// the ragged share min(S * k / Z, 1).
double ExpertFfnDimNeeded(double outer_alpha, double expert_degree, double domain_size, double experts_per_token);

// Ring-equivalents that each strategy may span on a slice. Book: on a 3D torus M_X + M_Y = 3.
struct StrategyAxes {
  double all = 0;     // every axis: data or FSDP alone
  double data = 0;    // FSDP beside tensor
  double tensor = 0;  // tensor: the best single axis
};
// Axes of size 1 do not count; a slice with one axis has data == tensor == all.
StrategyAxes AxesOf(const hardware::Slice& slice);

struct ThresholdQuestion {
  // Width of the MLP; of one expert in a mixture.
  double ffn_dim = 0;
  // 1 and 1 when dense.
  int64_t expert_count = 1;
  int64_t experts_per_token = 1;
  // The plan's own degrees.
  int64_t tensor_degree = 1;
  int64_t pipeline_degree = 1;
  double global_batch_tokens = 0;
  hardware::DataType compute = hardware::DataType::kBf16;
  // Of the weights and activations that travel.
  double communicated_bytes_per_element = 2;
  // Absent: AxesOf(slice).
  std::optional<StrategyAxes> axes;
};

// A threshold whose constants are not public (or that has no network to wait for) is unset.
struct TrainingThresholds {
  // The question's own: global_batch_tokens over all chips of all slices.
  double tokens_per_chip = 0;
  // Data parallelism or FSDP alone over the whole slice, beside the plan's pipeline stages (each stage moves only its
  // own weights) and, on a switched system, beside its tensor degree, which divides the traffic between domains.
  std::optional<double> data_tokens_per_chip;
  // FSDP x tensor: on a torus at the best split, on a switched system at the plan's own tensor degree or, when that is
  // 1, at the largest power of two inside the domain and the limit.
  std::optional<double> fsdp_tensor_tokens_per_chip;
  // FSDP at exactly the plan's tensor and pipeline degrees.
  std::optional<double> own_split_tokens_per_chip;
  std::optional<double> tensor_degree_limit;
  std::optional<double> dcn_tokens_per_slice;
};

// Requires positive sizes and degrees.
TrainingThresholds ThresholdsOf(const hardware::Slice& slice, const ThresholdQuestion& question);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_THRESHOLDS_H_
