#include "server/hardware/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sliceplan::hardware {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

TEST(ParseShapeTest, Reads) {
  EXPECT_THAT(*ParseShape("16"), ElementsAre(16));
  EXPECT_THAT(*ParseShape("8x16"), ElementsAre(8, 16));
  EXPECT_THAT(*ParseShape("16x20x28"), ElementsAre(16, 20, 28));
  EXPECT_THAT(*ParseShape("4X2"), ElementsAre(4, 2));
  EXPECT_THAT(*ParseShape("1048576"), ElementsAre(1 << 20));
}

class MalformedShapeTest : public testing::TestWithParam<const char*> {};

TEST_P(MalformedShapeTest, IsRefused) { EXPECT_FALSE(ParseShape(GetParam()).has_value()) << GetParam(); }

TEST(ParseShapeTest, AViewOfNothingIsNoShape) { EXPECT_FALSE(ParseShape(absl::string_view()).has_value()); }

INSTANTIATE_TEST_SUITE_P(Texts, MalformedShapeTest,
                         testing::Values("", "x", "8x", "x8", "8xx8", "0x4", "-4x4", "+4", "4 x 4", "4.0", "4x4x4x4",
                                         "abc", "1048577", "1024x1025", "99999999999999999999", "4x4\n"));

struct OrderCase {
  Shape shape;
  Shape canonical;
};

TEST(CanonicalOrderTest, AscendsWithOnesLastInThreeDimensions) {
  const OrderCase kCases[] = {{{4, 2}, {2, 4}},
                              {{1, 4}, {1, 4}},
                              {{16, 8, 4}, {4, 8, 16}},
                              {{1, 2, 2}, {2, 2, 1}},
                              {{2, 1, 2}, {2, 2, 1}},
                              {{1, 4, 1}, {4, 1, 1}},
                              {{28, 16, 20}, {16, 20, 28}},
                              {{1, 1, 1}, {1, 1, 1}},
                              {{7}, {7}}};
  for (const OrderCase& c : kCases) {
    EXPECT_THAT(CanonicalOrder(c.shape), ElementsAreArray(c.canonical)) << ShapeName(c.shape);
  }
}

struct WrapCase {
  const char* name;
  WrapRule rule;
  Shape shape;
  Shape pod;
  std::vector<bool> wraps;
};

class WrapsOfTest : public testing::TestWithParam<WrapCase> {};

TEST_P(WrapsOfTest, FollowsTheRuleOfTheGeneration) {
  const WrapCase& c = GetParam();
  EXPECT_THAT(WrapsOf(c.rule, c.shape, c.pod), ElementsAreArray(c.wraps));
}

// "How To Scale Your Model", chapter 2; the last two of kWholeCubes show that one long axis is not enough (its errata).
INSTANTIATE_TEST_SUITE_P(
    Rules, WrapsOfTest,
    testing::Values(WrapCase{"axis_of_16_none", WrapRule::kAxisOf16, {4, 4}, {}, {false, false}},
                    WrapCase{"axis_of_16_below", WrapRule::kAxisOf16, {4, 8}, {}, {false, false}},
                    WrapCase{"axis_of_16_long_axis", WrapRule::kAxisOf16, {8, 16}, {}, {false, true}},
                    WrapCase{"axis_of_16_both", WrapRule::kAxisOf16, {16, 16}, {}, {true, true}},
                    WrapCase{"axis_of_16_not_32", WrapRule::kAxisOf16, {16, 32}, {}, {true, false}},
                    WrapCase{"cubes_one", WrapRule::kWholeCubes, {4, 4, 4}, {}, {true, true, true}},
                    WrapCase{"cubes_pod", WrapRule::kWholeCubes, {16, 20, 28}, {}, {true, true, true}},
                    WrapCase{"cubes_half", WrapRule::kWholeCubes, {2, 4, 4}, {}, {false, false, false}},
                    WrapCase{"cubes_quarter", WrapRule::kWholeCubes, {2, 2, 4}, {}, {false, false, false}},
                    WrapCase{"full_pod", WrapRule::kFullPodOnly, {32, 32}, {32, 32}, {true, true}},
                    WrapCase{"part_of_pod", WrapRule::kFullPodOnly, {16, 32}, {32, 32}, {false, false}},
                    WrapCase{"unknown_pod", WrapRule::kFullPodOnly, {32, 32}, {}, {false, false}},
                    WrapCase{"two_chips_never_close", WrapRule::kFullPodOnly, {2, 4}, {2, 4}, {false, true}},
                    WrapCase{"never", WrapRule::kNever, {16, 16}, {16, 16}, {false, false}}),
    [](const auto& info) { return info.param.name; });

