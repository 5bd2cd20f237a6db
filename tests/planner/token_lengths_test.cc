#include "server/planner/serving/token_lengths.h"

#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"
#include "server/planner/serving/random.h"

namespace sliceplan::planner {
namespace {

constexpr TokenBin kBins[] = {{1000, 1}, {10, 2}, {1000, 1}, {1, 4}};

struct LengthsCase {
  const char* name;
  TokenLengths lengths;
  double mean;
  double c2;
  double tolerance;  // of the mean over evenly spaced quantiles: they miss some of a long tail
};

TEST(TokenLengthsTest, MeanAndSpreadAreAsAsked) {
  const LengthsCase cases[] = {
      {"constant", TokenLengths::Constant(100), 100, 0, 1e-12},
      {"between_integers", TokenLengths::Constant(7.25), 7.25, 0.25 * 0.75 / (7.25 * 7.25), 1e-4},
      {"histogram", TokenLengths::Histogram(kBins), 253, (4 * 1.0 + 2 * 100 + 2 * 1e6) / 8 / (253.0 * 253) - 1, 1e-4},
      {"log_normal", TokenLengths::LogNormal(500, 1), 500, 1, 1e-3},
      {"narrow", TokenLengths::LogNormal(500, 0.1), 500, 0.01, 1e-4},
      {"short", TokenLengths::LogNormal(1.5, 0.7), 1.5, 0.49, 1e-3},
      {"short_and_wide", TokenLengths::LogNormal(3, 2), 3, 4, 1e-2},
      {"no_spread", TokenLengths::LogNormal(12, 0), 12, 0, 1e-12},
      {"ones", TokenLengths::LogNormal(1, 3), 1, 0, 1e-12},
  };
  for (const LengthsCase& test : cases) {
    SCOPED_TRACE(test.name);
    EXPECT_NEAR(test.lengths.Mean(), test.mean, 1e-9);
    EXPECT_NEAR(test.lengths.SquaredVariation(), test.c2, 1e-9);
    constexpr int kPoints = 200'000;
    double sum = 0;
    int64_t before = 1;
    for (int i = 0; i < kPoints; ++i) {
      const int64_t tokens = test.lengths.Quantile((i + 0.5) / kPoints);
      ASSERT_GE(tokens, before);
      before = tokens;
      sum += static_cast<double>(tokens);
    }
    EXPECT_NEAR(sum / kPoints / test.mean, 1, test.tolerance);
  }
}

TEST(TokenLengthsTest, StaysInRangeAtExtremes) {
  const TokenLengths lengths[] = {TokenLengths::LogNormal(1 << 30, 100), TokenLengths::LogNormal(1.01, 100),
                                  TokenLengths::Constant(1 << 30)};
  for (const TokenLengths& each : lengths) {
    for (const double p : {1e-16, 0.5, 1 - 1e-16}) {
      EXPECT_GE(each.Quantile(p), 1);
      EXPECT_LE(each.Quantile(p), 1 << 30);
    }
  }
}

TEST(RandomTest, NormalQuantileInvertsTheDistribution) {
  for (int i = -64; i <= 64; ++i) {
    const double x = i / 8.0;
    // 1e-9 is the approximation's; above 0 the probability itself runs out of digits.
    const double p = NormalProbability(x);
    if (p >= 1) continue;
    EXPECT_NEAR(NormalQuantile(p), x, 2e-8 + 1e-16 / (1 - p) * 10) << x;
  }
}

TEST(RandomTest, MomentsAreTheDistributions) {
  for (const double c2 : {0.05, 0.5, 1.0, 3.0, 20.0}) {
    SCOPED_TRACE(c2);
    constexpr int kDraws = 400'000;
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      Random random(7, static_cast<uint64_t>(i));
      const double x = random.Gamma(c2);
      ASSERT_GE(x, 0);
      sum += x;
      squares += x * x;
    }
    const double mean = sum / kDraws;
    EXPECT_NEAR(mean, 1, 5 * std::sqrt(c2 / kDraws));
    EXPECT_NEAR(squares / kDraws - mean * mean, c2, 0.05 * c2);
  }
}

TEST(RandomTest, StreamsAreTheirOwn) {
  // One stream for each seed and index.
  Random first(1, 0);
  Random again(1, 0);
  Random other(1, 1);
  const double u = first.Uniform();
  EXPECT_EQ(u, again.Uniform());
  EXPECT_NE(u, other.Uniform());
  EXPECT_GT(u, 0);
  EXPECT_LT(u, 1);
}

}  // namespace
}  // namespace sliceplan::planner
