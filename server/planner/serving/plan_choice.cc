#include "server/planner/serving/plan_choice.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "server/planner/model_divisors.h"
#include "server/planner/serving/batch_point.h"
#include "server/planner/serving/frontier.h"
#include "server/planner/serving/pool_system.h"
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

int AxisCount(const Parallelism& parallelism) {
  int count = 0;
  for (const LogicalAxis axis : kLogicalAxes) count += parallelism.Degree(axis) > 1 ? 1 : 0;
  return count;
}

// Smaller is better: what does not fit last, then by the load.
struct Rank {
  bool misses_memory = true;
  bool misses_targets = true;
  double cost = std::numeric_limits<double>::max();
  int axes = 0;
  int32_t tensor_complement = 0;

  friend bool operator<(const Rank& a, const Rank& b) {
    return std::tie(a.misses_memory, a.misses_targets, a.cost, a.axes, a.tensor_complement) <
           std::tie(b.misses_memory, b.misses_targets, b.cost, b.axes, b.tensor_complement);
  }
};

Rank RankOf(const ServingJob& job, const ServingPool& pool, const ReplicaPlan& plan, int64_t max_batch) {
  Rank rank;
  rank.axes = AxisCount(plan.parallelism());
  rank.tensor_complement = -plan.parallelism().Degree(LogicalAxis::kTensor);
  const int64_t asked = job.workload.load == ServingLoadKind::kBatch ? job.workload.batch_size : 1;
  rank.misses_memory = max_batch < asked;
  if (rank.misses_memory) {
    rank.cost = -static_cast<double>(plan.memory().Of(asked, FullContext(job.workload)).headroom_bytes);
    return rank;
  }
  const PlannedPool planned{&plan, pool.replica_count, max_batch};
  switch (job.workload.load) {
    case ServingLoadKind::kLargestBatch: {
      const int64_t within = job.slo.Any() ? LargestBatchWithin(job, plan, max_batch) : max_batch;
      const BatchPoint point = PointOf(job, plan, std::max<int64_t>(1, within));
      rank.misses_targets = within < 1;
      rank.cost = within < 1 ? point.tpot_seconds : -point.output_tokens_per_second;
      break;
    }
    case ServingLoadKind::kBatch: {
      const BatchPoint point = PointOf(job, plan, asked);
      rank.misses_targets = !Meets(point, job.slo);
      // The book's decode has its prompts read on chips of their own.
      rank.cost = job.mode == EstimationMode::kRoofline ? point.tpot_seconds : point.end_to_end_seconds;
      break;
    }
    case ServingLoadKind::kConcurrency: {
      const int64_t users = std::max<int64_t>(1, job.workload.concurrency / std::max(1, pool.replica_count));
      const BatchPoint point = PointOf(job, plan, std::min(users, max_batch));
      rank.misses_targets = !Meets(point, job.slo);
      rank.cost = -point.requests_per_second;
      break;
    }
    case ServingLoadKind::kRate: {
      const double rate = job.workload.requests_per_second / pool.replica_count;
      const double sustained = SustainedRate(job, planned) / pool.replica_count;
      rank.misses_targets = rate >= sustained;
      rank.cost = rank.misses_targets ? -sustained : MeanSeconds(job, planned, rate);
      break;
    }
  }
  if (pool.role == PoolRole::kPrefill) rank.cost = plan.PrefillSeconds(1);
  return rank;
}

}  // namespace

namespace {

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
  Rank best;
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
    std::unique_ptr<ReplicaPlan> plan = *std::move(made);
    const int64_t max_batch = plan->memory().MaxBatch(FullContext(job.workload));
    const Rank rank = RankOf(job, pool, *plan, max_batch);
    if (pool.role != PoolRole::kPrefill) AddBatches(job, *plan, max_batch, choice.frontier);
    if (choice.plan != nullptr && !(rank < best)) continue;
    best = rank;
    choice.fits = !rank.misses_memory;
    choice.plan = std::move(plan);
  }
  if (choice.plan != nullptr) choice.figure_missing = absl::OkStatus();
  return choice;
}

}  // namespace sliceplan::planner
