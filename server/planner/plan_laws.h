// The collectives of a plan: which chips exchange what, as laws that are applied to bytes.
#ifndef SLICEPLAN_SERVER_PLANNER_PLAN_LAWS_H_
#define SLICEPLAN_SERVER_PLANNER_PLAN_LAWS_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "server/hardware/slice.h"
#include "server/planner/parallelism.h"
#include "server/roofline/collective.h"

namespace sliceplan::planner {

// Which axes shard the weights (beside tensor, expert and pipeline) and over which axes gradients are reduced.
// Context joins FSDP, as in MaxText and in Megatron's distributed optimizer; `data` joins under ZeRO 3. The expert axis
// joins for dense weights where the runtime does so.
struct WeightSharding {
  int64_t shard_count = 1;            // chips that share one copy of an expert weight
  int64_t dense_shard_count = 1;      // the same for a dense weight
  int64_t dense_replica_count = 1;    // copies of a dense weight whose gradients are reduced
  int64_t expert_replica_count = 1;   // the same for an expert weight: the expert axis holds other experts
  int64_t optimizer_shard_count = 1;  // of a dense weight's optimizer state: shards x data under ZeRO 1 and up
  int64_t expert_optimizer_shard_count = 1;
  int64_t gradient_shard_count = 1;  // the same for gradients: ZeRO 2 and up
  int64_t expert_gradient_shard_count = 1;
  std::array<bool, kLogicalAxisCount> shards_weights = {};
};

// `expert_axis_shards_dense_weights`: of EfficiencyProfile.
WeightSharding ShardingOf(const Parallelism& parallelism, bool expert_axis_shards_dense_weights = false);

// The groups of chips that exchange something in a plan, each the chips of some logical axes together.
enum class PlanGroup {
  kWeights,
  kWeightsWithExpert,
  kTensor,
  kContext,
  kExpert,
  kPipeline,
  kDenseGradients,
  kExpertGradients
};
inline constexpr size_t kPlanGroupCount = 8;
// Which logical axes each group spans.
using PlanGroupAxes = std::array<std::array<bool, kLogicalAxisCount>, kPlanGroupCount>;
PlanGroupAxes GroupAxesOf(const Parallelism& parallelism);

struct PlanLaws {
  roofline::CollectiveLaw weights_gather;
  roofline::CollectiveLaw weights_scatter;
  roofline::CollectiveLaw weights_gather_with_expert;  // over the expert axis too: the others' equals without one
  roofline::CollectiveLaw weights_scatter_with_expert;
  roofline::CollectiveLaw tensor_gather;
  roofline::CollectiveLaw tensor_scatter;
  roofline::CollectiveLaw context_gather;
  roofline::CollectiveLaw context_scatter;
  roofline::CollectiveLaw expert_exchange;
  roofline::CollectiveLaw pipeline_permute;
  roofline::CollectiveLaw dense_gradient_reduce;
  roofline::CollectiveLaw expert_gradient_reduce;
  // Logical axes on one physical axis load the same links: their times add.
  bool weights_share_tensor_links = false;
  bool weights_share_context_links = false;
  bool weights_share_expert_links = false;
};

// Which kinds of collective run in a group, and where their laws go.
struct PlanLawSlot {
  PlanGroup group;
  roofline::CollectiveKind kind;
  roofline::CollectiveLaw PlanLaws::*law;
};
inline constexpr std::array<PlanLawSlot, 12> kPlanLawSlots = {{
    {PlanGroup::kWeights, roofline::CollectiveKind::kAllGather, &PlanLaws::weights_gather},
    {PlanGroup::kWeights, roofline::CollectiveKind::kReduceScatter, &PlanLaws::weights_scatter},
    {PlanGroup::kWeightsWithExpert, roofline::CollectiveKind::kAllGather, &PlanLaws::weights_gather_with_expert},
    {PlanGroup::kWeightsWithExpert, roofline::CollectiveKind::kReduceScatter, &PlanLaws::weights_scatter_with_expert},
    {PlanGroup::kTensor, roofline::CollectiveKind::kAllGather, &PlanLaws::tensor_gather},
    {PlanGroup::kTensor, roofline::CollectiveKind::kReduceScatter, &PlanLaws::tensor_scatter},
    {PlanGroup::kContext, roofline::CollectiveKind::kAllGather, &PlanLaws::context_gather},
    {PlanGroup::kContext, roofline::CollectiveKind::kReduceScatter, &PlanLaws::context_scatter},
    {PlanGroup::kExpert, roofline::CollectiveKind::kAllToAll, &PlanLaws::expert_exchange},
    {PlanGroup::kPipeline, roofline::CollectiveKind::kCollectivePermute, &PlanLaws::pipeline_permute},
    {PlanGroup::kDenseGradients, roofline::CollectiveKind::kAllReduce, &PlanLaws::dense_gradient_reduce},
    {PlanGroup::kExpertGradients, roofline::CollectiveKind::kAllReduce, &PlanLaws::expert_gradient_reduce},
}};

// The slowest network of an axis's own collective; of `data` that of gradients.
roofline::Tier SlowestTierOf(const PlanLaws& laws, LogicalAxis axis);

// `groups`: one per logical axis, degree 1 axes empty. FAILED_PRECONDITION names a network figure that is missing.
absl::StatusOr<PlanLaws> LawsOf(const hardware::Slice& slice,
                                const std::array<hardware::Group, kLogicalAxisCount>& groups,
                                const Parallelism& parallelism, bool in_network_reduction);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_PLAN_LAWS_H_
