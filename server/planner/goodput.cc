#include "server/planner/goodput.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/planner/budget.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

// Below, a job is told that it does not finish rather than given a wall time of ages.
constexpr double kHopelessRatio = 1e-6;
// Keeps the time that a hopeless job would need finite.
constexpr double kLeastRatio = 1e-12;
// Below, the reply warns.
constexpr double kPoorRatio = 0.5;
// Below, s / (e^s - 1) is 1 - s / 2 to all digits that matter.
constexpr double kSmallExponent = 1e-5;

// s / (e^s - 1): of an attempt at a segment of s mean times between failures, the share that succeeds.
double SuccessShare(double s) {
  if (s < kSmallExponent) return 1 - s / 2;
  return s * std::exp(-s) / -std::expm1(-s);
}

}  // namespace

double OptimalCheckpointInterval(double write_seconds, double mean_seconds_between_failures) {
  const double half_ratio = write_seconds / (2 * mean_seconds_between_failures);
  if (half_ratio >= 1) return mean_seconds_between_failures;
  const double root = std::sqrt(half_ratio);
  // sqrt(2 d M) = 2 M sqrt(d / 2M).
  return 2 * mean_seconds_between_failures * root * (1 + root / 3 + half_ratio / 9) - write_seconds;
}

double InterruptionsPerSecond(const Reliability& reliability, int64_t chip_count) {
  double per_second = reliability.preemptions_per_hour / kSecondsPerHour;
  if (reliability.mean_seconds_between_failures_per_chip) {
    per_second += static_cast<double>(chip_count) / *reliability.mean_seconds_between_failures_per_chip;
  }
  return per_second;
}

double GoodputRatio(double interval_seconds, double write_seconds, double restart_seconds,
                    double interruptions_per_second) {
  const double segment_seconds = interval_seconds + write_seconds;
  if (segment_seconds <= 0) return std::exp(-restart_seconds * interruptions_per_second);
  return interval_seconds / segment_seconds * SuccessShare(segment_seconds * interruptions_per_second) *
         std::exp(-restart_seconds * interruptions_per_second);
}

Goodput GoodputOf(const Reliability& reliability, int64_t chip_count, double step_seconds,
                  std::optional<double> time_to_train_seconds, std::vector<std::string>& warnings) {
  Goodput goodput;
  const double rate = InterruptionsPerSecond(reliability, chip_count);
  if (rate <= 0) {
    goodput.wall_seconds = time_to_train_seconds;
    return goodput;
  }
  const double write = reliability.checkpoint_write_seconds;
  const double restart = reliability.restart_seconds;
  const auto possible = [&](double seconds) {
    return std::max(time_to_train_seconds ? std::min(seconds, *time_to_train_seconds) : seconds, step_seconds);
  };
  const double optimum = possible(OptimalCheckpointInterval(write, 1 / rate));
  const std::optional<double>& asked = reliability.checkpoint_interval_seconds;
  const double interval = asked ? possible(*asked) : optimum;

  goodput.ratio = GoodputRatio(interval, write, restart, rate);
  goodput.optimal_checkpoint_interval_seconds = optimum;
  goodput.checkpoint_interval_seconds = interval;
  goodput.failures_per_day = kSecondsPerDay * rate;
  goodput.checkpoint_seconds_per_day = kSecondsPerDay * goodput.ratio * write / interval;
  goodput.restart_seconds_per_day = kSecondsPerDay * -std::expm1(-restart * rate);
  goodput.lost_work_seconds_per_day =
      kSecondsPerDay * std::exp(-restart * rate) * (1 - SuccessShare((interval + write) * rate));

  if (goodput.ratio < kHopelessRatio) {
    goodput.finishes = false;
    warnings.push_back(absl::StrCat("Interruptions every ", SecondsWords(1 / rate),
                                    " leave no time to train: a step takes ", SecondsWords(step_seconds),
                                    ", a checkpoint ", SecondsWords(write), " and a restart ", SecondsWords(restart),
                                    "."));
    return goodput;
  }
  if (time_to_train_seconds) goodput.wall_seconds = *time_to_train_seconds / goodput.ratio;
  if (goodput.ratio < kPoorRatio) {
    warnings.push_back(absl::StrCat("Interruptions every ", SecondsWords(1 / rate), " leave only ",
                                    PercentWords(goodput.ratio), " of the time for training."));
  }
  return goodput;
}

double NeededSeconds(const Goodput& goodput, double time_to_train_seconds) {
  return time_to_train_seconds / std::max(goodput.ratio, kLeastRatio);
}

}  // namespace sliceplan::planner
