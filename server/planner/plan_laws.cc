#include "server/planner/plan_laws.h"

#include <initializer_list>

namespace sliceplan::planner {
namespace {

using hardware::Group;
using hardware::GroupPiece;
using roofline::CollectiveLaw;

using Groups = std::array<Group, kLogicalAxisCount>;

const Group& Of(const Groups& groups, LogicalAxis axis) { return groups[static_cast<size_t>(axis)]; }

void Join(const Group& group, Group& joined) {
  joined.pieces.insert(joined.pieces.end(), group.pieces.begin(), group.pieces.end());
  joined.slice_count *= group.slice_count;
}

// On a torus, groups on one physical axis load the same links. Behind switches, those whose traffic leaves by the same
// tier.
bool ShareLinks(const hardware::Slice& slice, const Group& a, const CollectiveLaw& law_a, const Group& b,
                const CollectiveLaw& law_b) {
  if (a.slice_count > 1 && b.slice_count > 1) return true;
  if (slice.accelerator.fabric == hardware::FabricKind::kSwitched) return law_a.slowest_tier == law_b.slowest_tier;
  for (const GroupPiece& x : a.pieces) {
    for (const GroupPiece& y : b.pieces) {
      if (x.axis == y.axis) return true;
    }
  }
  return false;
}

}  // namespace

WeightSharding ShardingOf(const Parallelism& parallelism, bool expert_axis_shards_dense_weights) {
  const int64_t data = parallelism.Degree(LogicalAxis::kData);
  const int64_t fsdp = parallelism.Degree(LogicalAxis::kFsdp);
  const int64_t context = parallelism.Degree(LogicalAxis::kContext);
  const int64_t expert = parallelism.Degree(LogicalAxis::kExpert);
  const bool stage_3 = parallelism.data_zero_stage == ZeroStage::k3;
  const bool data_shards = stage_3 && data > 1;
  const bool context_shards = context > 1 && (fsdp > 1 || stage_3);
  WeightSharding sharding;
  sharding.shards_weights[static_cast<size_t>(LogicalAxis::kFsdp)] = fsdp > 1;
  sharding.shards_weights[static_cast<size_t>(LogicalAxis::kContext)] = context_shards;
  sharding.shards_weights[static_cast<size_t>(LogicalAxis::kData)] = data_shards;
  sharding.shard_count = fsdp * (context_shards ? context : 1) * (data_shards ? data : 1);
  sharding.expert_replica_count = (data_shards ? 1 : data) * (context_shards ? 1 : context);
  sharding.dense_shard_count = sharding.shard_count * (expert_axis_shards_dense_weights ? expert : 1);
  sharding.dense_replica_count = sharding.expert_replica_count * (expert_axis_shards_dense_weights ? 1 : expert);
  const bool shards_gradients = parallelism.data_zero_stage >= ZeroStage::k2;
  const bool shards_optimizer = parallelism.data_zero_stage >= ZeroStage::k1;
  sharding.gradient_shard_count = sharding.dense_shard_count * (shards_gradients ? sharding.dense_replica_count : 1);
  sharding.expert_gradient_shard_count = sharding.shard_count * (shards_gradients ? sharding.expert_replica_count : 1);
  sharding.optimizer_shard_count = sharding.dense_shard_count * (shards_optimizer ? sharding.dense_replica_count : 1);
  sharding.expert_optimizer_shard_count = sharding.shard_count * (shards_optimizer ? sharding.expert_replica_count : 1);
  return sharding;
}

PlanGroupAxes GroupAxesOf(const Parallelism& parallelism) {
  const WeightSharding sharding = ShardingOf(parallelism);
  PlanGroupAxes axes = {};
  const auto of = [&axes](PlanGroup group, LogicalAxis axis) -> bool& {
    return axes[static_cast<size_t>(group)][static_cast<size_t>(axis)];
  };
  of(PlanGroup::kTensor, LogicalAxis::kTensor) = true;
  of(PlanGroup::kContext, LogicalAxis::kContext) = true;
  of(PlanGroup::kExpert, LogicalAxis::kExpert) = true;
  of(PlanGroup::kPipeline, LogicalAxis::kPipeline) = true;
  // Chips that share weights gather them; those that hold the same ones reduce their gradients.
  for (LogicalAxis axis : {LogicalAxis::kFsdp, LogicalAxis::kContext, LogicalAxis::kData}) {
    const bool shards = sharding.shards_weights[static_cast<size_t>(axis)];
    if (!shards && axis == LogicalAxis::kFsdp) continue;
    of(shards ? PlanGroup::kWeights : PlanGroup::kExpertGradients, axis) = true;
    of(shards ? PlanGroup::kWeightsWithExpert : PlanGroup::kDenseGradients, axis) = true;
  }
  // The expert axis holds other experts, but the same dense weights.
  of(PlanGroup::kWeightsWithExpert, LogicalAxis::kExpert) = true;
  of(PlanGroup::kDenseGradients, LogicalAxis::kExpert) = true;
  return axes;
}

roofline::Tier SlowestTierOf(const PlanLaws& laws, LogicalAxis axis) {
  switch (axis) {
    case LogicalAxis::kFsdp: return laws.weights_gather.slowest_tier;
    case LogicalAxis::kTensor: return laws.tensor_gather.slowest_tier;
    case LogicalAxis::kContext: return laws.context_gather.slowest_tier;
    case LogicalAxis::kExpert: return laws.expert_exchange.slowest_tier;
    case LogicalAxis::kPipeline: return laws.pipeline_permute.slowest_tier;
    case LogicalAxis::kData: return laws.dense_gradient_reduce.slowest_tier;
  }
  return roofline::Tier::kNone;
}

absl::StatusOr<PlanLaws> LawsOf(const hardware::Slice& slice, const Groups& groups, const Parallelism& parallelism,
                                bool in_network_reduction) {
  const PlanGroupAxes axes = GroupAxesOf(parallelism);
  std::array<Group, kPlanGroupCount> joined;
  for (size_t g = 0; g < kPlanGroupCount; ++g) {
    for (LogicalAxis axis : {LogicalAxis::kTensor, LogicalAxis::kFsdp, LogicalAxis::kContext, LogicalAxis::kData,
                             LogicalAxis::kExpert, LogicalAxis::kPipeline}) {
      if (axes[g][static_cast<size_t>(axis)]) Join(Of(groups, axis), joined[g]);
    }
  }
  roofline::CollectiveOptions options;
  options.in_network_reduction = in_network_reduction;
  const bool has_experts = Of(groups, LogicalAxis::kExpert).Size() > 1;
  PlanLaws laws;
  for (const PlanLawSlot& slot : kPlanLawSlots) {
    const Group& group = joined[static_cast<size_t>(slot.group)];
    if (group.Size() <= 1 || (slot.group == PlanGroup::kWeightsWithExpert && !has_experts)) continue;
    absl::StatusOr<CollectiveLaw> law = roofline::LawOf(slot.kind, slice, group, options);
    if (!law.ok()) return law.status();
    laws.*slot.law = *law;
  }
  if (!has_experts) {
    laws.weights_gather_with_expert = laws.weights_gather;
    laws.weights_scatter_with_expert = laws.weights_scatter;
  }
  const Group& weights = joined[static_cast<size_t>(PlanGroup::kWeights)];
  const auto shares = [&](PlanGroup group, const CollectiveLaw& law) {
    return ShareLinks(slice, weights, laws.weights_gather, joined[static_cast<size_t>(group)], law);
  };
  laws.weights_share_tensor_links = shares(PlanGroup::kTensor, laws.tensor_gather);
  laws.weights_share_context_links = shares(PlanGroup::kContext, laws.context_gather);
  laws.weights_share_expert_links = shares(PlanGroup::kExpert, laws.expert_exchange);
  return laws;
}

}  // namespace sliceplan::planner
