#include "server/rpc/convert/serving_search.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/model.h"
#include "server/rpc/convert/ranges.h"
#include "server/rpc/convert/serving_workload.h"
#include "server/rpc/convert/slice.h"

namespace sliceplan::rpc {
namespace {

constexpr double kMaxUsdPerChipHour = 1e6;

// What only a training has.
void RefuseTrainingFields(const v1::ProposeShardingRequest& request, const FieldPath& path, Violations& violations) {
  const FieldPath constraints_path(path, "constraints");
  const auto refuse = [&](bool is_set, const FieldPath& field, absl::string_view instead) {
    if (is_set) violations.Add(field, absl::StrCat("is for training", instead, "."), "TRAINING_ONLY");
  };
  refuse(request.constraints().has_job_deadline_seconds(), FieldPath(constraints_path, "job_deadline_seconds"),
         "; serving has latency targets, constraints.slo");
  refuse(request.constraints().has_budget_usd(), FieldPath(constraints_path, "budget_usd"),
         "; OBJECTIVE_MIN_COST finds the cheapest way to serve");
  refuse(request.constraints().allow_offload(), FieldPath(constraints_path, "allow_offload"), "");
  refuse(request.has_reliability(), FieldPath(path, "reliability"), "");
  refuse(request.objective() == v1::OBJECTIVE_MIN_TIME_TO_TRAIN, FieldPath(path, "objective"), "");
}

// Counts of chips in replies have 32 bits, and a proposal may have two pools.
constexpr int64_t kMaxPoolChips = int64_t{1} << 30;

// As many replicas as replies can count, and as the free slices of a pool hold.
int64_t MaxReplicas(const Candidate& candidate, int64_t engine_limit) {
  const hardware::Slice& slice = candidate.slice.slice;
  const int64_t most = std::min(engine_limit, kMaxPoolChips / std::max<int64_t>(1, slice.TotalChips()));
  if (candidate.pool == nullptr) return std::max<int64_t>(1, most);
  const int64_t free = candidate.pool->has_free_slice_count() ? candidate.pool->free_slice_count() : 1;
  return std::max<int64_t>(1, std::min(most, free / std::max(1, slice.slice_count)));
}

// What a capacity planner asks for who says nothing: enough for the load and its targets, at the least cost.
void SetDefaultObjective(ServingSearchQuestion& question) {
  planner::ServingQuestion& search = question.search;
  const bool has_price = std::any_of(search.candidates.begin(), search.candidates.end(),
                                     [](const auto& candidate) { return candidate.usd_per_chip_hour.has_value(); });
  search.requires_price = false;
  search.objective = has_price ? planner::Objective::kMinCost : planner::Objective::kMaxThroughputPerChip;
  question.assumptions.Add("objective", v1::Objective_Name(ToProto(kObjectives, search.objective)),
                           has_price ? "What meets the targets at the least cost is best, then the shorter request."
                                     : "What meets the targets with the most tokens per chip is best, then the shorter "
                                       "request: no slice has a public price.");
}

}  // namespace

std::string FieldOfServingSearch(absl::string_view field) {
  if (absl::ConsumePrefix(&field, "workload.")) return absl::StrCat("serving.", field);
  if (field == "slo" || absl::StartsWith(field, "slo.")) return absl::StrCat("constraints.", field);
  // "pools[1].parallelism.ici.tensor": degrees are fixed for all pools alike.
  absl::string_view plan = field;
  if (absl::StartsWith(plan, "pools[")) plan.remove_prefix(std::min(plan.find("].") + 2, plan.size()));
  for (const absl::string_view level : {"ici", "dcn"}) {
    absl::string_view axis = plan;
    if (absl::ConsumePrefix(&axis, absl::StrCat("parallelism.", level))) {
      return absl::StrCat("constraints.fixed_", level, axis);
    }
  }
  for (const absl::string_view allowed : {"allow_idle_chips", "allow_padding"}) {
    if (plan == absl::StrCat("parallelism.", allowed)) return absl::StrCat("constraints.", allowed);
  }
  return std::string(field);
}

void ToServingSearch(const v1::ProposeShardingRequest& request, const catalog::Catalog& catalog, ModelCache& models,
                     ProfileCache& profiles, const FieldPath& path, ServingSearchQuestion& question,
                     Violations& violations) {
  planner::ServingQuestion& search = question.search;
  question.asked = &request.serving();
  question.model = ToModel(request.model(), catalog, models, FieldPath(path, "model"), violations);
  if (question.model != nullptr) {
    search.model = {&question.model->architecture, &question.model->operations};
    question.model_name = ModelName(request.model(), catalog, *question.model);
  }
  search.workload = ToServingWorkload(request.serving(), catalog, models, FieldPath(path, "serving"),
                                      question.draft_model, violations, question.assumptions);
  ReadMode(request, path, violations, question.assumptions, question.limits);
  RefuseTrainingFields(request, path, violations);
  const FieldPath constraints_path(path, "constraints");
  search.slo = ToSlo(request.constraints().slo(), FieldPath(constraints_path, "slo"), violations);
  ReadConstraints(request.constraints(), constraints_path, violations, search.constraints);
  ReadLimits(request, path, violations, question.limits);
  search.objective = question.limits.objective;
  search.mode = question.limits.mode;
  search.proposal_count = question.limits.proposal_count;
  if (request.pricing().has_usd_per_chip_hour()) {
    const FieldPath pricing_path(path, "pricing");
    CheckRange(request.pricing().usd_per_chip_hour(), 0, kMaxUsdPerChipHour,
               FieldPath(pricing_path, "usd_per_chip_hour"), violations);
  }
  question.candidates =
      ToCandidates(request, catalog, HasExperts(search.model.operations), path, violations, question.assumptions);
  TermsFinder finder(request, catalog, profiles, path, question, violations);
  search.candidates.reserve(question.candidates.size());
  question.terms.reserve(question.candidates.size());
  for (const Candidate& candidate : question.candidates) {
    const CandidateTerms* const terms = finder.TermsOf(candidate);
    planner::ServingCandidate& ours = search.candidates.emplace_back();
    ours.slice = candidate.slice.slice;
    ours.larger_slices = [&catalog, slice = ours.slice] { return LargerSlices(catalog, slice); };
    ours.efficiency = terms->serving_profile.get();
    if (terms->price.has_usd_per_chip_hour()) ours.usd_per_chip_hour = terms->price.usd_per_chip_hour();
    ours.max_replica_count = MaxReplicas(candidate, ours.max_replica_count);
    question.terms.push_back(terms);
  }
  if (request.objective() == v1::OBJECTIVE_UNSPECIFIED) SetDefaultObjective(question);
}

}  // namespace sliceplan::rpc
