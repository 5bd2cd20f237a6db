#include "server/planner/serving/serving_judge.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/planner/budget.h"
#include "server/planner/serving/batch_point.h"
#include "server/planner/serving/pool_system.h"

namespace sliceplan::planner {
namespace {

constexpr double kWorst = ServingJudge::kWorst;
constexpr double kLeastRate = 1e-12;

double Strictest(const LatencyTargets& targets) {
  return std::min({targets.mean_seconds.value_or(kWorst), targets.p50_seconds.value_or(kWorst),
                   targets.p95_seconds.value_or(kWorst), targets.p99_seconds.value_or(kWorst)});
}

}  // namespace

ServingJob ServingJudge::JobOf(size_t candidate, PoolRole role) const {
  const ServingCandidate& from = question_.candidates[candidate];
  ServingJob job;
  job.model = question_.model;
  job.workload = question_.workload;
  job.slo = question_.slo;
  job.mode = question_.mode;
  job.cost_split = question_.cost_split;
  ServingPool pool;
  pool.role = role;
  pool.slice = from.slice;
  pool.efficiency = from.efficiency;
  pool.usd_per_chip_hour = from.usd_per_chip_hour;
  job.pools.push_back(std::move(pool));
  return job;
}

bool ServingJudge::Allows(const Parallelism& plan) const {
  const SearchConstraints& constraints = question_.constraints;
  for (const LogicalAxis axis : kLogicalAxes) {
    const size_t i = static_cast<size_t>(axis);
    if (constraints.forbidden[i] && plan.Degree(axis) > 1) return false;
    if (constraints.fixed_ici[axis] > 0 && plan.ici[axis] != constraints.fixed_ici[axis]) return false;
    if (constraints.fixed_dcn[axis] > 0 && plan.dcn[axis] != constraints.fixed_dcn[axis]) return false;
  }
  return true;
}

int64_t ServingJudge::LeastBatch() const {
  return question_.workload.load == ServingLoadKind::kBatch ? question_.workload.batch_size : 1;
}

bool ServingJudge::HasHeadroom(const ServingMemory& memory) const {
  return static_cast<double>(memory.headroom_bytes) >=
         question_.constraints.hbm_headroom_ratio * static_cast<double>(memory.capacity_bytes);
}

double ServingJudge::KeyOf(const ServingSummary& summary) const {
  switch (question_.objective) {
    case Objective::kMinCost:
      return question_.workload.load == ServingLoadKind::kRate
                 ? question_.candidates[summary.candidate].usd_per_chip_hour.value_or(kWorst) *
                       static_cast<double>(summary.chip_count)
                 : summary.usd_per_million_output_tokens.value_or(kWorst);
    case Objective::kMaxThroughputPerChip: return -summary.output_tokens_per_second_per_chip;
    case Objective::kMinChips: return static_cast<double>(summary.chip_count);
    case Objective::kMinStepTime:
    case Objective::kMinTimeToTrain: break;
  }
  return summary.tpot_seconds;
}

double ServingJudge::JudgeBatch(const ServingJob& job, const ReplicaPlan& plan, int64_t batch,
                                ServingSummary& summary) const {
  const BatchPoint point = PointOf(job, plan, batch);
  summary.tpot_seconds = point.tpot_seconds;
  return point.requests_per_second;
}

double ServingJudge::JudgeRate(const ServingJob& job, const ReplicaPlan& plan, int64_t most, JudgedPlan& judged) const {
  const double rate = question_.workload.requests_per_second;
  const double limit = Strictest(question_.slo.tpot);
  const double context = DecodeContext(question_.workload);
  int64_t batch = most;
  if (limit < kWorst) {
    int64_t low = 0;
    int64_t high = most;
    while (low < high) {
      const int64_t middle = low + (high - low + 1) / 2;
      if (plan.TokenSeconds(middle, context) <= limit) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    batch = low;
  }
  judged.meets_targets = batch >= 1 && plan.PrefillSeconds(1) <= Strictest(question_.slo.ttft);
  const PlannedPool pool{&plan, 1, std::max<int64_t>(1, batch)};
  const double sustained = SustainedRate(job, pool);
  const double replicas = std::ceil(rate / (kTargetUtilization * std::max(sustained, kLeastRate)));
  judged.summary.replica_count = static_cast<int64_t>(std::clamp(replicas, 1.0, 1048576.0));
  judged.summary.chip_count *= judged.summary.replica_count;
  const double each = rate / static_cast<double>(judged.summary.replica_count);
  const double seconds = MeanSeconds(job, pool, each);
  judged.summary.tpot_seconds =
      seconds >= kWorst ? seconds : std::max(0.0, seconds - plan.PrefillSeconds(1)) / question_.workload.output.Mean();
  judged.meets_targets = judged.meets_targets && seconds < kWorst;
  return rate;
}

std::optional<PruneReason> ServingJudge::Judge(size_t candidate, const ServingJob& job, const ReplicaPlan& plan,
                                               JudgedPlan& judged) const {
  ServingSummary& summary = judged.summary;
  summary.candidate = candidate;
  summary.parallelism = plan.parallelism();
  summary.chip_count = plan.chip_count();
  const int64_t context = FullContext(question_.workload);
  const int64_t most = plan.memory().MaxBatch(context);
  const int64_t asked = LeastBatch();
  if (most < asked || !HasHeadroom(plan.memory().Of(asked, context))) return PruneReason::kOutOfMemory;
  double requests_per_second = 0;
  switch (question_.workload.load) {
    case ServingLoadKind::kRate: requests_per_second = JudgeRate(job, plan, most, judged); break;
    case ServingLoadKind::kLargestBatch: {
      const int64_t within = question_.slo.Any() ? LargestBatchWithin(job, plan, most) : most;
      judged.meets_targets = within >= 1;
      requests_per_second = JudgeBatch(job, plan, std::max<int64_t>(1, within), summary);
      break;
    }
    case ServingLoadKind::kBatch:
    case ServingLoadKind::kConcurrency: {
      const int64_t batch = question_.workload.load == ServingLoadKind::kBatch
                                ? asked
                                : std::min<int64_t>(question_.workload.concurrency, most);
      requests_per_second = JudgeBatch(job, plan, batch, summary);
      judged.meets_targets = summary.tpot_seconds <= Strictest(question_.slo.tpot);
      break;
    }
  }
  if (summary.replica_count > question_.candidates[candidate].max_replica_count ||
      (question_.constraints.max_chip_count && summary.chip_count > *question_.constraints.max_chip_count)) {
    return PruneReason::kTooManyChips;
  }
  const double tokens_per_second = requests_per_second * question_.workload.output.Mean();
  summary.output_tokens_per_second_per_chip = tokens_per_second / static_cast<double>(summary.chip_count);
  const std::optional<double>& usd = question_.candidates[candidate].usd_per_chip_hour;
  if (usd && tokens_per_second > 0) {
    summary.usd_per_million_output_tokens =
        *usd * static_cast<double>(summary.chip_count) / kSecondsPerHour / tokens_per_second * kTokensPerMillion;
  }
  judged.key = KeyOf(summary);
  summary.outcome = judged.meets_targets ? ServingOutcome::kFeasible : ServingOutcome::kMissesSlo;
  return std::nullopt;
}

}  // namespace sliceplan::planner
