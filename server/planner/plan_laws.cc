#include "server/planner/plan_laws.h"

#include <initializer_list>

namespace sliceplan::planner {
namespace {

using hardware::Group;
using hardware::GroupPiece;
using roofline::CollectiveKind;
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

absl::StatusOr<PlanLaws> LawsOf(const hardware::Slice& slice, const Groups& groups, const Parallelism& parallelism,
                                bool in_network_reduction) {
  const WeightSharding sharding = ShardingOf(parallelism);
  Group weights;
  Group dense_gradients;
  Group expert_gradients;
  for (LogicalAxis axis : {LogicalAxis::kFsdp, LogicalAxis::kContext, LogicalAxis::kData}) {
    const Group& group = Of(groups, axis);
    if (sharding.shards_weights[static_cast<size_t>(axis)]) {
      Join(group, weights);
    } else if (axis != LogicalAxis::kFsdp) {
      Join(group, expert_gradients);
    }
  }
  Group weights_with_expert = weights;
  Join(Of(groups, LogicalAxis::kExpert), weights_with_expert);
  dense_gradients = expert_gradients;
  Join(Of(groups, LogicalAxis::kExpert), dense_gradients);

  PlanLaws laws;
  absl::Status status;
  const auto set = [&](CollectiveKind kind, const Group& group, CollectiveLaw& law) {
    if (!status.ok() || group.Size() <= 1) return;
    roofline::CollectiveOptions options;
    options.in_network_reduction = in_network_reduction;
    absl::StatusOr<CollectiveLaw> found = roofline::LawOf(kind, slice, group, options);
    if (found.ok()) {
      law = *found;
    } else {
      status = found.status();
    }
  };
  const Group& tensor = Of(groups, LogicalAxis::kTensor);
  const Group& context = Of(groups, LogicalAxis::kContext);
  const Group& expert = Of(groups, LogicalAxis::kExpert);
  set(CollectiveKind::kAllGather, weights, laws.weights_gather);
  set(CollectiveKind::kReduceScatter, weights, laws.weights_scatter);
  laws.weights_gather_with_expert = laws.weights_gather;
  laws.weights_scatter_with_expert = laws.weights_scatter;
  if (Of(groups, LogicalAxis::kExpert).Size() > 1) {
    set(CollectiveKind::kAllGather, weights_with_expert, laws.weights_gather_with_expert);
    set(CollectiveKind::kReduceScatter, weights_with_expert, laws.weights_scatter_with_expert);
  }
  set(CollectiveKind::kAllGather, tensor, laws.tensor_gather);
  set(CollectiveKind::kReduceScatter, tensor, laws.tensor_scatter);
  set(CollectiveKind::kAllGather, context, laws.context_gather);
  set(CollectiveKind::kReduceScatter, context, laws.context_scatter);
  set(CollectiveKind::kAllToAll, expert, laws.expert_exchange);
  set(CollectiveKind::kCollectivePermute, Of(groups, LogicalAxis::kPipeline), laws.pipeline_permute);
  set(CollectiveKind::kAllReduce, dense_gradients, laws.dense_gradient_reduce);
  set(CollectiveKind::kAllReduce, expert_gradients, laws.expert_gradient_reduce);
  if (!status.ok()) return status;
  const auto shares = [&](const Group& group, const CollectiveLaw& law) {
    return ShareLinks(slice, weights, laws.weights_gather, group, law);
  };
  laws.weights_share_tensor_links = shares(tensor, laws.tensor_gather);
  laws.weights_share_context_links = shares(context, laws.context_gather);
  laws.weights_share_expert_links = shares(expert, laws.expert_exchange);
  return laws;
}

}  // namespace sliceplan::planner
