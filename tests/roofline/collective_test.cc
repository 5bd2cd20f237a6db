// LawOf beyond mesh_cases.jsonl: the worked table of docs/collectives.md, properties, errors.
#include "server/roofline/collective.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/string_view.h"

namespace sliceplan::roofline {
namespace {

using hardware::FabricKind;
using hardware::Group;
using hardware::GroupPiece;
using hardware::Slice;
using hardware::TorusAxis;
using testing::HasSubstr;

constexpr double kLink = 45e9;

Slice Torus(std::vector<TorusAxis> axes, double link_bytes_per_second = kLink) {
  Slice slice;
  slice.accelerator.fabric = FabricKind::kTorus;
  slice.accelerator.ici_link_bytes_per_second = link_bytes_per_second;
  for (const TorusAxis& axis : axes) {
    slice.axes.push_back(axis);
    slice.chip_count *= axis.size;
  }
  return slice;
}

Slice Switched(int64_t gpus, int32_t domain_size) {
  Slice slice;
  slice.accelerator.fabric = FabricKind::kSwitched;
  slice.accelerator.scale_up_bytes_per_second = 450e9;
  slice.accelerator.network_bytes_per_second = 50e9;
  slice.chip_count = gpus;
  slice.domain_size = domain_size;
  slice.axes.push_back({static_cast<int32_t>(gpus), false});
  return slice;
}

Group Pieces(std::vector<GroupPiece> pieces, int32_t slice_count = 1) {
  Group group;
  group.pieces.assign(pieces.begin(), pieces.end());
  group.slice_count = slice_count;
  return group;
}

constexpr CollectiveKind kAllKinds[] = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                        CollectiveKind::kAllReduce, CollectiveKind::kAllToAll,
                                        CollectiveKind::kCollectivePermute};

CollectiveLaw Law(CollectiveKind kind, const Slice& slice, const Group& group, const CollectiveOptions& options = {}) {
  const absl::StatusOr<CollectiveLaw> law = LawOf(kind, slice, group, options);
  EXPECT_TRUE(law.ok()) << law.status();
  return law.ok() ? *law : CollectiveLaw{};
}

// Units: seconds x link rate / bytes.
double Units(CollectiveKind kind, const Slice& slice, const Group& group, const CollectiveOptions& options = {}) {
  return Law(kind, slice, group, options).ici_seconds_per_byte * *slice.accelerator.ici_link_bytes_per_second;
}

const TorusAxis kRing4{4, true}, kRing8{8, true}, kRing16{16, true}, kLine2{2, false}, kLine4{4, false},
    kLine8{8, false};

struct WorkedCase {
  const char* name;
  std::vector<TorusAxis> axes;
  std::vector<GroupPiece> pieces;
  double all_gather, all_reduce, all_reduce_optimum, all_to_all;
};

// The formulas of docs/collectives.md sections 2 to 4 written out by hand for each shape.
const WorkedCase kWorked[] = {
    {"whole_ring", {kRing16, kRing16}, {{0, 16, 1}}, 15.0 / 32, 15.0 / 16, 15.0 / 16, 1.0 / 8},
    {"inner_segment_of_ring", {kRing16, kRing16}, {{0, 8, 1}}, 7.0 / 8, 7.0 / 4, 1, 1.0 / 4},
    {"outer_stride_2", {kRing16, kRing16}, {{0, 8, 2}}, 7.0 / 8, 7.0 / 4, 7.0 / 4, 1.0 / 4},
    {"inner_4x2_block", {kRing16, kRing16}, {{0, 4, 1}, {1, 2, 1}}, 7.0 / 16, 7.0 / 8, 7.0 / 8 / 1.25, 1.0 / 8},
    {"middle_factor", {kRing16, kRing16}, {{0, 4, 2}}, 3.0 / 2, 3, 2, 1.0 / 2},
    {"outer_pair", {kRing16, kRing16}, {{0, 2, 8}}, 2, 4, 4, 1},
    {"whole_and_outer_pair",
     {kRing16, kRing16},
     {{0, 16, 1}, {1, 2, 8}},
     31.0 / 32 / 2.25,
     31.0 / 16 / 2.25,
     31.0 / 32 / (1 + 1.0 / 8),
     1.0 / 16},
    {"whole_and_inner_pair",
     {kRing16, kRing16},
     {{0, 16, 1}, {1, 2, 1}},
     31.0 / 32 / 3,
     31.0 / 16 / 3,
     31.0 / 32 / 1.5,
     2.0 / 32},
    // The far pair alone takes (2 - 1) / (2 / 8) / 4, more than both axes together.
    {"subset_binds", {kRing4, kRing16}, {{0, 2, 1}, {1, 2, 8}}, 1, 2, 2, 1.0 / 2},
    {"line_and_ring",
     {kLine8, kRing16},
     {{0, 8, 1}, {1, 16, 1}},
     127.0 / 128 / 3,
     127.0 / 64 / 3,
     127.0 / 128 / (7.0 / 8 + 1),
     2.0 / 128},
    {"mesh_4x4", {kLine4, kLine4}, {{0, 4, 1}, {1, 4, 1}}, 15.0 / 16 / 2, 15.0 / 16, 15.0 / 16 / 1.5, 1.0 / 16},
    {"mesh_2x4", {kLine2, kLine4}, {{0, 2, 1}, {1, 4, 1}}, 7.0 / 16, 7.0 / 8, 7.0 / 8 / 1.25, 1.0 / 8},
    {"three_rings",
     {kRing4, kRing4, kRing8},
     {{0, 4, 1}, {1, 4, 1}, {2, 8, 1}},
     127.0 / 128 / 6,
     127.0 / 64 / 6,
     127.0 / 128 / 3,
     1.0 / 128},
    // Adjacent factors are one piece.
    {"adjacent_factors_merge", {kRing16}, {{0, 4, 4}, {0, 4, 1}}, 15.0 / 32, 15.0 / 16, 15.0 / 16, 1.0 / 8},
    // {0,1,4,5}: span 5 on a line; on a closed ring the outer piece halves, 4 / 2 + 1.
    {"gap_on_line", {kLine8}, {{0, 2, 4}, {0, 2, 1}}, 5.0 / 4, 5.0 / 2, 5.0 / 2, 8.0 / 4 / 4},
    {"gap_on_ring", {kRing8}, {{0, 2, 4}, {0, 2, 1}}, 3.0 / 4, 3.0 / 2, 3.0 / 2, 8.0 / 4 / 8},
    // A pair of pieces beside another axis: half-axes 3 / 3 and 2.
    {"gap_and_ring",
     {kRing8, kRing4},
     {{0, 2, 4}, {0, 2, 1}, {1, 4, 1}},
     15.0 / 16 / 3,
     15.0 / 8 / 3,
     15.0 / 8 / 3,
     1.0 / 16},
};

TEST(CollectiveLaw, WorkedTable) {
  CollectiveOptions optimal;
  optimal.optimal_all_reduce = true;
  for (const WorkedCase& worked : kWorked) {
    SCOPED_TRACE(worked.name);
    const Slice slice = Torus(worked.axes);
    const Group group = Pieces(worked.pieces);
    EXPECT_NEAR(Units(CollectiveKind::kAllGather, slice, group), worked.all_gather, 1e-12);
    EXPECT_NEAR(Units(CollectiveKind::kReduceScatter, slice, group), worked.all_gather, 1e-12);
    EXPECT_NEAR(Units(CollectiveKind::kAllReduce, slice, group), worked.all_reduce, 1e-12);
    EXPECT_NEAR(Units(CollectiveKind::kAllReduce, slice, group, optimal), worked.all_reduce_optimum, 1e-12);
    EXPECT_NEAR(Units(CollectiveKind::kAllToAll, slice, group), worked.all_to_all, 1e-12);
  }
}

TEST(CollectiveLaw, IdleAxesNeverChangeTheCost) {
  for (const WorkedCase& worked : kWorked) {
    std::vector<TorusAxis> more = worked.axes;
    if (more.size() == 3) continue;
    more.push_back({12, true});
    for (CollectiveKind kind : kAllKinds) {
      EXPECT_EQ(Units(kind, Torus(worked.axes), Pieces(worked.pieces)), Units(kind, Torus(more), Pieces(worked.pieces)))
          << worked.name;
    }
  }
}

TEST(CollectiveLaw, SwappingAxesAndListingOrderChangeNothing) {
  for (const WorkedCase& worked : kWorked) {
    if (worked.axes.size() != 2) continue;
    std::vector<GroupPiece> swapped = worked.pieces;
    for (GroupPiece& piece : swapped) piece.axis = 1 - piece.axis;
    const std::vector<GroupPiece> reversed(worked.pieces.rbegin(), worked.pieces.rend());
    const Slice turned = Torus({worked.axes[1], worked.axes[0]});
    for (CollectiveKind kind : kAllKinds) {
      const CollectiveLaw law = Law(kind, Torus(worked.axes), Pieces(worked.pieces));
      EXPECT_DOUBLE_EQ(law.ici_seconds_per_byte, Law(kind, turned, Pieces(swapped)).ici_seconds_per_byte)
          << worked.name;
      EXPECT_EQ(law.hops, Law(kind, turned, Pieces(swapped)).hops) << worked.name;
      EXPECT_DOUBLE_EQ(law.ici_seconds_per_byte, Law(kind, Torus(worked.axes), Pieces(reversed)).ici_seconds_per_byte);
    }
  }
}

TEST(CollectiveLaw, MoreBandwidthIsNeverSlower) {
  for (const WorkedCase& worked : kWorked) {
    for (CollectiveKind kind : kAllKinds) {
      for (double bytes : {1.0, 1e5, 1e9}) {
        const double slow = Law(kind, Torus(worked.axes, 45e9), Pieces(worked.pieces)).Seconds(bytes);
        const double fast = Law(kind, Torus(worked.axes, 90e9), Pieces(worked.pieces)).Seconds(bytes);
        EXPECT_LE(fast, slow) << worked.name;
        EXPECT_TRUE(std::isfinite(fast));
      }
    }
  }
}

TEST(CollectiveLaw, WrapsNeverSlowAnything) {
  for (int32_t size : {3, 4, 6, 8, 12, 16}) {
    for (int32_t factor = 2; factor <= size; ++factor) {
      for (int32_t stride = 1; factor * stride <= size; ++stride) {
        if (size % (factor * stride) != 0) continue;
        const Group group = Pieces({{0, factor, stride}});
        for (CollectiveKind kind : kAllKinds) {
          EXPECT_LE(Units(kind, Torus({{size, true}}), group), Units(kind, Torus({{size, false}}), group));
          EXPECT_LE(Law(kind, Torus({{size, true}}), group).hops, Law(kind, Torus({{size, false}}), group).hops);
        }
      }
    }
  }
}

// A 2-long axis is one link each way whatever the catalog says of its wrap.
TEST(CollectiveLaw, PairOfChipsIsALine) {
  for (CollectiveKind kind : kAllKinds) {
    EXPECT_EQ(Units(kind, Torus({{2, true}}), Pieces({{0, 2, 1}})), Units(kind, Torus({kLine2}), Pieces({{0, 2, 1}})));
  }
  EXPECT_DOUBLE_EQ(Units(CollectiveKind::kAllGather, Torus({{2, true}}), Pieces({{0, 2, 1}})), 0.5);
}

TEST(CollectiveLaw, LatencyIsAFloor) {
  Slice slice = Torus({kRing16});
  slice.accelerator.ici_hop_seconds = 2e-6;
  const CollectiveLaw law = Law(CollectiveKind::kAllGather, slice, Pieces({{0, 16, 1}}));
  EXPECT_EQ(law.hops, 8);
  EXPECT_DOUBLE_EQ(law.Seconds(1), 8 * 2e-6);
  EXPECT_DOUBLE_EQ(law.Seconds(0), 0);
  EXPECT_DOUBLE_EQ(law.Seconds(1e9), 1e9 * 15 / 32 / kLink);
  // Not public: the book's 1 us.
  EXPECT_DOUBLE_EQ(Law(CollectiveKind::kAllGather, Torus({kRing16}), Pieces({{0, 16, 1}})).Seconds(1), 8e-6);
}

TEST(CollectiveLaw, GroupOfOneCostsNothing) {
  Slice bare;
  bare.axes.push_back({4, false});
  for (CollectiveKind kind : kAllKinds) {
    const CollectiveLaw law = Law(kind, bare, Pieces({{0, 1, 1}}));
    EXPECT_EQ(law.Seconds(1e12), 0);
    EXPECT_EQ(law.slowest_tier, Tier::kNone);
  }
}

// Section 5 of docs/collectives.md, the parts that no row of mesh_cases.jsonl has.
TEST(TwistedTorus, GroupsThatAreNotTheWholeSlice) {
  Slice slice = Torus({kRing4, kRing8, kRing8});
  slice.twisted = true;
  const CollectiveKind gather = CollectiveKind::kAllGather;
  // The wrap of the short axis lands half way along both long ones: with one of them missing it leaves the group.
  EXPECT_DOUBLE_EQ(Units(gather, slice, Pieces({{0, 4, 1}, {1, 8, 1}})), 31.0 / 32 / 3);
  EXPECT_DOUBLE_EQ(Units(gather, slice, Pieces({{1, 8, 1}, {2, 8, 1}})), 63.0 / 64 / 4);
  // Outer pairs of both long axes hold the chip half way along: the group closes.
  EXPECT_DOUBLE_EQ(Units(gather, slice, Pieces({{0, 4, 1}, {1, 2, 4}, {2, 2, 4}})), 15.0 / 16 / (2 + 0.5 + 0.5));
  EXPECT_DOUBLE_EQ(Units(gather, slice, Pieces({{0, 4, 1}, {1, 2, 1}, {2, 2, 4}})), 15.0 / 16 / (1 + 1 + 0.5));
  // Strided on the short axis alone: a middle factor of a ring twice as long.
  EXPECT_DOUBLE_EQ(Units(gather, slice, Pieces({{0, 2, 2}})), 1);
  Slice wrong = Torus({kRing4, kRing16});
  wrong.twisted = true;
  EXPECT_THAT(std::string(LawOf(gather, wrong, Pieces({{0, 4, 1}})).status().message()), HasSubstr("k x 2k"));
}

TEST(SeveralSlices, OneChipOfEachUsesTheNetworkAlone) {
  Slice slice = Torus({kRing4});
  slice.slice_count = 8;
  slice.accelerator.dcn_bytes_per_second = 5e9;
  const CollectiveLaw all_reduce = Law(CollectiveKind::kAllReduce, slice, Pieces({}, 4));
  EXPECT_DOUBLE_EQ(all_reduce.dcn_seconds_per_byte, 2 * 3.0 / 4 / 5e9);
  EXPECT_EQ(all_reduce.slowest_tier, Tier::kDcn);
  EXPECT_EQ(all_reduce.ici_seconds_per_byte, 0);
  EXPECT_DOUBLE_EQ(Law(CollectiveKind::kCollectivePermute, slice, Pieces({}, 8)).dcn_seconds_per_byte, 1 / 5e9);
  // Two members of each slice: twice the network, half of the all-to-all stays inside.
  const CollectiveLaw exchange = Law(CollectiveKind::kAllToAll, slice, Pieces({{0, 2, 1}}, 2));
  EXPECT_DOUBLE_EQ(exchange.dcn_seconds_per_byte, 0.5 / (2 * 2 * 5e9));
  EXPECT_DOUBLE_EQ(exchange.ici_seconds_per_byte, 0.5 * 0.25 / kLink * (4.0 / 4));
}

TEST(RaggedAllToAll, SendsItsShare) {
  CollectiveOptions ragged;
  ragged.all_to_all_fill_ratio = RaggedFillRatio(4, 16);
  EXPECT_DOUBLE_EQ(ragged.all_to_all_fill_ratio, 0.25);
  EXPECT_DOUBLE_EQ(RaggedFillRatio(8, 4), 1);
  EXPECT_DOUBLE_EQ(RandomRoutingFillRatio(2, 4), 1 - 0.75 * 0.75);
  const Slice slice = Torus({kRing16});
  const Group group = Pieces({{0, 16, 1}});
  EXPECT_DOUBLE_EQ(Units(CollectiveKind::kAllToAll, slice, group, ragged),
                   0.25 * Units(CollectiveKind::kAllToAll, slice, group));
  EXPECT_DOUBLE_EQ(Units(CollectiveKind::kAllGather, slice, group, ragged),
                   Units(CollectiveKind::kAllGather, slice, group));
  ragged.all_to_all_fill_ratio = std::nan("");
  EXPECT_EQ(LawOf(CollectiveKind::kAllToAll, slice, group, ragged).status().code(), absl::StatusCode::kInvalidArgument);
}

// Book, chapter 18: V / W instead of 2 (n - 1) / n V / W.
TEST(SwitchedSystems, InNetworkReduction) {
  CollectiveOptions sharp;
  sharp.in_network_reduction = true;
  const Slice slice = Switched(64, 8);
  EXPECT_DOUBLE_EQ(Law(CollectiveKind::kAllReduce, slice, Pieces({{0, 8, 1}}), sharp).scale_up_seconds_per_byte,
                   1 / 450e9);
  const CollectiveLaw all = Law(CollectiveKind::kAllReduce, slice, Pieces({{0, 64, 1}}), sharp);
  EXPECT_DOUBLE_EQ(all.scale_out_seconds_per_byte, 1 / 400e9);
  // Two members save nothing.
  EXPECT_DOUBLE_EQ(Law(CollectiveKind::kAllReduce, slice, Pieces({{0, 2, 1}}), sharp).scale_up_seconds_per_byte,
                   Law(CollectiveKind::kAllReduce, slice, Pieces({{0, 2, 1}})).scale_up_seconds_per_byte);
  for (CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll}) {
    EXPECT_EQ(Law(kind, slice, Pieces({{0, 64, 1}}), sharp).pipelined_seconds_per_byte,
              Law(kind, slice, Pieces({{0, 64, 1}})).pipelined_seconds_per_byte);
  }
}

