#include "server/planner/plan_bound.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"

namespace sliceplan::planner {
namespace {

using hardware::Group;
using hardware::GroupPiece;
using hardware::Slice;
using hardware::TorusAxis;
using roofline::CollectiveKind;
using roofline::CollectiveLaw;
using roofline::CollectiveLaws;

using Sizes = absl::InlinedVector<int32_t, 3>;

// Adds every way to write `members` as a product of one factor for each axis that is at most as long.
void AddFactorings(absl::Span<const TorusAxis> axes, int64_t members, Sizes& chosen, std::vector<Sizes>& ways) {
  if (axes.empty()) {
    if (members == 1) ways.push_back(chosen);
    return;
  }
  for (int64_t factor = 1; factor <= std::min<int64_t>(members, axes.front().size); ++factor) {
    if (members % factor != 0) continue;
    chosen.push_back(static_cast<int32_t>(factor));
    AddFactorings(axes.subspan(1), members / factor, chosen, ways);
    chosen.pop_back();
  }
}

void TakeSmaller(const CollectiveLaw& other, CollectiveLaw& law) {
  law.ici_seconds_per_byte = std::min(law.ici_seconds_per_byte, other.ici_seconds_per_byte);
  law.scale_up_seconds_per_byte = std::min(law.scale_up_seconds_per_byte, other.scale_up_seconds_per_byte);
  law.scale_out_seconds_per_byte = std::min(law.scale_out_seconds_per_byte, other.scale_out_seconds_per_byte);
  law.dcn_seconds_per_byte = std::min(law.dcn_seconds_per_byte, other.dcn_seconds_per_byte);
  law.pipelined_seconds_per_byte = std::min(law.pipelined_seconds_per_byte, other.pipelined_seconds_per_byte);
  law.latency_seconds = std::min(law.latency_seconds, other.latency_seconds);
  law.hops = std::min(law.hops, other.hops);
}

roofline::CollectiveOptions OptionsOf(const Slice& slice) {
  roofline::CollectiveOptions options;
  options.in_network_reduction = slice.accelerator.in_network_reduction;
  return options;
}

absl::StatusOr<CollectiveLaws> OnRings(const Slice& slice, int64_t in_slice, int32_t slices) {
  std::vector<Sizes> ways;
  Sizes chosen;
  AddFactorings(slice.axes, in_slice, chosen, ways);
  // Members that no block holds: the plan has no placement, which the search finds out by itself.
  if (ways.empty()) return CollectiveLaws{};
  absl::StatusOr<CollectiveLaws> best;
  Slice rings = slice;
  rings.twisted = false;
  for (size_t way = 0; way < ways.size(); ++way) {
    Group group;
    group.slice_count = slices;
    rings.chip_count = in_slice;
    for (size_t i = 0; i < rings.axes.size(); ++i) {
      rings.axes[i] = TorusAxis{ways[way][i], ways[way][i] > 2};
      if (ways[way][i] > 1) group.pieces.push_back(GroupPiece{static_cast<int32_t>(i), ways[way][i], 1});
    }
    absl::StatusOr<CollectiveLaws> laws = roofline::LawsOfGroup(rings, group, OptionsOf(slice));
    if (!laws.ok()) return laws.status();
    if (way == 0) {
      best = *std::move(laws);
      continue;
    }
    for (size_t kind = 0; kind < best->size(); ++kind) TakeSmaller((*laws)[kind], (*best)[kind]);
  }
  return best;
}

// Neighbours fill domains before they leave them.
absl::StatusOr<CollectiveLaws> InDomains(const Slice& slice, int64_t in_slice, int32_t slices) {
  Group group;
  group.slice_count = slices;
  if (in_slice > 1) group.pieces.push_back(GroupPiece{0, static_cast<int32_t>(in_slice), 1});
  Slice packed = slice;
  // A group that does not divide the slice fits a smaller one as well.
  packed.chip_count = slice.chip_count - slice.chip_count % in_slice;
  packed.axes[0].size = static_cast<int32_t>(packed.chip_count);
  return roofline::LawsOfGroup(packed, group, OptionsOf(slice));
}

}  // namespace

absl::StatusOr<CollectiveLaws> IdealLaws::OfGroup(int64_t in_slice, int32_t slices) {
  if (in_slice * slices <= 1) return CollectiveLaws{};
  const uint64_t key = static_cast<uint64_t>(in_slice) << 24 | static_cast<uint64_t>(slices);
  if (const auto found = remembered_.find(key); found != remembered_.end()) return found->second;
  absl::StatusOr<CollectiveLaws> laws = slice_.accelerator.fabric == hardware::FabricKind::kTorus
                                            ? OnRings(slice_, in_slice, slices)
                                            : InDomains(slice_, in_slice, slices);
  remembered_.emplace(key, laws);
  return laws;
}

absl::StatusOr<PlanLaws> IdealLaws::Of(const Parallelism& parallelism) {
  const WeightSharding sharding = ShardingOf(parallelism);
  struct Members {
    int64_t in_slice = 1;
    int32_t slices = 1;
  };
  const auto join = [&parallelism](LogicalAxis axis, Members& members) {
    members.in_slice *= parallelism.ici[axis];
    members.slices *= parallelism.dcn[axis];
  };
  Members weights;
  Members expert_gradients;
  for (LogicalAxis axis : {LogicalAxis::kFsdp, LogicalAxis::kContext, LogicalAxis::kData}) {
    if (sharding.shards_weights[static_cast<size_t>(axis)]) {
      join(axis, weights);
    } else if (axis != LogicalAxis::kFsdp) {
      join(axis, expert_gradients);
    }
  }
  Members weights_with_expert = weights;
  join(LogicalAxis::kExpert, weights_with_expert);
  Members dense_gradients = expert_gradients;
  join(LogicalAxis::kExpert, dense_gradients);

  PlanLaws laws;
  absl::Status status;
  const auto set = [&](CollectiveKind kind, const Members& members, CollectiveLaw& law) {
    if (!status.ok()) return;
    const absl::StatusOr<CollectiveLaws> found = OfGroup(members.in_slice, members.slices);
    if (found.ok()) {
      law = (*found)[static_cast<size_t>(kind)];
    } else {
      status = found.status();
    }
  };
  const auto alone = [&](LogicalAxis axis) {
    Members members;
    join(axis, members);
    return members;
  };
  const Members tensor = alone(LogicalAxis::kTensor);
  const Members context = alone(LogicalAxis::kContext);
  set(CollectiveKind::kAllGather, weights, laws.weights_gather);
  set(CollectiveKind::kReduceScatter, weights, laws.weights_scatter);
  set(CollectiveKind::kAllGather, weights_with_expert, laws.weights_gather_with_expert);
  set(CollectiveKind::kReduceScatter, weights_with_expert, laws.weights_scatter_with_expert);
  set(CollectiveKind::kAllGather, tensor, laws.tensor_gather);
  set(CollectiveKind::kReduceScatter, tensor, laws.tensor_scatter);
  set(CollectiveKind::kAllGather, context, laws.context_gather);
  set(CollectiveKind::kReduceScatter, context, laws.context_scatter);
  set(CollectiveKind::kAllToAll, alone(LogicalAxis::kExpert), laws.expert_exchange);
  set(CollectiveKind::kCollectivePermute, alone(LogicalAxis::kPipeline), laws.pipeline_permute);
  set(CollectiveKind::kAllReduce, dense_gradients, laws.dense_gradient_reduce);
  set(CollectiveKind::kAllReduce, expert_gradients, laws.expert_gradient_reduce);
  if (!status.ok()) return status;
  return laws;
}

}  // namespace sliceplan::planner
