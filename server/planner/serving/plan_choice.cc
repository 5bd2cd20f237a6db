#include "server/planner/serving/plan_choice.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "server/planner/model_divisors.h"
#include "server/planner/serving/batch_point.h"
#include "server/planner/serving/frontier.h"
#include "server/planner/serving/plan_merit.h"
#include "server/planner/serving/pool_system.h"
#include "server/planner/serving/queueing.h"
#include "server/planner/serving/serving_limits.h"

namespace sliceplan::planner {
namespace {

std::vector<int32_t> DivisorsOfCount(int64_t count) {
  std::vector<int32_t> divisors;
  for (int64_t d = 1; d * d <= count; ++d) {
    if (count % d != 0) continue;
    divisors.push_back(static_cast<int32_t>(d));
    if (d * d != count) divisors.push_back(static_cast<int32_t>(count / d));
  }
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}

// A legal plan in its place.
struct RankedPlan {
  std::unique_ptr<ReplicaPlan> plan;
  PlanRank rank;
};

// Of a prompt on replicas that read prompts alone; at a rate with the wait for those before it, in the mean.
double FirstTokenSeconds(const ServingJob& job, const ReplicaPlan& plan, const PlanMerit& merit) {
  const double alone = plan.PrefillSeconds(1);
  const double sustained = static_cast<double>(merit.replica_count) * merit.sustained_rate;
  const double rate = job.workload.requests_per_second;
  if (job.workload.load != ServingLoadKind::kRate || rate >= sustained) return alone;
  const auto servers = static_cast<int64_t>(static_cast<double>(merit.replica_count) * plan.load().data_ranks);
  return alone + GGcWaiting(rate, job.workload.arrival_burstiness, static_cast<double>(servers) / sustained,
                            job.workload.prompt.SquaredVariation(), servers)
                     .mean_seconds;
}

PlanRank RankOf(const ServingJob& job, const ServingPool& pool, const ReplicaPlan& plan, int64_t max_batch) {
  PlanRank rank;
  rank.SetPlan(plan.parallelism());
  const int64_t asked = job.workload.load == ServingLoadKind::kBatch ? job.workload.batch_size : 1;
  if (max_batch < asked) {
    rank.key = -static_cast<double>(plan.memory().Of(asked, FullContext(job.workload)).headroom_bytes);
    return rank;
  }
  const PlanMerit merit = MeritOf(job, plan, max_batch, pool.replica_count);
  rank.tier = merit.tier;
  rank.seconds = merit.request_seconds;
  rank.key = pool.role == PoolRole::kPrefill ? FirstTokenSeconds(job, plan, merit)
                                             : KeyOf(Objective::kMaxThroughputPerChip, job.workload, merit,
                                                     plan.chip_count() * merit.replica_count, std::nullopt);
  return rank;
}

// Percentiles of users and at a rate are the replay's: the first plan that meets the targets there.
bool NeedsReplay(const ServingJob& job, const ServingPool& pool) {
  return job.pools.size() == 1 && pool.role == PoolRole::kBoth && job.slo.Any() &&
         (job.workload.load == ServingLoadKind::kRate || job.workload.load == ServingLoadKind::kConcurrency);
}

// Beyond these an engine only copies weights or waits for its own stages; more of the same is more replicas.
struct SpaceLimits {
  int64_t tensor = 0;
  int64_t expert = 1;
  int64_t pipeline = 16;
  int64_t context = 16;
  int64_t fsdp = 1;  // weights split along their inputs too: on a torus alone, as engines on GPUs have it not
  int64_t data = 16;
};

SpaceLimits LimitsOf(const transformer::ModelOperations& model, const ModelDivisors& divisors) {
  SpaceLimits limits;
  for (const transformer::LayerOperations& layer : model.layers) {
    limits.tensor = std::max<int64_t>(limits.tensor, layer.softmax.query_head_count);
  }
  for (const ModelDivisors::Unit& unit : divisors.units) limits.tensor = std::max<int64_t>(limits.tensor, unit.count);
  for (const int32_t count : divisors.expert_counts) limits.expert = std::max<int64_t>(limits.expert, count);
  return limits;
}

std::vector<Parallelism> PlansWithin(const ServingJob& job, const ServingPool& pool, const ModelDivisors& divisors,
                                     const SpaceLimits& limits) {
  const bool experts = !divisors.expert_counts.empty();
  // Splitting keys over context pays where tensor cannot split the cache any further; engines offer it only there.
  int32_t cache_heads = 1;
  for (const transformer::LayerOperations& layer : job.model.operations->layers) {
    if (layer.has_softmax) cache_heads = std::max(cache_heads, layer.softmax.cache_head_count);
  }
  const int64_t chips = pool.slice.chip_count;
  const int64_t slices = pool.slice.slice_count;
  std::vector<Parallelism> plans;
  for (const LogicalAxis across : {LogicalAxis::kPipeline, LogicalAxis::kData}) {
    if (slices == 1 && across == LogicalAxis::kData) continue;
    for (const int32_t tensor : DivisorsOfCount(chips)) {
      if (limits.tensor > 0 && tensor > limits.tensor) break;
      for (const int32_t expert : DivisorsOfCount(chips / tensor)) {
        if (expert > limits.expert || (expert > 1 && !experts)) break;
        for (const int32_t pipeline : DivisorsOfCount(chips / tensor / expert)) {
          if (pipeline > limits.pipeline) break;
          if (pipeline * (across == LogicalAxis::kPipeline ? slices : 1) > divisors.layer_count) break;
          for (const int32_t context : DivisorsOfCount(chips / tensor / expert / pipeline)) {
            if (context > limits.context || (context > 1 && tensor < cache_heads)) break;
            for (const int32_t fsdp : DivisorsOfCount(chips / tensor / expert / pipeline / context)) {
              if (fsdp > limits.fsdp || (fsdp > 1 && (context > 1 || tensor < cache_heads))) break;
              const int64_t data = chips / tensor / expert / pipeline / context / fsdp;
              if (data > limits.data) continue;
              Parallelism plan;
              plan.sequence_parallel = false;
              plan.ici[LogicalAxis::kTensor] = tensor;
              plan.ici[LogicalAxis::kExpert] = expert;
              plan.ici[LogicalAxis::kPipeline] = pipeline;
              plan.ici[LogicalAxis::kContext] = context;
              plan.ici[LogicalAxis::kFsdp] = fsdp;
              plan.ici[LogicalAxis::kData] = static_cast<int32_t>(data);
              plan.dcn[across] = static_cast<int32_t>(slices);
              if (IsLegalServingPlan(job, pool, plan)) plans.push_back(std::move(plan));
            }
          }
        }
      }
    }
  }
  return plans;
}

}  // namespace

std::vector<Parallelism> ServingPlansOf(const ServingJob& job, const ServingPool& pool) {
  const ModelDivisors divisors = DivisorsOf(*job.model.operations);
  SpaceLimits limits = LimitsOf(*job.model.operations, divisors);
  if (pool.slice.accelerator.fabric == hardware::FabricKind::kTorus) limits.fsdp = 16;
  std::vector<Parallelism> plans = PlansWithin(job, pool, divisors, limits);
  if (!plans.empty()) return plans;
  // A slice larger than that is filled all the same.
  limits.data = std::numeric_limits<int64_t>::max();
  return PlansWithin(job, pool, divisors, limits);
}

PlanChoice ChoosePlan(const ServingJob& job, const ServingPool& pool, MappingCache& mappings,
                      const std::function<bool()>& cancelled) {
  PlanChoice choice;
  std::vector<RankedPlan> ranked;
  for (const Parallelism& parallelism : ServingPlansOf(job, pool)) {
    if (cancelled != nullptr && cancelled()) {
      choice.cancelled = true;
      return choice;
    }
    auto made = ReplicaPlan::Make(job, pool, parallelism, NominalBatch(job.workload), mappings);
    if (!made.ok()) {
      if (absl::IsFailedPrecondition(made.status())) choice.figure_missing = made.status();
      continue;
    }
    ++choice.considered_count;
    RankedPlan& one = ranked.emplace_back();
    one.plan = *std::move(made);
    const int64_t max_batch = one.plan->memory().MaxBatch(FullContext(job.workload));
    one.rank = RankOf(job, pool, *one.plan, max_batch);
    if (pool.role != PoolRole::kPrefill) AddBatches(job, *one.plan, max_batch, choice.frontier);
  }
  if (ranked.empty()) return choice;
  choice.figure_missing = absl::OkStatus();
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const RankedPlan& a, const RankedPlan& b) { return a.rank.Order() < b.rank.Order(); });
  size_t chosen = 0;
  for (size_t i = 0; NeedsReplay(job, pool) && i < ranked.size() && ranked[i].rank.tier == PlanTier::kCarries; ++i) {
    const PlannedPool planned{ranked[i].plan.get(), pool.replica_count,
                              ranked[i].plan->memory().MaxBatch(FullContext(job.workload))};
    ReplicaTrials trials;
    const bool meets = trials.Meets(job, planned, cancelled, choice.cancelled);
    if (choice.cancelled) return choice;
    if (i == 0 || meets) choice.trials = std::move(trials);
    if (!meets) continue;
    chosen = i;
    break;
  }
  choice.fits = ranked[chosen].rank.tier != PlanTier::kTooLarge;
  choice.plan = std::move(ranked[chosen].plan);
  return choice;
}

}  // namespace sliceplan::planner
