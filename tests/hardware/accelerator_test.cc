#include "server/hardware/accelerator.h"

#include <gtest/gtest.h>

#include <optional>

namespace sliceplan::hardware {
namespace {

struct RateCase {
  const char* name;
  DataType type;
  std::optional<double> rate;
};

// A chip with rates of its own for bf16, int8 and fp32 only.
AcceleratorSpec Chip() {
  AcceleratorSpec chip;
  chip.bf16_flops_per_second = 2e14;
  chip.int8_ops_per_second = 4e14;
  chip.fp32_flops_per_second = 1e14;
  return chip;
}

class MatmulRateTest : public testing::TestWithParam<RateCase> {};

TEST_P(MatmulRateTest, FallsBackToTheRateThatTheUnitRunsAt) {
  EXPECT_EQ(Chip().MatmulRate(GetParam().type), GetParam().rate);
}

INSTANTIATE_TEST_SUITE_P(Types, MatmulRateTest,
                         testing::Values(RateCase{"bf16", DataType::kBf16, 2e14},
                                         RateCase{"fp16_runs_as_bf16", DataType::kFp16, 2e14},
                                         RateCase{"int8_has_its_own", DataType::kInt8, 4e14},
                                         RateCase{"int4_is_upcast", DataType::kInt4, 2e14},
                                         RateCase{"fp8_is_upcast", DataType::kFp8, 2e14},
                                         RateCase{"fp4_is_upcast", DataType::kFp4, 2e14},
                                         RateCase{"fp32_has_its_own", DataType::kFp32, 1e14}),
                         [](const auto& info) { return info.param.name; });

TEST(MatmulRateTest, NothingIsKnownWithoutRates) {
  for (DataType type : {DataType::kBf16, DataType::kFp16, DataType::kFp32, DataType::kFp8, DataType::kFp4,
                        DataType::kInt8, DataType::kInt4}) {
    EXPECT_EQ(AcceleratorSpec().MatmulRate(type), std::nullopt) << DataTypeName(type);
  }
}

TEST(MatmulRateTest, Fp32NeverRunsAtTheRateOfANarrowerType) {
  AcceleratorSpec chip = Chip();
  chip.fp32_flops_per_second.reset();
  EXPECT_EQ(chip.MatmulRate(DataType::kFp32), std::nullopt);
}

TEST(AllocatableBytesTest, UsableBeforePhysical) {
  AcceleratorSpec chip;
  EXPECT_EQ(chip.AllocatableBytes(), std::nullopt);
  chip.hbm_bytes = 100;
  EXPECT_EQ(chip.AllocatableBytes(), 100);
  chip.hbm_usable_bytes = 95;
  EXPECT_EQ(chip.AllocatableBytes(), 95);
}

}  // namespace
}  // namespace sliceplan::hardware
