#include "server/planner/serving/serving_judge.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/planner/budget.h"
#include "server/planner/serving/batch_point.h"
#include "server/planner/serving/replica_count.h"

namespace sliceplan::planner {

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
  pool.larger_slices = from.larger_slices;
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

bool ServingJudge::OrderIsExact() const {
  switch (question_.workload.load) {
    case ServingLoadKind::kLargestBatch:
    case ServingLoadKind::kBatch: return true;
    case ServingLoadKind::kConcurrency: return true;
    case ServingLoadKind::kRate: return question_.objective != Objective::kMinStepTime;
  }
  return false;
}

bool ServingJudge::HasHeadroom(const ServingMemory& memory) const {
  return static_cast<double>(memory.headroom_bytes) >=
         question_.constraints.hbm_headroom_ratio * static_cast<double>(memory.capacity_bytes);
}

bool ServingJudge::HasChips(size_t candidate, int64_t replica_count) const {
  const ServingCandidate& from = question_.candidates[candidate];
  return replica_count <= from.max_replica_count &&
         replica_count * from.slice.TotalChips() <=
             question_.constraints.max_chip_count.value_or(std::numeric_limits<int64_t>::max());
}

void ServingJudge::Rank(const PlanMerit& merit, const ReplicaPlan& plan, JudgedPlan& judged) const {
  judged.replica_count = merit.replica_count;
  PlanRank& rank = judged.rank;
  rank.tier = merit.tier;
  rank.seconds = merit.request_seconds;
  rank.chip_count = plan.chip_count() * merit.replica_count;
  rank.candidate = judged.summary.candidate;
  rank.key = planner::KeyOf(question_.objective, question_.workload, merit, rank.chip_count,
                            question_.candidates[rank.candidate].usd_per_chip_hour);
  rank.SetPlan(plan.parallelism());
}

void ServingJudge::Summarize(const PlanMerit& merit, const ReplicaPlan& plan, JudgedPlan& judged) const {
  ServingSummary& summary = judged.summary;
  summary.replica_count = merit.replica_count;
  summary.chip_count = plan.chip_count() * merit.replica_count;
  summary.tpot_seconds = merit.tpot_seconds;
  summary.output_tokens_per_second_per_chip = merit.output_tokens_per_second / static_cast<double>(summary.chip_count);
  const std::optional<double>& usd = question_.candidates[summary.candidate].usd_per_chip_hour;
  summary.usd_per_million_output_tokens.reset();
  if (usd && merit.output_tokens_per_second > 0) {
    summary.usd_per_million_output_tokens =
        *usd / kSecondsPerHour / summary.output_tokens_per_second_per_chip * kTokensPerMillion;
  }
  BatchPoint mean;
  mean.tpot_seconds = merit.tpot_seconds;
  const bool meets = merit.tier == PlanTier::kCarries && Meets(mean, question_.slo);
  summary.outcome = meets ? ServingOutcome::kFeasible : ServingOutcome::kMissesSlo;
}

std::optional<PruneReason> ServingJudge::Judge(size_t candidate, const ServingJob& job, const ReplicaPlan& plan,
                                               JudgedPlan& judged) const {
  judged.summary.candidate = candidate;
  judged.summary.parallelism = plan.parallelism();
  judged.summary.chip_count = plan.chip_count();
  const int64_t context = FullContext(question_.workload);
  const int64_t most = plan.memory().MaxBatch(context);
  const int64_t asked = LeastBatch();
  if (most < asked || !HasHeadroom(plan.memory().Of(asked, context))) return PruneReason::kOutOfMemory;
  const bool at_rate = question_.workload.load == ServingLoadKind::kRate;
  const PlanMerit merit = MeritOf(job, plan, most, std::nullopt);
  Rank(merit, plan, judged);
  if (!HasChips(candidate, merit.replica_count)) return PruneReason::kTooManyChips;
  judged.is_bound = at_rate && question_.slo.Any();
  if (at_rate) judged.floor_seconds = PointOf(job, plan, 1).tpot_seconds;
  Summarize(merit, plan, judged);
  if (!judged.is_bound || merit.tier != PlanTier::kCarries) return std::nullopt;
  // What the frontier shows: as many as keep clear of saturation.
  const double busy = static_cast<double>(merit.replica_count) / kTargetUtilization;
  const int64_t likely = static_cast<int64_t>(std::ceil(busy));
  if (likely > merit.replica_count && HasChips(candidate, likely)) {
    PlanMerit clear = merit;
    planner::SetReplicas(job, plan, most, likely, clear);
    Summarize(clear, plan, judged);
    // Tokens come faster with more replicas: no bound, so the order is that of what is likely.
    if (question_.objective == Objective::kMinStepTime) Rank(clear, plan, judged);
  }
  return std::nullopt;
}

bool ServingJudge::SetReplicas(const ServingJob& job, const ReplicaPlan& plan, int64_t replica_count,
                               JudgedPlan& judged) const {
  if (!HasChips(judged.summary.candidate, replica_count)) return false;
  const PlanMerit merit = MeritOf(job, plan, plan.memory().MaxBatch(FullContext(question_.workload)), replica_count);
  Rank(merit, plan, judged);
  Summarize(merit, plan, judged);
  return true;
}

double ServingJudge::KeyOf(const ServingEstimate& estimate) const {
  PlanMerit merit;
  merit.tpot_seconds = estimate.tpot ? estimate.tpot->mean_seconds : kWorst;
  const bool at_rate = question_.workload.load == ServingLoadKind::kRate;
  merit.output_tokens_per_second = at_rate ? question_.workload.requests_per_second * question_.workload.output.Mean()
                                           : estimate.throughput.output_tokens_per_second;
  std::optional<double> usd;
  if (estimate.cost) usd = estimate.cost->usd_per_hour / static_cast<double>(estimate.chip_count);
  return planner::KeyOf(question_.objective, question_.workload, merit, estimate.chip_count, usd);
}

}  // namespace sliceplan::planner
