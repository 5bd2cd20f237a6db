#include "server/planner/serving/serving_fix.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/planner/serving/count_search.h"
#include "server/planner/serving/serving_load.h"
#include "server/planner/serving/serving_outcome.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

// More replicas than this many times what there are is another system.
constexpr int64_t kMostTimes = 64;
constexpr int64_t kMaxChips = 2'147'483'647;  // of a request
// A lower rate is found to one part in so many of what the system could carry.
constexpr int64_t kRateParts = 64;
// Requests a second; a system that carries less carries nothing.
constexpr double kLeastRate = 1e-9;

absl::string_view RoleName(PoolRole role) {
  return role == PoolRole::kPrefill ? "prefill " : role == PoolRole::kDecode ? "decode " : "";
}

class Finder {
 public:
  Finder(const ServingJob& job, const ServingEstimate& estimate, TryServing try_job)
      : job_(job), estimate_(estimate), try_job_(try_job), planned_(job) {
    for (size_t i = 0; i < job.pools.size(); ++i) planned_.pools[i].parallelism = estimate.pools[i].parallelism;
  }

  std::optional<Fix> Find() {
    // Below the floor no load is light enough.
    const ServingShortfall& shortfall = *estimate_.shortfall;
    const bool reachable =
        estimate_.outcome == ServingOutcome::kUnstable || shortfall.floor.value_or(0) <= shortfall.available;
    std::optional<Fix> fix;
    if (reachable) {
      if (job_.pools_given) fix = MoreReplicas();
      if (!fix) fix = LighterLoad();
    }
    return fix ? fix : RelaxedTargets();
  }

 private:
  bool Passes(const ServingJob& job) const {
    const std::optional<ServingEstimate> estimate = try_job_(job);
    return estimate && estimate->outcome == ServingOutcome::kFeasible;
  }

  // As the caller would ask, plans that were left open left open again.
  std::optional<Fix> Checked(ServingJob changed, std::string code, std::string sentence,
                             std::vector<FieldChange> changes) const {
    for (size_t i = 0; i < job_.pools.size(); ++i) changed.pools[i].parallelism = job_.pools[i].parallelism;
    const std::optional<ServingEstimate> estimate = try_job_(changed);
    if (!estimate || estimate->outcome != ServingOutcome::kFeasible) return std::nullopt;
    Fix fix{std::move(code), std::move(sentence), std::move(changes), std::nullopt};
    if (estimate->tpot) fix.expected_seconds = estimate->tpot->mean_seconds;
    return fix;
  }

  // Empty: beyond what a request may have.
  std::optional<ServingJob> Times(int64_t times) const {
    ServingJob more = planned_;
    int64_t chips = 0;
    for (ServingPool& pool : more.pools) {
      const int64_t count = pool.replica_count * times;
      if (count > kMaxStationReplicas) return std::nullopt;
      pool.replica_count = static_cast<int32_t>(count);
      chips += count * pool.slice.TotalChips();
      if (chips > kMaxChips) return std::nullopt;
    }
    return more;
  }

  // Of every pool as many times more as is enough, then of each as few of them as still are.
  std::optional<Fix> MoreReplicas() const {
    const ServingLoadKind load = job_.workload.load;
    if (load != ServingLoadKind::kRate && load != ServingLoadKind::kConcurrency) return std::nullopt;
    std::optional<ServingJob> enough;
    for (int64_t times = 2; times <= kMostTimes && !enough; times *= 2) {
      enough = Times(times);
      if (!enough) return std::nullopt;
      if (!Passes(*enough)) enough.reset();
    }
    if (!enough) return std::nullopt;
    std::vector<FieldChange> changes;
    std::vector<std::string> words;
    for (size_t i = 0; i < enough->pools.size(); ++i) {
      int32_t& replicas = enough->pools[i].replica_count;
      replicas = static_cast<int32_t>(FirstBelow(job_.pools[i].replica_count, replicas, [&](int64_t count) {
        ServingJob fewer = *enough;
        fewer.pools[i].replica_count = static_cast<int32_t>(count);
        return Passes(fewer);
      }));
      if (replicas == job_.pools[i].replica_count) continue;
      changes.push_back({absl::StrCat("pools[", i, "].replica_count"), absl::StrCat(replicas)});
      words.push_back(absl::StrCat(CountWords(replicas), " ", RoleName(job_.pools[i].role), "replicas",
                                   job_.pools.size() > 1 ? absl::StrCat(" in pools[", i, "]") : ""));
    }
    return Checked(*enough, "MORE_REPLICAS",
                   absl::StrCat("With ", absl::StrJoin(words, " and "), " the load is carried",
                                job_.slo.Any() ? " and every target met." : "."),
                   std::move(changes));
  }

