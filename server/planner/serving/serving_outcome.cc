#include "server/planner/serving/serving_outcome.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/planner/serving/plan_choice.h"
#include "server/planner/serving/replica_count.h"
#include "server/planner/serving/replica_plan.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

using hardware::DataType;

// A relaxed target is met with room for the digits that it is written in.
constexpr double kRelaxed = 1.001;
// Shares of queueing below this are not what a target is missed by.
constexpr double kLeastQueueing = 0.05;

// One limit and what it is compared with.
struct Check {
  absl::string_view name;  // "ttft.p95_seconds"
  absl::string_view words;
  double seconds = 0;
  double limit = 0;
  double floor = 0;
};

// The names of the limits of one kind of latency: mean, median, p95, p99.
struct LimitNames {
  std::array<absl::string_view, 4> fields;
  std::array<absl::string_view, 4> words;
};
constexpr LimitNames kTtft = {
    {"slo.ttft.mean_seconds", "slo.ttft.p50_seconds", "slo.ttft.p95_seconds", "slo.ttft.p99_seconds"},
    {"mean TTFT", "median TTFT", "p95 TTFT", "p99 TTFT"}};
constexpr LimitNames kTpot = {
    {"slo.tpot.mean_seconds", "slo.tpot.p50_seconds", "slo.tpot.p95_seconds", "slo.tpot.p99_seconds"},
    {"mean TPOT", "median TPOT", "p95 TPOT", "p99 TPOT"}};
constexpr LimitNames kEndToEnd = {
    {"slo.end_to_end.mean_seconds", "slo.end_to_end.p50_seconds", "slo.end_to_end.p95_seconds",
     "slo.end_to_end.p99_seconds"},
    {"mean end-to-end time", "median end-to-end time", "p95 end-to-end time", "p99 end-to-end time"}};

void AddChecks(const LimitNames& names, const Latency& latency, const LatencyTargets& limits, double floor,
               std::vector<Check>& checks) {
  const std::array<double, 4> seconds = {latency.mean_seconds, latency.p50_seconds, latency.p95_seconds,
                                         latency.p99_seconds};
  const std::array<std::optional<double>, 4> most = {limits.mean_seconds, limits.p50_seconds, limits.p95_seconds,
                                                     limits.p99_seconds};
  for (size_t i = 0; i < most.size(); ++i) {
    if (most[i]) checks.push_back({names.fields[i], names.words[i], seconds[i], *most[i], floor});
  }
}

// The same job with narrower weights or cache; whether the batch then fits.
bool FitsWith(const ServingJob& job, const ReplicaPlan& plan, int64_t batch_size, MappingCache& mappings) {
  ServingPool pool = plan.pool();
  auto made = ReplicaPlan::Make(job, pool, plan.parallelism(), batch_size, mappings);
  return made.ok() && (*made)->memory().MaxBatch(FullContext(job.workload)) >= batch_size;
}

std::string SliceWords(const hardware::Slice& slice) {
  const bool torus = slice.accelerator.fabric == hardware::FabricKind::kTorus;
  return torus ? absl::StrCat(slice.topology, " (", CountWords(slice.chip_count), " chips)")
               : absl::StrCat(CountWords(slice.chip_count), " chips");
}

// The field of the request that makes a pool's slice another one.
FieldChange SliceChange(const ServingJob& job, const ServingPool& pool, const hardware::Slice& slice) {
  const bool torus = slice.accelerator.fabric == hardware::FabricKind::kTorus;
  const std::string prefix = job.pools_given ? absl::StrCat("pools[", &pool - job.pools.data(), "].") : "";
  return {absl::StrCat(prefix, torus ? "slice.topology" : "slice.chip_count"),
          torus ? slice.topology : absl::StrCat(slice.chip_count)};
}

