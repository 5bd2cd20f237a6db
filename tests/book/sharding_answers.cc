// Chapter 3: sharded arrays and collectives on rings.
#include <algorithm>
#include <string>
#include <vector>

#include "server/roofline/collective.h"
#include "server/roofline/memory_tiers.h"
#include "server/roofline/mesh_network.h"
#include "server/roofline/op_cost.h"
#include "server/roofline/ring_collective.h"
#include "server/roofline/sharded_matmul.h"
#include "server/roofline/sharding.h"
#include "tests/book/book_case.h"
#include "tests/book/book_constants.h"
#include "tests/book/notation.h"

namespace sliceplan::book {
namespace {

using hardware::AcceleratorSpec;
using hardware::Slice;
using namespace roofline;  // NOLINT(google-build-using-namespace): this file calls nothing else

constexpr AxisSet kX = 1;
constexpr AxisSet kY = 2;
constexpr AxisSet kZ = 4;

// The book's rings: every mesh axis one ring, both directions used.
LongRingNetwork Rings(const Json& given, const std::vector<int32_t>& sizes) {
  return LongRingNetwork(sizes, AxisBytesPerSecond(given), kDefaultHopSeconds);
}

CollectiveLaw GatherOnRings(const Json& given, const std::vector<int32_t>& sizes, AxisSet axes) {
  return Rings(given, sizes).LawOver(CollectiveKind::kAllGather, axes).value();
}

// An all-gather over axis 0 of a torus of one axis.
CollectiveLaw GatherOn(const AcceleratorSpec& chip, int32_t size, bool wraps) {
  const Slice slice = TorusOf(chip, {size}, wraps);
  return LawOf(CollectiveKind::kAllGather, slice, {.pieces = {{0, size, 1}}}).value();
}

Json LocalShapeOf(const Json& given) {
  const NamedMesh mesh = MeshOf(given.at("mesh"));
  const ShardedArray array = ArrayOf(given.at("global_shape"), given.at("spec"), mesh, /*bytes_per_element=*/1);
  const double local = LocalBytes(array, mesh.sizes).value();
  const double copies = CopyCount(array, mesh.sizes).value();
  return {{"local_shape", LocalShape(array, mesh.sizes).value()},
          {"fraction_per_device", local * copies / TotalBytes(array, mesh.sizes).value()}};
}

Json LoadTime(const Json& given) {
  const NamedMesh mesh = MeshOf(given.at("mesh"));
  const ShardedArray array =
      ArrayOf(given.at("global_shape"), given.at("spec"), mesh, Number(given, "bytes_per_element"));
  OpCost cost;
  cost.hbm_bytes = LocalBytes(array, mesh.sizes).value();
  return {{"local_shape", LocalShape(array, mesh.sizes).value()},
          {"bytes_per_device", cost.hbm_bytes},
          {"t_load_s", SecondsOf(cost, GivenChip(given)).value().hbm}};
}

Json Copies(const Json& given) {
  const NamedMesh mesh = MeshOf(given.at("mesh"));
  const ShardedArray array =
      ArrayOf(given.at("global_shape"), given.at("spec"), mesh, Number(given, "bytes_per_element"));
  return {{"local_shape", LocalShape(array, mesh.sizes).value()},
          {"bytes_per_device", LocalBytes(array, mesh.sizes).value()},
          {"total_bytes", TotalBytes(array, mesh.sizes).value()},
          {"copies", CopyCount(array, mesh.sizes).value()}};
}

Json TwoOperands(const Json& given) {
  const NamedMesh mesh = MeshOf(given.at("mesh"));
  const auto local = [&](const char* shape, const char* spec) {
    return LocalShape(ArrayOf(given.at(shape), given.at(spec), mesh, 1), mesh.sizes).value();
  };
  return {{"A_local", local("A_shape", "A_spec")}, {"B_local", local("B_shape", "B_spec")}};
}

Json IsValid(const Json& given) {
  const NamedMesh mesh = MeshOf({{"X", 2}});
  const std::vector<std::string> dimensions = given.at("array_dims");
  const std::vector<int64_t> shape(dimensions.size(), 8);
  std::vector<hardware::Violation> violations;
  ResolveSharding(EntriesOfSpec(given.at("spec"), dimensions), dimensions, shape, mesh.axes, "spec", violations);
  return {{"valid", violations.empty()}};
}

// The case names no sizes. A split contraction is taken as long, so that its sums are small; a whole or a mismatched
// one as short, so that its operands are.
Json WhichCommunication(const Json& given) {
  const NamedMesh mesh = MeshOf({{"X", 4}, {"Y", 4}});
  ShardedMatmul op;
  op.lhs_sharding = EntriesOf(given.at("A"), {"m", "k"});
  op.rhs_sharding = EntriesOf(given.at("B"), {"k", "n"});
  op.output_sharding = EntriesOf(given.at("out"), {"m", "n"});
  op.m = 8192;
  op.n = 8192;
  op.k = given.at("A")[1] == given.at("B")[0] ? 65536 : 1024;
  const AcceleratorSpec chip = ChipSpec("tpu-v5p");
  const LongRingNetwork network({4, 4}, 2 * *chip.ici_link_bytes_per_second, kDefaultHopSeconds);
  std::vector<hardware::Violation> violations;
  const ShardedMatmulAnalysis analysis =
      AnalyzeShardedMatmul(op, mesh.axes, network, chip, "matmul", violations).value();

  Json answer = {{"case", analysis.matmul_case}, {"collective", "none"}};
  std::vector<std::string> operands;
  for (const InsertedCollective& collective : analysis.plan.collectives) {
    answer["collective"] = BookName(collective.kind);
    operands.push_back(BookName(collective.operand));
  }
  if (operands.size() == 1) {
    answer["operand"] = operands.front();
    answer["over"] = mesh.axes[static_cast<size_t>(analysis.plan.collectives.front().axes.front())].name;
  } else if (!operands.empty()) {
    answer["operand_any_of"] = operands;
  }
  return answer;
}

Json OneWay(const Json& given) {
  const int32_t size = static_cast<int32_t>(Count(given, "axis_size"));
  return {{"allgather_s", OneWayGatherSeconds(Number(given, "array_bytes"), size, LinkBytesPerSecond(given))},
          {"hops", OneWayGatherHops(size)}};
}

Json SeveralAxes(const Json& given) {
  const CollectiveLaw law = GatherOnRings(given, given.at("axes"), kX | kY);
  const double bytes = Number(given, "array_bytes");
  return {{"t_bandwidth_s", law.BandwidthSeconds(bytes)},
          {"t_latency_s", law.latency_seconds},
          {"total_s", law.Seconds(bytes)}};
}

// The array is split over Y alone and gathered over it.
ShardedArray SplitOverY(const Json& given, const NamedMesh& mesh) {
  return ArrayOf(given.at("shape"), Json::array({"Y", nullptr}), mesh, Number(given, "bytes_per_element"));
}

Json QuizRing(const Json& given) {
  const NamedMesh mesh = MeshOf(given.at("mesh"));
  const ShardedArray array = SplitOverY(given, mesh);
  const double bytes = TotalBytes(array, mesh.sizes).value() / CopyCount(array, mesh.sizes).value();
  const CollectiveLaw law = GatherOnRings(given, {mesh.axes[0].size, mesh.axes[1].size}, kY);
  return {{"array_bytes", bytes}, {"shard_bytes", LocalBytes(array, mesh.sizes).value()}, {"t_s", law.Seconds(bytes)}};
}

// The mesh on a slice of that shape, without wraparound.
CollectiveLaw GatherOnLines(const Json& given, const NamedMesh& mesh) {
  const Slice slice = TorusOf(GivenChip(given), {mesh.axes[0].size, mesh.axes[1].size}, /*wraps=*/false);
  std::vector<hardware::Violation> violations;
  const SliceNetwork network(slice, PlaceMesh(slice, mesh.axes, violations));
  return network.LawOver(CollectiveKind::kAllGather, kY).value();
}

Json QuizLine(const Json& given) {
  const NamedMesh mesh = MeshOf(given.at("mesh"));
  const ShardedArray array = SplitOverY(given, mesh);
  const double bytes = TotalBytes(array, mesh.sizes).value() / CopyCount(array, mesh.sizes).value();
  const CollectiveLaw law = GatherOnLines(given, mesh);
  return {{"hops", law.hops},
          {"t_s", law.Seconds(bytes)},
          {"t_latency_s", law.latency_seconds},
          {"measured_over_model", Number(given, "measured_s") / law.Seconds(bytes)}};
}

Json QuizSmall(const Json& given) {
  const NamedMesh mesh = MeshOf(given.at("mesh"));
  const ShardedArray array = SplitOverY(given, mesh);
  const double shard = LocalBytes(array, mesh.sizes).value();
  const CollectiveLaw law = GatherOnLines(given, mesh);
  const double seconds = HopByHopSeconds(law.hops, shard, LinkBytesPerSecond(given), Number(given, "hop_latency_s"));
  return {{"shard_bytes", shard},
          {"t_hop_bandwidth_s", HopByHopSeconds(/*hops=*/1, shard, LinkBytesPerSecond(given), /*hop_seconds=*/0)},
          {"hops", law.hops},
          {"t_s", seconds},
          {"measured_over_model", Number(given, "measured_s") / seconds}};
}

Json CopiesRatio(const Json& given) {
  const NamedMesh mesh = MeshOf(given.at("mesh"));
  const Json spec = Json::array({given.at("spec_first_dim"), nullptr});
  return {{"ratio", CopyCount(ArrayOf(Json::array({4, 4}), spec, mesh, 1), mesh.sizes).value()}};
}

// A[I_X, J_Y] of array_bytes on a mesh of 4-rings; what is left of it once only Y splits it.
double BytesSplitOverY(const Json& given) {
  const NamedMesh mesh = MeshOf({{"X", 4}, {"Y", 4}, {"Z", 4}});
  const Json shape = Json::array({4, Count(given, "array_bytes") / 4});
  return LocalBytes(ArrayOf(shape, Json::array({nullptr, "Y"}), mesh, 1), mesh.sizes).value();
}

Json GatherX(const Json& given) {
  const double bytes = BytesSplitOverY(given);
  return {{"bytes_gathered", bytes}, {"t_s", GatherOnRings(given, {4, 4, 4}, kX).Seconds(bytes)}};
}

Json GatherXY(const Json& given) {
  const CollectiveLaw law = GatherOnRings(given, {4, 4, 4}, kX | kY);
  return {{"t_s", law.Seconds(Number(given, "array_bytes"))}, {"t_latency_s", law.latency_seconds}};
}

Json IdleAxis(const Json& given) {
  const double bytes = Number(given, "array_bytes");
  return {{"part1_over_xz_s", GatherOnRings(given, {4, 4, 4}, kX | kZ).Seconds(BytesSplitOverY(given))},
          {"part2_over_xyz_s", GatherOnRings(given, {4, 4, 4}, kX | kY | kZ).Seconds(bytes)}};
}

Json TinyGather(const Json& given) {
  const int32_t size = static_cast<int32_t>(Count(given, "axis_size"));
  const NamedMesh mesh = MeshOf({{"X", size}});
  const ShardedArray array =
      ArrayOf(Json::array({given.at("B")}), Json::array({"X"}), mesh, Number(given, "bytes_per_element"));
  const double bytes = TotalBytes(array, mesh.sizes).value();
  const CollectiveLaw law = GatherOn(GivenChip(given), size, given.at("wraparound"));
  return {{"total_bytes", bytes},
          {"shard_bytes", LocalBytes(array, mesh.sizes).value()},
          {"hops", law.hops},
          {"t_s", law.Seconds(bytes)}};
}

MatmulPlan PlanWith(CollectiveKind kind, const ShardedMatmulAnalysis& analysis) {
  std::vector<MatmulPlan> plans = analysis.alternatives;
  plans.insert(plans.begin(), analysis.plan);
  return *std::find_if(plans.begin(), plans.end(), [kind](const MatmulPlan& plan) {
    return plan.collectives.size() == 1 && plan.collectives.front().kind == kind;
  });
}

Json GatherOrReduceWeights(const Json& given) {
  const NamedMesh mesh = MeshOf({{"X", given.at("X")}});
  ShardedMatmul op;
  op.m = Count(given, "B");
  op.k = Count(given, "D");
  op.n = Count(given, "F");
  op.rhs_sharding = {{"k", {"X"}}};
  op.output_sharding.emplace();
  const AcceleratorSpec chip = ChipSpec("tpu-v5p");
  const LongRingNetwork network = Rings(given, {mesh.axes[0].size});
  std::vector<hardware::Violation> violations;
  const ShardedMatmulAnalysis analysis =
      AnalyzeShardedMatmul(op, mesh.axes, network, chip, "matmul", violations).value();
  const double gather = PlanWith(CollectiveKind::kAllGather, analysis).bound.lower_seconds;
  const double reduce = PlanWith(CollectiveKind::kAllReduce, analysis).bound.lower_seconds;
  const double alpha = CriticalIntensity(chip, MemoryTier::kIciAxis).value();
  const GatherOrReduce thresholds = GatherOrReduceThresholds(Number(given, "D"), alpha);
  return {{"strategy1_s", gather},
          {"strategy2_s", reduce},
          {"intensity", alpha},
          {"strategy1_comms_bound_below_B", thresholds.gather_network_bound_below_rows},
          {"strategy2_compute_bound_below_X", thresholds.reduce_compute_bound_below_shards},
          {"strategy2_better_if_comms_bound_when_D_over_B", thresholds.reduce_moves_less_above_k_over_rows},
          {"strategy2_better_when_large_batch_D_above", thresholds.reduce_faster_above_k},
          {"best", reduce < gather ? "strategy2" : "strategy1"}};
}

Json FourShardings(const Json& given) {
  const NamedMesh mesh = MeshOf({{"X", 4}, {"Y", 4}, {"Z", 4}});
  const LongRingNetwork network = Rings(given, {4, 4, 4});
  const auto plan_of = [&](const std::string& lhs, const std::string& rhs) {
    ShardedMatmul op;
    op.m = Count(given, "I");
    op.k = Count(given, "J");
    op.n = Count(given, "K");
    if (!lhs.empty()) op.lhs_sharding = {{lhs, {"X", "Y", "Z"}}};
    if (!rhs.empty()) op.rhs_sharding = {{rhs, {"X", "Y", "Z"}}};
    op.output_sharding.emplace();
    std::vector<hardware::Violation> violations;
    return AnalyzeShardedMatmul(op, mesh.axes, network, ChipSpec(given.at("chip")), "matmul", violations).value().plan;
  };
  const MatmulPlan rows = plan_of("m", "");
  const MatmulPlan columns = plan_of("", "n");
  const MatmulPlan contraction = plan_of("k", "k");
  const MatmulPlan whole = plan_of("", "");
  const double best = std::min({rows.bound.lower_seconds, columns.bound.lower_seconds, contraction.bound.lower_seconds,
                                whole.bound.lower_seconds});
  const bool either = rows.bound.lower_seconds == best && columns.bound.lower_seconds == best;
  return {{"t_math_sharded_s", rows.seconds.matrix_unit},
          {"t_math_replicated_s", whole.seconds.matrix_unit},
          {"t_allgather_s", rows.network_seconds},
          {"t_allreduce_s", contraction.network_seconds},
          {"best", either ? "shard I or K, AllGather at end" : "another"}};
}

Json ReduceOnLine(const Json& given) {
  const NamedMesh mesh = MeshOf({{"X", given.at("X")}, {"Y", given.at("Y")}});
  const Slice slice = SliceOf(given.at("chip"), given.at("topology"));
  ShardedMatmul op;
  op.m = Count(given, "I");
  op.k = Count(given, "J");
  op.n = Count(given, "K");
  op.lhs_sharding = {{"m", {"X"}}, {"k", {"Y"}}};
  op.rhs_sharding = {{"k", {"Y"}}};
  op.output_sharding = {{{"m", {"X"}}}};
  std::vector<hardware::Violation> violations;
  const SliceNetwork network(slice, PlaceMesh(slice, mesh.axes, violations));
  const MatmulPlan plan =
      AnalyzeShardedMatmul(op, mesh.axes, network, slice.accelerator, "matmul", violations).value().plan;
  const InsertedCollective& collective = plan.collectives.front();
  return {
      {"collective", BookName(collective.kind) + "_" + mesh.axes[static_cast<size_t>(collective.axes.front())].name},
      {"reduced_bytes", collective.bytes},
      {"t_math_s", plan.seconds.matrix_unit},
      {"t_comms_s", plan.network_seconds}};
}

Json LinkLoads(const Json& given) {
  const double scalars = Number(given, "matrix_n") * Number(given, "matrix_n");
  const int32_t devices = static_cast<int32_t>(Count(given, "devices"));
  const LongRingNetwork ring({devices}, /*axis_bytes_per_second=*/1, /*hop_seconds=*/0);
  const double gather = ring.LawOver(CollectiveKind::kAllGather, kX).value().Seconds(scalars);
  const double exchange = ring.LawOver(CollectiveKind::kAllToAll, kX).value().Seconds(scalars);
  return {{"allgather_oneway", OneWayGatherLinkLoad(scalars, devices)},
          {"alltoall_oneway", OneWayAllToAllLinkLoad(scalars, devices)},
          {"ratio_oneway", OneWayAllToAllLinkLoad(scalars, devices) / OneWayGatherLinkLoad(scalars, devices)},
          {"allgather_bidi", TwoWayGatherLinkLoad(scalars)},
          {"alltoall_bidi", TwoWayAllToAllLinkLoad(scalars, devices)},
          {"ratio_bidi_asymptotic", exchange / gather}};
}

Json LinePenalty(const Json& given) {
  AcceleratorSpec chip;
  chip.ici_link_bytes_per_second = 1e9;
  constexpr double kBytes = 1e12;
  Json penalty = Json::array();
  for (const Json& size : given.at("axis_sizes")) {
    const LongRingNetwork ring({size.get<int32_t>()}, 2 * *chip.ici_link_bytes_per_second, /*hop_seconds=*/0);
    penalty.push_back(GatherOn(chip, size, /*wraps=*/false).BandwidthSeconds(kBytes) /
                      ring.LawOver(CollectiveKind::kAllGather, kX).value().BandwidthSeconds(kBytes));
  }
  return {{"penalty", penalty}};
}

Json LineLatency(const Json& given) {
  AcceleratorSpec chip = GivenChip(given);
  chip.ici_link_bytes_per_second = 1e9;
  const CollectiveLaw law = GatherOn(chip, static_cast<int32_t>(Count(given, "axis_size")), given.at("wraparound"));
  return {{"hops", law.hops}, {"t_s", law.latency_seconds}};
}

}  // namespace

Answers ShardingAnswers() {
  return {
      {"sharding.local_shape_2d", LocalShapeOf},
      {"sharding.popquiz_2axis", LoadTime},
      {"sharding.popquiz_replicated", Copies},
      {"sharding.code_example", TwoOperands},
      {"sharding.invalid_spec", IsValid},
      {"sharding.matmul_case1_none", WhichCommunication},
      {"sharding.matmul_case3_allreduce", WhichCommunication},
      {"sharding.matmul_case3_reducescatter", WhichCommunication},
      {"sharding.matmul_pure_tp_weight", WhichCommunication},
      {"sharding.matmul_contract_y", WhichCommunication},
      {"sharding.matmul_contract_different_axes", WhichCommunication},
      {"sharding.grad_duality",
       [](const Json&) -> Json {
         return {{"allgather_backward", BookName(BackwardOf(CollectiveKind::kAllGather))},
                 {"reducescatter_backward", BookName(BackwardOf(CollectiveKind::kReduceScatter))}};
       }},
      {"sharding.ag_unidirectional", OneWay},
      {"sharding.latency_threshold",
       [](const Json& given) -> Json {
         return {{"bytes", LatencyBoundShardBytes(LinkBytesPerSecond(given), Number(given, "hop_latency_s"))}};
       }},
      {"sharding.multi_axis_rule", SeveralAxes},
      {"sharding.popquiz_ag_ring", QuizRing},
      {"sharding.popquiz_ag_line", QuizLine},
      {"sharding.popquiz_ag_small", QuizSmall},
      {"sharding.q1", CopiesRatio},
      {"sharding.q2.ag_x", GatherX},
      {"sharding.q2.ag_xy", GatherXY},
      {"sharding.q2.idle_axis", IdleAxis},
      {"sharding.q3", TinyGather},
      {"sharding.q4", GatherOrReduceWeights},
      {"sharding.q5", FourShardings},
      {"sharding.q6", ReduceOnLine},
      {"sharding.q10", LinkLoads},
      {"sharding.half_axis_penalty", LinePenalty},
      {"sharding.line_latency", LineLatency},
  };
}

}  // namespace sliceplan::book