  std::optional<Fix> LighterLoad() const {
    switch (job_.workload.load) {
      case ServingLoadKind::kBatch:
        return Lighter("SMALLER_BATCH", "workload.batch_size", "A batch of ", " meets every target.",
                       &ServingWorkload::batch_size);
      case ServingLoadKind::kConcurrency:
        return Lighter("FEWER_USERS", "workload.concurrency", "At most ", " users at a time are served in time.",
                       &ServingWorkload::concurrency);
      case ServingLoadKind::kRate: return LowerRate();
      case ServingLoadKind::kLargestBatch: break;
    }
    return std::nullopt;
  }

  // The most that passes.
  std::optional<Fix> Lighter(const char* code, const char* field, const char* before, const char* after,
                             int32_t ServingWorkload::*member) const {
    const auto fails = [&](int64_t count) {
      ServingJob lighter = planned_;
      lighter.workload.*member = static_cast<int32_t>(count);
      return !Passes(lighter);
    };
    const int32_t asked = job_.workload.*member;
    if (asked < 2 || fails(1)) return std::nullopt;
    ServingJob lighter = planned_;
    const int64_t most = FirstBetween(1, asked, fails) - 1;
    lighter.workload.*member = static_cast<int32_t>(most);
    return Checked(std::move(lighter), code, absl::StrCat(before, CountWords(most), after),
                   {{field, absl::StrCat(most)}});
  }

  std::optional<Fix> LowerRate() const {
    const double asked = job_.workload.requests_per_second;
    const double top = std::min(asked, estimate_.throughput.saturation_requests_per_second);
    // In the digits that it is written in.
    const auto rate = [top](int64_t parts) {
      const double exact = top * static_cast<double>(parts) / kRateParts;
      const double unit = std::pow(10.0, std::floor(std::log10(exact)) - 2);
      return std::stod(absl::StrCat(std::floor(exact / unit) * unit));
    };
    const auto fails = [&](int64_t parts) {
      ServingJob lighter = planned_;
      lighter.workload.requests_per_second = rate(parts);
      return !Passes(lighter);
    };
    if (!(top > kLeastRate) || fails(1)) return std::nullopt;
    const int64_t parts = FirstBetween(1, kRateParts, fails) - 1;
    ServingJob lighter = planned_;
    lighter.workload.requests_per_second = rate(parts);
    std::string sentence = absl::StrCat("What is there carries ", NumberWords(rate(parts)), " requests a second",
                                        job_.slo.Any() ? " and meets every target." : ".");
    if (!job_.pools_given && estimate_.replica_count) {
      absl::StrAppend(&sentence, " ", CountWords(*estimate_.replica_count),
                      " replicas would carry the rate: ask with `pools` in place of `slice`.");
    }
    return Checked(std::move(lighter), "LOWER_RATE", std::move(sentence),
                   {{"workload.requests_per_second", absl::StrCat(rate(parts))}});
  }

  std::optional<Fix> RelaxedTargets() const {
    ServingJob relaxed = planned_;
    std::vector<FieldChange> changes = RelaxTargets(estimate_, relaxed.slo);
    if (changes.empty()) return std::nullopt;
    const std::string sentence =
        absl::StrCat("Under this load it takes ", SecondsWords(estimate_.shortfall->needed),
                     changes.size() > 1 ? "; other targets that it misses are relaxed with it." : ".");
    return Checked(std::move(relaxed), "RELAX_TARGET", sentence, std::move(changes));
  }

  const ServingJob& job_;
  const ServingEstimate& estimate_;
  TryServing try_job_;
  ServingJob planned_;
};

}  // namespace

std::optional<Fix> ServingFix(const ServingJob& job, const ServingEstimate& estimate, TryServing try_job) {
  return Finder(job, estimate, try_job).Find();
}

}  // namespace sliceplan::planner
