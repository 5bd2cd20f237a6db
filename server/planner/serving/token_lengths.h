// Lengths of prompts and outputs: integers from 1 to 2^30, drawn by inverse CDF.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_TOKEN_LENGTHS_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_TOKEN_LENGTHS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace sliceplan::planner {

struct TokenBin {
  int64_t tokens = 1;  // 1 to 2^30
  double weight = 1;   // above 0; only ratios matter
};

class TokenLengths {
 public:
  // All requests the same; a fraction is met by mixing the two integers beside it. `mean_tokens` 1 to 2^30.
  static TokenLengths Constant(double mean_tokens);
  // Bins in any order; equal lengths are added up. Requires at least one bin.
  static TokenLengths Histogram(absl::Span<const TokenBin> bins);
  // Log-normal, rounded to integers and at least 1, with the mean as asked after rounding. The spread is that of the
  // unrounded lengths. `mean_tokens` 1 to 2^30, `coefficient_of_variation` (standard deviation / mean) 0 to 100.
  static TokenLengths LogNormal(double mean_tokens, double coefficient_of_variation);

  double Mean() const { return mean_; }
  // Variance / mean^2, 0 when all are the same.
  double SquaredVariation() const { return squared_variation_; }
  // The smallest length that a share `p` of all lengths does not exceed, 0 < p < 1.
  int64_t Quantile(double p) const;

 private:
  TokenLengths() = default;

  double mean_ = 1;
  double squared_variation_ = 0;
  double log_median_ = 0;           // of a log-normal distribution
  double log_spread_ = 0;           // above 0 only for a log-normal one
  std::vector<int64_t> tokens_;     // otherwise: lengths, ascending,
  std::vector<double> cumulative_;  // and the share of requests up to each
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_TOKEN_LENGTHS_H_
