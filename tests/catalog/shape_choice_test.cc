#include "server/catalog/shape_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "server/catalog/catalog_store.h"

namespace sliceplan::catalog {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Accelerator& Chip(absl::string_view name) {
  static const auto& catalog = *new absl::StatusOr<std::shared_ptr<const Catalog>>(BuiltInCatalog());
  return *(*catalog)->FindAccelerator(name).accelerator;
}

struct CubicCase {
  const char* chip;
  int64_t chips;
  const char* shape;  // "" for none
};

// The defaults of XPK's table by chip count, and its non-obvious ones.
TEST(MostCubicShapeTest, ExactCounts) {
  const CubicCase kCases[] = {{"tpu-v5p", 4, "2x2x1"},
                              {"tpu-v5p", 8, "2x2x2"},
                              {"tpu-v5p", 64, "4x4x4"},
                              {"tpu-v5p", 128, "4x4x8"},
                              {"tpu-v5p", 256, "4x8x8"},
                              {"tpu-v5p", 512, "8x8x8"},
                              {"tpu-v5p", 768, "8x8x12"},
                              {"tpu-v5p", 1024, "8x8x16"},
                              {"tpu-v5p", 2048, "8x16x16"},
                              {"tpu-v5p", 4096, "16x16x16"},
                              {"tpu-v5p", 8960, "16x20x28"},
                              {"tpu-v4", 4096, "16x16x16"},
                              {"tpu-7x", 1, "1x1x1"},
                              {"tpu-7x", 9216, "16x24x24"},
                              {"tpu-v6e", 8, "2x4"},
                              {"tpu-v6e", 256, "16x16"},
                              {"tpu-v3", 512, "16x32"},
                              {"tpu-v5p", 1, ""},
                              {"tpu-v5p", 100, ""},
                              {"tpu-v5p", 9024, ""},
                              {"tpu-v6e", 2, ""},
                              {"tpu-v6e", 512, ""},
                              {"tpu-8t", 4, ""}};
  for (const CubicCase& c : kCases) {
    const auto shape = MostCubicShape(Chip(c.chip), c.chips);
    EXPECT_EQ(shape.has_value() ? hardware::ShapeName(*shape) : "", c.shape) << c.chip << " " << c.chips;
  }
}

TEST(NearestChipCountsTest, NextBelowAndAbove) {
  EXPECT_THAT(NearestChipCounts(Chip("tpu-v5p"), 1), ElementsAre(4));
  EXPECT_THAT(NearestChipCounts(Chip("tpu-v5p"), 5), ElementsAre(4, 8));
  EXPECT_THAT(NearestChipCounts(Chip("tpu-v5p"), 100), ElementsAre(64, 128));
  EXPECT_THAT(NearestChipCounts(Chip("tpu-v5p"), 4100), ElementsAre(4096, 4160));
  EXPECT_THAT(NearestChipCounts(Chip("tpu-v5p"), 1 << 20), ElementsAre(8960));
  EXPECT_THAT(NearestChipCounts(Chip("tpu-v6e"), 12), ElementsAre(8, 16));
  EXPECT_TRUE(NearestChipCounts(Chip("tpu-8t"), 12).empty());
}

TEST(IsTwistOfferedTest, ByListAndByRule) {
  EXPECT_TRUE(IsTwistOffered(Chip("tpu-v5p"), {4, 4, 8}));
  EXPECT_TRUE(IsTwistOffered(Chip("tpu-v5p"), {8, 16, 16}));
  EXPECT_FALSE(IsTwistOffered(Chip("tpu-v5p"), {12, 24, 24}));
  EXPECT_TRUE(IsTwistOffered(Chip("tpu-v4"), {12, 24, 24}));
  EXPECT_FALSE(IsTwistOffered(Chip("tpu-v4"), {4, 4, 4}));
  EXPECT_FALSE(IsTwistOffered(Chip("tpu-v5e"), {8, 16}));
  EXPECT_FALSE(IsTwistOffered(Chip("tpu-7x"), {4, 4, 8}));
}

TEST(DeriveSliceTest, TakesHostsAndLabelsFromItsNeighbours) {
  const v1::SliceRecord slice = DeriveSlice(Chip("tpu-v5p"), {4, 4, 16});
  EXPECT_EQ(slice.topology(), "4x4x16");
  EXPECT_EQ(slice.chip_count(), 256);
  EXPECT_EQ(slice.tensorcore_count(), 512);
  EXPECT_EQ(slice.host_count(), 64);
  EXPECT_EQ(slice.machine_type(), "ct5p-hightpu-4t");
  EXPECT_EQ(slice.gke_tpu_accelerator(), "tpu-v5p-slice");
  EXPECT_EQ(slice.gke_tpu_topology(), "4x4x16");
  EXPECT_EQ(slice.xpk_device_type(), "v5p-4x4x16");
  EXPECT_TRUE(slice.slice_name().empty());
  EXPECT_THAT(slice.host_bounds(), ElementsAre(2, 2, 16));
  EXPECT_THAT(slice.axis_wraps(), ElementsAre(true, true, true));
  EXPECT_TRUE(slice.single_slice_schedulable());
  EXPECT_FALSE(DeriveSlice(Chip("tpu-v5p"), {16, 16, 28}).single_slice_schedulable());
}

TEST(LegalShapesTest, ListsOrStatesTheRule) {
  EXPECT_EQ(LegalShapes(Chip("tpu-v5p")),
            "Legal are 2x2x1, 2x2x2, 2x2x4, 2x4x4, and AxBxC with A <= B <= C, multiples of 4, at most 8960 chips.");
  EXPECT_EQ(LegalShapes(Chip("tpu-v6e")), "Legal are 1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16.");
  EXPECT_EQ(LegalShapes(Chip("tpu-8t")), "No slice of tpu-8t is public.");
}

}  // namespace
}  // namespace sliceplan::catalog