TEST(IsWrapKnownTest, OnlyWhereTheRuleSaysSomething) {
  const Shape pod = {32, 32};
  EXPECT_TRUE(IsWrapKnown(WrapRule::kAxisOf16, Shape{2, 2}, {}));
  EXPECT_TRUE(IsWrapKnown(WrapRule::kWholeCubes, Shape{2, 2, 1}, {}));
  EXPECT_TRUE(IsWrapKnown(WrapRule::kFullPodOnly, pod, pod));
  EXPECT_FALSE(IsWrapKnown(WrapRule::kFullPodOnly, Shape{16, 32}, pod));
  EXPECT_FALSE(IsWrapKnown(WrapRule::kNever, pod, pod));
}

TEST(IsTwistableTest, TheThreeShapesOnly) {
  for (const Shape& shape : {Shape{4, 8}, Shape{4, 4, 8}, Shape{4, 8, 8}, Shape{12, 24, 24}, Shape{2, 4}}) {
    EXPECT_TRUE(IsTwistable(shape)) << ShapeName(shape);
  }
  for (const Shape& shape :
       {Shape{8}, Shape{4, 4}, Shape{4, 4, 4}, Shape{4, 6, 8}, Shape{4, 8, 16}, Shape{1, 2}, Shape{1, 1, 2}}) {
    EXPECT_FALSE(IsTwistable(shape)) << ShapeName(shape);
  }
}

std::vector<std::string> Names(const std::vector<Shape>& shapes) {
  std::vector<std::string> names;
  for (const Shape& shape : shapes) names.push_back(ShapeName(shape));
  return names;
}

TEST(ShapesOfTest, MostCubicFirst) {
  // 256 = 4 * 4 * 16 = 4 * 8 * 8; half surfaces 4*4 + 2*4*16 = 144 and 2*4*8 + 8*8 = 128.
  EXPECT_THAT(Names(ShapesOf(256, 3, 4)), ElementsAre("4x8x8", "4x4x16"));
  EXPECT_THAT(Names(ShapesOf(12, 2, 1)), ElementsAre("3x4", "2x6", "1x12"));
  EXPECT_THAT(Names(ShapesOf(7, 1, 1)), ElementsAre("7"));
  EXPECT_THAT(Names(ShapesOf(4096, 3, 4)).front(), "16x16x16");
}

TEST(ShapesOfTest, NoneWhereTheUnitDoesNotDivide) {
  EXPECT_TRUE(ShapesOf(100, 3, 4).empty());
  EXPECT_TRUE(ShapesOf(32, 3, 4).empty());
  EXPECT_TRUE(ShapesOf(0, 3, 1).empty());
  EXPECT_TRUE(ShapesOf(-4, 2, 1).empty());
  EXPECT_TRUE(ShapesOf(kMaxChipCount + 1, 1, 1).empty());
}

TEST(ShapesOfTest, EveryShapeHasTheChipsAndAscends) {
  for (int64_t chips : {1, 64, 720, 8960, 1 << 20}) {
    for (const Shape& shape : ShapesOf(chips, 3, 1)) {
      EXPECT_EQ(ChipCount(shape), chips);
      EXPECT_LE(shape[0], shape[1]);
      EXPECT_LE(shape[1], shape[2]);
    }
  }
}

}  // namespace
}  // namespace sliceplan::hardware
