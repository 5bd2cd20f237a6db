#include "server/rpc/convert/training_estimate.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/planner/words.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/model.h"
#include "server/rpc/convert/parallelism.h"
#include "server/rpc/convert/slice.h"
#include "server/rpc/convert/training_parts.h"
#include "server/rpc/convert/workload.h"

namespace sliceplan::rpc {
namespace {

// The limit that was missed, in numbers: bytes, seconds or dollars.
void SetShortfall(const planner::TrainingJob& job, const planner::TrainingEstimate& estimate, v1::Shortfall* proto) {
  proto->set_sentence(estimate.shortfall);
  proto->set_missing(estimate.shortfall_amount);
  const auto set = [&](absl::string_view limit, double available) {
    proto->set_limit(limit.data(), limit.size());
    proto->set_available(available);
    proto->set_needed(available + estimate.shortfall_amount);
  };
  switch (estimate.outcome) {
    case planner::Outcome::kOutOfMemory:
      if (estimate.memory.headroom_bytes < 0) {
        set("hbm_bytes", static_cast<double>(estimate.memory.capacity_bytes));
      } else {
        set("host_memory_bytes", static_cast<double>(estimate.memory.host_capacity_bytes));
      }
      break;
    case planner::Outcome::kMissesDeadline: set("job_deadline_seconds", job.deadline_seconds.value_or(0)); break;
    case planner::Outcome::kOverBudget: set("budget_usd", job.budget_usd.value_or(0)); break;
    case planner::Outcome::kNoLegalPlan:
      // One plan is needed and there is none.
      proto->set_limit("legal_plan");
      proto->set_needed(1);
      proto->set_missing(1);
      break;
    case planner::Outcome::kFeasible: break;
  }
}

void SetSizes(const planner::TrainingJob& job, const planner::TrainingEstimate& estimate, v1::TrainingEstimate* proto) {
  proto->set_chip_count(static_cast<int32_t>(estimate.chip_count));
  proto->set_idle_chip_count(static_cast<int32_t>(estimate.idle_chip_count));
  proto->set_tokens_per_step(static_cast<int64_t>(estimate.tokens_per_step));
  proto->set_microbatch_size(estimate.microbatch_size);
  proto->set_evaluated_plan_count(static_cast<int32_t>(estimate.plans_evaluated));
  proto->set_pipeline_bubble_ratio(estimate.thresholds.pipeline_bubble_ratio.value_or(0));
  proto->set_model_flops_per_step(estimate.model_flops_per_step);
  proto->set_hardware_flops_per_step(estimate.hardware_flops_per_step);
  if (job.workload.total_tokens.has_value() && estimate.tokens_per_step > 0) {
    const double total_tokens = static_cast<double>(*job.workload.total_tokens);
    proto->set_total_model_flops(estimate.model_flops_per_step / estimate.tokens_per_step * total_tokens);
    proto->set_step_count(static_cast<int64_t>(std::ceil(total_tokens / estimate.tokens_per_step)));
  }
}

void SetConvention(const planner::TrainingJob& job, const planner::TrainingEstimate& estimate,
                   v1::FlopsConvention* proto) {
  const bool causal = job.workload.attention_mask == planner::AttentionMask::kCausal;
  if (estimate.step_time.assumed) {
    proto->set_name("6 x active parameters");
    proto->set_sentence(
        "Six FLOPs for each parameter that a token touches, tables included; attention scores are not counted.");
  } else {
    proto->set_name(causal ? "6 x matmul parameters + causal attention" : "6 x matmul parameters + full attention");
    proto->set_sentence(absl::StrCat(
        "Six FLOPs for each matmul parameter that a token touches, the output head included and lookups free, and ",
        causal ? "the half of the attention scores that a causal mask leaves, windows considered."
               : "all attention scores, windows considered.",
        " Recompute counts in hardware FLOPs only."));
  }
  proto->set_peak_flops_per_second_per_chip(estimate.peak_flops_per_second_per_chip);
  const absl::string_view format = hardware::DataTypeName(job.workload.precision.compute);
  proto->set_peak_format(format.data(), format.size());
}

// Everything that follows from the step time; nothing when no plan was found.
void SetTimes(const planner::TrainingEstimate& estimate, v1::TrainingEstimate* proto) {
  if (estimate.step_time.expected_seconds <= 0) return;
  ToProto(estimate.step_time, proto->mutable_step_time());
  proto->set_mfu_ratio(estimate.mfu_ratio);
  proto->set_hfu_ratio(estimate.hfu_ratio);
  proto->set_tokens_per_second(estimate.tokens_per_second);
  proto->set_tokens_per_second_per_chip(estimate.tokens_per_second_per_chip);
  if (estimate.time_to_train_seconds) proto->set_time_to_train_seconds(*estimate.time_to_train_seconds);
  if (estimate.chip_hours) proto->set_chip_hours(*estimate.chip_hours);
}

void SetWorkload(const planner::TrainingJob& job, const planner::TrainingEstimate& estimate,
                 v1::TrainingWorkload* proto) {
  ToProto(job.workload, proto);
  if (job.workload.precision.accumulated_gradients.has_value() && estimate.gradient_accumulation > 1) {
    proto->mutable_precision()->set_gradients(ToProto(kDataTypes, *job.workload.precision.accumulated_gradients));
  }
  if (job.workload.checkpoints_per_layer == 0) {
    proto->set_remat_policy(ToProto(kRematPolicies, estimate.remat_policy));
  }
  proto->set_gradient_accumulation(estimate.gradient_accumulation);
}

void SetMode(const TrainingQuestion& question, v1::TrainingEstimate* proto) {
  proto->set_estimation_mode(ToProto(kEstimationModes, question.job.mode));
  if (question.profile != nullptr && question.job.mode == planner::EstimationMode::kCalibrated) {
    proto->set_calibration_profile(question.profile->name);
    proto->set_calibration_version(question.profile->version);
  }
}

void AddWarning(absl::string_view code, std::string sentence, absl::string_view field, v1::TrainingEstimate* proto) {
  v1::Warning* const warning = proto->add_warnings();
  warning->set_code(code.data(), code.size());
  warning->set_sentence(AsSentence(sentence));
  warning->set_field(field.data(), field.size());
}

void SetWarnings(const TrainingQuestion& question, const planner::TrainingEstimate& estimate,
                 v1::TrainingEstimate* proto) {
  const int64_t limit = question.model->architecture.max_position_count;
  if (limit > 0 && question.job.workload.sequence_length > limit) {
    AddWarning("SEQUENCE_BEYOND_MODEL",
               absl::StrCat("Sequences of ", planner::CountWords(question.job.workload.sequence_length),
                            " tokens are longer than the ", planner::CountWords(limit), " that the model is made for"),
               "workload.sequence_length", proto);
  }
  for (const std::string& sentence : estimate.warnings) AddWarning("ENGINE_NOTE", sentence, "", proto);
  AddImportWarnings(*question.model, proto->mutable_warnings());
}

}  // namespace

void ToProto(const TrainingQuestion& question, const planner::TrainingEstimate& estimate, v1::TrainingEstimate* proto) {
  const planner::TrainingJob& job = question.job;
  const bool has_plan = estimate.outcome != planner::Outcome::kNoLegalPlan;
  proto->set_outcome(ToProto(kOutcomes, estimate.outcome));
  if (estimate.outcome != planner::Outcome::kFeasible) SetShortfall(job, estimate, proto->mutable_shortfall());
  if (estimate.smallest_fix.has_value()) ToProto(*estimate.smallest_fix, proto->mutable_smallest_fix());
  SetSizes(job, estimate, proto);
  SetTimes(estimate, proto);
  SetConvention(job, estimate, proto->mutable_flops_convention());
  if (has_plan) {
    const auto layers_of = [&](const planner::MemoryUse& use) { return LayersOfStage(estimate, use.stage); };
    ToProto(estimate.memory, layers_of(estimate.memory), proto->mutable_memory());
    for (const planner::MemoryUse& use : estimate.stage_memory) {
      ToProto(use, layers_of(use), proto->add_stage_memory());
    }
    if (estimate.stage_memory.empty()) ToProto(estimate.memory, layers_of(estimate.memory), proto->add_stage_memory());
    ToProto(estimate.thresholds, proto->mutable_thresholds());
    AddBreakdown(question.model->group_names, estimate.breakdown, proto->mutable_breakdown());
    ToProto(estimate.bottleneck, proto->mutable_bottleneck());
    ToProto(estimate.parallelism, proto->mutable_parallelism());
    proto->mutable_parallelism()->set_allow_idle_chips(job.allow_idle_chips);
    proto->mutable_parallelism()->set_allow_padding(job.allow_padding);
    proto->mutable_parallelism()->clear_layers_per_stage();
    for (const int32_t layers : estimate.layers_per_stage) proto->mutable_parallelism()->add_layers_per_stage(layers);
    for (const planner::AxisPlacement& placement : estimate.mapping) {
      ToProto(placement, estimate.parallelism, job.slice, proto->add_mapping());
    }
    for (const planner::Padding& padding : estimate.paddings) ToProto(padding, proto->add_paddings());
  }
  SetRun(job, estimate, proto);
  if (estimate.cost.has_value()) ToProto(*estimate.cost, estimate.chip_count, proto->mutable_cost());
  if (estimate.energy.has_value()) ToProto(*estimate.energy, job.slice.accelerator, proto->mutable_energy());
  ToProto(*question.slice, proto->mutable_slice());
  SetWorkload(job, estimate, proto->mutable_workload());
  SetMode(question, proto);
  for (const planner::Advice& advice : estimate.advice) {
    ToProto(advice, estimate.step_time.expected_seconds, proto->add_advice());
  }
  question.assumptions.ToProto(proto->mutable_assumptions());
  for (const std::string& sentence : estimate.assumptions) {
    proto->add_assumptions()->set_sentence(AsSentence(sentence));
  }
  SetWarnings(question, estimate, proto);
}

}  // namespace sliceplan::rpc
