#include "server/rpc/convert/sharding_request.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/util/time_util.h"
#include "server/planner/workload_check.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/job_parts.h"
#include "server/rpc/convert/model.h"
#include "server/rpc/convert/pricing.h"
#include "server/rpc/convert/profile.h"
#include "server/rpc/convert/ranges.h"
#include "server/rpc/convert/workload.h"

namespace sliceplan::rpc {
namespace {

using planner::LogicalAxis;

constexpr int32_t kMaxProposals = 100;
constexpr int64_t kMaxChips = int64_t{1} << 20;
constexpr int64_t kMaxDegree = int64_t{1} << 20;
constexpr double kMaxHeadroomRatio = 0.9;
constexpr double kMaxDeadlineSeconds = 1e12;
constexpr double kMaxBudgetUsd = 1e15;
constexpr int kMaxAxes = 64;
constexpr int kMaxTargets = 64;

// A link to the host that every candidate may lack: the engine counts those that do.
constexpr double kSomePcieRate = 1e9;

// The job as one kind of chip runs it.
struct Setting {
  planner::TrainingWorkload workload;
  Assumptions assumptions;
};

// Degrees that are given; 0 is free.
planner::AxisDegrees ToFixedDegrees(const v1::AxisDegrees& proto, const FieldPath& path, Violations& violations) {
  planner::AxisDegrees degrees;
  const auto set = [&](LogicalAxis axis, int32_t degree) {
    const absl::string_view name = planner::LogicalAxisName(axis);
    degrees[axis] = CheckRange(int64_t{degree}, 0, kMaxDegree, FieldPath(path, name), violations) ? degree : 0;
  };
  set(LogicalAxis::kData, proto.data());
  set(LogicalAxis::kFsdp, proto.fsdp());
  set(LogicalAxis::kTensor, proto.tensor());
  set(LogicalAxis::kContext, proto.context());
  set(LogicalAxis::kExpert, proto.expert());
  set(LogicalAxis::kPipeline, proto.pipeline());
  return degrees;
}

void ReadForbidden(const v1::Constraints& proto, const FieldPath& path, Violations& violations,
                   planner::SearchConstraints& constraints) {
  if (!CheckCount(proto.forbidden_axes_size(), kMaxAxes, FieldPath(path, "forbidden_axes"), violations)) return;
  for (int i = 0; i < proto.forbidden_axes_size(); ++i) {
    const FieldPath axis_path(path, "forbidden_axes", i);
    if (proto.forbidden_axes(i) == v1::PARALLELISM_AXIS_UNSPECIFIED) AddRequired("an axis", axis_path, violations);
    const auto axis = FromProto(kParallelismAxes, proto.forbidden_axes(i), axis_path, violations);
    if (!axis) continue;
    constraints.forbidden[static_cast<size_t>(*axis)] = true;
    if (constraints.fixed_ici[*axis] > 1 || constraints.fixed_dcn[*axis] > 1) {
      violations.Add(axis_path,
                     absl::StrCat(planner::LogicalAxisName(*axis), " is forbidden and fixed above 1; do one of both."),
                     "CONFLICTING_FIELDS");
    }
  }
}

void ReadConstraints(const v1::ProposeShardingRequest& request, const FieldPath& path, Violations& violations,
                     planner::SearchConstraints& constraints) {
  const v1::Constraints& proto = request.constraints();
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
  if (proto.has_max_chip_count()) {
    CheckRange(int64_t{proto.max_chip_count()}, 1, kMaxChips, FieldPath(path, "max_chip_count"), violations);
    constraints.max_chip_count = proto.max_chip_count();
  }
  if (proto.has_hbm_headroom_ratio()) {
    CheckRange(proto.hbm_headroom_ratio(), 0, kMaxHeadroomRatio, FieldPath(path, "hbm_headroom_ratio"), violations);
    constraints.hbm_headroom_ratio = proto.hbm_headroom_ratio();
  }
  constraints.fixed_ici = ToFixedDegrees(proto.fixed_ici(), FieldPath(path, "fixed_ici"), violations);
  constraints.fixed_dcn = ToFixedDegrees(proto.fixed_dcn(), FieldPath(path, "fixed_dcn"), violations);
  ReadForbidden(proto, path, violations, constraints);
  constraints.allow_idle_chips = proto.allow_idle_chips();
  constraints.allow_padding = proto.allow_padding();
}

void ReadLimits(const v1::ProposeShardingRequest& request, const FieldPath& path, Violations& violations,
                SearchQuestion& question) {
  if (request.has_top_k() &&
      CheckRange(int64_t{request.top_k()}, 1, kMaxProposals, FieldPath(path, "top_k"), violations)) {
    question.search.proposal_count = static_cast<size_t>(request.top_k());
  }
  if (CheckCount(request.render_size(), kMaxTargets, FieldPath(path, "render"), violations)) {
    for (int i = 0; i < request.render_size(); ++i) {
      const FieldPath target_path(path, "render", i);
      if (request.render(i) == v1::RENDER_TARGET_UNSPECIFIED) AddRequired("a target", target_path, violations);
      const auto target = FromProto(kRenderTargets, request.render(i), target_path, violations);
      if (!target || std::find(question.render.begin(), question.render.end(), *target) != question.render.end()) {
        continue;
      }
      question.render.push_back(*target);
    }
  }
  if (!request.has_search_time_limit()) return;
  using google::protobuf::util::TimeUtil;
  const google::protobuf::Duration& limit = request.search_time_limit();
  const bool in_range = limit.seconds() >= 0 && limit.nanos() >= 0 &&
                        limit.seconds() <= TimeUtil::kDurationMaxSeconds && limit.nanos() < 1'000'000'000 &&
                        (limit.seconds() > 0 || limit.nanos() > 0);
  if (!in_range) {
    violations.Add(FieldPath(path, "search_time_limit"), "must be a time above 0.", "OUT_OF_RANGE");
    return;
  }
  question.time_limit = absl::Seconds(limit.seconds()) + absl::Nanoseconds(limit.nanos());
}

void ReadMode(const v1::ProposeShardingRequest& request, const FieldPath& path, Violations& violations,
              SearchQuestion& question) {
  if (const auto objective = FromProto(kObjectives, request.objective(), FieldPath(path, "objective"), violations)) {
    question.search.objective = *objective;
  } else {
    question.assumptions.Add("objective", "OBJECTIVE_MIN_STEP_TIME", "The shortest step is best.");
  }
  if (const auto mode =
          FromProto(kEstimationModes, request.estimation_mode(), FieldPath(path, "estimation_mode"), violations)) {
    question.search.mode = *mode;
  } else {
    question.assumptions.Add("estimation_mode", "ESTIMATION_MODE_CALIBRATED",
                             "Times as a real runtime reaches them, not the roofline's.");
  }
}

// A twist shortens all-to-alls alone, and those are between experts.
bool HasExperts(const transformer::ModelOperations* model) {
  return model != nullptr &&
         std::any_of(model->layers.begin(), model->layers.end(),
                     [](const transformer::LayerOperations& layer) { return layer.expert_count > 0; });
}

// Price and profile of each candidate, looked up once per accelerator and pool.
class TermsFinder {
 public:
  TermsFinder(const v1::ProposeShardingRequest& request, const catalog::Catalog& catalog, ProfileCache& profiles,
              const FieldPath& path, SearchQuestion& question, Violations& violations)
      : request_(request),
        catalog_(catalog),
        profiles_(profiles),
        path_(path),
        question_(question),
        violations_(violations) {
    // Says what is wrong with fields of the request; below it would be said again for each accelerator.
    v1::PriceUsed unused;
    ResolvePrice(request.pricing(), "", catalog, FieldPath(path, "pricing"), violations, &unused);
    profile_name_is_good_ =
        CheckProfileName(request.calibration_profile(), catalog, FieldPath(path, "calibration_profile"), violations);
  }

