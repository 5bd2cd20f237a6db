#include "server/planner/cost.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sliceplan::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CostTest, PartsAreChipsTimesHoursTimesPrice) {
  const Cost cost = CostOf(4.2, 8192, 5.5, 4194304, 1, 44 * 86400.0);
  EXPECT_EQ(cost.usd_per_chip_hour, 4.2);
  EXPECT_NEAR(cost.usd_per_step, 4.2 * 8192 * 5.5 / 3600, 1e-9);
  EXPECT_NEAR(*cost.usd_per_million_tokens, 4.2 * 8192 * 5.5 / 3600 / 4.194304, 1e-9);
  EXPECT_NEAR(*cost.total_usd, 4.2 * 8192 * 44 * 24, 1e-6);
  EXPECT_NEAR(ChipHours(8192, 44 * 86400.0), 8192 * 44 * 24, 1e-9);
}

TEST(CostTest, StepsAddUpToTheTotal) {
  const double steps = 1000;
  const double step_seconds = 3.5;
  const double tokens_per_step = 2e6;
  const Cost cost = CostOf(1.2, 256, step_seconds, tokens_per_step, 0.5, 2 * steps * step_seconds);
  // Half the time is lost: a step is priced without that, tokens with it.
  EXPECT_NEAR(*cost.total_usd, 2 * steps * cost.usd_per_step, 1e-9);
  EXPECT_NEAR(*cost.total_usd, steps * tokens_per_step / 1e6 * *cost.usd_per_million_tokens, 1e-9);
}

TEST(CostTest, NoTotalWithoutTokens) {
  EXPECT_FALSE(CostOf(1, 1, 1, 1, 1, std::nullopt).total_usd.has_value());
  EXPECT_EQ(CostOf(0, 1, 1, 1, 1, 5.0).total_usd, 0);
  EXPECT_FALSE(CostOf(1, 1, 1, 1, std::nullopt, std::nullopt).usd_per_million_tokens.has_value());
}

TEST(CostTest, EnergyUsesMeanPowerBeforeDesignPower) {
  hardware::AcceleratorSpec accelerator;
  std::vector<std::string> assumptions;
  EXPECT_FALSE(EnergyOf(accelerator, 8, 2, std::nullopt, assumptions).has_value());
  EXPECT_THAT(assumptions, IsEmpty());

  accelerator.tdp_watts = 700;
  Energy energy = EnergyOf(accelerator, 8, 2, std::nullopt, assumptions).value();
  EXPECT_EQ(energy.joules_per_step, 8 * 700 * 2);
  EXPECT_FALSE(energy.total_kilowatt_hours.has_value());
  EXPECT_THAT(assumptions, ElementsAre(HasSubstr("700 W, their thermal design power")));

  accelerator.mean_watts = 500;
  assumptions.clear();
  energy = EnergyOf(accelerator, 8, 2, 3600, assumptions).value();
  EXPECT_EQ(energy.joules_per_step, 8 * 500 * 2);
  EXPECT_NEAR(*energy.total_kilowatt_hours, 8 * 0.5, 1e-12);
  EXPECT_THAT(assumptions, ElementsAre(HasSubstr("500 W, their mean under load")));
}

}  // namespace
}  // namespace sliceplan::planner
