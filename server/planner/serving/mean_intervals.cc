#include "server/planner/serving/mean_intervals.h"

#include <algorithm>
#include <optional>

namespace sliceplan::planner {
namespace {

struct Ratios {
  double low = 0;
  double high = 0;
  bool known() const { return low > 0 && high > 0; }
};

void SetInterval(double low, double high, Latency& latency) {
  latency.mean_p05_seconds = low;
  latency.mean_p95_seconds = high;
}

// `floor`: what physics allows.
void Scale(const Ratios& ratios, std::optional<Latency>& latency, double floor = 0) {
  if (!latency || latency->mean_seconds <= 0 || !ratios.known()) return;
  const double low = std::max(ratios.low * latency->mean_seconds, std::min(floor, latency->mean_seconds));
  SetInterval(low, ratios.high * latency->mean_seconds, *latency);
}

Ratios TokenOf(const StepTime& step) {
  if (!step.p05_seconds || step.expected_seconds <= 0) return {};
  return {*step.p05_seconds / step.expected_seconds, *step.p95_seconds / step.expected_seconds};
}

// A batch that starts together waits for its own prompts alone.
Ratios FirstTokenOf(const roofline::ServingEfficiency& runtime, ServingLoadKind load) {
  const bool waits = load == ServingLoadKind::kConcurrency || load == ServingLoadKind::kRate;
  if (waits && runtime.first_token_low_ratio > 0)
    return {runtime.first_token_low_ratio, runtime.first_token_high_ratio};
  return {runtime.prefill_low_ratio, runtime.prefill_high_ratio};
}

}  // namespace

void AddMeanIntervals(const roofline::ServingEfficiency& runtime, ServingLoadKind load, double place_wait_seconds,
                      ServingEstimate& estimate) {
  const Ratios token = TokenOf(estimate.decode.time);
  const Ratios first = FirstTokenOf(runtime, load);
  // Nothing is written before one prompt was read at peak rates, and its cache handed over.
  const double handed_over = estimate.disaggregation ? estimate.disaggregation->kv_transfer_seconds : 0;
  const double floor = estimate.prefill.time.roofline_lower_seconds + handed_over;
  Scale(first, estimate.ttft, floor);
  Scale(token, estimate.tpot);
  Scale(token, estimate.inter_token_latency);
  if (!estimate.end_to_end || !token.known() || (estimate.ttft && !first.known())) return;
  Latency& whole = *estimate.end_to_end;
  if (whole.mean_seconds <= 0) return;
  const double ttft = estimate.ttft ? std::min(estimate.ttft->mean_seconds, whole.mean_seconds) : 0;
  const double place_wait = std::min(place_wait_seconds, ttft);
  const double reading = ttft - place_wait;
  const double writing = whole.mean_seconds - ttft;
  const double least_reading = estimate.ttft ? std::min(std::max(first.low * reading, floor), reading) : 0;
  const double service = reading + writing;
  const Ratios ratios{(least_reading + token.low * writing) / service,
                      (first.high * reading + token.high * writing) / service};
  if (place_wait > 0) {
    SetInterval(least_reading + ratios.low * place_wait, first.high * reading + ratios.high * place_wait,
                *estimate.ttft);
  }
  // Everybody before a place is given has the same service.
  Scale(ratios, estimate.end_to_end);
  Scale(ratios, estimate.normalized_time_per_output_token);
  // What arrives is served whatever it takes.
  if (load == ServingLoadKind::kRate || !ratios.known()) return;
  ServingThroughput& throughput = estimate.throughput;
  throughput.output_tokens_per_second_p05 = throughput.output_tokens_per_second / ratios.high;
  throughput.output_tokens_per_second_p95 = throughput.output_tokens_per_second / ratios.low;
}

}  // namespace sliceplan::planner
