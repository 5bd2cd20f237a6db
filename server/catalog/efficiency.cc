#include "server/catalog/efficiency.h"

#include "server/catalog/constant_table.h"

namespace sliceplan::catalog {
namespace {

using roofline::EfficiencyProfile;

using Range = ConstantRange;

constexpr NumberConstant<EfficiencyProfile> kNumbers[] = {
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
    {"dense_low_ratio", &EfficiencyProfile::dense_low_ratio, Range::kIntervalEnd},
    {"dense_high_ratio", &EfficiencyProfile::dense_high_ratio, Range::kIntervalEnd},
    {"expert_low_ratio", &EfficiencyProfile::expert_low_ratio, Range::kIntervalEnd},
    {"expert_high_ratio", &EfficiencyProfile::expert_high_ratio, Range::kIntervalEnd},
    {"gathered_layer_count", &EfficiencyProfile::gathered_layer_count, Range::kAtLeastOne},
    {"logits_memory_bytes_per_element", &EfficiencyProfile::logits_memory_bytes_per_element, Range::kNotNegative},
    {"reserved_hbm_ratio", &EfficiencyProfile::reserved_hbm_ratio, Range::kNotNegative},
    {"reserved_hbm_bytes", &EfficiencyProfile::reserved_hbm_bytes, Range::kNotNegative},
};

constexpr FlagConstant<EfficiencyProfile> kFlags[] = {
    {"attention_uses_sustained_rate", &EfficiencyProfile::attention_uses_sustained_rate},
    {"expert_axis_shards_dense_weights", &EfficiencyProfile::expert_axis_shards_dense_weights},
    {"fused_gradient_accumulation", &EfficiencyProfile::fused_gradient_accumulation},
    {"whole_layer_recompute", &EfficiencyProfile::whole_layer_recompute},
};

}  // namespace

EfficiencyProfile EfficiencyOf(const v1::CalibrationProfile& record, absl::string_view accelerator_id,
                               RecordProblems& problems) {
  return ProfileOf<EfficiencyProfile>({kNumbers, kFlags, "server/roofline/efficiency.h"}, record, accelerator_id,
                                      problems);
}

}  // namespace sliceplan::catalog
