#include "server/catalog/efficiency.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace sliceplan::catalog {
namespace {

using roofline::EfficiencyProfile;

enum class Range {
  kNotNegative,
  kAtLeastOne,
  kShare,  // above 0, at most 1
};

struct NumberField {
  absl::string_view name;
  double EfficiencyProfile::*member;
  Range range;
};

struct FlagField {
  absl::string_view name;
  bool EfficiencyProfile::*member;
};

constexpr NumberField kNumbers[] = {
    {"matmul_inverse_ratio", &EfficiencyProfile::matmul_inverse_ratio, Range::kAtLeastOne},
    {"matmul_hbm_sensitivity", &EfficiencyProfile::matmul_hbm_sensitivity, Range::kNotNegative},
    {"matmul_operand_bytes_ratio", &EfficiencyProfile::matmul_operand_bytes_ratio, Range::kNotNegative},
    {"quantize_bytes_ratio", &EfficiencyProfile::quantize_bytes_ratio, Range::kNotNegative},
    {"low_precision_ratio", &EfficiencyProfile::low_precision_ratio, Range::kShare},
    {"default_sustained_ratio", &EfficiencyProfile::default_sustained_ratio, Range::kShare},
    {"attention_ratio", &EfficiencyProfile::attention_ratio, Range::kShare},
    {"attention_backward_forwards", &EfficiencyProfile::attention_backward_forwards, Range::kNotNegative},
    {"attention_block_tokens", &EfficiencyProfile::attention_block_tokens, Range::kNotNegative},
    {"attention_window_block_tokens", &EfficiencyProfile::attention_window_block_tokens, Range::kNotNegative},
    {"attention_materialized_bytes", &EfficiencyProfile::attention_materialized_bytes, Range::kNotNegative},
    {"elementwise_hbm_ratio", &EfficiencyProfile::elementwise_hbm_ratio, Range::kShare},
    {"elementwise_passes", &EfficiencyProfile::elementwise_passes, Range::kNotNegative},
    {"elementwise_remat_passes", &EfficiencyProfile::elementwise_remat_passes, Range::kNotNegative},
    {"logits_bytes_per_element", &EfficiencyProfile::logits_bytes_per_element, Range::kNotNegative},
    {"optimizer_hbm_ratio", &EfficiencyProfile::optimizer_hbm_ratio, Range::kShare},
    {"expert_inverse_ratio", &EfficiencyProfile::expert_inverse_ratio, Range::kAtLeastOne},
    {"expert_permute_passes", &EfficiencyProfile::expert_permute_passes, Range::kNotNegative},
    {"expert_dispatch_ratio", &EfficiencyProfile::expert_dispatch_ratio, Range::kNotNegative},
    {"expert_tile", &EfficiencyProfile::expert_tile, Range::kAtLeastOne},
    {"collective_ratio", &EfficiencyProfile::collective_ratio, Range::kShare},
    {"gathered_weights_passes", &EfficiencyProfile::gathered_weights_passes, Range::kNotNegative},
    {"gathered_weights_hbm_ratio", &EfficiencyProfile::gathered_weights_hbm_ratio, Range::kShare},
    {"fsdp_hideable_compute_ratio", &EfficiencyProfile::fsdp_hideable_compute_ratio, Range::kNotNegative},
    {"fsdp_hidden_cost_ratio", &EfficiencyProfile::fsdp_hidden_cost_ratio, Range::kNotNegative},
    {"tensor_exposed_ratio", &EfficiencyProfile::tensor_exposed_ratio, Range::kNotNegative},
    {"context_exposed_ratio", &EfficiencyProfile::context_exposed_ratio, Range::kNotNegative},
    {"expert_exposed_ratio", &EfficiencyProfile::expert_exposed_ratio, Range::kNotNegative},
    {"pipeline_exposed_ratio", &EfficiencyProfile::pipeline_exposed_ratio, Range::kNotNegative},
    {"data_exposed_ratio", &EfficiencyProfile::data_exposed_ratio, Range::kNotNegative},
    {"dcn_exposed_ratio", &EfficiencyProfile::dcn_exposed_ratio, Range::kNotNegative},
    {"dcn_jitter_ratio_per_doubling", &EfficiencyProfile::dcn_jitter_ratio_per_doubling, Range::kNotNegative},
    {"launch_seconds_per_layer", &EfficiencyProfile::launch_seconds_per_layer, Range::kNotNegative},
    {"host_seconds_per_layer", &EfficiencyProfile::host_seconds_per_layer, Range::kNotNegative},
    {"host_seconds_per_expert_layer", &EfficiencyProfile::host_seconds_per_expert_layer, Range::kNotNegative},
    {"accumulation_bytes_per_parameter", &EfficiencyProfile::accumulation_bytes_per_parameter, Range::kNotNegative},
    {"dense_low_ratio", &EfficiencyProfile::dense_low_ratio, Range::kNotNegative},
    {"dense_high_ratio", &EfficiencyProfile::dense_high_ratio, Range::kNotNegative},
    {"expert_low_ratio", &EfficiencyProfile::expert_low_ratio, Range::kNotNegative},
    {"expert_high_ratio", &EfficiencyProfile::expert_high_ratio, Range::kNotNegative},
    {"gathered_layer_count", &EfficiencyProfile::gathered_layer_count, Range::kAtLeastOne},
    {"logits_memory_bytes_per_element", &EfficiencyProfile::logits_memory_bytes_per_element, Range::kNotNegative},
    {"reserved_hbm_ratio", &EfficiencyProfile::reserved_hbm_ratio, Range::kNotNegative},
    {"reserved_hbm_bytes", &EfficiencyProfile::reserved_hbm_bytes, Range::kNotNegative},
};

constexpr FlagField kFlags[] = {
    {"attention_uses_sustained_rate", &EfficiencyProfile::attention_uses_sustained_rate},
    {"expert_axis_shards_dense_weights", &EfficiencyProfile::expert_axis_shards_dense_weights},
    {"fused_gradient_accumulation", &EfficiencyProfile::fused_gradient_accumulation},
    {"whole_layer_recompute", &EfficiencyProfile::whole_layer_recompute},
};

// What is wrong with a value; empty when nothing is.
absl::string_view Fault(double value, Range range) {
  if (!std::isfinite(value)) return "must be finite";
  switch (range) {
    case Range::kNotNegative: return value >= 0 ? "" : "must not be negative";
    case Range::kAtLeastOne: return value >= 1 ? "" : "must be at least 1";
    case Range::kShare: return value > 0 && value <= 1 ? "" : "must be above 0 and at most 1";
  }
  return "";
}

void Apply(const v1::Constant& constant, EfficiencyProfile& profile, RecordProblems& problems) {
  const std::string field = absl::StrCat("constants[", constant.name(), "]");
  for (const NumberField& number : kNumbers) {
    if (number.name != constant.name()) continue;
    const absl::string_view fault = Fault(constant.value(), number.range);
    if (!fault.empty()) {
      problems.Add(field, fault);
    } else {
      profile.*number.member = constant.value();
    }
    return;
  }
  for (const FlagField& flag : kFlags) {
    if (flag.name != constant.name()) continue;
    if (constant.value() != 0 && constant.value() != 1) {
      problems.Add(field, "must be 0 or 1");
    } else {
      profile.*flag.member = constant.value() == 1;
    }
    return;
  }
  problems.Add(field, "is not a constant of a profile (server/roofline/efficiency.h lists them)");
}

}  // namespace

EfficiencyProfile EfficiencyOf(const v1::CalibrationProfile& record, absl::string_view accelerator_id,
                               RecordProblems& problems) {
  EfficiencyProfile profile;
  profile.name = record.name();
  profile.version = record.version();
  for (const v1::Constant& constant : record.constants()) Apply(constant, profile, problems);
  for (const v1::CalibrationFamily& family : record.families()) {
    for (const std::string& id : family.accelerators()) {
      if (id != accelerator_id) continue;
      for (const v1::Constant& constant : family.constants()) Apply(constant, profile, problems);
    }
  }
  return profile;
}

}  // namespace sliceplan::catalog
