#include "server/rpc/convert/training_job.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/planner/legality.h"
#include "server/planner/mapping.h"
#include "server/planner/workload_check.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/job_parts.h"
#include "server/rpc/convert/model.h"
#include "server/rpc/convert/parallelism.h"
#include "server/rpc/convert/pricing.h"
#include "server/rpc/convert/profile.h"
#include "server/rpc/convert/ranges.h"
#include "server/rpc/convert/slice.h"
#include "server/rpc/convert/workload.h"

namespace sliceplan::rpc {
namespace {

void SetMode(const v1::EstimateTrainingRequest& request, const catalog::Catalog& catalog, ProfileCache& profiles,
             const FieldPath& path, TrainingQuestion& question, Violations& violations) {
  planner::TrainingJob& job = question.job;
  const FieldPath profile_path(path, "calibration_profile");
  if (const auto mode =
          FromProto(kEstimationModes, request.estimation_mode(), FieldPath(path, "estimation_mode"), violations)) {
    job.mode = *mode;
  } else {
    question.assumptions.Add("estimation_mode", "ESTIMATION_MODE_CALIBRATED",
                             "Times as a real runtime reaches them, not the roofline's.");
  }
  if (job.mode != planner::EstimationMode::kCalibrated || !question.slice.has_value()) {
    CheckProfileName(request.calibration_profile(), catalog, profile_path, violations);
    return;
  }
  question.profile = ToTrainingProfile(request.calibration_profile(), *question.slice, catalog, profiles, profile_path,
                                       violations, question.assumptions);
  job.profile = question.profile.get();
}

// What the engine would say next, beside a request that is wrong already.
void AddRestOfViolations(const v1::EstimateTrainingRequest& request, const FieldPath& path, TrainingQuestion& question,
                         Violations& violations) {
  planner::TrainingJob& job = question.job;
  if (!question.slice.has_value()) {
    // Without a chip nothing can be said of its link to the host.
    job.workload.optimizer_offload = job.workload.activation_offload = false;
    if (job.workload.remat_policy == planner::RematPolicy::kCustom) job.workload.custom_remat = {};
  }
  std::vector<hardware::Violation> found;
  std::vector<std::string> ignored;
  planner::CheckWorkload(job, found, ignored);
  if (question.model != nullptr && question.slice.has_value() && job.parallelism.has_value()) {
    planner::CheckParallelism(*job.model, job.slice, job.workload, *job.parallelism, job.allow_idle_chips,
                              job.allow_padding, found, ignored);
  }
  AddEngineViolations(request, path, std::move(found), violations);
}

}  // namespace

void AddEngineViolations(const v1::EstimateTrainingRequest& request, const FieldPath& path,
                         std::vector<hardware::Violation> found, Violations& violations) {
  for (hardware::Violation& violation : found) {
    if (request.workload().has_global_batch_tokens() && violation.field == "workload.global_batch_size") {
      violation.field = "workload.global_batch_tokens";
    }
    if (request.workload().has_step_count() && violation.field == "workload.total_tokens") {
      violation.field = "workload.step_count";
    }
  }
  violations.AddMissing(path, found);
}

void ToTrainingJob(const v1::EstimateTrainingRequest& request, const catalog::Catalog& catalog, ModelCache& models,
                   ProfileCache& profiles, const FieldPath& path, TrainingQuestion& question, v1::PriceUsed* price,
                   Violations& violations) {
  planner::TrainingJob& job = question.job;
  question.model = ToModel(request.model(), catalog, models, FieldPath(path, "model"), violations);
  if (question.model != nullptr) job.model = &question.model->operations;

  const FieldPath slice_path(path, "slice");
  if (request.has_slice()) {
    question.slice = ToSlice(request.slice(), catalog, MissingShape::kRefused, slice_path, violations);
  } else {
    AddRequired("slice", slice_path, violations);
  }
  WorkloadSetting setting;
  if (question.model != nullptr) setting.max_position_count = question.model->architecture.max_position_count;
  if (question.slice.has_value()) {
    job.slice = question.slice->slice;
    setting.is_tpu = IsTpu(*question.slice);
    for (const std::string& note : question.slice->notes) question.assumptions.Add(note);
  }
  const FieldPath workload_path(path, "workload");
  job.workload = ToWorkload(request.workload(), setting, workload_path, violations, question.assumptions);
  question.edited_operations = EditedExperts(request.workload(), job.model, workload_path, violations);
  if (question.edited_operations.has_value()) job.model = &*question.edited_operations;

  const FieldPath parallelism_path(path, "parallelism");
  if (request.has_parallelism()) {
    job.allow_idle_chips = request.parallelism().allow_idle_chips();
    job.allow_padding = request.parallelism().allow_padding();
    job.parallelism = ToParallelism(request.parallelism(), job.slice.slice_count, parallelism_path, violations);
  }
  SetMode(request, catalog, profiles, path, question, violations);
  if (request.has_assumed_mfu_ratio()) job.assumed_mfu_ratio = request.assumed_mfu_ratio();
  ResolvePrice(request.pricing(), job.slice.accelerator_id, catalog, FieldPath(path, "pricing"), violations, price);
  if (price->has_usd_per_chip_hour()) job.usd_per_chip_hour = price->usd_per_chip_hour();
  if (!request.pricing().has_usd_per_chip_hour()) {
    question.assumptions.Add("pricing",
                             price->has_usd_per_chip_hour() ? absl::StrCat(price->usd_per_chip_hour()) : std::string(),
                             price->sentence());
  }
  job.reliability = ToReliability(request.reliability(), FieldPath(path, "reliability"), violations);
  if (request.has_job_deadline_seconds()) job.deadline_seconds = request.job_deadline_seconds();
  if (request.has_budget_usd()) job.budget_usd = request.budget_usd();

  if (violations.empty() && job.parallelism.has_value() && !job.parallelism->mapping.empty()) {
    std::vector<hardware::Violation> found;
    planner::CheckMapping(job.slice, *job.parallelism, job.allow_idle_chips, found);
    AddEngineViolations(request, path, std::move(found), violations);
  }
  if (!violations.empty()) AddRestOfViolations(request, path, question, violations);
}

}  // namespace sliceplan::rpc
