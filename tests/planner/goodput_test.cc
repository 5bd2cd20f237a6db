#include "server/planner/goodput.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sliceplan::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kMinute = 60;
constexpr double kHour = 3600;
constexpr double kDay = 86400;

Goodput Of(const Reliability& reliability, int64_t chips, double step_seconds,
           std::optional<double> time_to_train = std::nullopt) {
  std::vector<std::string> warnings;
  return GoodputOf(reliability, chips, step_seconds, time_to_train, warnings);
}

struct IntervalCase {
  const char* name;
  double mean_seconds_between_failures;
  double optimum_seconds;  // as printed
  double printed_to_seconds;
};

TEST(GoodputTest, IntervalsOfDalysFigures) {
  // Daly 2006, figures 3 to 5: checkpoints of 5 minutes.
  const IntervalCase cases[] = {
      {"a_day", 24 * kHour, 117 * kMinute, 0.5 * kMinute},
      {"six_hours", 6 * kHour, 57 * kMinute, 0.5 * kMinute},
      {"a_quarter_of_an_hour", 15 * kMinute, 9.1 * kMinute, 0.05 * kMinute},
  };
  for (const IntervalCase& test : cases) {
    SCOPED_TRACE(test.name);
    EXPECT_NEAR(OptimalCheckpointInterval(5 * kMinute, test.mean_seconds_between_failures), test.optimum_seconds,
                test.printed_to_seconds);
  }
  // Writing takes longer than two mean times between failures.
  EXPECT_EQ(OptimalCheckpointInterval(100, 40), 40);
}

TEST(GoodputTest, IntervalTendsToYoungsForRareFailures) {
  const double write = 30;
  const double failures = 1e9;
  EXPECT_NEAR(OptimalCheckpointInterval(write, failures) / std::sqrt(2 * write * failures), 1, 1e-3);
}

TEST(GoodputTest, NoOtherIntervalIsMuchBetter) {
  for (const double failures : {300.0, 3e3, 3e4, 3e6}) {
    for (const double write : {0.1, 5.0, 60.0, 250.0}) {
      const double optimum = OptimalCheckpointInterval(write, failures);
      const double best = GoodputRatio(optimum, write, 60, 1 / failures);
      for (double factor = 0.05; factor < 20; factor *= 1.1) {
        EXPECT_LE(GoodputRatio(factor * optimum, write, 60, 1 / failures), best * (1 + 2e-3))
            << failures << " " << write << " " << factor;
      }
    }
  }
}

TEST(GoodputTest, WallTimeIsDalysFormula) {
  // T_w = M e^(R/M) (e^((tau + d)/M) - 1) T_s / tau.
  Reliability reliability;
  reliability.mean_seconds_between_failures_per_chip = 4096 * 6 * kHour;
  reliability.checkpoint_write_seconds = 5 * kMinute;
  reliability.restart_seconds = 10 * kMinute;
  const double solve = 500 * kHour;
  const Goodput goodput = Of(reliability, 4096, 10, solve);
  const double m = 6 * kHour;
  const double tau = *goodput.optimal_checkpoint_interval_seconds;
  EXPECT_NEAR(tau, 57 * kMinute, 0.5 * kMinute);
  const double expected = m * std::exp(600 / m) * (std::exp((tau + 300) / m) - 1) * solve / tau;
  EXPECT_NEAR(*goodput.wall_seconds / expected, 1, 1e-12);
  EXPECT_NEAR(goodput.failures_per_day, 4, 1e-12);
}

TEST(GoodputTest, SimulatedFailuresAgree) {
  const double m = 3000;
  const double write = 60;
  const double restart = 200;
  const double tau = OptimalCheckpointInterval(write, m);
  std::mt19937_64 random(3);
  std::exponential_distribution<double> until_failure(1 / m);
  double wall = 0;
  double restarting = 0;
  double lost = 0;
  const int segments = 200000;
  for (int done = 0; done < segments; ++done) {
    // A failure interrupts a segment or a restart; memoryless, so each attempt draws anew.
    for (double failure = until_failure(random); failure < tau + write; failure = until_failure(random)) {
      wall += failure;
      lost += failure;
      for (failure = until_failure(random); failure < restart; failure = until_failure(random)) {
        wall += failure;
        restarting += failure;
      }
      wall += restart;
      restarting += restart;
    }
    wall += tau + write;
  }
  Reliability reliability;
  reliability.mean_seconds_between_failures_per_chip = m;
  reliability.checkpoint_write_seconds = write;
  reliability.restart_seconds = restart;
  const Goodput goodput = Of(reliability, 1, 1);
  EXPECT_NEAR(goodput.ratio, segments * tau / wall, 0.005);
  EXPECT_NEAR(goodput.restart_seconds_per_day / kDay, restarting / wall, 0.003);
  EXPECT_NEAR(goodput.lost_work_seconds_per_day / kDay, lost / wall, 0.003);
  EXPECT_NEAR(goodput.checkpoint_seconds_per_day / kDay, segments * write / wall, 0.003);
}

TEST(GoodputTest, PublishedFailureRate) {
  // Llama 3 405B (paper, section 3.3.4): 466 interruptions in 54 days on 16,384 chips, and more than 90% effective
  // time, which short checkpoints and restarts reach.
  Reliability reliability;
  reliability.mean_seconds_between_failures_per_chip = 16384 * 54 * kDay / 466;
  reliability.checkpoint_write_seconds = 10;
  reliability.restart_seconds = 5 * kMinute;
  const Goodput goodput = Of(reliability, 16384, 5);
  EXPECT_NEAR(goodput.failures_per_day, 466.0 / 54, 1e-9);
  EXPECT_GT(goodput.ratio, 0.90);
  EXPECT_LT(goodput.ratio, 1);
}