// Of the larger slices, by any plan.
std::optional<hardware::Slice> SmallestThatFits(const ServingJob& job, const ServingPool& pool, int64_t batch_size,
                                                MappingCache& mappings) {
  if (pool.larger_slices == nullptr) return std::nullopt;
  ServingPool larger = pool;
  for (hardware::Slice& slice : pool.larger_slices()) {
    larger.slice = std::move(slice);
    for (const Parallelism& plan : ServingPlansOf(job, larger)) {
      auto made = ReplicaPlan::Make(job, larger, plan, batch_size, mappings);
      if (made.ok() && (*made)->memory().MaxBatch(FullContext(job.workload)) >= batch_size) return larger.slice;
    }
  }
  return std::nullopt;
}

std::optional<Fix> MemoryFix(const ServingJob& job, const ReplicaPlan& plan, int64_t batch_size,
                             MappingCache& mappings) {
  const int32_t most = plan.memory().MaxBatch(FullContext(job.workload));
  if (most >= 1) {
    return Fix{"SMALLER_BATCH",
               absl::StrCat("At most ", CountWords(most), " sequences fit."),
               {{"workload.batch_size", absl::StrCat(most)}},
               plan.TokenSeconds(most, DecodeContext(job.workload))};
  }
  ServingJob changed = job;
  const bool int8 = plan.pool().slice.accelerator.MatmulRate(DataType::kInt8) >
                    plan.pool().slice.accelerator.MatmulRate(DataType::kFp8);
  const DataType narrow = int8 ? DataType::kInt8 : DataType::kFp8;
  const std::string value = int8 ? "DATA_TYPE_INT8" : "DATA_TYPE_FP8";
  changed.workload.precision.kv_cache = narrow;
  if (hardware::BytesPerElement(job.workload.precision.kv_cache) > 1 && FitsWith(changed, plan, batch_size, mappings)) {
    return Fix{"NARROWER_CACHE",
               absl::StrCat("It fits with a cache in ", hardware::DataTypeName(narrow), "."),
               {{"workload.precision.kv_cache", value}},
               std::nullopt};
  }
  changed = job;
  changed.workload.precision.weights = narrow;
  if (FitsWith(changed, plan, batch_size, mappings)) {
    return Fix{"NARROWER_WEIGHTS",
               absl::StrCat("It fits with weights in ", hardware::DataTypeName(narrow), "."),
               {{"workload.precision.weights", value}},
               std::nullopt};
  }
  if (const std::optional<hardware::Slice> larger = SmallestThatFits(job, plan.pool(), batch_size, mappings)) {
    return Fix{"MORE_CHIPS",
               absl::StrCat("It fits on ", SliceWords(*larger), ", the smallest such slice that holds it."),
               {SliceChange(job, plan.pool(), *larger)},
               std::nullopt};
  }
  // Weights and one cache over more chips.
  const ServingMemory memory = plan.memory().Of(1, FullContext(job.workload));
  const double room = static_cast<double>(memory.capacity_bytes) - static_cast<double>(memory.reserve_bytes) -
                      static_cast<double>(memory.activations_bytes);
  if (room <= 0) return std::nullopt;
  const double sharded = static_cast<double>(memory.weights_bytes + memory.kv_cache_bytes) *
                         static_cast<double>(plan.pool().slice.chip_count);
  const auto chips = static_cast<int64_t>(std::ceil(sharded / room));
  if (chips <= plan.pool().slice.chip_count) return std::nullopt;
  return Fix{"MORE_CHIPS",
             absl::StrCat("Weights and one cache need at least ", CountWords(chips), " of these chips."),
             {},
             std::nullopt};
}

}  // namespace

void SetNoLegalPlan(const ServingPool& pool, ServingEstimate& estimate) {
  estimate.outcome = ServingOutcome::kNoLegalPlan;
  ServingShortfall shortfall;
  shortfall.limit = "legal_plan";
  shortfall.needed = 1;
  shortfall.missing = 1;
  shortfall.sentence =
      absl::StrCat("There is no legal way to spread this model over ", CountWords(pool.slice.TotalChips()), " chips.");
  estimate.shortfall = shortfall;
  estimate.chip_count = pool.slice.TotalChips() * pool.replica_count;
}