// Counts what enters and leaves the busiest domain, message by message, for groups that straddle domains unevenly.
struct Counted {
  double gather = 0;
  double exchange = 0;
};
Counted CountDomainIngress(int64_t gpus, int64_t domain, const std::vector<GroupPiece>& pieces) {
  const auto group_of = [&](int64_t gpu) {
    // The lowest-numbered member: every piece's digit set to zero.
    for (const GroupPiece& piece : pieces) gpu -= gpu / piece.stride % piece.factor * piece.stride;
    return gpu;
  };
  double size = 1;
  for (const GroupPiece& piece : pieces) size *= piece.factor;
  Counted worst;
  for (int64_t first = 0; first < gpus; first += domain) {
    const int64_t last = std::min(first + domain, gpus);
    double gather = 0;
    double exchange = 0;
    for (int64_t leader = 0; leader < gpus; ++leader) {
      if (group_of(leader) != leader) continue;
      double here = 0;
      for (int64_t gpu = first; gpu < last; ++gpu) here += group_of(gpu) == leader ? 1 : 0;
      if (here == 0) continue;
      gather += (size - here) / size;
      exchange += here * (size - here) / size / size;
    }
    worst.gather = std::max(worst.gather, gather / static_cast<double>(last - first));
    worst.exchange = std::max(worst.exchange, exchange / static_cast<double>(last - first));
  }
  return worst;
}

