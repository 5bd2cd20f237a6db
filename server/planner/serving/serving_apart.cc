#include "server/planner/serving/serving_apart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "server/planner/serving/batch_point.h"
#include "server/planner/serving/count_search.h"
#include "server/planner/serving/load_result.h"
#include "server/planner/serving/pool_system.h"
#include "server/planner/serving/replica_count.h"
#include "server/planner/serving/replica_plan.h"
#include "server/planner/serving/serving_limits.h"
#include "server/planner/serving/serving_outcome.h"

namespace sliceplan::planner {
namespace {

constexpr double kLeastRate = 1e-12;
// Of each role that pairs are made of.
constexpr size_t kHalves = 6;

// Engines hand caches over between chips of one kind of fabric, and only where that network is known is it known what
// it takes.
bool CanHandOver(const hardware::Slice& from, const hardware::Slice& to) {
  return from.accelerator.fabric == to.accelerator.fabric && HandOverRate(from) && HandOverRate(to);
}

// One plan in one role.
struct Half {
  ServingPool pool;
  size_t candidate = 0;
  double chips = std::numeric_limits<double>::max();
  double usd = std::numeric_limits<double>::max();
};

// Whole replicas of one plan in a role, as many as sustain the rate.
std::optional<Half> HalfOf(const ServingQuestion& question, const ServingJob& job, const JudgedPlan& judged,
                           bool is_priced, MappingCache& mappings) {
  const size_t candidate = judged.summary.candidate;
  auto made =
      ReplicaPlan::Make(job, job.pools[0], judged.summary.parallelism, NominalBatch(question.workload), mappings);
  if (!made.ok()) return std::nullopt;
  const PlannedPool pool{made->get(), 1, (*made)->memory().MaxBatch(FullContext(question.workload))};
  if (pool.max_batch_size < 1) return std::nullopt;
  // Alone, a request is as fast as any.
  BatchPoint floor;
  if (job.pools[0].role == PoolRole::kPrefill) {
    floor.ttft_seconds = (*made)->PrefillSeconds(1);
  } else {
    floor.tpot_seconds = PointOf(job, **made, 1).tpot_seconds;
  }
  if (!Meets(floor, question.slo)) return std::nullopt;
  // As a system whose other half is never what limits.
  const PlannedPool many{pool.plan, kMaxStationReplicas, pool.max_batch_size};
  const double sustained =
      job.pools[0].role == PoolRole::kPrefill ? SustainedRate(job, many, &pool) : SustainedRate(job, pool, &many);
  const double busiest = question.slo.Any() ? 1 : kTargetUtilization;
  const double replicas =
      std::ceil(question.workload.requests_per_second / (busiest * std::max(sustained, kLeastRate)));
  if (replicas > static_cast<double>(question.candidates[candidate].max_replica_count)) return std::nullopt;
  Half half;
  half.pool = job.pools[0];
  half.pool.parallelism = judged.summary.parallelism;
  half.pool.replica_count = static_cast<int32_t>(std::max(1.0, replicas));
  half.candidate = candidate;
  half.chips = static_cast<double>((*made)->chip_count()) * half.pool.replica_count;
  if (is_priced) half.usd = half.chips * *question.candidates[candidate].usd_per_chip_hour;
  return half;
}

}  // namespace

std::vector<ApartPair> CheapestPairs(const ServingQuestion& question, const ServingJudge& judge,
                                     const std::vector<JudgedPlan>& judged, MappingCache& mappings,
                                     const std::function<bool()>& go_on) {
  const bool is_priced = std::all_of(judged.begin(), judged.end(), [&](const JudgedPlan& one) {
    return question.candidates[one.summary.candidate].usd_per_chip_hour.has_value();
  });
  // By what the objective counts.
  const bool by_chips = !is_priced || question.objective == Objective::kMinChips ||
                        question.objective == Objective::kMaxThroughputPerChip;
  const auto cheaper = [by_chips](const Half& a, const Half& b) {
    return by_chips ? a.chips < b.chips : a.usd < b.usd;
  };
  std::vector<Half> readers;
  std::vector<Half> writers;
  for (const auto& [role, halves] : {std::pair{PoolRole::kPrefill, &readers}, std::pair{PoolRole::kDecode, &writers}}) {
    std::optional<ServingJob> job;
    size_t candidate = question.candidates.size();
    for (const JudgedPlan& one : judged) {
      if (!go_on()) return {};
      if (one.summary.candidate != candidate) job = judge.JobOf(candidate = one.summary.candidate, role);
      std::optional<Half> half = HalfOf(question, *job, one, is_priced, mappings);
      if (!half) continue;
      halves->insert(std::upper_bound(halves->begin(), halves->end(), *half, cheaper), *half);
      if (halves->size() > kHalves) halves->pop_back();
    }
  }
  std::vector<ApartPair> pairs;
  for (const Half& reader : readers) {
    for (const Half& writer : writers) {
      if (!CanHandOver(reader.pool.slice, writer.pool.slice)) continue;
      ApartPair& pair = pairs.emplace_back();
      pair.job = judge.JobOf(reader.candidate, PoolRole::kPrefill);
      pair.job.pools = {reader.pool, writer.pool};
      pair.job.pools_given = true;
      pair.candidates = {reader.candidate, writer.candidate};
      pair.least_chips = reader.chips + writer.chips;
      if (is_priced) pair.least_usd = reader.usd + writer.usd;
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [by_chips](const ApartPair& a, const ApartPair& b) {
    return by_chips ? a.least_chips < b.least_chips : *a.least_usd < *b.least_usd;
  });
  return pairs;
}

bool SetReplicas(ApartPair& pair, MappingCache& mappings, const std::function<bool()>& cancelled) {
  const ServingJob& job = pair.job;
  if (!job.slo.Any()) return true;
  std::vector<std::unique_ptr<ReplicaPlan>> plans;
  std::vector<PlannedPool> pools;
  for (const ServingPool& pool : job.pools) {
    auto made = ReplicaPlan::Make(job, pool, *pool.parallelism, NominalBatch(job.workload), mappings);
    if (!made.ok()) return false;
    plans.push_back(*std::move(made));
    pools.push_back(
        {plans.back().get(), pool.replica_count, plans.back()->memory().MaxBatch(FullContext(job.workload))});
  }
  const auto meets = [&] {
    if (SustainedRate(job, pools[1], &pools[0]) < job.workload.requests_per_second) return false;
    SystemResult result = ReplayLoad(job, pools[1], &pools[0], 1, cancelled, ReplayEnd::kWhenATargetIsMissed);
    if (result.cancelled || result.missed || result.unstable) return false;
    if (job.mode == EstimationMode::kCalibrated) Calibrate(job, pools[1], &pools[0], 1, result);
    return MeetsTargets(result, job.slo);
  };
  if (!meets()) {
    const std::vector<PlannedPool> least = pools;
    for (PlannedPool& pool : pools) {
      pool.replica_count =
          static_cast<int64_t>(std::ceil(static_cast<double>(pool.replica_count) / kTargetUtilization));
    }
    if (!meets()) return false;
    for (const size_t i : {size_t{1}, size_t{0}}) {
      pools[i].replica_count = FirstBelow(least[i].replica_count, pools[i].replica_count, [&](int64_t count) {
        const int64_t before = std::exchange(pools[i].replica_count, count);
        const bool passes = meets();
        pools[i].replica_count = before;
        return passes;
      });
    }
  }
  for (size_t i = 0; i < pools.size(); ++i) {
    pair.job.pools[i].replica_count = static_cast<int32_t>(pools[i].replica_count);
  }
  return cancelled == nullptr || !cancelled();
}

}  // namespace sliceplan::planner
