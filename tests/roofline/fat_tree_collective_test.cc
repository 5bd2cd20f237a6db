// Fat trees, rings and messages as "How To Scale Your Model" has them; chapters 2, 3 and 18. Rows of the book's cases
// that need these functions are compared in the book test; here: agreement with LawOf, and what the book leaves open.
#include <vector>

#include <gtest/gtest.h>

#include "server/roofline/collective.h"
#include "server/roofline/fat_tree.h"
#include "server/roofline/ring_collective.h"

namespace sliceplan::roofline {
namespace {

using hardware::TorusAxis;

// The reference system of chapter 18: 8 GPUs a node, 32 nodes a scalable unit, 4 units.
const std::vector<FatTreeLevel> kPod = {{8, 450e9}, {32, 400e9}, {4, 12.8e12}};

TEST(FatTree, LevelsOfTheReferencePod) {
  EXPECT_DOUBLE_EQ(LevelBytesPerSecond(kPod[0]), 3.6e12);
  EXPECT_DOUBLE_EQ(LevelBytesPerSecond(kPod[1]), 12.8e12);
  EXPECT_DOUBLE_EQ(LevelBytesPerSecond(kPod[2]), 51.2e12);
  EXPECT_EQ(ChipsUnder(kPod, 2), 1024);
  EXPECT_DOUBLE_EQ(ChipToChipBytesPerSecond(kPod, 0), 450e9);
  EXPECT_DOUBLE_EQ(ChipToChipBytesPerSecond(kPod, 1), 50e9);
  EXPECT_DOUBLE_EQ(ChipToChipBytesPerSecond(kPod, 2), 50e9);
  EXPECT_DOUBLE_EQ(NodeBytesPerSecond(4, 64, 25e9, 8, 450e9), 3.6e12);
  EXPECT_DOUBLE_EQ(NodeBytesPerSecond(1, 64, 25e9, 8, 450e9), 1.6e12);
}

TEST(FatTree, GatherTakesTheSlowestLevel) {
  const FatTreeTime time = FatTreeGather(kPod, 1e9);
  EXPECT_EQ(time.slowest_level, 1);
  EXPECT_DOUBLE_EQ(time.seconds, 1e9 * 31 / 32 / 400e9);
  EXPECT_DOUBLE_EQ(1e9 / time.seconds, LevelGatherBytesPerSecond(kPod[1]));
  EXPECT_DOUBLE_EQ(FatTreeInNetworkAllReduce(kPod, 1e9).seconds, 1e9 / 400e9);
  // Exactly two nodes: the node level binds.
  const FatTreeTime two_nodes = FatTreeGather(std::vector<FatTreeLevel>{{8, 450e9}, {2, 400e9}}, 1e9);
  EXPECT_EQ(two_nodes.slowest_level, 0);
  EXPECT_DOUBLE_EQ(two_nodes.seconds, 1e9 * 7 / 8 / 450e9);
}

// The law of units (LawOf) and the level form agree where a group is everything under the switches it uses.
TEST(FatTree, AgreesWithTheLawOfAGroup) {
  hardware::Slice slice;
  slice.accelerator.fabric = hardware::FabricKind::kSwitched;
  slice.accelerator.scale_up_bytes_per_second = 450e9;
  slice.accelerator.network_bytes_per_second = 50e9;
  slice.domain_size = 8;
  for (int32_t nodes : {1, 2, 4, 32}) {
    slice.chip_count = 8 * nodes;
    for (int64_t inner_shards : {1, 2, 4, 8}) {
      hardware::Group group;
      group.pieces.push_back(
          {0, static_cast<int32_t>(slice.chip_count / inner_shards), static_cast<int32_t>(inner_shards)});
      const CollectiveLaw law = *LawOf(CollectiveKind::kAllGather, slice, group);
      const std::vector<FatTreeLevel> levels = {{8, 450e9}, {nodes, 400e9}};
      // The group gathers its 1 / Y of the array; between nodes Y groups share the network, so Y cancels.
      const double outside = FatTreeGatherOfSharded(absl::MakeConstSpan(levels).subspan(1), 1e9, 1).seconds;
      EXPECT_NEAR(law.scale_out_seconds_per_byte * 1e9 / static_cast<double>(inner_shards), outside, 1e-12);
    }
  }
}

TEST(FatTree, ShardsRelieveALevelOnlyBeyondItsChildren) {
  const double whole = FatTreeGatherOfSharded(kPod, 1e9, 1).seconds;
  EXPECT_DOUBLE_EQ(FatTreeGatherOfSharded(kPod, 1e9, 8).seconds, whole);
  EXPECT_DOUBLE_EQ(FatTreeGatherOfSharded(kPod, 1e9, 32).seconds, whole / 4);
  const TwoLevelTime inner = TwoLevelGatherOfSharded(1e9, 4, 8, 450e9, 400e9);
  EXPECT_DOUBLE_EQ(inner.inside_seconds, 1e9 / (450e9 * 4));
  EXPECT_DOUBLE_EQ(inner.outside_seconds, 1e9 / 400e9);
  EXPECT_DOUBLE_EQ(inner.Seconds(), inner.outside_seconds);
}

TEST(FatTree, AllToAll) {
  EXPECT_DOUBLE_EQ(DomainAllToAllSeconds(1e9, 8, 450e9), 1e9 * 7 / 64 / 450e9);
  EXPECT_DOUBLE_EQ(LargeDomainAllToAllSeconds(1e9, 8, 450e9, 0.5), 1e9 / 16 / 450e9);
  EXPECT_EQ(ExpertAllToAllSeconds(1e9, 8, 8, 2, 400e9), 0);
  EXPECT_DOUBLE_EQ(ExpertAllToAllSeconds(1e9, 64, 8, 4, 400e9), 1e9 * 56 / 64 / 400e9 * 0.5);
}

TEST(FatTree, BytesThroughSwitches) {
  EXPECT_DOUBLE_EQ(GatherThroughSwitch(1e9, 8).egress_bytes, 8e9);
  EXPECT_DOUBLE_EQ(GatherThroughTopSwitch(1e9, 32).egress_bytes, 31e9);
  EXPECT_DOUBLE_EQ(GatherThroughTopSwitch(1e9, 32).ingress_bytes, 1e9);
  EXPECT_DOUBLE_EQ(InNetworkAllReduceThroughSwitch(1e9, 8).ingress_bytes, 8e9);
}

TEST(Rings, LongRingIsTheLimitOfTheLaw) {
  hardware::Slice slice;
  slice.accelerator.ici_link_bytes_per_second = 45e9;
  slice.axes.push_back({4096, true});
  slice.chip_count = 4096;
  hardware::Group group;
  group.pieces.push_back({0, 4096, 1});
  EXPECT_NEAR(LawOf(CollectiveKind::kAllGather, slice, group)->BandwidthSeconds(1e9),
              LongRingGatherSeconds(1e9, 1, 90e9), 1e-3 * LongRingGatherSeconds(1e9, 1, 90e9));
  const int32_t sizes[] = {4096};
  EXPECT_DOUBLE_EQ(LawOf(CollectiveKind::kAllToAll, slice, group)->BandwidthSeconds(1e9),
                   LongRingAllToAllSeconds(1e9, sizes, 90e9));
}

// One direction carries the whole gather: what a line costs.
TEST(Rings, OneWayCostsWhatALineCosts) {
  hardware::Slice slice;
  slice.accelerator.ici_link_bytes_per_second = 45e9;
  slice.axes.push_back({8, false});
  slice.chip_count = 8;
  hardware::Group group;
  group.pieces.push_back({0, 8, 1});
  const CollectiveLaw law = *LawOf(CollectiveKind::kAllGather, slice, group);
  EXPECT_DOUBLE_EQ(OneWayGatherSeconds(1e9, 8, 45e9), law.BandwidthSeconds(1e9));
  EXPECT_EQ(OneWayGatherHops(8), law.hops);
  EXPECT_DOUBLE_EQ(HopByHopSeconds(7, 1e9 / 8, 45e9, 1e-6), law.Seconds(1e9));
  EXPECT_DOUBLE_EQ(HopByHopSeconds(7, 1, 45e9, 1e-6), law.Seconds(8));
}

// Message by message over the links of a ring of 16, shortest way, opposite chips clockwise.
TEST(Rings, AllToAllLinkLoadIsWhatEnumerationGives) {
  constexpr int kSize = 16;
  std::vector<double> clockwise(kSize, 0);
  for (int from = 0; from < kSize; ++from) {
    for (int distance = 1; distance <= kSize / 2; ++distance) {
      for (int step = 0; step < distance; ++step) clockwise[(from + step) % kSize] += 1;
    }
  }
  for (double load : clockwise) EXPECT_DOUBLE_EQ(load, TwoWayAllToAllLinkLoad(kSize * kSize, kSize));
}

TEST(Messages, PointToPoint) {
  const TorusAxis mesh[] = {{4, false}, {4, false}};
  const TorusAxis torus[] = {{4, true}, {4, true}};
  const int32_t near_corner[] = {0, 0}, far_corner[] = {3, 3}, middle[] = {2, 0};
  EXPECT_EQ(HopsBetween(mesh, near_corner, far_corner), 6);
  EXPECT_EQ(PortsTowards(mesh, near_corner, far_corner), 2);
  EXPECT_EQ(HopsBetween(torus, near_corner, far_corner), 2);
  EXPECT_EQ(HopsBetween(torus, near_corner, middle), 2);
  EXPECT_EQ(PortsTowards(torus, near_corner, middle), 2);
  EXPECT_EQ(PortsTowards(torus, near_corner, near_corner), 0);
  EXPECT_DOUBLE_EQ(PointToPointSeconds(16 << 20, 6, 2, 45e9, 1e-6), 6e-6 + (16 << 20) / 90e9);
  EXPECT_DOUBLE_EQ(LatencyBoundShardBytes(45e9, 1e-6), 45e3);
}

}  // namespace
}  // namespace sliceplan::roofline
