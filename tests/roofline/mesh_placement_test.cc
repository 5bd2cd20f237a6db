#include "server/roofline/mesh_placement.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/roofline/collective.h"
#include "server/roofline/sharding.h"
#include "tests/roofline/chips.h"

namespace sliceplan::roofline {
namespace {

using hardware::Group;
using hardware::GroupPiece;
using hardware::Slice;
using hardware::Violation;

std::vector<MeshAxis> Mesh(const std::vector<int32_t>& sizes) {
  std::vector<MeshAxis> axes;
  for (size_t i = 0; i < sizes.size(); ++i) axes.push_back({std::string(1, static_cast<char>('a' + i)), sizes[i], {}});
  return axes;
}

// "axis:factor/stride ..." of each mesh axis, "x2" for slices.
std::vector<std::string> Placed(const Slice& slice, const std::vector<int32_t>& sizes) {
  std::vector<Violation> violations;
  std::vector<std::string> result;
  for (const Group& group : PlaceMesh(slice, Mesh(sizes), violations)) {
    std::string text = group.slice_count > 1 ? "x" + std::to_string(group.slice_count) : "";
    for (const GroupPiece& piece : group.pieces) {
      text += (text.empty() ? "" : " ") + std::to_string(piece.axis) + ":" + std::to_string(piece.factor) + "/" +
              std::to_string(piece.stride);
    }
    result.push_back(text);
  }
  EXPECT_TRUE(violations.empty());
  return result;
}

using testing::ElementsAre;

TEST(MeshPlacementTest, WholeAxesWherePossible) {
  EXPECT_THAT(Placed(TorusOf({4, 8}, true), {4, 8}), ElementsAre("0:4/1", "1:8/1"));
  EXPECT_THAT(Placed(TorusOf({4, 8}, true), {8, 4}), ElementsAre("1:8/1", "0:4/1"));
  EXPECT_THAT(Placed(TorusOf({16, 16, 16}, true), {256, 16}), ElementsAre("1:16/1 2:16/1", "0:16/1"));
  EXPECT_THAT(Placed(TorusOf({4, 4, 8}, true), {32, 1, 4}), ElementsAre("1:4/1 2:8/1", "", "0:4/1"));
  EXPECT_THAT(Placed(TorusOf({4, 4, 4}, true), {64}), ElementsAre("0:4/1 1:4/1 2:4/1"));
}

TEST(MeshPlacementTest, FactorsWithLaterAxesInside) {
  EXPECT_THAT(Placed(TorusOf({16}, true), {4, 4}), ElementsAre("0:4/4", "0:4/1"));
  EXPECT_THAT(Placed(TorusOf({16, 16}, true), {8, 32}), ElementsAre("0:8/2", "0:2/1 1:16/1"));
  EXPECT_THAT(Placed(TorusOf({16, 16, 16}, true), {512, 2, 4}), ElementsAre("0:16/1 1:16/1 2:2/8", "2:2/4", "2:4/1"));
}

TEST(MeshPlacementTest, SlicesAreSpannedByTheFirstAxes) {
  Slice slice = TorusOf({4, 4}, true);
  slice.slice_count = 4;
  EXPECT_THAT(Placed(slice, {4, 16}), ElementsAre("x4", "0:4/1 1:4/1"));
  EXPECT_THAT(Placed(slice, {2, 8, 4}), ElementsAre("x2", "x2 1:4/1", "0:4/1"));
}

TEST(MeshPlacementTest, ASmallMeshRepeatsOverTheRest) {
  EXPECT_THAT(Placed(TorusOf({16, 16}, true), {4}), ElementsAre("1:4/1"));
  EXPECT_THAT(Placed(TorusOf({16, 16}, true), {16}), ElementsAre("0:16/1"));
  EXPECT_THAT(Placed(TorusOf({16, 16}, true), {}), ElementsAre());
}

// Every placement is legal for the laws of collectives, and a mesh of the whole slice reaches each chip once.
TEST(MeshPlacementTest, GroupsCoverTheSliceOnce) {
  const std::vector<std::vector<int32_t>> shapes = {{16}, {4, 8}, {16, 16}, {4, 4, 8}, {8, 8, 8}};
  for (const std::vector<int32_t>& shape : shapes) {
    const Slice slice = TorusOf(shape, true);
    for (int32_t a = 1; a <= slice.chip_count; a *= 2) {
      for (int32_t b = 1; a * b <= slice.chip_count; b *= 2) {
        const int32_t c = static_cast<int32_t>(slice.chip_count / a / b);
        std::vector<Violation> violations;
        const std::vector<Group> groups = PlaceMesh(slice, Mesh({a, b, c}), violations);
        ASSERT_TRUE(violations.empty());
        Group all;
        std::set<std::vector<int64_t>> chips = {std::vector<int64_t>(shape.size(), 0)};
        for (const Group& group : groups) {
          for (const GroupPiece& piece : group.pieces) {
            all.pieces.push_back(piece);
            std::set<std::vector<int64_t>> more;
            for (const std::vector<int64_t>& chip : chips) {
              for (int32_t i = 0; i < piece.factor; ++i) {
                std::vector<int64_t> moved = chip;
                moved[static_cast<size_t>(piece.axis)] += int64_t{i} * piece.stride;
                more.insert(moved);
              }
            }
            chips = more;
          }
        }
        EXPECT_EQ(static_cast<int64_t>(chips.size()), slice.chip_count);
        EXPECT_TRUE(LawOf(CollectiveKind::kAllGather, slice, all).ok());
      }
    }
  }
}

std::vector<std::string> Reasons(const Slice& slice, const std::vector<MeshAxis>& axes) {
  std::vector<Violation> violations;
  EXPECT_TRUE(PlaceMesh(slice, axes, violations).empty());
  std::vector<std::string> reasons;
  for (const Violation& violation : violations) reasons.push_back(violation.field + " " + violation.reason);
  return reasons;
}

TEST(MeshPlacementTest, WhatMakesNoSenseIsRefused) {
  const Slice slice = TorusOf({4, 4}, false);
  EXPECT_THAT(Reasons(slice, Mesh({3})), ElementsAre("mesh_axes MESH_SIZE_MISMATCH"));
  EXPECT_THAT(Reasons(slice, Mesh({32})), ElementsAre("mesh_axes MESH_SIZE_MISMATCH"));
  EXPECT_THAT(Reasons(slice, Mesh({1 << 30, 1 << 30, 1 << 30})), ElementsAre("mesh_axes MESH_SIZE_MISMATCH"));
  EXPECT_THAT(Reasons(slice, Mesh({0, -4})), ElementsAre("mesh_axes[0].size MESH_AXIS_SIZE_OUT_OF_RANGE",
                                                         "mesh_axes[1].size MESH_AXIS_SIZE_OUT_OF_RANGE"));
  EXPECT_THAT(Reasons(slice, {{"x", 4, {}}, {"x", 2, {}}, {"", 2, {}}}),
              ElementsAre("mesh_axes[1].name MESH_AXIS_NAME_REPEATED", "mesh_axes[2].name MESH_AXIS_NAME_MISSING"));
  EXPECT_THAT(Reasons(slice, Mesh(std::vector<int32_t>(17, 1))), ElementsAre("mesh_axes TOO_MANY_MESH_AXES"));
  // 6 x 6 chips do not fall into 4 x 9 without cutting through pieces.
  EXPECT_THAT(Reasons(TorusOf({6, 6}, false), Mesh({4, 9})), ElementsAre("mesh_axes MESH_DOES_NOT_FACTOR_SLICE"));
}

TEST(MeshPlacementTest, ExplicitPiecesAreKept) {
  const Slice slice = TorusOf({4, 4}, false);
  std::vector<Violation> violations;
  const std::vector<Group> groups = PlaceMesh(slice, {{"x", 4, {{1, 4, 1}}}, {"y", 2, {{0, 2, 2}}}}, violations);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].pieces[0].axis, 1);
  EXPECT_EQ(groups[1].pieces[0].stride, 2);
  EXPECT_THAT(Reasons(slice, {{"x", 4, {{1, 2, 1}}}}), ElementsAre("mesh_axes[0].pieces MESH_PIECES_SIZE_MISMATCH"));
}

