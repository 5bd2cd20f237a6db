#include "server/planner/serving/plan_merit.h"

#include <algorithm>
#include <limits>

#include "server/planner/budget.h"
#include "server/planner/serving/batch_point.h"
#include "server/planner/serving/load_result.h"
#include "server/planner/serving/pool_system.h"
#include "server/planner/serving/replica_count.h"

namespace sliceplan::planner {
namespace {

constexpr double kWorst = std::numeric_limits<double>::max();
// Percentiles of users' times lie around their mean: a mean so many times a limit meets it at no percentile.
constexpr double kScreen = 2;

void SetPoint(const BatchPoint& point, double replicas, PlanMerit& merit) {
  merit.tpot_seconds = point.tpot_seconds;
  merit.request_seconds = point.end_to_end_seconds;
  merit.output_tokens_per_second = replicas * point.output_tokens_per_second;
}

LatencyTargets Loosened(const LatencyTargets& limits) {
  LatencyTargets loose = limits;
  for (std::optional<double>* limit : {&loose.p50_seconds, &loose.p95_seconds, &loose.p99_seconds}) {
    if (*limit) **limit *= kScreen;
  }
  return loose;
}

// Users' means are known, their percentiles are the replay's.
void SetUsers(const ServingJob& job, const ReplicaPlan& plan, int64_t most, PlanMerit& merit) {
  const double replicas = static_cast<double>(merit.replica_count);
  if (job.mode == EstimationMode::kRoofline || plan.pool().role != PoolRole::kBoth) {
    const int64_t users = std::max<int64_t>(1, job.workload.concurrency / merit.replica_count);
    SetPoint(PointOf(job, plan, std::min(users, most)), replicas, merit);
    return;
  }
  const SharedLoop loop = SharedLoopOf(job, {&plan, merit.replica_count, most}, 1);
  BatchPoint mean;
  mean.ttft_seconds = loop.one.ttft_seconds;
  mean.tpot_seconds = loop.one.tpot_seconds;
  mean.end_to_end_seconds = loop.one.ttft_seconds + (job.workload.output.Mean() - 1) * loop.one.tpot_seconds;
  mean.output_tokens_per_second = loop.one.requests_per_second * job.workload.output.Mean();
  SetPoint(mean, loop.replica_count, merit);
  const ServingSlo loose = {Loosened(job.slo.ttft), Loosened(job.slo.tpot), Loosened(job.slo.end_to_end)};
  if (!Meets(mean, loose)) merit.tier = PlanTier::kMisses;
}

}  // namespace

PlanMerit MeritOf(const ServingJob& job, const ReplicaPlan& plan, int64_t most, std::optional<int64_t> replica_count) {
  PlanMerit merit;
  merit.replica_count = replica_count.value_or(1);
  merit.tier = PlanTier::kCarries;
  const double replicas = static_cast<double>(merit.replica_count);
  // A request alone is as fast as any.
  const bool by_replay =
      job.workload.load == ServingLoadKind::kRate || job.workload.load == ServingLoadKind::kConcurrency;
  if (by_replay && job.slo.Any() && !Meets(PointOf(job, plan, 1), job.slo)) merit.tier = PlanTier::kMisses;
  switch (job.workload.load) {
    case ServingLoadKind::kLargestBatch: {
      const int64_t within = job.slo.Any() ? LargestBatchWithin(job, plan, most) : most;
      SetPoint(PointOf(job, plan, std::max<int64_t>(1, within)), replicas, merit);
      if (within < 1) merit.tier = PlanTier::kMisses;
      break;
    }
    case ServingLoadKind::kBatch: {
      const BatchPoint point = PointOf(job, plan, job.workload.batch_size);
      SetPoint(point, replicas, merit);
      if (!Meets(point, job.slo)) merit.tier = PlanTier::kMisses;
      break;
    }
    case ServingLoadKind::kConcurrency: SetUsers(job, plan, most, merit); break;
    case ServingLoadKind::kRate: {
      merit.sustained_rate = SustainedRate(job, {&plan, 1, most});
      const int64_t count = replica_count.value_or(LeastReplicas(job, merit.sustained_rate).value_or(1));
      SetReplicas(job, plan, most, count, merit);
      const bool is_busy =
          replica_count && !job.slo.Any() &&
          job.workload.requests_per_second > kTargetUtilization * static_cast<double>(count) * merit.sustained_rate;
      if (merit.tier == PlanTier::kCarries && is_busy) merit.tier = PlanTier::kBusy;
      break;
    }
  }
  return merit;
}

void SetReplicas(const ServingJob& job, const ReplicaPlan& plan, int64_t most, int64_t replica_count,
                 PlanMerit& merit) {
  merit.replica_count = replica_count;
  const double each = job.workload.requests_per_second / static_cast<double>(replica_count);
  merit.output_tokens_per_second = job.workload.requests_per_second * job.workload.output.Mean();
  if (each > merit.sustained_rate) {
    merit.tier = PlanTier::kOverloaded;
    merit.tpot_seconds = merit.request_seconds = kWorst;
    merit.output_tokens_per_second =
        static_cast<double>(replica_count) * merit.sustained_rate * job.workload.output.Mean();
    return;
  }
  const MeanField mean = MeanFieldAt(job, {&plan, 1, most}, each);
  merit.tpot_seconds = mean.is_stable ? mean.tpot_seconds : kWorst;
  merit.request_seconds = mean.is_stable ? mean.end_to_end_seconds : kWorst;
}

void PlanRank::SetPlan(const Parallelism& parallelism) {
  axis_count = 0;
  for (const LogicalAxis axis : kLogicalAxes) axis_count += parallelism.Degree(axis) > 1 ? 1 : 0;
  tensor_complement = -parallelism.Degree(LogicalAxis::kTensor);
}

double KeyOf(Objective objective, const ServingWorkload& workload, const PlanMerit& merit, int64_t chip_count,
             const std::optional<double>& usd_per_chip_hour) {
  const double chips = static_cast<double>(chip_count);
  const bool at_rate = workload.load == ServingLoadKind::kRate;
  const double tokens_per_chip = merit.output_tokens_per_second / chips;
  switch (objective) {
    case Objective::kMinCost:
      if (!usd_per_chip_hour) return kWorst;
      if (at_rate) return *usd_per_chip_hour * chips;
      return tokens_per_chip > 0 ? *usd_per_chip_hour / kSecondsPerHour / tokens_per_chip * kTokensPerMillion : kWorst;
    case Objective::kMaxThroughputPerChip: return -tokens_per_chip;
    case Objective::kMinChips: return chips;
    case Objective::kMinStepTime:
    case Objective::kMinTimeToTrain: break;
  }
  return merit.tpot_seconds;
}

}  // namespace sliceplan::planner
