// Chapter 12, second half: networks of GPUs.
#include <string>
#include <vector>

#include "server/roofline/collective.h"
#include "server/roofline/fat_tree.h"
#include "server/roofline/memory_tiers.h"
#include "server/roofline/ring_collective.h"
#include "server/roofline/sharding.h"
#include "tests/book/book_case.h"
#include "tests/book/book_constants.h"
#include "tests/book/notation.h"

namespace sliceplan::book {
namespace {

using hardware::Slice;
using namespace roofline;  // NOLINT(google-build-using-namespace): this file calls nothing else

// One node of the case's GPUs.
Slice NodeOf(const Json& given) {
  const int64_t gpus = Count(given, "gpus");
  return SwitchedOf(GivenChip(given), gpus, static_cast<int32_t>(gpus));
}

double SecondsInNode(CollectiveKind kind, const Json& given, const CollectiveOptions& options = {}) {
  const Slice node = NodeOf(given);
  const hardware::Group all = {.pieces = {{0, static_cast<int32_t>(node.chip_count), 1}}};
  return LawOf(kind, node, all, options).value().Seconds(Number(given, "array_bytes"));
}

Json NodeBandwidth(const Json& given) {
  const FatTreeLevel ports{static_cast<int32_t>(Count(given, "switches") * Count(given, "ports")),
                           Number(given, "port_bytes_per_s")};
  const FatTreeLevel gpus{static_cast<int32_t>(Count(given, "gpus")), Number(given, "gpu_bytes_per_s")};
  return {
      {"switch_bytes_per_s", LevelBytesPerSecond(ports)},
      {"gpu_side_bytes_per_s", LevelBytesPerSecond(gpus)},
      {"node_bytes_per_s",
       NodeBytesPerSecond(static_cast<int32_t>(Count(given, "switches")), static_cast<int32_t>(Count(given, "ports")),
                          ports.child_bytes_per_second, gpus.child_count, gpus.child_bytes_per_second)}};
}

size_t LevelNamed(const std::string& name) {
  const Json& levels = Constants().at("h100_superpod").at("levels");
  for (size_t i = 0; i < levels.size(); ++i) {
    if (levels[i].at("name") == name) return i;
  }
  return levels.size();
}

// What one node (at the node level: one GPU) can send through this level when all do.
double FatTreeBytesPerSecond(const std::vector<FatTreeLevel>& levels, size_t level) {
  const double gpu = ChipToChipBytesPerSecond(levels, level);
  return level == 0 ? gpu : gpu * static_cast<double>(ChipsUnder(levels, 0));
}

Json Level(const Json& given) {
  const std::vector<FatTreeLevel> levels = SuperPodLevels();
  const size_t level = LevelNamed(given.at("level"));
  return {{"unit_bytes_per_s", LevelBytesPerSecond(levels[level])},
          {"gpu_to_gpu_bytes_per_s", ChipToChipBytesPerSecond(levels, level)},
          {"fat_tree_bytes_per_s", FatTreeBytesPerSecond(levels, level)}};
}

Json LevelSummary(const Json& given) {
  const std::vector<FatTreeLevel> levels = SuperPodLevels();
  const size_t level = LevelNamed(given.at("level"));
  return {{"gpus", ChipsUnder(levels, level)},
          {"degree", levels[level].child_count},
          {"switch_bytes_per_s", LevelBytesPerSecond(levels[level])},
          {"cable_bytes_per_s", LevelBytesPerSecond(levels[level])},
          {"collective_bytes_per_s", FatTreeBytesPerSecond(levels, level)}};
}

Json Egress(const Json& given) {
  const hardware::AcceleratorSpec chip = ChipSpec(given.at("node"));
  return {{"gpus_per_node", chip.scale_up_domain_size.value()},
          {"gpu_egress_bytes_per_s", TierBytesPerSecond(chip, MemoryTier::kScaleUp).value()},
          {"node_egress_bytes_per_s", DomainEgressBytesPerSecond(chip).value()}};
}

Json SmallGather(const Json& given) {
  const TwoLevelTime limit = TwoLevelGatherOfSharded(Number(given, "array_bytes"), /*inner_shards=*/1,
                                                     static_cast<int32_t>(Count(given, "gpus")),
                                                     Number(given, "gpu_bytes_per_s"), /*domain_bytes_per_second=*/1);
  return {{"t_approx_s", limit.inside_seconds}, {"t_s", SecondsInNode(CollectiveKind::kAllGather, given)}};
}

Json AllToAll(const Json& given) {
  const double bytes = Number(given, "array_bytes");
  const int32_t gpus = static_cast<int32_t>(Count(given, "gpus"));
  const double rate = Number(given, "gpu_bytes_per_s");
  const double fill = RaggedFillRatio(Number(given, "nonzero"), gpus);
  const std::vector<int32_t> ring = {gpus};
  return {{"dense_s", SecondsInNode(CollectiveKind::kAllToAll, given)},
          {"dense_approx_s", LargeDomainAllToAllSeconds(bytes, gpus, rate)},
          {"ragged_approx_s", LargeDomainAllToAllSeconds(bytes, gpus, rate, fill)},
          {"tpu_over_gpu", LongRingAllToAllSeconds(bytes, ring, rate) / LargeDomainAllToAllSeconds(bytes, gpus, rate)}};
}

Json InNetwork(const Json& given) {
  CollectiveOptions reducing;
  reducing.in_network_reduction = true;
  const double without = SecondsInNode(CollectiveKind::kAllReduce, given);
  const double with = SecondsInNode(CollectiveKind::kAllReduce, given, reducing);
  return {{"without_s", without}, {"with_s", with}, {"predicted_gain", without / with}};
}

Json ShardOfMlp(const Json& given) {
  const NamedMesh mesh = MeshOf({{"Y", given.at("tp")}});
  const ShardedArray weights = ArrayOf(Json::array({given.at("D"), given.at("F")}), Json::array({nullptr, "Y"}), mesh,
                                       Number(given, "bytes_per_element"));
  return {{"bytes", LocalBytes(weights, mesh.sizes).value()},
          {"fraction_of_450e9", Number(given, "measured_allreduce_bytes_per_s") /
                                    TierBytesPerSecond(ChipSpec("h100"), MemoryTier::kScaleUp).value()}};
}

Json TreeGather(const Json& given) {
  std::vector<FatTreeLevel> levels;
  Json answer;
  for (const Json& level : given.at("levels")) {
    levels.push_back({level[1].get<int32_t>(), level[2].get<double>()});
    answer[level[0].get<std::string>()] = LevelGatherBytesPerSecond(levels.back());
  }
  constexpr double kBytes = 1e9;
  answer["overall"] = kBytes / FatTreeGather(levels, kBytes).seconds;
  return answer;
}

Json ShardedGather(const Json& given) {
  Json inside = Json::array();
  Json outside = Json::array();
  Json total = Json::array();
  for (const Json& shards : given.at("Y_list")) {
    const TwoLevelTime time = TwoLevelGatherOfSharded(
        Number(given, "array_bytes"), shards, static_cast<int32_t>(Count(given, "gpus_per_node")),
        Number(given, "gpu_bytes_per_s"), Number(given, "node_bytes_per_s"));
    inside.push_back(time.inside_seconds);
    outside.push_back(time.outside_seconds);
    total.push_back(time.Seconds());
  }
  return {{"t_node_s", inside}, {"t_scaleout_s", outside}, {"total_s", total}};
}

Json SwitchBytes(const Json& given) {
  const std::vector<FatTreeLevel> levels = SuperPodLevels();
  const double bytes = Number(given, "array_bytes");
  const SwitchTraffic node = GatherThroughSwitch(bytes, static_cast<int32_t>(Count(given, "gpus_per_node")));
  const SwitchTraffic top = GatherThroughTopSwitch(bytes, static_cast<int32_t>(Count(given, "nodes")));
  const std::vector<FatTreeLevel> nodes = {
      {static_cast<int32_t>(Count(given, "nodes")), levels[LevelNamed("leaf")].child_bytes_per_second}};
  const TwoLevelTime limit = TwoLevelGatherOfSharded(bytes, /*inner_shards=*/1, levels[0].child_count,
                                                     levels[0].child_bytes_per_second, nodes[0].child_bytes_per_second);
  return {{"node_ingress", node.ingress_bytes}, {"node_egress", node.egress_bytes},
          {"spine_ingress", top.ingress_bytes}, {"spine_egress", top.egress_bytes},
          {"t_node_s", limit.inside_seconds},   {"t_spine_s", FatTreeGather(nodes, bytes).seconds}};
}

Json ReducingSwitchBytes(const Json& given) {
  const SwitchTraffic traffic =
      InNetworkAllReduceThroughSwitch(Number(given, "array_bytes"), static_cast<int32_t>(Count(given, "gpus")));
  return {{"ingress", traffic.ingress_bytes}, {"egress", traffic.egress_bytes}};
}

Json ReduceShards(const Json& given) {
  const NamedMesh mesh = MeshOf({{"Y", given.at("Y")}});
  constexpr double kBytes = 2;
  const double shard =
      LocalBytes(ArrayOf(Json::array({given.at("D"), given.at("F")}), Json::array({nullptr, "Y"}), mesh, kBytes),
                 mesh.sizes)
          .value();
  const std::vector<FatTreeLevel> node = {{*ChipSpec("h100").scale_up_domain_size, Number(given, "link_bytes_per_s")}};
  return {{"t_s", FatTreeInNetworkAllReduce(node, shard).seconds}};
}

Json TwoNodes(const Json& given) {
  const std::vector<FatTreeLevel> levels = {
      {*ChipSpec("h100").scale_up_domain_size, Number(given, "gpu_bytes_per_s")},
      {static_cast<int32_t>(Count(given, "nodes")), Number(given, "node_bytes_per_s")}};
  const FatTreeTime time = FatTreeGather(levels, Number(given, "array_bytes"));
  return {{"node_bytes_per_s_effective", LevelGatherBytesPerSecond(levels[0])},
          {"cross_bytes_per_s_effective", LevelGatherBytesPerSecond(levels[1])},
          {"t_s", time.seconds},
          {"bound", time.slowest_level == 0 ? "node" : "network"}};
}

}  // namespace

Answers GpuNetworkAnswers() {
  return {
      {"gpus.quiz2.q1", NodeBandwidth},
      {"gpus.quiz2.q3",
       [](const Json& given) -> Json {
         return {{"bytes", given.at("array_bytes")}, {"t_s", SecondsInNode(CollectiveKind::kAllGather, given)}};
       }},
      {"gpus.level.node", Level},
      {"gpus.level.leaf", Level},
      {"gpus.level.spine", Level},
      {"gpus.node.h100", Egress},
      {"gpus.node.b200", Egress},
      {"gpus.node.gb200-nvl72", Egress},
      {"gpus.v5p_egress",
       [](const Json& given) -> Json {
         return {{"bytes_per_s", IciEgressBytesPerSecond(ChipSpec(given.at("chip"))).value()}};
       }},
      {"gpus.popquiz1", SmallGather},
      {"gpus.alltoall_node", AllToAll},
      {"gpus.sharp", InNetwork},
      {"gpus.mlp_shard_bytes", ShardOfMlp},
      {"gpus.cross_node_ag", TreeGather},
      {"gpus.summary.spine", LevelSummary},
      {"gpus.sharded_allreduce", ShardedGather},
      {"gpus.quiz4.q1", SwitchBytes},
      {"gpus.quiz4.q2", ReducingSwitchBytes},
      {"gpus.quiz4.q3", ReduceShards},
      {"gpus.quiz4.q5", TwoNodes},
  };
}

}  // namespace sliceplan::book
