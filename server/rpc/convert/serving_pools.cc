#include "server/rpc/convert/serving_pools.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/planner/mapping.h"
#include "server/planner/words.h"
#include "server/rpc/convert/parallelism.h"
#include "server/rpc/convert/pricing.h"
#include "server/rpc/convert/profile.h"
#include "server/rpc/convert/ranges.h"
#include "server/rpc/convert/serving_enums.h"
#include "server/rpc/convert/slice.h"

namespace sliceplan::rpc {
namespace {

using planner::PoolRole;

constexpr int kMaxPools = 16;
constexpr int64_t kMaxReplicas = int64_t{1} << 20;
constexpr double kMaxUsdPerChipHour = 1e6;

// What only makes sense with gradients. The values that replies fill in are let through, so that a plan can be sent
// back as it came.
void RefuseTrainingFields(const v1::Parallelism& proto, const FieldPath& path, Violations& violations) {
  const auto refuse = [&](bool is_set, absl::string_view name) {
    if (is_set) violations.Add(FieldPath(path, name), "is for training only.", "TRAINING_ONLY");
  };
  refuse(proto.data_zero_stage() > v1::ZERO_STAGE_0, "data_zero_stage");
  refuse(proto.schedule() == v1::PIPELINE_SCHEDULE_GPIPE || proto.schedule() > v1::PIPELINE_SCHEDULE_ONE_F_ONE_B,
         "schedule");
  refuse(proto.virtual_stage_count() > 1, "virtual_stage_count");
}

// Slice and plan of one replica.
void ReadReplica(const v1::Slice* slice, const v1::Parallelism* parallelism, const catalog::Catalog& catalog,
                 const FieldPath& path, ServingQuestion& question, planner::ServingPool& pool, Violations& violations) {
  std::optional<catalog::ResolvedSlice> resolved;
  const FieldPath slice_path(path, "slice");
  if (slice != nullptr) {
    resolved = ToSlice(*slice, catalog, MissingShape::kRefused, slice_path, violations);
  } else {
    AddRequired(question.job.pools_given ? "slice" : "slice or pools", slice_path, violations);
  }
  if (resolved.has_value()) {
    pool.slice = resolved->slice;
    Assumptions notes;
    for (const std::string& note : resolved->notes) notes.Add(note);
    question.assumptions.AddNew(notes);
  }
  if (parallelism != nullptr) {
    const FieldPath parallelism_path(path, "parallelism");
    RefuseTrainingFields(*parallelism, parallelism_path, violations);
    pool.allow_idle_chips = parallelism->allow_idle_chips();
    pool.allow_padding = parallelism->allow_padding();
    pool.parallelism = ToParallelism(*parallelism, pool.slice.slice_count, parallelism_path, violations);
    if (resolved.has_value() && pool.parallelism.has_value() && !pool.parallelism->mapping.empty()) {
      std::vector<hardware::Violation> found;
      planner::CheckMapping(pool.slice, *pool.parallelism, pool.allow_idle_chips, found);
      violations.AddMissing(path, found);
    }
  }
  if (resolved.has_value()) {
    pool.larger_slices = [&catalog, slice = resolved->slice] { return LargerSlices(catalog, slice); };
  }
  question.slices.push_back(std::move(resolved));
}

// All do both, or one pool of prefill hands over to one of decode, or decode is asked about alone.
void CheckRoles(const std::vector<planner::ServingPool>& pools, const FieldPath& path, Violations& violations) {
  const auto count = [&](PoolRole role) {
    return std::count_if(pools.begin(), pools.end(),
                         [&](const planner::ServingPool& pool) { return pool.role == role; });
  };
  const auto prefill = count(PoolRole::kPrefill);
  const auto decode = count(PoolRole::kDecode);
  const auto refuse = [&](absl::string_view why) { violations.Add(path, std::string(why), "POOL_ROLES"); };
  if (count(PoolRole::kBoth) > 0 && prefill + decode > 0) {
    refuse(
        "roles do not go together: replicas that do both stand beside ones that only read prompts or only write "
        "output. Make all POOL_ROLE_BOTH, or POOL_ROLE_PREFILL and POOL_ROLE_DECODE.");
  } else if (prefill > 0 && decode == 0) {
    refuse("POOL_ROLE_PREFILL hands its caches to nobody; add a pool of POOL_ROLE_DECODE, or make it POOL_ROLE_BOTH.");
  } else if (prefill > 1 || (prefill > 0 && decode > 1)) {
    refuse("one pool of POOL_ROLE_PREFILL hands over to one of POOL_ROLE_DECODE; there are more.");
  }
}

// Counts of chips in replies have 32 bits.
void CheckTotal(const std::vector<planner::ServingPool>& pools, const FieldPath& path, Violations& violations) {
  constexpr int64_t kMaxChips = std::numeric_limits<int32_t>::max();
  int64_t chips = 0;
  for (const planner::ServingPool& pool : pools) chips += pool.slice.TotalChips() * pool.replica_count;
  if (chips <= kMaxChips) return;
  violations.Add(path,
                 absl::StrCat("all replicas together have ", planner::CountWords(chips), " chips; at most ",
                              planner::CountWords(kMaxChips), " are planned."),
                 "OUT_OF_RANGE");
}

void ReadGivenPools(const v1::EstimateServingRequest& request, const catalog::Catalog& catalog, const FieldPath& path,
                    ServingQuestion& question, Violations& violations) {
  const FieldPath pools_path(path, "pools");
  if (request.has_slice()) {
    violations.Add(FieldPath(path, "slice"), "pools have slices of their own; give one of the two.", "CONFLICT");
  }
  if (request.has_parallelism()) {
    violations.Add(FieldPath(path, "parallelism"), "pools have plans of their own; set pools[].parallelism.",
                   "CONFLICT");
  }
  if (!CheckCount(request.pools_size(), kMaxPools, pools_path, violations)) return;
  std::vector<planner::ServingPool>& pools = question.job.pools;
  bool legal = true;
  for (int i = 0; i < request.pools_size(); ++i) {
    const v1::Pool& proto = request.pools(i);
    const FieldPath pool_path(path, "pools", i);
    planner::ServingPool& pool = pools.emplace_back();
    const size_t before = violations.size();
    pool.role = FromProto(kPoolRoles, proto.role(), FieldPath(pool_path, "role"), violations).value_or(PoolRole::kBoth);
    if (proto.has_replica_count() && CheckRange(int64_t{proto.replica_count()}, 1, kMaxReplicas,
                                                FieldPath(pool_path, "replica_count"), violations)) {
      pool.replica_count = proto.replica_count();
    }
    legal &= violations.size() == before;
    ReadReplica(proto.has_slice() ? &proto.slice() : nullptr, proto.has_parallelism() ? &proto.parallelism() : nullptr,
                catalog, pool_path, question, pool, violations);
  }
  if (!legal) return;
  CheckRoles(pools, pools_path, violations);
  CheckTotal(pools, pools_path, violations);
}

}  // namespace

void ReadPools(const v1::EstimateServingRequest& request, const catalog::Catalog& catalog, const FieldPath& path,
               ServingQuestion& question, Violations& violations) {
  question.job.pools_given = request.pools_size() > 0;
  if (question.job.pools_given) {
    ReadGivenPools(request, catalog, path, question, violations);
    return;
  }
  ReadReplica(request.has_slice() ? &request.slice() : nullptr,
              request.has_parallelism() ? &request.parallelism() : nullptr, catalog, path, question,
              question.job.pools.emplace_back(), violations);
}

void SetPrices(const v1::Pricing& pricing, const catalog::Catalog& catalog, const FieldPath& path,
               ServingQuestion& question, google::protobuf::RepeatedPtrField<v1::PriceUsed>* prices,
               Violations& violations) {
  // Says what is wrong with the request; below it would be said again for each pool.
  v1::PriceUsed unused;
  ResolvePrice(pricing, "", catalog, path, violations, &unused);
  if (pricing.has_usd_per_chip_hour()) {
    CheckRange(pricing.usd_per_chip_hour(), 0, kMaxUsdPerChipHour, FieldPath(path, "usd_per_chip_hour"), violations);
  }
  Assumptions lines;
  for (planner::ServingPool& pool : question.job.pools) {
    v1::PriceUsed* const price = prices->Add();
    Violations said;
    ResolvePrice(pricing, pool.slice.accelerator_id, catalog, path, said, price);
    if (price->has_usd_per_chip_hour()) pool.usd_per_chip_hour = price->usd_per_chip_hour();
    if (pricing.has_usd_per_chip_hour()) continue;
    Assumptions line;
    line.Add("pricing", price->has_usd_per_chip_hour() ? absl::StrCat(price->usd_per_chip_hour()) : std::string(),
             price->sentence());
    question.assumptions.AddNew(line);
  }
}

void SetProfiles(const std::string& name, const catalog::Catalog& catalog, ProfileCache& profiles,
                 const FieldPath& path, ServingQuestion& question, Violations& violations) {
  question.profiles.resize(question.slices.size());
  if (!CheckProfileName(name, catalog, path, violations)) return;
  if (question.job.mode != planner::EstimationMode::kCalibrated) return;
  for (size_t i = 0; i < question.slices.size(); ++i) {
    if (!question.slices[i].has_value()) continue;
    Violations found;
    Assumptions lines;
    question.profiles[i] = ToServingProfile(name, *question.slices[i], catalog, profiles, path, found, lines);
    question.job.pools[i].efficiency = question.profiles[i].get();
    question.assumptions.AddNew(lines);
    if (found.empty()) continue;
    // The same for every pool.
    violations.Add(path, found.errors().front().description, found.errors().front().reason);
    return;
  }
}

}  // namespace sliceplan::rpc
