// Means and percentiles of latencies.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_LATENCY_STATS_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_LATENCY_STATS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sliceplan::planner {

// All 0 when nothing was measured.
struct LatencySummary {
  double mean_seconds = 0;
  double p50_seconds = 0;
  double p95_seconds = 0;
  double p99_seconds = 0;
};

// The p-th percentile is the smallest value that a share p of all does not exceed. Reorders `seconds`.
LatencySummary Summarize(std::vector<double>& seconds);

// Values with weights, in bins less than 1% wide: a percentile is the mean of its bin, so exact when all values of the
// bin are equal. Values outside 2^-40 to 2^30 seconds share the outermost bins.
class WeightedSeconds {
 public:
  WeightedSeconds();

  // `seconds` and `weight` at least 0, finite.
  void Add(double seconds, double weight);
  // Everything that `other` holds, its seconds times `ratio`, its weight in all `weight`.
  void Add(const WeightedSeconds& other, double ratio, double weight);
  LatencySummary Summarize() const;
  double total_weight() const { return weight_; }

 private:
  struct Bin {
    double weight = 0;
    double sum = 0;
  };

  double Percentile(double p) const;

  std::vector<Bin> bins_;
  double weight_ = 0;
  double sum_ = 0;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_LATENCY_STATS_H_
