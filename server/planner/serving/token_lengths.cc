#include "server/planner/serving/token_lengths.h"

#include <algorithm>
#include <cmath>

#include "server/planner/serving/random.h"

namespace sliceplan::planner {
namespace {

constexpr double kLongest = 1 << 30;
// Up to here lengths are counted one by one; beyond, rounding to the nearest integer keeps the mean.
constexpr int kCounted = 64;
// Halvings of the bracket of the log median: from e^64 to below a part in 10^12.
constexpr int kHalvings = 106;

// Mean of max(1, round(X)), log X normal: 1 + the sum over j >= 2 of P(X >= j - 1/2), beyond kCounted as the integral
// E[(X - kCounted)+] (Black-Scholes' call).
double RoundedMean(double log_median, double spread) {
  double mean = 1;
  for (int j = 2; j <= kCounted; ++j) {
    mean += NormalProbability((log_median - std::log(j - 0.5)) / spread);
  }
  const double d = (log_median - std::log(static_cast<double>(kCounted))) / spread;
  return mean + std::exp(log_median + spread * spread / 2) * NormalProbability(d + spread) -
         kCounted * NormalProbability(d);
}

}  // namespace

TokenLengths TokenLengths::Constant(double mean_tokens) {
  const double below = std::floor(mean_tokens);
  const double share_above = mean_tokens - below;
  const TokenBin bins[] = {{static_cast<int64_t>(below), 1 - share_above},
                           {static_cast<int64_t>(below) + 1, share_above}};
  return Histogram(absl::MakeConstSpan(bins, share_above > 0 ? 2 : 1));
}

TokenLengths TokenLengths::Histogram(absl::Span<const TokenBin> bins) {
  std::vector<TokenBin> sorted(bins.begin(), bins.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const TokenBin& left, const TokenBin& right) { return left.tokens < right.tokens; });
  double total = 0;
  double sum = 0;
  for (const TokenBin& bin : sorted) {
    total += bin.weight;
    sum += bin.weight * static_cast<double>(bin.tokens);
  }
  TokenLengths lengths;
  lengths.mean_ = sum / total;
  double so_far = 0;
  double squares = 0;
  for (const TokenBin& bin : sorted) {
    so_far += bin.weight;
    const double off_mean = static_cast<double>(bin.tokens) / lengths.mean_ - 1;
    squares += bin.weight * off_mean * off_mean;
    if (lengths.tokens_.empty() || lengths.tokens_.back() != bin.tokens) {
      lengths.tokens_.push_back(bin.tokens);
      lengths.cumulative_.push_back(0);
    }
    lengths.cumulative_.back() = so_far / total;
  }
  lengths.squared_variation_ = lengths.tokens_.size() == 1 ? 0 : squares / total;
  return lengths;
}

TokenLengths TokenLengths::LogNormal(double mean_tokens, double coefficient_of_variation) {
  if (coefficient_of_variation <= 0 || mean_tokens <= 1) return Constant(mean_tokens);
  TokenLengths lengths;
  lengths.mean_ = mean_tokens;
  lengths.squared_variation_ = coefficient_of_variation * coefficient_of_variation;
  lengths.log_spread_ = std::sqrt(std::log1p(lengths.squared_variation_));
  // Without rounding up to 1.
  double high = std::log(mean_tokens) - lengths.log_spread_ * lengths.log_spread_ / 2;
  constexpr double kClose = 1e-12;
  if (std::abs(RoundedMean(high, lengths.log_spread_) / mean_tokens - 1) > kClose) {
    high += 1;
    double low = high - 64;
    for (int i = 0; i < kHalvings && high - low > kClose; ++i) {
      const double middle = (low + high) / 2;
      (RoundedMean(middle, lengths.log_spread_) < mean_tokens ? low : high) = middle;
    }
  }
  lengths.log_median_ = high;
  return lengths;
}

int64_t TokenLengths::Quantile(double p) const {
  if (log_spread_ > 0) {
    const double tokens = std::exp(log_median_ + log_spread_ * NormalQuantile(p));
    return static_cast<int64_t>(std::floor(std::clamp(tokens + 0.5, 1.0, kLongest)));
  }
  const size_t index = std::lower_bound(cumulative_.begin(), cumulative_.end(), p) - cumulative_.begin();
  return tokens_[std::min(index, tokens_.size() - 1)];
}

}  // namespace sliceplan::planner
