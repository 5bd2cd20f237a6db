#include "server/planner/serving/latency_stats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace sliceplan::planner {
namespace {

// Bins split an octave in 2^kSplitBits, found from the bits of the double: 11 of exponent, 52 of fraction.
constexpr int kSplitBits = 7;
constexpr int kFractionBits = 52;
constexpr int kExponentBias = 1023;
constexpr int64_t kFirstBin = int64_t{kExponentBias - 40} << kSplitBits;
constexpr int64_t kBins = int64_t{70} << kSplitBits;

size_t BinOf(double seconds) {
  uint64_t bits = 0;
  std::memcpy(&bits, &seconds, sizeof bits);
  const int64_t bin = static_cast<int64_t>(bits >> (kFractionBits - kSplitBits)) - kFirstBin;
  return static_cast<size_t>(std::clamp<int64_t>(bin, 0, kBins - 1));
}

// Everything before `from` is in place already.
double PercentileOf(std::vector<double>& seconds, double p, size_t& from) {
  const double rank = std::ceil(p * static_cast<double>(seconds.size()));
  const size_t index = std::min(seconds.size() - 1, static_cast<size_t>(std::max(rank, 1.0)) - 1);
  std::nth_element(seconds.begin() + static_cast<std::ptrdiff_t>(from),
                   seconds.begin() + static_cast<std::ptrdiff_t>(index), seconds.end());
  from = index;
  return seconds[index];
}

}  // namespace

LatencySummary Summarize(std::vector<double>& seconds) {
  LatencySummary summary;
  if (seconds.empty()) return summary;
  summary.mean_seconds = std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
  size_t from = 0;
  summary.p50_seconds = PercentileOf(seconds, 0.50, from);
  summary.p95_seconds = PercentileOf(seconds, 0.95, from);
  summary.p99_seconds = PercentileOf(seconds, 0.99, from);
  return summary;
}

WeightedSeconds::WeightedSeconds() : bins_(kBins) {}

void WeightedSeconds::Add(double seconds, double weight) {
  Bin& bin = bins_[BinOf(seconds)];
  bin.weight += weight;
  bin.sum += weight * seconds;
  weight_ += weight;
  sum_ += weight * seconds;
}

void WeightedSeconds::Add(const WeightedSeconds& other, double ratio, double weight) {
  if (other.weight_ <= 0) return;
  for (const Bin& bin : other.bins_) {
    if (bin.weight > 0) Add(ratio * bin.sum / bin.weight, weight * bin.weight / other.weight_);
  }
}

double WeightedSeconds::Percentile(double p) const {
  double so_far = 0;
  double value = 0;
  for (const Bin& bin : bins_) {
    if (bin.weight <= 0) continue;
    so_far += bin.weight;
    value = bin.sum / bin.weight;
    if (so_far >= p * weight_) break;
  }
  return value;
}

LatencySummary WeightedSeconds::Summarize() const {
  LatencySummary summary;
  if (weight_ <= 0) return summary;
  summary.mean_seconds = sum_ / weight_;
  summary.p50_seconds = Percentile(0.50);
  summary.p95_seconds = Percentile(0.95);
  summary.p99_seconds = Percentile(0.99);
  return summary;
}

}  // namespace sliceplan::planner