TEST(ShardingTest, ShapesAndBytes) {
  const std::vector<int64_t> mesh = {4, 8, 2};
  const ShardedArray array{{64, 100, 6}, {{1, 0}, {}, {2}}, 4};
  EXPECT_EQ(LocalShape(array, mesh).value(), (std::vector<int64_t>{2, 100, 3}));
  EXPECT_EQ(LocalBytes(array, mesh).value(), 2.0 * 100 * 3 * 4);
  EXPECT_EQ(CopyCount(array, mesh).value(), 1);
  EXPECT_EQ(TotalBytes(array, mesh).value(), 64.0 * 100 * 6 * 4);
  EXPECT_EQ(ShardCounts(array, mesh).value(), (std::vector<int64_t>{32, 1, 2}));
  EXPECT_EQ(GlobalShape(std::vector<int64_t>{2, 100, 3}, array.sharding, mesh), array.shape);
  const ShardedArray copied{{64, 100}, {{0}, {}}, 1};
  EXPECT_EQ(CopyCount(copied, mesh).value(), 16);
  EXPECT_EQ(TotalBytes(copied, mesh).value(), 64.0 * 100 * 16);
}

TEST(ShardingTest, IllegalShardingsAreErrors) {
  const std::vector<int64_t> mesh = {4, 8};
  EXPECT_EQ(LocalShape({{8, 8}, {{0}, {0}}, 1}, mesh).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LocalShape({{8, 8}, {{2}, {}}, 1}, mesh).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LocalBytes({{6, 8}, {{0}, {}}, 1}, mesh).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CopyCount({{6, 8}, {{0}, {}}, 1}, mesh).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ShardCounts({{6, 8}, {{0}, {}}, 1}, mesh).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(TotalBytes({{6, 8}, {{0}, {}}, 1}, mesh).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ShardingTest, NamesAreResolvedAndEveryMistakeIsReported) {
  std::vector<Violation> violations;
  const std::vector<std::string> dims = {"m", "k"};
  const std::vector<int64_t> shape = {64, 6};
  const std::vector<MeshAxis> mesh = Mesh({4, 8});
  const Sharding good = ResolveSharding({{"m", {"b", "a"}}}, dims, shape, mesh, "f", violations);
  EXPECT_THAT(good, ElementsAre(ElementsAre(1, 0), ElementsAre()));
  EXPECT_TRUE(violations.empty());
  ResolveSharding({{"q", {"a"}}, {"k", {"a"}}, {"m", {"z", "a"}}, {"m", {}}}, dims, shape, mesh, "f", violations);
  std::vector<std::string> reasons;
  for (const Violation& violation : violations) reasons.push_back(violation.field + " " + violation.reason);
  EXPECT_THAT(reasons, ElementsAre("f[0].dimension UNKNOWN_DIMENSION", "f[1] DIMENSION_NOT_DIVISIBLE",
                                   "f[2].axes[0] UNKNOWN_MESH_AXIS", "f[2].axes[1] MESH_AXIS_REPEATED",
                                   "f[3].dimension DIMENSION_REPEATED"));
}

}  // namespace
}  // namespace sliceplan::roofline
