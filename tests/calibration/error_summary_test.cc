#include "server/calibration/error_summary.h"

#include <vector>

#include "gtest/gtest.h"

namespace sliceplan::calibration {
namespace {

TEST(ErrorSummary, NoFigures) {
  const ErrorSummary summary = Summarize({});
  EXPECT_EQ(summary.count, 0);
  EXPECT_EQ(summary.mean, 0);
  EXPECT_EQ(summary.interval_count, 0);
}

TEST(ErrorSummary, FourFigures) {
  // Errors +10%, -20%, 0 and +50%; three intervals, of which two hold the measurement.
  const ErrorSummary summary = Summarize({
      {.measured = 10, .predicted = 11, .low = 9.9, .high = 12.1},
      {.measured = 10, .predicted = 8, .low = 7.2, .high = 8.8},
      {.measured = 10, .predicted = 10, .low = 8, .high = 12},
      {.measured = 10, .predicted = 15},
  });
  EXPECT_EQ(summary.count, 4);
  EXPECT_NEAR(summary.mean, (0.1 + 0.2 + 0 + 0.5) / 4, 1e-12);
  EXPECT_NEAR(summary.median, (0.1 + 0.2) / 2, 1e-12);
  EXPECT_NEAR(summary.p90, 0.2 + 0.7 * (0.5 - 0.2), 1e-12);  // place 0.9 x 3 = 2.7
  EXPECT_NEAR(summary.worst, 0.5, 1e-12);
  EXPECT_NEAR(summary.bias, (0.1 - 0.2 + 0 + 0.5) / 4, 1e-12);
  EXPECT_EQ(summary.interval_count, 3);
  EXPECT_NEAR(summary.coverage, 2.0 / 3, 1e-12);
  EXPECT_NEAR(summary.median_half_width, 0.1, 1e-12);
}

struct QuantileCase {
  const char* name;
  std::vector<double> values;
  double share;
  double quantile;
};

TEST(Quantile, Table) {
  const QuantileCase kCases[] = {
      {"none", {}, 0.5, 0},
      {"one", {3}, 0.9, 3},
      {"middle of two", {1, 2}, 0.5, 1.5},
      {"unsorted", {5, 1, 3}, 0.5, 3},
      {"least", {5, 1, 3}, 0, 1},
      {"largest", {5, 1, 3}, 1, 5},
      {"between", {0, 10, 20, 30, 40}, 0.05, 2},
  };
  for (const QuantileCase& c : kCases) EXPECT_NEAR(Quantile(c.values, c.share), c.quantile, 1e-12) << c.name;
}

struct RankCase {
  const char* name;
  std::vector<double> left;
  std::vector<double> right;
  double correlation;
};

TEST(RankCorrelation, Table) {
  const RankCase kCases[] = {
      {"same order", {1, 2, 3}, {10, 100, 1000}, 1},
      {"reversed", {1, 2, 3}, {3, 2, 1}, -1},
      {"no order on one side", {1, 1, 1}, {1, 2, 3}, 1},
      {"nothing", {}, {}, 1},
      // 1 - 6 sum(d^2) / (n (n^2 - 1)), without ties.
      {"one swap of four", {1, 2, 3, 4}, {1, 3, 2, 4}, 1 - 6.0 * 2 / (4 * 15)},
      // Ranks 0, 1.5, 1.5, 3 against 0, 1, 2, 3: 4.5 / sqrt(4.5 x 5).
      {"a tie", {1, 2, 2, 3}, {1, 2, 3, 4}, 0.9486832980505138},
  };
  for (const RankCase& c : kCases) EXPECT_NEAR(RankCorrelation(c.left, c.right), c.correlation, 1e-12) << c.name;
}

}  // namespace
}  // namespace sliceplan::calibration
