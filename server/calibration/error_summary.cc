#include "server/calibration/error_summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sliceplan::calibration {
namespace {

// 0 for the smallest value; equal values share the middle of their ranks.
std::vector<double> MidRanks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&values](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = 0.5 * static_cast<double>(begin + end - 1);
    begin = end;
  }
  return ranks;
}

}  // namespace

double ErrorOf(const Compared& compared) { return compared.predicted / compared.measured - 1; }

double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  if (below + 1 >= values.size()) return values.back();
  return values[below] + (place - static_cast<double>(below)) * (values[below + 1] - values[below]);
}

ErrorSummary Summarize(const std::vector<Compared>& figures) {
  ErrorSummary summary;
  if (figures.empty()) return summary;
  std::vector<double> errors;
  std::vector<double> half_widths;
  int64_t held = 0;
  double sum = 0;
  for (const Compared& figure : figures) {
    const double error = ErrorOf(figure);
    sum += error;
    errors.push_back(std::abs(error));
    if (figure.high <= 0) continue;
    half_widths.push_back((figure.high - figure.low) / 2 / figure.predicted);
    if (figure.low <= figure.measured && figure.measured <= figure.high) ++held;
  }
  const auto count = static_cast<double>(figures.size());
  summary.count = static_cast<int64_t>(figures.size());
  summary.bias = sum / count;
  summary.mean = std::accumulate(errors.begin(), errors.end(), 0.0) / count;
  summary.median = Quantile(errors, 0.5);
  summary.p90 = Quantile(errors, 0.9);
  summary.worst = *std::max_element(errors.begin(), errors.end());
  summary.interval_count = static_cast<int64_t>(half_widths.size());
  if (!half_widths.empty()) {
    summary.coverage = static_cast<double>(held) / static_cast<double>(half_widths.size());
    summary.median_half_width = Quantile(half_widths, 0.5);
  }
  return summary;
}

double RankCorrelation(const std::vector<double>& left, const std::vector<double>& right) {
  const std::vector<double> a = MidRanks(left);
  const std::vector<double> b = MidRanks(right);
  const double middle = 0.5 * static_cast<double>(a.size()) - 0.5;
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - middle) * (b[i] - middle);
    aa += (a[i] - middle) * (a[i] - middle);
    bb += (b[i] - middle) * (b[i] - middle);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 1;
}

}  // namespace sliceplan::calibration
