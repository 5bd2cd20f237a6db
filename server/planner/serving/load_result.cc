#include "server/planner/serving/load_result.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sliceplan::planner {

SharedLoop SharedLoopOf(const ServingJob& job, const PlannedPool& pool, double share) {
  const double all_users = share * job.workload.concurrency;
  SharedLoop loop;
  loop.replica_count = std::min(static_cast<double>(pool.replica_count), std::max(1.0, all_users));
  const double held =
      job.workload.prompt.Mean() + pool.plan->pool().efficiency->cache_output_share * job.workload.output.Mean();
  loop.one = ClosedLoopOf(job, *pool.plan, std::max(1.0, all_users / loop.replica_count),
                          pool.plan->memory().MaxBatch(static_cast<int64_t>(std::ceil(held))));
  return loop;
}

namespace {

// Users whose prompts are read elsewhere in a closed loop: mean seconds that a first token takes beyond the replay's. A
// share of the requests starts in a burst, as the first ones of a benchmark do, and waits for half of the others at the
// same rank of a prefill replica.
double BurstSeconds(const ServingJob& job, const PlannedPool& prefill, double share, const SystemResult& result) {
  const roofline::ServingEfficiency& runtime = *prefill.plan->pool().efficiency;
  const double ranks = static_cast<double>(prefill.replica_count) * prefill.plan->load().data_ranks;
  const double before = std::max(0.0, share * job.workload.concurrency / ranks - 1) / 2;
  const double wait = runtime.burst_share * before * prefill.plan->PrefillSeconds(1);
  const double queueing = result.queueing_share * result.ttft.mean_seconds;
  return runtime.first_token_seconds + std::max(0.0, wait - queueing);
}

}  // namespace

void Calibrate(const ServingJob& job, const PlannedPool& pool, const PlannedPool* prefill, double share,
               SystemResult& result) {
  const auto scale = [](double mean, Latency& latency) {
    if (latency.mean_seconds <= 0) return;
    const double ratio = mean / latency.mean_seconds;
    latency.mean_seconds *= ratio;
    latency.p50_seconds *= ratio;
    latency.p95_seconds *= ratio;
    latency.p99_seconds *= ratio;
  };
  const double output = job.workload.output.Mean();
  const bool at_rate = job.workload.load == ServingLoadKind::kRate;
  if (at_rate || prefill != nullptr) {
    // At a rate: taking a request in and sending its first token out.
    const double added =
        at_rate ? pool.plan->pool().efficiency->request_seconds : BurstSeconds(job, *prefill, share, result);
    for (Latency* latency : {&result.ttft, &result.end_to_end}) {
      scale(latency->mean_seconds + added, *latency);
    }
    if (at_rate) return;
    scale(result.normalized.mean_seconds + added / output, result.normalized);
    // Little's law.
    const double most = share * job.workload.concurrency / result.end_to_end.mean_seconds;
    const double slower = std::min(1.0, most / result.requests_per_second);
    result.requests_per_second *= slower;
    result.output_tokens_per_second *= slower;
    result.input_tokens_per_second *= slower;
    result.goodput_requests_per_second *= slower;
    return;
  }
  const SharedLoop shared = SharedLoopOf(job, pool, share);
  const ClosedLoop& loop = shared.one;
  scale(loop.ttft_seconds, result.ttft);
  scale(loop.tpot_seconds, result.tpot);
  scale(loop.tpot_seconds, result.inter_token);
  scale(loop.ttft_seconds + (output - 1) * loop.tpot_seconds, result.end_to_end);
  scale((loop.ttft_seconds + (output - 1) * loop.tpot_seconds) / output, result.normalized);
  result.requests_per_second = shared.replica_count * loop.requests_per_second;
  result.output_tokens_per_second = result.requests_per_second * output;
  result.input_tokens_per_second = result.requests_per_second * job.workload.prompt.Mean();
  result.mean_batch_size = loop.batch_size;
  result.place_wait_seconds = loop.place_wait_seconds;
}

void LoadMixture::Mixed::Add(const Latency& latency, const std::vector<double>& samples, double weight) {
  if (samples.empty()) return;
  const double count = static_cast<double>(samples.size());
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
  // What Calibrate made of the mean holds for every request.
  const double ratio = mean > 0 ? latency.mean_seconds / mean : 1;
  for (const double sample : samples) seconds.Add(ratio * sample, weight / count);
}

Latency LoadMixture::Mixed::All() const {
  const LatencySummary summary = seconds.Summarize();
  return {summary.mean_seconds, summary.p50_seconds, summary.p95_seconds, summary.p99_seconds};
}

void LoadMixture::Add(const SystemResult& result) {
  const double requests = result.requests_per_second;
  ttft_.Add(result.ttft, result.samples.ttft, requests);
  tpot_.Add(result.tpot, result.samples.tpot, requests);
  end_to_end_.Add(result.end_to_end, result.samples.end_to_end, requests);
  normalized_.Add(result.normalized, result.samples.normalized_time_per_output_token, requests);
  if (result.samples.inter_token) {
    const double mean = result.samples.inter_token->Summarize().mean_seconds;
    inter_token_.seconds.Add(*result.samples.inter_token, mean > 0 ? result.inter_token.mean_seconds / mean : 1,
                             result.output_tokens_per_second);
  }
  all_.requests_per_second += requests;
  all_.output_tokens_per_second += result.output_tokens_per_second;
  all_.input_tokens_per_second += result.input_tokens_per_second;
  all_.goodput_requests_per_second += result.goodput_requests_per_second;
  all_.preemptions += result.preemptions;
  all_.unstable |= result.unstable;
  ttft_seconds_ += requests * result.ttft.mean_seconds;
  place_wait_seconds_ += requests * result.place_wait_seconds;
  queueing_seconds_ += requests * result.ttft.mean_seconds * result.queueing_share;
}

SystemResult LoadMixture::All() const {
  SystemResult all = all_;
  all.ttft = ttft_.All();
  all.tpot = tpot_.All();
  all.end_to_end = end_to_end_.All();
  all.normalized = normalized_.All();
  all.inter_token = inter_token_.All();
  if (all_.requests_per_second > 0) all.place_wait_seconds = place_wait_seconds_ / all_.requests_per_second;
  if (ttft_seconds_ > 0) all.queueing_share = queueing_seconds_ / ttft_seconds_;
  return all;
}

}  // namespace sliceplan::planner
