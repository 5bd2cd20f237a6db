#include "server/roofline/shared_links.h"

#include <gtest/gtest.h>

namespace sliceplan::roofline {
namespace {

using hardware::FabricKind;
using hardware::Group;
using hardware::Slice;

Slice Ring16x16() {
  Slice slice;
  slice.accelerator.ici_link_bytes_per_second = 45e9;
  slice.axes = {{16, true}, {16, true}};
  slice.chip_count = 256;
  return slice;
}

Group Piece(int32_t axis, int32_t factor, int32_t stride, int32_t slice_count = 1) {
  Group group;
  group.pieces.push_back({axis, factor, stride});
  group.slice_count = slice_count;
  return group;
}

RunningCollective Running(const Slice& slice, CollectiveKind kind, const Group& group, double bytes) {
  return {&group, *LawOf(kind, slice, group), bytes};
}

// docs/collectives.md section 8: an outer closing piece and an inner segment of one ring add exactly.
TEST(ConcurrentSeconds, OneRingAdds) {
  const Slice slice = Ring16x16();
  const Group outer = Piece(0, 4, 4);
  const Group inner = Piece(0, 4, 1);
  const RunningCollective a = Running(slice, CollectiveKind::kAllGather, outer, 1e9);
  const RunningCollective b = Running(slice, CollectiveKind::kAllToAll, inner, 3e9);
  EXPECT_TRUE(ShareTorusLinks(outer, inner));
  EXPECT_DOUBLE_EQ(ConcurrentSeconds(slice, a, b), a.law.Seconds(1e9) + b.law.Seconds(3e9));
  EXPECT_DOUBLE_EQ(ConcurrentSeconds(slice, a, b), ConcurrentSeconds(slice, b, a));
}

TEST(ConcurrentSeconds, DifferentAxesOverlap) {
  const Slice slice = Ring16x16();
  const Group x = Piece(0, 16, 1);
  const Group y = Piece(1, 16, 1);
  const RunningCollective a = Running(slice, CollectiveKind::kAllGather, x, 1e9);
  const RunningCollective b = Running(slice, CollectiveKind::kAllGather, y, 3e9);
  EXPECT_FALSE(ShareTorusLinks(x, y));
  EXPECT_DOUBLE_EQ(ConcurrentSeconds(slice, a, b), b.law.Seconds(3e9));
  EXPECT_DOUBLE_EQ(ConcurrentSeconds(slice, Running(slice, CollectiveKind::kAllGather, x, 0), b), b.law.Seconds(3e9));
}

TEST(ConcurrentSeconds, ShortMessagesKeepTheirLatency) {
  const Slice slice = Ring16x16();
  const Group outer = Piece(0, 4, 4);
  const Group inner = Piece(0, 4, 1);
  const RunningCollective a = Running(slice, CollectiveKind::kAllGather, outer, 1);
  const RunningCollective b = Running(slice, CollectiveKind::kAllGather, inner, 1);
  EXPECT_DOUBLE_EQ(ConcurrentSeconds(slice, a, b), a.law.latency_seconds);
}

TEST(ConcurrentSeconds, EveryTierAddsOfItsOwn) {
  Slice slice;
  slice.accelerator.fabric = FabricKind::kSwitched;
  slice.accelerator.scale_up_bytes_per_second = 450e9;
  slice.accelerator.network_bytes_per_second = 50e9;
  slice.chip_count = 64;
  slice.domain_size = 8;
  slice.axes = {{64, false}};
  const Group tensor = Piece(0, 8, 1);
  const Group data = Piece(0, 8, 8);
  const Group all = Piece(0, 64, 1);
  const RunningCollective inside = Running(slice, CollectiveKind::kAllGather, tensor, 1e9);
  const RunningCollective outside = Running(slice, CollectiveKind::kAllGather, data, 1e9);
  const RunningCollective both = Running(slice, CollectiveKind::kAllGather, all, 1e9);
  EXPECT_DOUBLE_EQ(ConcurrentSeconds(slice, inside, outside), outside.law.Seconds(1e9));
  EXPECT_DOUBLE_EQ(ConcurrentSeconds(slice, outside, both),
                   1e9 * (outside.law.scale_out_seconds_per_byte + both.law.scale_out_seconds_per_byte));
  EXPECT_DOUBLE_EQ(ConcurrentSeconds(slice, inside, both),
                   1e9 * (inside.law.scale_up_seconds_per_byte + both.law.scale_up_seconds_per_byte));
}

}  // namespace
}  // namespace sliceplan::roofline