  const CandidateTerms* TermsOf(const Candidate& candidate) {
    const hardware::Slice& slice = candidate.slice.slice;
    const auto key = std::make_tuple(slice.accelerator_id, slice.accelerator.fabric, candidate.pool);
    CandidateTerms*& terms = known_[key];
    if (terms == nullptr) {
      question_.all_terms.push_back(std::make_unique<CandidateTerms>());
      terms = question_.all_terms.back().get();
      SetPrice(candidate, *terms);
      SetProfile(candidate, *terms);
    }
    return terms;
  }

 private:
  void SetPrice(const Candidate& candidate, CandidateTerms& terms) {
    v1::Pricing pricing = request_.pricing();
    if (candidate.pool != nullptr) {
      const v1::CapacityPool& pool = *candidate.pool;
      if (pool.price_model() != v1::PRICE_MODEL_UNSPECIFIED) pricing.set_price_model(pool.price_model());
      if (pool.has_usd_per_chip_hour()) pricing.set_usd_per_chip_hour(pool.usd_per_chip_hour());
    }
    const std::string& id = candidate.slice.slice.accelerator_id;
    Violations said;
    ResolvePrice(pricing, id, catalog_, FieldPath(path_, "pricing"), said, &terms.price);
    if (candidate.pool != nullptr && candidate.pool->has_usd_per_chip_hour()) {
      terms.price.set_sentence("The price of the pool.");
    }
    terms.price_model = pricing.price_model();
    if (terms.price.has_row()) terms.price_model = terms.price.row().price_model();
    if (!pricing.has_usd_per_chip_hour()) {
      terms.assumptions.Add(
          "pricing",
          terms.price.has_usd_per_chip_hour() ? absl::StrCat(terms.price.usd_per_chip_hour()) : std::string(),
          terms.price.sentence());
    }
    if (terms.price.has_usd_per_chip_hour()) return;
    const std::string& name = id.empty() ? candidate.slice.slice.accelerator.name : id;
    std::vector<std::string>& unpriced = question_.unpriced_accelerators;
    if (std::find(unpriced.begin(), unpriced.end(), name) == unpriced.end()) unpriced.push_back(name);
  }

  void SetProfile(const Candidate& candidate, CandidateTerms& terms) {
    if (question_.search.mode != planner::EstimationMode::kCalibrated || !profile_name_is_good_) return;
    Violations found;
    const FieldPath profile_path(path_, "calibration_profile");
    terms.profile = ToTrainingProfile(request_.calibration_profile(), candidate.slice, catalog_, profiles_,
                                      profile_path, found, terms.assumptions);
    if (found.empty() || profile_is_reported_) return;
    profile_is_reported_ = true;
    const FieldError& error = found.errors().front();
    violations_.Add(profile_path, error.description, error.reason);
  }

  const v1::ProposeShardingRequest& request_;
  const catalog::Catalog& catalog_;
  ProfileCache& profiles_;
  const FieldPath& path_;
  SearchQuestion& question_;
  Violations& violations_;
  bool profile_name_is_good_ = true;
  bool profile_is_reported_ = false;
  std::map<std::tuple<std::string, hardware::FabricKind, const v1::CapacityPool*>, CandidateTerms*> known_;
};

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

  ReadMode(request, path, violations, question);
  ReadConstraints(request, FieldPath(path, "constraints"), violations, search.constraints);
  ReadLimits(request, path, violations, question);
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
  for (const std::optional<Setting>& setting : settings) {
    if (setting.has_value()) CheckJob(request, path, setting->workload, question, violations);
  }
}

}  // namespace sliceplan::rpc
