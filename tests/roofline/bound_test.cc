#include "server/roofline/bound.h"

#include <cmath>
#include <iterator>
#include <optional>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "server/roofline/op_cost.h"
#include "tests/roofline/chips.h"

namespace sliceplan::roofline {
namespace {

using hardware::AcceleratorSpec;
using hardware::DataType;

TEST(BoundTest, NoWorkBindsNothing) {
  const Bound bound = BoundOf({});
  EXPECT_EQ(bound.lower_seconds, 0);
  EXPECT_EQ(bound.upper_seconds, 0);
  EXPECT_EQ(bound.binding, Resource::kNone);
}

TEST(BoundTest, SlowestIsLowerAndSumIsUpper) {
  const Bound bound = BoundOf({.matrix_unit = 2, .hbm = 3, .dcn = 1});
  EXPECT_EQ(bound.lower_seconds, 3);
  EXPECT_EQ(bound.upper_seconds, 6);
  EXPECT_EQ(bound.binding, Resource::kHbm);
}

TEST(BoundTest, TiesGoToTheFirstResource) {
  EXPECT_EQ(BoundOf({.vector_unit = 1, .hbm = 1, .pcie = 1}).binding, Resource::kVectorUnit);
  EXPECT_EQ(BoundOf({.matrix_unit = 1, .vector_unit = 1}).binding, Resource::kMatrixUnit);
}

TEST(BoundTest, EveryResourceHasANameAndAnEntry) {
  const ResourceSeconds all = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  double sum = 0;
  for (int i = 0; i <= static_cast<int>(Resource::kPcie); ++i) {
    const Resource resource = static_cast<Resource>(i);
    EXPECT_FALSE(ResourceName(resource).empty());
    EXPECT_EQ(all.Of(resource), i);
    sum += all.Of(resource);
  }
  EXPECT_EQ(BoundOf(all).upper_seconds, sum);
  ResourceSeconds twice = all;
  twice += all;
  EXPECT_EQ(BoundOf(twice).upper_seconds, 2 * sum);
}

TEST(OpCostTest, SecondsAreWorkOverRate) {
  OpCost cost;
  cost.MatrixFlops(DataType::kBf16) = 200e12;
  cost.MatrixFlops(DataType::kInt8) = 400e12;
  cost.vector_flops = 1e12;
  cost.hbm_bytes = 5e11;
  cost.pcie_bytes = 10e9;
  cost.ici_bytes = 25e9;
  cost.dcn_bytes = 1e9;
  cost.vmem_bytes = 22e12;
  const ResourceSeconds seconds = SecondsOf(cost, RoundChip()).value();
  EXPECT_DOUBLE_EQ(seconds.matrix_unit, 1 + 1);
  EXPECT_DOUBLE_EQ(seconds.vector_unit, 0.25);
  EXPECT_DOUBLE_EQ(seconds.hbm, 0.5);
  EXPECT_DOUBLE_EQ(seconds.pcie, 1);
  EXPECT_DOUBLE_EQ(seconds.ici, 0.5);
  EXPECT_DOUBLE_EQ(seconds.dcn, 0.2);
  EXPECT_DOUBLE_EQ(seconds.vmem, 1);  // book, chapter 2: 22 x HBM
  EXPECT_DOUBLE_EQ(cost.Intensity(), (200e12 + 400e12 + 1e12) / 5e11);
}

TEST(OpCostTest, AddsAndScales) {
  OpCost cost;
  cost.MatrixFlops(DataType::kBf16) = 3;
  cost.hbm_bytes = 2;
  cost.scale_out_bytes = 1;
  OpCost sum = cost.Times(2);
  sum += cost;
  EXPECT_EQ(sum.TotalFlops(), 9);
  EXPECT_EQ(sum.hbm_bytes, 6);
  EXPECT_EQ(sum.scale_out_bytes, 3);
}

TEST(OpCostTest, MissingFiguresAreNamed) {
  OpCost matrix;
  matrix.MatrixFlops(DataType::kBf16) = 1;
  OpCost hbm;
  hbm.hbm_bytes = 1;
  OpCost wide;
  wide.MatrixFlops(DataType::kFp32) = 1;
  const AcceleratorSpec nothing;
  EXPECT_EQ(SecondsOf(matrix, nothing).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(SecondsOf(matrix, nothing).status().message().find("bf16_flops_per_second"), std::string::npos);
  EXPECT_NE(SecondsOf(wide, RoundChip()).status().message().find("fp32_flops_per_second"), std::string::npos);
  EXPECT_NE(SecondsOf(hbm, nothing).status().message().find("hbm_bytes_per_second"), std::string::npos);
  // What is not used may be missing.
  EXPECT_TRUE(SecondsOf({}, nothing).ok());
}

TEST(OpCostTest, WithoutAVectorRateElementwiseWorkIsBoundByHbm) {
  AcceleratorSpec chip = RoundChip();
  chip.vector_flops_per_second.reset();
  OpCost cost;
  cost.vector_flops = 1e15;
  cost.hbm_bytes = 1;
  EXPECT_EQ(BoundOf(SecondsOf(cost, chip).value()).binding, Resource::kHbm);
}

// For any work: lower <= upper <= resources x lower, and a faster chip is never slower.
TEST(OpCostTest, BoundsHoldAndBandwidthNeverHurts) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(0, 15);
  const auto amount = [&] { return std::pow(10.0, exponent(random)); };
  for (int i = 0; i < 500; ++i) {
    OpCost cost;
    cost.MatrixFlops(DataType::kBf16) = amount();
    cost.MatrixFlops(DataType::kInt8) = amount();
    cost.vector_flops = amount();
    cost.hbm_bytes = amount();
    cost.pcie_bytes = amount();
    cost.ici_bytes = amount();
    cost.dcn_bytes = amount();
    cost.vmem_bytes = amount();
    const Bound bound = BoundOf(SecondsOf(cost, RoundChip()).value());
    constexpr double kResources = 9;
    EXPECT_LE(bound.lower_seconds, bound.upper_seconds);
    EXPECT_LE(bound.upper_seconds, kResources * bound.lower_seconds);
    AcceleratorSpec faster = RoundChip();
    std::optional<double>* const rates[] = {&faster.bf16_flops_per_second,   &faster.int8_ops_per_second,
                                            &faster.vector_flops_per_second, &faster.hbm_bytes_per_second,
                                            &faster.pcie_bytes_per_second,   &faster.ici_link_bytes_per_second,
                                            &faster.dcn_bytes_per_second};
    **rates[static_cast<size_t>(i) % std::size(rates)] *= 2;
    const Bound better = BoundOf(SecondsOf(cost, faster).value());
    EXPECT_LE(better.lower_seconds, bound.lower_seconds);
    EXPECT_LE(better.upper_seconds, bound.upper_seconds);
  }
}

}  // namespace
}  // namespace sliceplan::roofline