TEST(SwitchedSystems, StraddlingGroupsAreCountedExactly) {
  struct Layout {
    int64_t gpus;
    int32_t domain;
    std::vector<GroupPiece> pieces;
  };
  const Layout layouts[] = {{144, 72, {{0, 16, 1}}},
                            {144, 72, {{0, 9, 16}}},
                            {288, 72, {{0, 32, 9}}},
                            {24, 8, {{0, 12, 1}}},
                            {24, 8, {{0, 2, 12}}},
                            {24, 8, {{0, 3, 4}}},
                            {60, 8, {{0, 5, 3}}},
                            {36, 6, {{0, 3, 12}, {0, 4, 1}}},
                            {48, 8, {{0, 2, 24}, {0, 3, 4}}},
                            {64, 8, {{0, 4, 16}, {0, 4, 2}}}};
  for (const Layout& layout : layouts) {
    const Slice slice = Switched(layout.gpus, layout.domain);
    const Counted counted = CountDomainIngress(layout.gpus, layout.domain, layout.pieces);
    EXPECT_NEAR(Law(CollectiveKind::kAllGather, slice, Pieces(layout.pieces)).scale_out_seconds_per_byte * 50e9,
                counted.gather, 1e-12);
    EXPECT_NEAR(Law(CollectiveKind::kAllToAll, slice, Pieces(layout.pieces)).scale_out_seconds_per_byte * 50e9,
                counted.exchange, 1e-12);
  }
}

