#include "server/rpc/convert/sharding_request.h"

#include <array>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "server/planner/workload_check.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/job_parts.h"
#include "server/rpc/convert/model.h"
#include "server/rpc/convert/ranges.h"
#include "server/rpc/convert/workload.h"

namespace sliceplan::rpc {
namespace {

constexpr double kMaxDeadlineSeconds = 1e12;
constexpr double kMaxBudgetUsd = 1e15;

// A link to the host that every candidate may lack: the engine counts those that do.
constexpr double kSomePcieRate = 1e9;

// The job as one kind of chip runs it.
struct Setting {
  planner::TrainingWorkload workload;
  Assumptions assumptions;
};

// When the training must be over, and what it may cost.
void ReadEnd(const v1::Constraints& proto, const FieldPath& path, Violations& violations,
             planner::SearchConstraints& constraints) {
  if (proto.has_job_deadline_seconds()) {
    CheckPositive(proto.job_deadline_seconds(), kMaxDeadlineSeconds, FieldPath(path, "job_deadline_seconds"),
                  violations);
    constraints.deadline_seconds = proto.job_deadline_seconds();
  }
  if (proto.has_budget_usd()) {
    CheckPositive(proto.budget_usd(), kMaxBudgetUsd, FieldPath(path, "budget_usd"), violations);
    constraints.budget_usd = proto.budget_usd();
  }
  if (proto.has_slo()) {
    violations.Add(FieldPath(path, "slo"), "is for serving; a training has a job_deadline_seconds.", "SERVING_ONLY");
  }
}

// Ranges that the engine checks, beside those of the conversion.
void CheckJob(const v1::ProposeShardingRequest& request, const FieldPath& path,
              const planner::TrainingWorkload& workload, const SearchQuestion& question, Violations& violations) {
  planner::TrainingJob job;
  job.workload = workload;
  job.reliability = question.search.reliability;
  job.slice.accelerator.pcie_bytes_per_second = kSomePcieRate;
  job.deadline_seconds = question.search.constraints.deadline_seconds;
  job.budget_usd = question.search.constraints.budget_usd;
  if (request.pricing().has_usd_per_chip_hour()) job.usd_per_chip_hour = request.pricing().usd_per_chip_hour();
  std::vector<hardware::Violation> found;
  std::vector<std::string> ignored;
  planner::CheckWorkload(job, found, ignored);
  if (question.search.objective == planner::Objective::kMinTimeToTrain && !workload.total_tokens.has_value()) {
    found.push_back({"workload.total_tokens", "MIN_TIME_TO_TRAIN needs the length of the training.",
                     "TOTAL_TOKENS_REQUIRED", hardware::Violation::Kind::kInvalid});
  }
  AddEngineViolations(request, path, std::move(found), violations);
}

void AddOffload(SearchQuestion& question) {
  std::set<std::string> names;
  for (const size_t left_out : planner::AddOffloadVariants(question.search)) {
    const hardware::Slice& slice = question.search.candidates[left_out].slice;
    names.insert(slice.accelerator_id.empty() ? slice.accelerator.name : slice.accelerator_id);
  }
  if (names.empty()) return;
  question.assumptions.Add("constraints.allow_offload", "",
                           absl::StrCat("Host memory or the link to it is not known for some slices of ",
                                        absl::StrJoin(names, ", "), ": no offload is searched there."));
}

}  // namespace

std::string FieldOfSearch(absl::string_view field) {
  if (absl::ConsumePrefix(&field, "workload.")) return absl::StrCat("training.", field);
  for (const absl::string_view limit : {"job_deadline_seconds", "budget_usd"}) {
    if (field == limit) return absl::StrCat("constraints.", field);
  }
  for (const absl::string_view level : {"ici", "dcn"}) {
    absl::string_view axis = field;
    if (absl::ConsumePrefix(&axis, absl::StrCat("parallelism.", level))) {
      return absl::StrCat("constraints.fixed_", level, axis);
    }
  }
  for (const absl::string_view allowed : {"allow_idle_chips", "allow_padding"}) {
    if (field == absl::StrCat("parallelism.", allowed)) return absl::StrCat("constraints.", allowed);
  }
  return std::string(field);
}

void AddEngineViolations(const v1::ProposeShardingRequest& request, const FieldPath& path,
                         std::vector<hardware::Violation> found, Violations& violations) {
  for (hardware::Violation& violation : found) {
    violation.field = FieldOfSearch(violation.field);
    if (request.training().has_global_batch_tokens() && violation.field == "training.global_batch_size") {
      violation.field = "training.global_batch_tokens";
    }
    if (request.training().has_step_count() && violation.field == "training.total_tokens") {
      violation.field = "training.step_count";
    }
  }
  violations.AddMissing(path, found);
}

void ToSearchQuestion(const v1::ProposeShardingRequest& request, const catalog::Catalog& catalog, ModelCache& models,
                      ProfileCache& profiles, const FieldPath& path, SearchQuestion& question, Violations& violations) {
  planner::ShardingQuestion& search = question.search;
  question.model = ToModel(request.model(), catalog, models, FieldPath(path, "model"), violations);
  const transformer::ModelOperations* const operations =
      question.model == nullptr ? nullptr : &question.model->operations;
  search.model = operations;
  if (question.model != nullptr) question.model_name = ModelName(request.model(), catalog, *question.model);
  const FieldPath training_path(path, "training");
  question.edited_operations = EditedExperts(request.training(), operations, training_path, violations);
  if (question.edited_operations.has_value()) search.model = &*question.edited_operations;

  ReadMode(request, path, violations, question.assumptions, question.limits);
  const FieldPath constraints_path(path, "constraints");
  ReadEnd(request.constraints(), constraints_path, violations, search.constraints);
  ReadConstraints(request.constraints(), constraints_path, violations, search.constraints);
  ReadLimits(request, path, violations, question.limits);
  search.objective = question.limits.objective;
  search.mode = question.limits.mode;
  search.proposal_count = question.limits.proposal_count;
  search.reliability = ToReliability(request.reliability(), FieldPath(path, "reliability"), violations);
  question.candidates =
      ToCandidates(request, catalog, HasExperts(search.model), path, violations, question.assumptions);

  // By whether the chip is a TPU. Both differ in formats alone, so that what is wrong is said once.
  std::array<std::optional<Setting>, 2> settings;
  const auto setting_of = [&](bool is_tpu) -> const Setting& {
    std::optional<Setting>& setting = settings[is_tpu ? 1 : 0];
    if (setting.has_value()) return *setting;
    const bool is_first = !settings[is_tpu ? 0 : 1].has_value();
    WorkloadSetting words;
    if (question.model != nullptr) words.max_position_count = question.model->architecture.max_position_count;
    words.is_tpu = is_tpu;
    Violations said;
    setting.emplace();
    setting->workload =
        ToWorkload(request.training(), words, training_path, is_first ? violations : said, setting->assumptions);
    question.assumptions.AddNew(setting->assumptions);
    return *setting;
  };
  if (question.candidates.empty()) setting_of(true);

  TermsFinder finder(request, catalog, profiles, path, question, violations);
  search.candidates.reserve(question.candidates.size());
  question.terms.reserve(question.candidates.size());
  for (const Candidate& candidate : question.candidates) {
    const CandidateTerms* const terms = finder.TermsOf(candidate);
    planner::SearchCandidate& ours = search.candidates.emplace_back();
    ours.slice = candidate.slice.slice;
    ours.workload = setting_of(IsTpu(candidate.slice)).workload;
    ours.profile = terms->profile.get();
    if (terms->price.has_usd_per_chip_hour()) ours.usd_per_chip_hour = terms->price.usd_per_chip_hour();
    if (candidate.pool != nullptr) ours.available_after_seconds = candidate.pool->available_after_seconds();
    question.terms.push_back(terms);
  }
  if (request.constraints().allow_offload()) AddOffload(question);
  for (const std::optional<Setting>& setting : settings) {
    if (setting.has_value()) CheckJob(request, path, setting->workload, question, violations);
  }
}

}  // namespace sliceplan::rpc