void SetOutOfMemory(const ServingJob& job, const ReplicaPlan& plan, int64_t batch_size, MappingCache& mappings,
                    ServingEstimate& estimate) {
  estimate.outcome = ServingOutcome::kOutOfMemory;
  const ServingMemory memory = plan.memory().Of(batch_size, FullContext(job.workload));
  ServingShortfall shortfall;
  shortfall.limit = "hbm_bytes";
  shortfall.needed = static_cast<double>(memory.used_bytes);
  // The engine's share of the memory may be what limits.
  shortfall.available = std::min(static_cast<double>(memory.capacity_bytes), plan.memory().UsableBytes(memory));
  shortfall.missing = std::max(1.0, shortfall.needed - shortfall.available);
  shortfall.sentence = absl::StrCat(CountWords(batch_size), batch_size == 1 ? " sequence needs " : " sequences need ",
                                    BytesWords(static_cast<double>(memory.kv_cache_bytes)), " of cache beside ",
                                    BytesWords(static_cast<double>(memory.weights_bytes)),
                                    " of weights on a chip of which the engine takes ", BytesWords(shortfall.available),
                                    ": ", BytesWords(shortfall.missing), " too much.");
  estimate.shortfall = std::move(shortfall);
  estimate.smallest_fix = MemoryFix(job, plan, batch_size, mappings);
}

void SetUnstable(const ServingJob& job, double saturation, ServingEstimate& estimate) {
  estimate.outcome = ServingOutcome::kUnstable;
  ServingShortfall shortfall;
  shortfall.limit = "requests_per_second";
  shortfall.needed = job.workload.requests_per_second;
  shortfall.available = saturation;
  shortfall.missing = std::max(1e-9, shortfall.needed - shortfall.available);
  shortfall.sentence = absl::StrCat(NumberWords(shortfall.needed), " requests a second arrive where ",
                                    NumberWords(saturation), " can be served: the queue grows without end.");
  estimate.shortfall = std::move(shortfall);
}

void JudgeTargets(const ServingJob& job, int64_t max_batch_size, const BatchPoint& floor, double queueing_share,
                  ServingEstimate& estimate) {
  if (estimate.outcome != ServingOutcome::kFeasible || !estimate.ttft) return;
  std::vector<Check> checks;
  AddChecks(kTtft, *estimate.ttft, job.slo.ttft, floor.ttft_seconds, checks);
  AddChecks(kTpot, *estimate.tpot, job.slo.tpot, floor.tpot_seconds, checks);
  AddChecks(kEndToEnd, *estimate.end_to_end, job.slo.end_to_end, floor.end_to_end_seconds, checks);
  const Check* worst = nullptr;
  for (const Check& check : checks) {
    if (check.seconds <= check.limit) continue;
    if (worst == nullptr || check.seconds / check.limit > worst->seconds / worst->limit) worst = &check;
  }
  if (worst == nullptr) return;
  estimate.outcome = ServingOutcome::kMissesSlo;
  ServingShortfall shortfall;
  shortfall.limit = std::string(worst->name);
  shortfall.needed = worst->seconds;
  shortfall.available = worst->limit;
  shortfall.missing = worst->seconds - worst->limit;
  shortfall.floor = worst->floor;
  const bool reachable = worst->floor <= worst->limit;
  shortfall.sentence = absl::StrCat(
      "The ", worst->words, " of ", SecondsWords(worst->seconds), " is ", NumberWords(worst->seconds / worst->limit),
      " times the target of ", SecondsWords(worst->limit),
      absl::StartsWith(worst->name, "slo.ttft") && queueing_share > kLeastQueueing
          ? absl::StrCat(", because ", PercentWords(queueing_share), " of TTFT is queueing")
          : "",
      reachable ? absl::StrCat("; a request alone takes ", SecondsWords(worst->floor), ".")
                : absl::StrCat("; these chips cannot do better than ", SecondsWords(worst->floor),
                               " whatever the load: relax the target to that, or use faster or more chips."));
  estimate.shortfall = std::move(shortfall);
  if (!reachable) {
    estimate.smallest_fix = Fix{"RELAX_TARGET",
                                absl::StrCat("Under this load it takes ", SecondsWords(worst->seconds), "."),
                                {{std::string(worst->name), absl::StrCat(worst->seconds * kRelaxed)}},
                                worst->seconds};
    return;
  }
  if (job.workload.load != ServingLoadKind::kBatch || !estimate.best_point || max_batch_size < 1) return;
  const int32_t batch = estimate.best_point->batch_size;
  estimate.smallest_fix = Fix{"SMALLER_BATCH",
                              absl::StrCat("A batch of ", CountWords(batch), " meets every target."),
                              {{"workload.batch_size", absl::StrCat(batch)}},
                              estimate.best_point->tpot_seconds};
}