// Crossings that follow each other, each at the latency of its own network.
TEST(SwitchedSystems, SmallMessagesTakeTheCrossings) {
  constexpr double kUp = 2e-6;
  constexpr double kOut = 7e-6;
  constexpr double kDcn = 1e-4;
  Slice own = Switched(16, 8);
  own.slice_count = 2;
  own.accelerator.dcn_bytes_per_second = 1e9;
  own.accelerator.scale_up_latency_seconds = kUp;
  own.accelerator.network_latency_seconds = kOut;
  const struct {
    CollectiveKind kind;
    Group group;
    double up, out;  // crossings
  } cases[] = {
      {CollectiveKind::kAllGather, Pieces({{0, 8, 1}}), 1, 0},
      {CollectiveKind::kAllReduce, Pieces({{0, 8, 1}}), 2, 0},
      {CollectiveKind::kAllReduce, Pieces({{0, 16, 1}}), 2, 2},
      {CollectiveKind::kReduceScatter, Pieces({{0, 16, 1}}), 1, 1},
      {CollectiveKind::kAllReduce, Pieces({{0, 2, 8}}), 0, 2},
      {CollectiveKind::kAllToAll, Pieces({{0, 16, 1}}), 1, 1},
      {CollectiveKind::kCollectivePermute, Pieces({{0, 2, 1}}), 1, 0},
      {CollectiveKind::kCollectivePermute, Pieces({{0, 16, 1}}), 0, 1},
  };
  constexpr double kSmallBytes = 64;
  for (const auto& [kind, group, up, out] : cases) {
    EXPECT_EQ(Law(kind, own, group).hops, up + out);
    EXPECT_DOUBLE_EQ(Law(kind, own, group).Seconds(kSmallBytes), up * kUp + out * kOut);
    EXPECT_DOUBLE_EQ(Law(kind, Switched(16, 8), group).Seconds(kSmallBytes),
                     up * kDefaultScaleUpSeconds + out * kDefaultNetworkSeconds);
    Group both = group;
    both.slice_count = 2;
    EXPECT_DOUBLE_EQ(Law(kind, own, both).latency_seconds, up * kUp + out * kOut);
    Slice far = own;
    far.accelerator.dcn_latency_seconds = kDcn;
    EXPECT_DOUBLE_EQ(Law(kind, far, both).latency_seconds,
                     up * kUp + out * kOut + (kind == CollectiveKind::kAllReduce ? 2 : 1) * kDcn);
  }
}

