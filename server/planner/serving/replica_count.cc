#include "server/planner/serving/replica_count.h"

#include <algorithm>
#include <cmath>

#include "server/planner/serving/batch_point.h"
#include "server/planner/serving/count_search.h"
#include "server/planner/serving/load_result.h"
#include "server/planner/serving/serving_outcome.h"

namespace sliceplan::planner {
namespace {

// Beyond this many times what the rate alone needs, replicas stand idle and more of them change nothing.
constexpr int64_t kMostIdle = 32;
// The 95th percentile of a wait that is exponential, in means: -ln(0.05).
constexpr double kTail = 3;

// Whether the means leave room for the tails. Where to look first, no more.
bool LooksEnough(const ServingJob& job, const PlannedPool& pool, int64_t count) {
  const MeanField mean = MeanFieldAt(job, pool, job.workload.requests_per_second / static_cast<double>(count));
  if (!mean.is_stable) return false;
  BatchPoint point;
  point.ttft_seconds = mean.ttft_seconds + (kTail - 1) * mean.queueing_seconds;
  point.tpot_seconds = mean.tpot_seconds;
  point.end_to_end_seconds = mean.end_to_end_seconds + (kTail - 1) * mean.queueing_seconds;
  return Meets(point, job.slo);
}

}  // namespace

const SystemResult& ReplicaTrials::Result(const ServingJob& job, const PlannedPool& pool,
                                          const std::function<bool()>& cancelled) {
  const auto found = results_.find(pool.replica_count);
  if (found != results_.end()) return found->second;
  SystemResult result = ReplayLoad(job, pool, nullptr, 1, cancelled);
  if (job.mode == EstimationMode::kCalibrated && !result.cancelled) Calibrate(job, pool, nullptr, 1, result);
  return results_[pool.replica_count] = result;
}

bool ReplicaTrials::Meets(const ServingJob& job, const PlannedPool& pool, const std::function<bool()>& cancelled,
                          bool& was_cancelled) {
  const auto known = meets_.find(pool.replica_count);
  if (known != meets_.end()) return known->second;
  auto found = results_.find(pool.replica_count);
  if (found == results_.end()) {
    SystemResult result = ReplayLoad(job, pool, nullptr, 1, cancelled, ReplayEnd::kWhenATargetIsMissed);
    was_cancelled |= result.cancelled;
    if (result.cancelled) return false;
    if (result.missed) return meets_[pool.replica_count] = false;
    if (job.mode == EstimationMode::kCalibrated) Calibrate(job, pool, nullptr, 1, result);
    found = results_.emplace(pool.replica_count, result).first;
  }
  const SystemResult& result = found->second;
  return meets_[pool.replica_count] = !result.unstable && MeetsTargets(result, job.slo);
}

std::optional<int64_t> LeastReplicas(const ServingJob& job, const PlannedPool& pool) {
  PlannedPool one = pool;
  one.replica_count = 1;
  return LeastReplicas(job, SustainedRate(job, one));
}

std::optional<int64_t> LeastReplicas(const ServingJob& job, double sustained_rate) {
  if (sustained_rate <= 0) return std::nullopt;
  const double needed = job.workload.requests_per_second / sustained_rate / (job.slo.Any() ? 1 : kTargetUtilization);
  if (needed > static_cast<double>(kMaxStationReplicas)) return std::nullopt;
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(needed)));
}

ReplicaCounter::ReplicaCounter(const ServingJob& job, const PlannedPool& pool, ReplicaTrials& trials)
    : job_(job), pool_(pool), trials_(trials) {
  const std::optional<int64_t> least = LeastReplicas(job, pool);
  // A request alone is as fast as any.
  is_done_ = !least || !Meets(PointOf(job, *pool.plan, 1), job.slo);
  if (is_done_) return;
  least_ = *least;
  most_ = std::min(least_ * kMostIdle, kMaxStationReplicas);
  fails_ = least_ - 1;
}

int64_t ReplicaCounter::NextToTry() {
  if (fails_ < least_) return least_;
  if (!guess_) {
    guess_ = FirstAbove(fails_, most_, [this](int64_t count) { return LooksEnough(job_, pool_, count); });
    if (!guess_) guess_ = least_;
  }
  if (fails_ + 1 < *guess_) return *guess_ - 1;
  const int64_t next = std::min(most_, fails_ + step_);
  step_ *= 2;
  return next;
}

void ReplicaCounter::Advance(const std::function<bool()>& cancelled, bool& was_cancelled) {
  const auto meets = [&](int64_t count) {
    PlannedPool more = pool_;
    more.replica_count = count;
    return !was_cancelled && trials_.Meets(job_, more, cancelled, was_cancelled);
  };
  const int64_t next = NextToTry();
  if (meets(next)) {
    count_ = FirstBetween(fails_, next, meets);
    is_done_ = true;
  } else {
    fails_ = next;
    is_done_ = next >= most_;
  }
  if (!was_cancelled) return;
  is_done_ = true;
  count_.reset();
}

std::optional<int64_t> ReplicasFor(const ServingJob& job, const PlannedPool& pool, ReplicaTrials& trials,
                                   const std::function<bool()>& cancelled, bool& was_cancelled) {
  if (!job.slo.Any()) return LeastReplicas(job, pool);
  ReplicaCounter counter(job, pool, trials);
  while (!counter.is_done()) counter.Advance(cancelled, was_cancelled);
  return counter.count();
}

}  // namespace sliceplan::planner
