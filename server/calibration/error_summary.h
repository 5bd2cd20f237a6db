// How far predictions are from measurements.
#ifndef SLICEPLAN_SERVER_CALIBRATION_ERROR_SUMMARY_H_
#define SLICEPLAN_SERVER_CALIBRATION_ERROR_SUMMARY_H_

#include <cstdint>
#include <vector>

namespace sliceplan::calibration {

// One figure. All are above 0, in one unit; `low` and `high` are both 0 without an interval.
struct Compared {
  double measured = 0;
  double predicted = 0;
  double low = 0;
  double high = 0;
};

// predicted / measured - 1.
double ErrorOf(const Compared& compared);

// Of at least one figure. Quantiles interpolate between order statistics.
struct ErrorSummary {
  int64_t count = 0;
  double mean = 0;               // of |error|
  double median = 0;             // of |error|
  double p90 = 0;                // of |error|
  double worst = 0;              // of |error|
  double bias = 0;               // mean error: above 0 predicts too long
  int64_t interval_count = 0;    // figures with an interval
  double coverage = 0;           // share of those that lie in theirs
  double median_half_width = 0;  // of (high - low) / 2 / predicted
};

// All zero for no figures.
ErrorSummary Summarize(const std::vector<Compared>& figures);

// Linear interpolation between order statistics; `share` 0 to 1. 0 for no values.
double Quantile(std::vector<double> values, double share);

// Spearman's: Pearson's correlation of mid-ranks. 1 where either side has no order (fewer than two different values).
double RankCorrelation(const std::vector<double>& left, const std::vector<double>& right);

}  // namespace sliceplan::calibration

#endif  // SLICEPLAN_SERVER_CALIBRATION_ERROR_SUMMARY_H_