TEST(GoodputTest, PreemptionsAndFailuresAddUp) {
  Reliability failures;
  failures.mean_seconds_between_failures_per_chip = 64 * 2 * kHour;
  Reliability preemptions;
  preemptions.preemptions_per_hour = 0.5;
  EXPECT_NEAR(Of(failures, 64, 1).ratio, Of(preemptions, 64, 1).ratio, 1e-12);
  Reliability both = failures;
  both.preemptions_per_hour = 0.5;
  EXPECT_NEAR(Of(both, 64, 1).failures_per_day, 24, 1e-9);
}

TEST(GoodputTest, WithoutFailuresNothingIsLost) {
  const Goodput goodput = Of(Reliability(), 8192, 10, 1e6);
  EXPECT_EQ(goodput.ratio, 1);
  EXPECT_EQ(goodput.wall_seconds, 1e6);
  EXPECT_FALSE(goodput.optimal_checkpoint_interval_seconds.has_value());
  EXPECT_EQ(goodput.checkpoint_seconds_per_day, 0);
}

TEST(GoodputTest, IntervalIsBetweenAStepAndTheJob) {
  Reliability reliability;
  reliability.mean_seconds_between_failures_per_chip = 1e6;
  reliability.checkpoint_write_seconds = 0;
  EXPECT_EQ(Of(reliability, 1, 10).optimal_checkpoint_interval_seconds, 10);
  EXPECT_NEAR(Of(reliability, 1, 1e-9).ratio, std::exp(-600 / 1e6), 1e-9);
  reliability.checkpoint_write_seconds = 60;
  EXPECT_EQ(Of(reliability, 1, 10, 1000).optimal_checkpoint_interval_seconds, 1000);
}

TEST(GoodputTest, AskedIntervalsAreUsedAndTheOptimumIsStillSaid) {
  Reliability reliability;
  reliability.mean_seconds_between_failures_per_chip = 6 * kHour;
  reliability.checkpoint_write_seconds = 5 * kMinute;
  const double best = Of(reliability, 1, 1).ratio;
  reliability.checkpoint_interval_seconds = 3 * kHour;
  const Goodput asked = Of(reliability, 1, 1);
  EXPECT_NEAR(*asked.optimal_checkpoint_interval_seconds, 57 * kMinute, 0.5 * kMinute);
  EXPECT_EQ(asked.ratio, GoodputRatio(3 * kHour, 5 * kMinute, 600, 1 / (6 * kHour)));
  EXPECT_EQ(asked.checkpoint_interval_seconds, 3 * kHour);
  EXPECT_LT(asked.ratio, best);
}

TEST(GoodputTest, HopelessJobsAreToldSo) {
  Reliability reliability;
  reliability.mean_seconds_between_failures_per_chip = 1;
  std::vector<std::string> warnings;
  const Goodput goodput = GoodputOf(reliability, 1 << 20, 10, 1e6, warnings);
  EXPECT_EQ(goodput.ratio, 0);
  EXPECT_FALSE(goodput.wall_seconds.has_value());
  EXPECT_FALSE(goodput.finishes);
  EXPECT_TRUE(std::isfinite(NeededSeconds(goodput, 1e12)));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("leave no time to train")));
  warnings.clear();
  reliability.mean_seconds_between_failures_per_chip = 1000;
  GoodputOf(reliability, 1, 1, 1e6, warnings);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("of the time for training")));
}

TEST(GoodputTest, EveryDayAddsUpAndEverythingIsFinite) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> exponent(0, 12);
  const auto draw = [&] { return std::pow(10.0, exponent(random)); };
  for (int round = 0; round < 20000; ++round) {
    Reliability reliability;
    reliability.mean_seconds_between_failures_per_chip = draw();
    reliability.checkpoint_write_seconds = round % 7 == 0 ? 0 : draw() / 1e4;
    reliability.restart_seconds = round % 5 == 0 ? 0 : draw() / 1e4;
    reliability.preemptions_per_hour = round % 3 == 0 ? draw() / 1e6 : 0;
    const int64_t chips = int64_t{1} << (round % 21);
    const double step = draw() / 1e6;
    const Goodput goodput = Of(reliability, chips, step, draw());
    const double parts[] = {kDay * goodput.ratio, goodput.checkpoint_seconds_per_day, goodput.restart_seconds_per_day,
                            goodput.lost_work_seconds_per_day};
    double sum = 0;
    for (const double part : parts) {
      ASSERT_TRUE(std::isfinite(part) && part >= 0) << part;
      sum += part;
    }
    ASSERT_NEAR(sum, kDay, 1e-6 * kDay);
    ASSERT_LE(goodput.ratio, 1);
    if (goodput.wall_seconds) {
      ASSERT_TRUE(std::isfinite(*goodput.wall_seconds));
    }
    // More failures never help.
    Reliability worse = reliability;
    *worse.mean_seconds_between_failures_per_chip /= 2;
    ASSERT_LE(Of(worse, chips, step).ratio, Of(reliability, chips, step).ratio * (1 + 2e-3));
  }
}

}  // namespace
}  // namespace sliceplan::planner
