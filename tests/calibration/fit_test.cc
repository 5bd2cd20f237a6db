#include "server/calibration/fit.h"

#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sliceplan::calibration {
namespace {

using ::testing::ElementsAre;

// A machine whose runs take work / rate + traffic / bandwidth + fixed seconds; the fit is told the work and traffic.
struct Measurement {
  double work;
  double traffic;
  double seconds;
};

struct Machine {
  double inverse_rate = 1.3;
  double inverse_bandwidth = 2.5;
  double fixed_seconds = 0.4;

  double Seconds(const Measurement& run) const {
    return run.work * inverse_rate + run.traffic * inverse_bandwidth + fixed_seconds;
  }
};

std::vector<Measurement> Runs(const Machine& machine, double noise, int count) {
  std::mt19937 generator(7);  // NOLINT(cert-msc51-cpp): the same noise every time
  std::uniform_real_distribution<double> size(-2, 2);
  std::normal_distribution<double> error(0, noise > 0 ? noise : 1);
  std::vector<Measurement> runs;
  for (int i = 0; i < count; ++i) {
    Measurement run{std::exp(size(generator)), std::exp(size(generator)), 0};
    run.seconds = machine.Seconds(run) * std::exp(noise > 0 ? error(generator) : 0);
    runs.push_back(run);
  }
  return runs;
}

FitProblem ProblemOf(std::vector<Measurement> runs, double spread) {
  FitProblem problem;
  for (const char* name : {"inverse_rate", "inverse_bandwidth", "fixed_seconds"})
    problem.constants.push_back({.name = name, .spread = spread, .lower = 0.01, .upper = 100});
  problem.sources.assign(runs.size(), "lab");
  problem.groups.assign(runs.size(), "lab");
  problem.residuals = [runs = std::move(runs)](const std::vector<double>& constants) {
    const Machine machine{constants[0], constants[1], constants[2]};
    std::vector<double> residuals;
    for (const Measurement& run : runs) residuals.push_back(std::log(machine.Seconds(run) / run.seconds));
    return residuals;
  };
  return problem;
}

struct RecoveryCase {
  const char* name;
  double noise;      // of the logarithm
  double tolerance;  // relative
};

TEST(Fit, RecoversTheConstantsOfAMachine) {
  // 200 runs with noise s pin the constants down to a few s / sqrt(200).
  const RecoveryCase kCases[] = {{"exact", 0, 0.002}, {"2% noise", 0.02, 0.02}, {"10% noise", 0.1, 0.1}};
  for (const RecoveryCase& c : kCases) {
    const Machine machine;
    // Priors so wide that they say nothing.
    const Fit fit = FitAll(ProblemOf(Runs(machine, c.noise, 200), /*spread=*/100), {});
    EXPECT_NEAR(fit.constants[0] / machine.inverse_rate, 1, c.tolerance) << c.name;
    EXPECT_NEAR(fit.constants[1] / machine.inverse_bandwidth, 1, c.tolerance) << c.name;
    EXPECT_NEAR(fit.constants[2] / machine.fixed_seconds, 1, c.tolerance) << c.name;
  }
}

TEST(CrossValidate, LinearFoldsAreNearTheExactOnes) {
  FitProblem problem = ProblemOf(Runs(Machine(), /*noise=*/0.05, 60), /*spread=*/100);
  for (size_t i = 0; i < problem.groups.size(); ++i) problem.groups[i] = i % 3 == 0 ? "one" : "other";
  const CrossValidation exact = CrossValidate(problem, {});
  FitOptions options;
  options.linear_folds = true;
  const CrossValidation linear = CrossValidate(problem, options);
  ASSERT_EQ(linear.folds.size(), 2U);
  for (size_t f = 0; f < 2; ++f) {
    // A fold moves constants by about 5% / sqrt(20); what is not linear in that is a tenth of it.
    for (size_t c = 0; c < 3; ++c)
      EXPECT_NEAR(linear.folds[f].fit.constants[c] / exact.folds[f].fit.constants[c], 1, 0.005);
    // What is left out is predicted, not linear.
    EXPECT_EQ(linear.folds[f].fit.residuals, problem.residuals(linear.folds[f].fit.constants));
  }
  EXPECT_EQ(linear.all.constants, exact.all.constants);
}

TEST(CrossValidate, SaysWhatNoFigureDependsOn) {
  FitProblem problem = ProblemOf(Runs(Machine(), 0.05, 20), 1);
  const auto residuals = problem.residuals;
  problem.constants.push_back({.name = "idle", .lower = 0.5, .upper = 2});
  problem.residuals = [residuals](std::vector<double> constants) {
    constants.pop_back();
    return residuals(constants);
  };
  EXPECT_EQ(CrossValidate(problem, {}).moves, (std::vector<bool>{true, true, true, false}));
}

TEST(Fit, AFigureThatScattersMoreSaysLess) {
  // Two figures of one constant that contradict each other: the rate 2, and with twice the spread the rate 1.
  FitProblem problem;
  problem.constants = {{.name = "rate", .start = 1.5, .spread = 100, .lower = 0.1, .upper = 10}};
  problem.sources = {"a", "b"};
  problem.groups = {"a", "b"};
  problem.residuals = [](const std::vector<double>& rate) {
    return std::vector<double>{std::log(rate[0] / 2), std::log(rate[0] / 1)};
  };
  problem.spreads = {0.1, 0.1};
  EXPECT_NEAR(FitAll(problem, {}).constants[0], std::sqrt(2), 0.01);
  problem.spreads = {0.1, 1};
  EXPECT_GT(FitAll(problem, {}).constants[0], 1.9);
}

TEST(Fit, PriorsStayWithoutData) {
  FitProblem problem = ProblemOf({}, /*spread=*/0.3);
  problem.constants[0].prior = 1.7;
  problem.constants[1] = {
      .name = "share", .scale = Scale::kLinear, .start = 0.2, .prior = 0.5, .spread = 0.1, .lower = 0, .upper = 1};
  const Fit fit = FitAll(problem, {});
  EXPECT_NEAR(fit.constants[0], 1.7, 1e-4);
  EXPECT_NEAR(fit.constants[1], 0.5, 1e-4);
}

TEST(Fit, WhatTheDataDoNotShowStaysWhereThePriorIs) {
  std::vector<Measurement> runs;
  for (const double work : {1.0, 2.0, 4.0}) runs.push_back({work, 0, 1.3 * work + 0.4});
  FitProblem problem = ProblemOf(runs, /*spread=*/0.5);
  problem.constants[1].prior = 3;
  problem.constants[2].prior = 0.4;
  const Fit fit = FitAll(problem, {});
  EXPECT_NEAR(fit.constants[1], 3, 1e-3);
  EXPECT_NEAR(fit.constants[0], 1.3, 0.03);
}

TEST(Fit, ATightPriorHolds) {
  const Machine machine;
  FitProblem problem = ProblemOf(Runs(machine, 0, 6), /*spread=*/0.0001);
  for (const double constant : FitAll(problem, {}).constants) EXPECT_NEAR(constant, 1, 0.001);
}

TEST(Fit, StaysWithinBounds) {
  FitProblem problem = ProblemOf(Runs(Machine(), 0, 50), /*spread=*/2);
  problem.constants[1].upper = 2;
  const Fit fit = FitAll(problem, {});
  EXPECT_LE(fit.constants[1], 2);
  EXPECT_NEAR(fit.constants[1], 2, 0.01);
}

TEST(Fit, OneWrongRowPullsLittle) {
  const Machine machine;
  std::vector<Measurement> runs = Runs(machine, 0.01, 40);
  runs[3].seconds *= 20;
  const Fit fit = FitAll(ProblemOf(runs, /*spread=*/2), {});
  EXPECT_NEAR(fit.constants[0] / machine.inverse_rate, 1, 0.1);
  EXPECT_NEAR(fit.constants[1] / machine.inverse_bandwidth, 1, 0.1);
}

// A source of 200 rows says 2, one of 6 rows says 1: by rows the large one has 97% of the say, by square roots 85%, by
// sources half.
TEST(Fit, ALargeSourceDoesNotDrownASmallOne) {
  FitProblem problem;
  problem.constants = {{.name = "ratio", .spread = 100, .lower = 0.1, .upper = 10}};
  for (int i = 0; i < 206; ++i) problem.sources.push_back(i < 200 ? "large" : "small");
  problem.groups = problem.sources;
  problem.residuals = [](const std::vector<double>& constants) {
    std::vector<double> residuals;
    for (int i = 0; i < 206; ++i) residuals.push_back(std::log(constants[0] / (i < 200 ? 1.05 : 1)));
    return residuals;
  };
  const auto share = [&problem](double power) {
    return std::log(FitAll(problem, {.source_power = power}).constants[0]) / std::log(1.05);
  };
  // The loss is close to a square this near the middle.
  EXPECT_NEAR(share(1), 200.0 / 206, 0.02);
  EXPECT_NEAR(share(0.5), std::sqrt(200.0) / (std::sqrt(200.0) + std::sqrt(6.0)), 0.02);
  EXPECT_NEAR(share(0), 0.5, 0.02);
}

TEST(CrossValidate, EveryFigureIsPredictedWithoutItsGroup) {
  FitProblem problem;
  problem.constants = {{.name = "ratio", .spread = 100, .lower = 0.1, .upper = 10}};
  problem.sources = {"a", "a", "b", "c"};
  problem.groups = problem.sources;
  const std::vector<double> measured = {2, 2, 2, 4};
  problem.residuals = [&measured](const std::vector<double>& constants) {
    std::vector<double> residuals;
    for (const double value : measured) residuals.push_back(std::log(constants[0] / value));
    return residuals;
  };
  const CrossValidation result = CrossValidate(problem, {.source_power = 0});
  ASSERT_EQ(result.folds.size(), 3U);
  EXPECT_EQ(result.folds[2].group, "c");
  // Without c all that is left says 2; without a the two others disagree by a factor of 2 and meet in the middle.
  EXPECT_NEAR(result.folds[2].fit.constants[0], 2, 0.01);
  EXPECT_NEAR(result.left_out[3], std::log(2.0 / 4), 0.01);
  EXPECT_NEAR(result.folds[0].fit.constants[0], std::sqrt(2.0 * 4), 0.05);
  EXPECT_NEAR(result.left_out[0], std::log(std::sqrt(8.0) / 2), 0.02);
  EXPECT_EQ(result.left_out[0], result.left_out[1]);
}

TEST(CrossValidate, ASingleGroupIsHeldAgainstThePriors) {
  FitProblem problem = ProblemOf({{1, 0, 2}}, /*spread=*/1);
  const CrossValidation result = CrossValidate(problem, {});
  EXPECT_THAT(result.folds, ElementsAre());
  EXPECT_NEAR(result.left_out[0], std::log((1.0 + 1.0) / 2), 1e-12);
}

TEST(IntervalOf, IsThatOfMeasuredOverPredicted) {
  // Predicted is 0% to 100% too long in even steps of the logarithm.
  std::vector<double> residuals;
  for (int i = 0; i <= 100; ++i) residuals.push_back(i / 100.0);
  const IntervalRatios interval = IntervalOf(residuals);
  EXPECT_NEAR(interval.low, std::exp(-0.95), 1e-12);
  EXPECT_NEAR(interval.high, std::exp(-0.05), 1e-12);
}

}  // namespace
}  // namespace sliceplan::calibration