TEST(LawsOfGroup, AgreesWithLawOf) {
  Slice torus = Torus({kRing4, kRing8});
  torus.slice_count = 2;
  torus.accelerator.dcn_bytes_per_second = 5e9;
  const struct {
    Slice slice;
    Group group;
  } cases[] = {{torus, Pieces({{0, 4, 1}, {1, 2, 4}}, 2)}, {Switched(64, 8), Pieces({{0, 16, 2}})}};
  for (const auto& [slice, group] : cases) {
    const absl::StatusOr<CollectiveLaws> laws = LawsOfGroup(slice, group);
    ASSERT_TRUE(laws.ok());
    for (CollectiveKind kind : kAllKinds) {
      const CollectiveLaw& law = (*laws)[static_cast<size_t>(kind)];
      EXPECT_EQ(law.pipelined_seconds_per_byte, Law(kind, slice, group).pipelined_seconds_per_byte);
      EXPECT_EQ(law.hops, Law(kind, slice, group).hops);
      EXPECT_EQ(law.slowest_tier, Law(kind, slice, group).slowest_tier);
    }
  }
}

TEST(RingIdeal, IsNeverSlowerAndEqualsWholeRings) {
  for (const WorkedCase& worked : kWorked) {
    for (CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kAllReduce, CollectiveKind::kAllToAll}) {
      const absl::StatusOr<CollectiveLaw> ideal = RingIdealLawOf(kind, Torus(worked.axes), Pieces(worked.pieces));
      ASSERT_TRUE(ideal.ok());
      EXPECT_LE(ideal->ici_seconds_per_byte, Law(kind, Torus(worked.axes), Pieces(worked.pieces)).ici_seconds_per_byte)
          << worked.name;
    }
  }
  const absl::StatusOr<CollectiveLaw> segment =
      RingIdealLawOf(CollectiveKind::kAllGather, Torus({kRing16}), Pieces({{0, 8, 1}}));
  EXPECT_DOUBLE_EQ(segment->ici_seconds_per_byte * kLink, 7.0 / 16);
  EXPECT_EQ(RingIdealLawOf(CollectiveKind::kAllGather, Switched(8, 8), Pieces({{0, 8, 1}})).status().code(),
            absl::StatusCode::kUnimplemented);
}

