#include "server/planner/serving/load_result.h"

#include <algorithm>
#include <cmath>

#include "server/planner/serving/closed_loop.h"
#include "server/planner/serving/serving_outcome.h"

namespace sliceplan::planner {

void Calibrate(const ServingJob& job, const PlannedPool& pool, bool reads_elsewhere, double share,
               SystemResult& result) {
  const auto scale = [](double mean, Latency& latency) {
    if (latency.mean_seconds <= 0) return;
    const double ratio = mean / latency.mean_seconds;
    latency.mean_seconds *= ratio;
    latency.p50_seconds *= ratio;
    latency.p95_seconds *= ratio;
    latency.p99_seconds *= ratio;
  };
  if (job.workload.load == ServingLoadKind::kRate || reads_elsewhere) {
    // Taking a request in and sending its first token out.
    const double fixed = pool.plan->pool().efficiency->request_seconds;
    for (Latency* latency : {&result.ttft, &result.end_to_end}) {
      scale(latency->mean_seconds + fixed, *latency);
    }
    return;
  }
  // Users are spread over replicas; with fewer of them than replicas some stand idle.
  const double count =
      std::min(static_cast<double>(pool.replica_count), std::max(1.0, share * job.workload.concurrency));
  const double users = std::max(1.0, share * job.workload.concurrency / count);
  const double output = job.workload.output.Mean();
  const double held = job.workload.prompt.Mean() + pool.plan->pool().efficiency->cache_output_share * output;
  const ClosedLoop loop =
      ClosedLoopOf(job, *pool.plan, users, pool.plan->memory().MaxBatch(static_cast<int64_t>(std::ceil(held))));
  scale(loop.ttft_seconds, result.ttft);
  scale(loop.tpot_seconds, result.tpot);
  scale(loop.tpot_seconds, result.inter_token);
  scale(loop.ttft_seconds + (output - 1) * loop.tpot_seconds, result.end_to_end);
  scale((loop.ttft_seconds + (output - 1) * loop.tpot_seconds) / output, result.normalized);
  result.requests_per_second = count * loop.requests_per_second;
  result.output_tokens_per_second = result.requests_per_second * output;
  result.input_tokens_per_second = result.requests_per_second * job.workload.prompt.Mean();
  result.mean_batch_size = loop.batch_size;
}

void AddWeighted(const SystemResult& result, double share, SystemResult& all) {
  const auto add = [share](const Latency& from, Latency& to) {
    to.mean_seconds += share * from.mean_seconds;
    to.p50_seconds += share * from.p50_seconds;
    to.p95_seconds += share * from.p95_seconds;
    to.p99_seconds += share * from.p99_seconds;
  };
  add(result.ttft, all.ttft);
  add(result.tpot, all.tpot);
  add(result.inter_token, all.inter_token);
  add(result.end_to_end, all.end_to_end);
  add(result.normalized, all.normalized);
  all.requests_per_second += result.requests_per_second;
  all.output_tokens_per_second += result.output_tokens_per_second;
  all.input_tokens_per_second += result.input_tokens_per_second;
  all.goodput_requests_per_second += result.goodput_requests_per_second;
  all.queueing_share += share * result.queueing_share;
  all.preemptions += result.preemptions;
}

std::optional<int64_t> ReplicasFor(const ServingJob& job, const PlannedPool& pool, const BatchPoint& floor,
                                   const std::function<bool()>& cancelled, bool& was_cancelled) {
  constexpr int64_t kMostReplicas = int64_t{1} << 20;
  // Beyond this many times what the rate alone needs, replicas stand idle and more of them change nothing.
  constexpr int64_t kMostIdle = 32;
  // The mean field may be too strict by this: the replay decides.
  constexpr double kMeanFieldError = 0.7;
  const double sustained = SustainedRate(job, pool) / static_cast<double>(pool.replica_count);
  if (sustained <= 0) return std::nullopt;
  const double needed = job.workload.requests_per_second / sustained;
  const double least = std::ceil(job.slo.Any() ? kMeanFieldError * needed : needed / kTargetUtilization);
  if (least > static_cast<double>(kMostReplicas)) return std::nullopt;
  int64_t low = std::max<int64_t>(1, static_cast<int64_t>(least));
  if (!job.slo.Any()) return low;
  if (!Meets(floor, job.slo)) return std::nullopt;  // no number of replicas helps
  const auto meets = [&](int64_t count) {
    PlannedPool more = pool;
    more.replica_count = count;
    SystemResult result = ReplayLoad(job, more, nullptr, 1, cancelled);
    was_cancelled |= result.cancelled;
    if (job.mode == EstimationMode::kCalibrated) Calibrate(job, more, false, 1, result);
    return !result.unstable && MeetsTargets(result, job.slo);
  };
  const int64_t most = std::min(low * kMostIdle, kMostReplicas);
  int64_t high = low;
  while (!was_cancelled && !meets(high)) {
    if (high == most) return std::nullopt;
    low = high + 1;
    high = std::min(high + std::max<int64_t>(1, high / 2), most);
  }
  while (!was_cancelled && low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (meets(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (was_cancelled) return std::nullopt;
  return high;
}

}  // namespace sliceplan::planner
