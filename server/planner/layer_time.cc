#include "server/planner/layer_time.h"

#include <algorithm>
#include <cmath>

namespace sliceplan::planner {
namespace {

using roofline::CollectiveLaw;
using roofline::EfficiencyProfile;

// Five matrix products for the two of the forward pass (Dao et al. 2022, algorithm 4).
constexpr double kFusedBackwardForwards = 2.5;

constexpr size_t Index(OpGroup group) { return static_cast<size_t>(group); }
constexpr size_t Index(StepResource resource) { return static_cast<size_t>(resource); }

// Seconds on the network that one group of operations causes forward and backward.
struct GroupNetwork {
  double weights_gather = 0;
  double weights_scatter = 0;
  roofline::Tier weights_tier = roofline::Tier::kNone;
  double tensor_forward = 0;
  double tensor_backward = 0;
  double context = 0;
  double context_backward = 0;
  double expert = 0;
};

// Groups that a layer does not have: experts of a dense layer.
bool IsAbsent(const LayerLoad& load, size_t group) {
  return group != Index(OpGroup::kScores) && load.groups[group].operand_bytes <= 0;
}

struct Side {
  double seconds = 0;
  StepResource resource = StepResource::kIci;
  LogicalAxis axis = LogicalAxis::kData;
};

// The slower of weights traffic and another collective, or their sum when they load the same links.
Side JoinNetwork(const Side& weights, const Side& other, bool share_links) {
  if (other.seconds <= 0) return weights;
  if (weights.seconds <= 0) return other;
  Side joined = weights.seconds >= other.seconds ? weights : other;
  if (share_links) joined.seconds = weights.seconds + other.seconds;
  return joined;
}

BoundPart Slowest(double matrix_seconds, double hbm_seconds, const Side& network) {
  BoundPart part;
  part.seconds = matrix_seconds;
  if (hbm_seconds > part.seconds) {
    part.seconds = hbm_seconds;
    part.resource = StepResource::kHbm;
  }
  if (network.seconds > part.seconds) {
    part.seconds = network.seconds;
    part.resource = network.resource;
    part.axis = network.axis;
  }
  return part;
}

// Which groups begin and end the residual branches that tensor parallelism gathers and reduces.
void PlaceTensorCollectives(const LayerLoad& load, const PlanLaws& laws, double recompute,
                            std::array<GroupNetwork, kOpGroupCount>& network) {
  if (load.tensor_block_count == 0) return;
  const double gather = laws.tensor_gather.Seconds(load.tensor_bytes);
  const double scatter = laws.tensor_scatter.Seconds(load.tensor_bytes);
  const auto busy = [&](OpGroup group) { return load.groups[Index(group)].operand_bytes > 0; };
  const OpGroup up = busy(OpGroup::kUp) ? OpGroup::kUp : OpGroup::kExpertUp;
  const OpGroup down = busy(OpGroup::kDown) ? OpGroup::kDown : OpGroup::kExpertDown;
  const bool has_mixer = busy(OpGroup::kInputProjections) || busy(OpGroup::kOutputProjection);
  const auto open = [&](OpGroup group) {  // gather forward (and when run again), scatter of its gradient
    network[Index(group)].tensor_forward += gather;
    network[Index(group)].tensor_backward += scatter + recompute * gather;
  };
  const auto close = [&](OpGroup group) {  // whoever runs the matmul again reduces its output again
    const bool rerun = load.groups[Index(group)].recompute_flops > 0;
    network[Index(group)].tensor_forward += scatter;
    network[Index(group)].tensor_backward += gather + (rerun ? scatter : 0);
  };
  if (load.tensor_block_count == 2) {
    open(OpGroup::kInputProjections);
    close(OpGroup::kOutputProjection);
    open(up);
    close(down);
  } else {
    open(has_mixer ? OpGroup::kInputProjections : up);
    close(busy(down) ? down : OpGroup::kOutputProjection);
  }
}

std::array<GroupNetwork, kOpGroupCount> NetworkOf(const LayerLoad& load, const LayerRates& rates, const PlanLaws& laws,
                                                  double wide_bytes) {
  std::array<GroupNetwork, kOpGroupCount> network = {};
  for (size_t g = 0; g < kOpGroupCount; ++g) {
    if (IsAbsent(load, g)) continue;
    const double experts = load.groups[g].expert_weight_count;  // a group has weights of one sort
    const double weights = load.groups[g].weight_count + experts;
    const CollectiveLaw& gather = experts > 0 ? laws.weights_gather : rates.DenseGather(laws);
    const CollectiveLaw& scatter = experts > 0 ? laws.weights_scatter : rates.DenseScatter(laws);
    network[g].weights_gather = gather.Seconds(wide_bytes * weights);
    network[g].weights_scatter = scatter.Seconds(rates.gradient_bytes_per_element * weights);
    network[g].weights_tier = gather.slowest_tier;
  }
  PlaceTensorCollectives(load, laws, load.recomputes ? 1 : 0, network);
  GroupNetwork& scores = network[Index(OpGroup::kScores)];
  scores.context = laws.context_gather.Seconds(load.context_bytes);
  // Keys and values come again, and their gradients go back.
  scores.context_backward = scores.context + laws.context_scatter.Seconds(load.context_bytes);
  if (load.expert_bytes > 0) {
    const double exchange = laws.expert_exchange.Seconds(load.expert_bytes);
    network[Index(OpGroup::kExpertUp)].expert = exchange;
    network[Index(OpGroup::kExpertDown)].expert = exchange;
  }
  return network;
}

Side NetworkSide(const GroupNetwork& network, const PlanLaws& laws, bool backward, double expert_passes) {
  const auto side = [](double seconds, const CollectiveLaw& law, LogicalAxis axis) {
    return Side{seconds, ResourceOf(law.slowest_tier), axis};
  };
  const Side weights = Side{network.weights_gather + (backward ? network.weights_scatter : 0),
                            ResourceOf(network.weights_tier), LogicalAxis::kFsdp};
  const Side tensor =
      side(backward ? network.tensor_backward : network.tensor_forward, laws.tensor_gather, LogicalAxis::kTensor);
  const Side context =
      side(backward ? network.context_backward : network.context, laws.context_gather, LogicalAxis::kContext);
  const Side expert = side(network.expert * expert_passes, laws.expert_exchange, LogicalAxis::kExpert);
  Side joined = JoinNetwork(weights, tensor, laws.weights_share_tensor_links);
  joined = JoinNetwork(joined, context, laws.weights_share_context_links);
  return JoinNetwork(joined, expert, laws.weights_share_expert_links);
}

// Bounds of every group, and the busy seconds of every resource.
void BoundLayer(const LayerLoad& load, const LayerRates& rates, const PlanLaws& laws,
                const std::array<GroupNetwork, kOpGroupCount>& network, LayerTime& time) {
  for (size_t g = 0; g < kOpGroupCount; ++g) {
    if (IsAbsent(load, g)) continue;
    const GroupLoad& group = load.groups[g];
    double matrix = group.matmul_flops / rates.flops_per_second + group.wide_matmul_flops / rates.wide_flops_per_second;
    double rerun =
        group.recompute_flops / (group.matmul_flops > 0 ? rates.flops_per_second : rates.wide_flops_per_second);
    double hbm = (group.least_operand_bytes + group.elementwise_bytes) / rates.hbm_bytes_per_second;
    double rerun_hbm = (group.recompute_least_operand_bytes + (load.recomputes ? group.elementwise_bytes : 0)) /
                       rates.hbm_bytes_per_second;
    if (g == Index(OpGroup::kScores)) {
      const double attention = load.attention_flops / rates.wide_flops_per_second;
      const double bytes = (load.attention_bytes + 2 * load.attention_score_bytes) / rates.hbm_bytes_per_second;
      matrix += attention;
      hbm += bytes;
      if (load.recomputes_attention) {
        rerun += attention;
        rerun_hbm += bytes;
      }
    }
    const double expert_passes = load.recomputes && g == Index(OpGroup::kExpertUp) ? 2 : 1;
    const Side forward_network = NetworkSide(network[g], laws, false, 1);
    const Side backward_network = NetworkSide(network[g], laws, true, expert_passes);
    time.forward_bound[g] = Slowest(matrix, hbm, forward_network);
    time.backward_bound[g] = Slowest(2 * matrix + rerun, 2 * hbm + rerun_hbm, backward_network);
    time.lower_seconds += time.forward_bound[g].seconds + time.backward_bound[g].seconds;
    time.backward_lower_seconds += time.backward_bound[g].seconds;

    time.busy[Index(StepResource::kMatrixUnit)] += 3 * matrix + rerun;
    time.busy[Index(StepResource::kHbm)] += 3 * hbm + rerun_hbm;
    const GroupNetwork& net = network[g];
    time.busy[Index(ResourceOf(net.weights_tier))] += 2 * net.weights_gather + net.weights_scatter;
    time.busy[Index(ResourceOf(laws.tensor_gather.slowest_tier))] += net.tensor_forward + net.tensor_backward;
    time.busy[Index(ResourceOf(laws.context_gather.slowest_tier))] += net.context + net.context_backward;
    time.busy[Index(ResourceOf(laws.expert_exchange.slowest_tier))] += net.expert * (1 + expert_passes);
  }
  for (double seconds : time.busy) time.upper_seconds += seconds;
}

// One matmul group's expected seconds by phase.
void ExpectGroup(const LayerLoad& load, size_t g, const LayerRates& rates, const EfficiencyProfile& profile,
                 LayerTime& time) {
  const GroupLoad& group = load.groups[g];
  const bool experts = g == Index(OpGroup::kExpertUp) || g == Index(OpGroup::kExpertDown);
  const bool dropless = experts && load.dispatch_flops == 0;
  const bool wide = group.matmul_flops == 0;
  const double per_flop = (wide ? rates.seconds_per_wide_flop : rates.seconds_per_matmul_flop) *
                          (dropless ? profile.expert_inverse_ratio : 1);
  const double per_byte = rates.operand_passes / rates.hbm_bytes_per_second;
  time.matrix[g].forward = group.kernel_matmul_flops * per_flop;
  time.matrix[g].backward = 2 * time.matrix[g].forward;
  time.matrix[g].recompute = group.recompute_kernel_flops * per_flop;
  const double elementwise = group.elementwise_bytes / rates.elementwise_bytes_per_second;
  time.hbm[g].forward = group.operand_bytes * per_byte + elementwise;
  time.hbm[g].backward = 2 * group.operand_bytes * per_byte + (profile.elementwise_passes - 1) * elementwise;
  time.hbm[g].recompute =
      group.recompute_operand_bytes * per_byte + (load.recomputes ? profile.elementwise_remat_passes * elementwise : 0);
}

void ExpectExperts(const LayerLoad& load, const LayerRates& rates, const EfficiencyProfile& profile, LayerTime& time) {
  PhaseSeconds& hbm = time.hbm[Index(OpGroup::kExpertUp)];
  const double permute = profile.expert_permute_passes * load.permute_bytes / rates.elementwise_bytes_per_second;
  // A third of the passes run forward.
  hbm.forward += permute / 3;
  hbm.backward += 2 * permute / 3;
  const double dispatch = profile.expert_dispatch_ratio * load.dispatch_flops / rates.wide_flops_per_second;
  PhaseSeconds& matrix = time.matrix[Index(OpGroup::kExpertUp)];
  matrix.forward += dispatch;
  matrix.backward += 2 * dispatch;
  if (load.recomputes) matrix.recompute += dispatch;
}

// Seconds of a layer's collectives before overlap.
struct NetworkSums {
  double weights = 0;
  double tensor = 0;
  double context = 0;
  double expert = 0;
};

NetworkSums SumNetwork(const LayerLoad& load, const std::array<GroupNetwork, kOpGroupCount>& network) {
  NetworkSums sums;
  for (const GroupNetwork& group : network) {
    sums.weights += 2 * group.weights_gather + group.weights_scatter;
    sums.tensor += group.tensor_forward + group.tensor_backward;
    sums.expert += 2 * group.expert;
  }
  if (load.recomputes) sums.expert += network[Index(OpGroup::kExpertUp)].expert;
  const GroupNetwork& scores = network[Index(OpGroup::kScores)];
  sums.context = scores.context + scores.context_backward;
  return sums;
}

// Requires the compute of the layer.
void ExposeNetwork(const NetworkSums& sums, const EfficiencyProfile& profile, LayerTime& time) {
  time.weights_seconds = sums.weights / profile.collective_ratio;
  time.tensor_exposed_seconds =
      ExposedSeconds(sums.tensor / profile.collective_ratio, profile.tensor_exposed_ratio, time.compute_seconds);
  time.context_exposed_seconds =
      ExposedSeconds(sums.context / profile.collective_ratio, profile.context_exposed_ratio, time.attention.Total());
  time.expert_exposed_seconds =
      ExposedSeconds(sums.expert / profile.collective_ratio, profile.expert_exposed_ratio, time.compute_seconds);
}

void ExpectLayer(const LayerLoad& load, const LayerRates& rates, const EfficiencyProfile& profile,
                 const std::array<GroupNetwork, kOpGroupCount>& network, double wide_bytes, LayerTime& time) {
  for (size_t g = 0; g < kOpGroupCount; ++g) {
    if (!IsAbsent(load, g)) ExpectGroup(load, g, rates, profile, time);
  }
  if (load.has_experts) ExpectExperts(load, rates, profile, time);

  const double attention = load.attention_kernel_flops * rates.seconds_per_attention_flop;
  time.attention.forward = attention;
  time.attention.backward = attention * rates.attention_backward_forwards;
  time.attention.recompute = load.recomputes_attention ? attention : 0;
  PhaseSeconds& scores = time.hbm[Index(OpGroup::kScores)];
  const double operands = load.attention_bytes / rates.elementwise_bytes_per_second;
  const double materialized =
      load.attention_score_bytes * profile.attention_materialized_bytes / rates.hbm_bytes_per_second;
  scores.forward += operands + materialized / 3;
  scores.backward += 2 * operands + 2 * materialized / 3;
  scores.recompute += load.recomputes_attention ? operands + materialized / 3 : 0;

  double weights = 0;
  for (const GroupLoad& group : load.groups) weights += group.weight_count + group.expert_weight_count;
  const NetworkSums sums = SumNetwork(load, network);
  if (sums.weights > 0) {
    time.gathered_weights_seconds = rates.devices_per_chip * profile.gathered_weights_passes * wide_bytes * weights /
                                    (rates.hbm_bytes_per_second * profile.gathered_weights_hbm_ratio);
  }
  time.launch_seconds = profile.launch_seconds_per_layer;
  time.host_seconds = profile.host_seconds_per_layer + (load.has_experts ? profile.host_seconds_per_expert_layer : 0);
  time.compute_seconds = time.attention.Total() + time.gathered_weights_seconds + time.launch_seconds;
  double forward = time.attention.forward;
  for (size_t g = 0; g < kOpGroupCount; ++g) {
    time.compute_seconds += time.matrix[g].Total() + time.hbm[g].Total();
    forward += time.matrix[g].forward + time.hbm[g].forward;
  }
  time.backward_seconds = time.compute_seconds - time.gathered_weights_seconds - time.launch_seconds - forward;

  ExposeNetwork(sums, profile, time);
}

}  // namespace

StepResource ResourceOf(roofline::Tier tier) {
  switch (tier) {
    case roofline::Tier::kNone:
    case roofline::Tier::kIci: return StepResource::kIci;
    case roofline::Tier::kScaleUp: return StepResource::kScaleUp;
    case roofline::Tier::kScaleOut: return StepResource::kScaleOut;
    case roofline::Tier::kDcn: return StepResource::kDcn;
  }
  return StepResource::kIci;
}

double ExposedSeconds(double seconds, double exposed_ratio, double compute_seconds) {
  return std::max(seconds * exposed_ratio, seconds - compute_seconds);
}

LayerRates RatesOf(const TrainingJob& job) {
  const hardware::AcceleratorSpec& chip = job.slice.accelerator;
  const hardware::DataType compute = job.workload.precision.compute;
  const bool low = hardware::BytesPerElement(compute) < 2;
  LayerRates rates;
  rates.low_precision = low;
  rates.flops_per_second = chip.MatmulRate(compute).value_or(0);
  rates.wide_flops_per_second =
      low ? chip.MatmulRate(hardware::DataType::kBf16).value_or(rates.flops_per_second) : rates.flops_per_second;
  rates.hbm_bytes_per_second = chip.hbm_bytes_per_second.value_or(0);
  rates.devices_per_chip = chip.devices_per_chip;
  rates.gradient_bytes_per_element = hardware::BytesPerElement(job.workload.precision.gradient_reduction);
  if (job.mode != EstimationMode::kCalibrated || job.profile == nullptr) return rates;

  const EfficiencyProfile& profile = *job.profile;
  rates.expert_axis_shards_dense_weights = profile.expert_axis_shards_dense_weights;
  const double sustained = chip.sustained_matmul_ratio.value_or(profile.default_sustained_ratio);
  const auto per_flop = [&](double peak) {
    return (profile.matmul_inverse_ratio / sustained +
            profile.matmul_hbm_sensitivity * peak / rates.hbm_bytes_per_second / 1000) /
           peak;
  };
  rates.seconds_per_wide_flop = per_flop(rates.wide_flops_per_second);
  rates.seconds_per_matmul_flop =
      low ? per_flop(rates.flops_per_second * profile.low_precision_ratio) : rates.seconds_per_wide_flop;
  rates.seconds_per_attention_flop = 1 / (rates.wide_flops_per_second * profile.attention_ratio *
                                          (profile.attention_uses_sustained_rate ? sustained : 1));
  rates.attention_backward_forwards = job.workload.attention_kernel == AttentionKernel::kFlashFusedBackward
                                          ? kFusedBackwardForwards
                                          : profile.attention_backward_forwards;
  rates.operand_passes = profile.matmul_operand_bytes_ratio + (low ? profile.quantize_bytes_ratio / 2 : 0);
  rates.elementwise_bytes_per_second = rates.hbm_bytes_per_second * profile.elementwise_hbm_ratio;
  return rates;
}

LayerTime TimeLayer(const TrainingJob& job, const LayerLoad& load, const LayerRates& rates, const PlanLaws& laws,
                    double wide_bytes_per_element, TimeTerms terms) {
  LayerTime time;
  const bool calibrated = job.mode == EstimationMode::kCalibrated && job.profile != nullptr;
  const auto network = NetworkOf(load, rates, laws, wide_bytes_per_element);
  if (terms == TimeTerms::kAll || !calibrated) BoundLayer(load, rates, laws, network, time);
  if (calibrated) ExpectLayer(load, rates, *job.profile, network, wide_bytes_per_element, time);
  return time;
}

void RetimeNetwork(const LayerLoad& load, const LayerRates& rates, const EfficiencyProfile& profile,
                   const PlanLaws& laws, double wide_bytes_per_element, LayerTime& time) {
  ExposeNetwork(SumNetwork(load, NetworkOf(load, rates, laws, wide_bytes_per_element)), profile, time);
}

}  // namespace sliceplan::planner