struct Refusal {
  const char* name;
  Slice slice;
  Group group;
  absl::StatusCode code;
  const char* message;
};

TEST(CollectiveErrors, SayWhatIsWrong) {
  Slice no_links = Torus({kRing4});
  no_links.accelerator.ici_link_bytes_per_second.reset();
  Slice no_dcn = Torus({kRing4});
  no_dcn.slice_count = 2;
  Slice no_nvlink = Switched(16, 8);
  no_nvlink.accelerator.scale_up_bytes_per_second.reset();
  Slice no_network = Switched(16, 8);
  no_network.accelerator.network_bytes_per_second.reset();
  std::vector<GroupPiece> too_many(65, GroupPiece{0, 1, 1});
  const Refusal refusals[] = {
      {"axis", Torus({kRing4}), Pieces({{1, 4, 1}}), absl::StatusCode::kInvalidArgument, "axis 1"},
      {"negative_axis", Torus({kRing4}), Pieces({{-1, 4, 1}}), absl::StatusCode::kInvalidArgument, "axis -1"},
      {"factor", Torus({kRing4}), Pieces({{0, 3, 1}}), absl::StatusCode::kInvalidArgument,
       "does not divide axis 0 of size 4"},
      {"stride", Torus({kRing4}), Pieces({{0, 2, 4}}), absl::StatusCode::kInvalidArgument, "does not divide"},
      {"zero", Torus({kRing4}), Pieces({{0, 0, 1}}), absl::StatusCode::kInvalidArgument, "at least 1"},
      {"overflow", Torus({kRing4}), Pieces({{0, 1 << 30, 1 << 30}}), absl::StatusCode::kInvalidArgument,
       "does not divide"},
      {"overlap", Torus({kRing16}), Pieces({{0, 4, 1}, {0, 2, 2}}), absl::StatusCode::kInvalidArgument, "overlap"},
      {"same_twice", Torus({kRing16}), Pieces({{0, 4, 1}, {0, 4, 1}}), absl::StatusCode::kInvalidArgument, "overlap"},
      {"pieces", Torus({kRing16}), Pieces(too_many), absl::StatusCode::kInvalidArgument, "at most 64"},
      {"axes", Torus({kRing4, kRing4, kRing4, kRing4, kRing4}), Pieces({}), absl::StatusCode::kInvalidArgument,
       "5 axes"},
      {"slices", Torus({kRing4}), Pieces({}, 2), absl::StatusCode::kInvalidArgument, "2 slices"},
      {"no_slices", Torus({kRing4}), Pieces({}, 0), absl::StatusCode::kInvalidArgument, "0 slices"},
      {"links", no_links, Pieces({{0, 4, 1}}), absl::StatusCode::kFailedPrecondition, "ici_link_bytes_per_second"},
      {"dcn", no_dcn, Pieces({}, 2), absl::StatusCode::kFailedPrecondition, "dcn_bytes_per_second"},
      {"nvlink", no_nvlink, Pieces({{0, 8, 1}}), absl::StatusCode::kFailedPrecondition, "scale_up_bytes_per_second"},
      {"network", no_network, Pieces({{0, 16, 1}}), absl::StatusCode::kFailedPrecondition, "network_bytes_per_second"},
      {"gpu_axis", Switched(16, 8), Pieces({{1, 2, 1}}), absl::StatusCode::kInvalidArgument, "axis 1"},
      {"gpu_factor", Switched(16, 8), Pieces({{0, 3, 1}}), absl::StatusCode::kInvalidArgument, "16 GPUs"},
      {"gpu_overlap", Switched(16, 8), Pieces({{0, 4, 1}, {0, 2, 2}}), absl::StatusCode::kInvalidArgument, "overlap"},
      {"domain", Switched(16, 0), Pieces({{0, 2, 1}}), absl::StatusCode::kInvalidArgument, "domain_size"},
  };
  for (const Refusal& refusal : refusals) {
    const absl::Status status = LawOf(CollectiveKind::kAllGather, refusal.slice, refusal.group).status();
    EXPECT_EQ(status.code(), refusal.code) << refusal.name << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(refusal.message)) << refusal.name;
  }
}

}  // namespace
}  // namespace sliceplan::roofline