std::vector<FieldChange> RelaxTargets(const ServingEstimate& estimate, ServingSlo& slo) {
  std::vector<FieldChange> changes;
  if (!estimate.ttft || !estimate.tpot || !estimate.end_to_end) return changes;
  double worst = 0;
  const auto relax = [&](const LimitNames& names, const Latency& latency, LatencyTargets& limits) {
    const std::array<double, 4> seconds = {latency.mean_seconds, latency.p50_seconds, latency.p95_seconds,
                                           latency.p99_seconds};
    const std::array<std::optional<double>*, 4> most = {&limits.mean_seconds, &limits.p50_seconds, &limits.p95_seconds,
                                                        &limits.p99_seconds};
    for (size_t i = 0; i < most.size(); ++i) {
      if (!*most[i] || seconds[i] <= **most[i]) continue;
      const double ratio = seconds[i] / **most[i];
      const std::string value = absl::StrCat(seconds[i] * kRelaxed);
      FieldChange change{std::string(names.fields[i]), value};
      changes.insert(ratio > worst ? changes.begin() : changes.end(), std::move(change));
      worst = std::max(worst, ratio);
      *most[i] = std::stod(value);
    }
  };
  relax(kTtft, *estimate.ttft, slo.ttft);
  relax(kTpot, *estimate.tpot, slo.tpot);
  relax(kEndToEnd, *estimate.end_to_end, slo.end_to_end);
  return changes;
}

bool MeetsTargets(const SystemResult& result, const ServingSlo& slo) {
  std::vector<Check> checks;
  AddChecks(kTtft, result.ttft, slo.ttft, 0, checks);
  AddChecks(kTpot, result.tpot, slo.tpot, 0, checks);
  AddChecks(kEndToEnd, result.end_to_end, slo.end_to_end, 0, checks);
  return std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.seconds <= check.limit; });
}

void SuggestReplicas(const ServingJob& job, int64_t replica_count, ServingEstimate& estimate) {
  estimate.replica_count = static_cast<int32_t>(replica_count);
  if (!job.slo.Any()) {
    estimate.assumptions.push_back(
        absl::StrCat("replica_count: none busier than ", PercentWords(kTargetUtilization), " of what it sustains"));
  }
  if (estimate.outcome != ServingOutcome::kMissesSlo && estimate.outcome != ServingOutcome::kUnstable) return;
  Fix fix{"MORE_REPLICAS",
          absl::StrCat(CountWords(replica_count), " replicas meet the rate",
                       job.slo.Any() ? " and every target."
                                     : absl::StrCat(", none busier than ", PercentWords(kTargetUtilization), ".")),
          {},
          std::nullopt};
  // A request that names one slice has no field for them.
  if (job.pools_given) fix.changes.push_back({"pools[0].replica_count", absl::StrCat(replica_count)});
  estimate.smallest_fix = std::move(fix);
}

}  // namespace sliceplan::planner
