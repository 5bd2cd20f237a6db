#include "server/planner/serving/replay_tally.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sliceplan::planner {
namespace {

// For the digits that a long sum loses.
constexpr double kRoom = 1 + 1e-9;

// Of `count` values the p-th percentile is that of rank ceil(p x count): as many may be larger.
int64_t MostAbove(double p, int64_t count) {
  return count - static_cast<int64_t>(std::ceil(p * static_cast<double>(count)));
}

}  // namespace

BarWatch::BarWatch(const LatencyBar& bar, int64_t count)
    : mean_seconds_left_(kRoom * bar.mean_seconds * static_cast<double>(count)),
      percentiles_{{{bar.p50_seconds, MostAbove(0.50, count)},
                    {bar.p95_seconds, MostAbove(0.95, count)},
                    {bar.p99_seconds, MostAbove(0.99, count)}}} {}

void BarWatch::Add(double seconds) {
  mean_seconds_left_ -= seconds;
  is_missed_ |= mean_seconds_left_ < 0;
  for (Percentile& percentile : percentiles_) {
    if (seconds > percentile.limit_seconds) is_missed_ |= --percentile.left < 0;
  }
}

void ReplayTally::Record(const ReplayRequest& request, double now) {
  const double ttft = request.first_token - request.arrival;
  const double end_to_end = now - request.arrival;
  const double output = static_cast<double>(request.output);
  ttft_.push_back(ttft);
  end_to_end_.push_back(end_to_end);
  normalized_.push_back(end_to_end / output);
  ttft_bar_.Add(ttft);
  all_bar_.Add(end_to_end);
  queueing_seconds_ += request.first_start - request.arrival;
  bool is_within = ttft <= limits_.ttft_seconds && end_to_end <= limits_.end_to_end_seconds;
  if (request.output > 1) {
    tpot_.push_back((now - request.first_token) / (output - 1));
    tpot_bar_.Add(tpot_.back());
    is_within = is_within && tpot_.back() <= limits_.tpot_seconds;
  }
  if (is_within) ++within_limits_;
}

void ReplayTally::FillLatencies(ReplayResult& result) {
  result.measured_requests = static_cast<int64_t>(ttft_.size());
  result.ttft = Summarize(ttft_);
  result.tpot = Summarize(tpot_);
  result.end_to_end = Summarize(end_to_end_);
  result.normalized_time_per_output_token = Summarize(normalized_);
  result.inter_token = gaps_.Summarize();
  if (result.ttft.mean_seconds > 0) {
    const double measured = static_cast<double>(result.measured_requests);
    result.queueing_share_of_ttft = queueing_seconds_ / (result.ttft.mean_seconds * measured);
  }
}

LatencySamples ReplayTally::TakeSamples() {
  return {std::move(ttft_), std::move(tpot_), std::move(end_to_end_), std::move(normalized_), std::move(gaps_)};
}

double ReplayTally::ShareWithinLimits() const {
  return ttft_.empty() ? 0 : static_cast<double>(within_limits_) / static_cast<double>(ttft_.size());
}

void FillRates(const Output& start, const Output& stop, double replicas, double prefill_replicas,
               ReplayResult& result) {
  const double seconds = stop.seconds - start.seconds;
  if (seconds <= 0) return;
  result.requests_per_second = static_cast<double>(stop.requests - start.requests) / seconds;
  result.output_tokens_per_second = (stop.output_tokens - start.output_tokens) / seconds;
  result.input_tokens_per_second = (stop.input_tokens - start.input_tokens) / seconds;
  const double busy = stop.main.busy_seconds - start.main.busy_seconds;
  const int64_t steps = stop.main.steps - start.main.steps;
  result.mean_batch_size = (stop.main.resident_seconds - start.main.resident_seconds) / (seconds * replicas);
  // Steps count when they end, so that the last may have begun before.
  result.busy_ratio = std::min(1.0, busy / (seconds * replicas));
  if (steps > 0) result.mean_step_seconds = busy / static_cast<double>(steps);
  if (prefill_replicas > 0) {
    const double prefill_busy = stop.prefill_busy_seconds - start.prefill_busy_seconds;
    result.prefill_busy_ratio = std::min(1.0, prefill_busy / (seconds * prefill_replicas));
  }
}

}  // namespace sliceplan::planner
