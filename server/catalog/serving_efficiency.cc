#include "server/catalog/serving_efficiency.h"

#include "server/catalog/constant_table.h"

namespace sliceplan::catalog {
namespace {

using roofline::ServingEfficiency;
using Range = ConstantRange;

constexpr NumberConstant<ServingEfficiency> kNumbers[] = {
    {"weights_hbm_ratio", &ServingEfficiency::weights_hbm_ratio, Range::kShare},
    {"expert_hbm_ratio", &ServingEfficiency::expert_hbm_ratio, Range::kShare},
    {"unpacked_expert_hbm_ratio", &ServingEfficiency::unpacked_expert_hbm_ratio, Range::kShare},
    {"weight_only_hbm_ratio", &ServingEfficiency::weight_only_hbm_ratio, Range::kShare},
    {"kv_hbm_ratio", &ServingEfficiency::kv_hbm_ratio, Range::kShare},
    {"decode_matmul_ratio", &ServingEfficiency::decode_matmul_ratio, Range::kShare},
    {"prefill_matmul_ratio", &ServingEfficiency::prefill_matmul_ratio, Range::kShare},
    {"eight_bit_ratio", &ServingEfficiency::eight_bit_ratio, Range::kShare},
    {"four_bit_ratio", &ServingEfficiency::four_bit_ratio, Range::kShare},
    {"unpacked_four_bit_ratio", &ServingEfficiency::unpacked_four_bit_ratio, Range::kShare},
    {"prefill_attention_ratio", &ServingEfficiency::prefill_attention_ratio, Range::kShare},
    {"decode_attention_ratio", &ServingEfficiency::decode_attention_ratio, Range::kShare},
    {"activation_passes", &ServingEfficiency::activation_passes, Range::kNotNegative},
    {"ring_collective_ratio", &ServingEfficiency::ring_collective_ratio, Range::kShare},
    {"one_shot_collective_ratio", &ServingEfficiency::one_shot_collective_ratio, Range::kShareOrNone},
    {"exchange_collective_ratio", &ServingEfficiency::exchange_collective_ratio, Range::kShare},
    {"ring_seconds", &ServingEfficiency::ring_seconds, Range::kNotNegative},
    {"outer_collective_ratio", &ServingEfficiency::outer_collective_ratio, Range::kShare},
    {"reduce_seconds_per_doubling", &ServingEfficiency::reduce_seconds_per_doubling, Range::kNotNegative},
    {"outer_reduce_seconds", &ServingEfficiency::outer_reduce_seconds, Range::kNotNegative},
    {"exchange_seconds", &ServingEfficiency::exchange_seconds, Range::kNotNegative},
    {"seconds_per_layer", &ServingEfficiency::seconds_per_layer, Range::kNotNegative},
    {"latent_layer_ratio", &ServingEfficiency::latent_layer_ratio, Range::kNotNegative},
    {"four_bit_attention_seconds_per_layer", &ServingEfficiency::four_bit_attention_seconds_per_layer,
     Range::kNotNegative},
    {"seconds_per_expert_layer", &ServingEfficiency::seconds_per_expert_layer, Range::kNotNegative},
    {"unpacked_expert_seconds_per_layer", &ServingEfficiency::unpacked_expert_seconds_per_layer, Range::kNotNegative},
    {"seconds_per_step", &ServingEfficiency::seconds_per_step, Range::kNotNegative},
    {"seconds_per_sequence", &ServingEfficiency::seconds_per_sequence, Range::kNotNegative},
    {"seconds_per_prompt", &ServingEfficiency::seconds_per_prompt, Range::kNotNegative},
    {"eager_seconds_per_layer", &ServingEfficiency::eager_seconds_per_layer, Range::kNotNegative},
    {"expert_choice_ratio", &ServingEfficiency::expert_choice_ratio, Range::kShare},
    {"request_seconds", &ServingEfficiency::request_seconds, Range::kNotNegative},
    {"first_token_seconds", &ServingEfficiency::first_token_seconds, Range::kNotNegative},
    {"first_token_steps", &ServingEfficiency::first_token_steps, Range::kNotNegative},
    {"prefill_wait_ratio", &ServingEfficiency::prefill_wait_ratio, Range::kNotNegative},
    {"burst_share", &ServingEfficiency::burst_share, Range::kShareOrNone},
    {"cohort_wait_ratio", &ServingEfficiency::cohort_wait_ratio, Range::kNotNegative},
    {"cohort_requests", &ServingEfficiency::cohort_requests, Range::kNotNegative},
    {"latent_prefill_ratio", &ServingEfficiency::latent_prefill_ratio, Range::kNotNegative},
    {"interference_ratio", &ServingEfficiency::interference_ratio, Range::kNotNegative},
    {"prefill_chunk_tokens", &ServingEfficiency::prefill_chunk_tokens, Range::kCount},
    {"hbm_utilization_ratio", &ServingEfficiency::hbm_utilization_ratio, Range::kShare},
    {"cache_output_share", &ServingEfficiency::cache_output_share, Range::kShareOrNone},
    {"reserved_bytes", &ServingEfficiency::reserved_bytes, Range::kNotNegative},
    {"collective_buffer_bytes", &ServingEfficiency::collective_buffer_bytes, Range::kNotNegative},
    {"logit_copies", &ServingEfficiency::logit_copies, Range::kNotNegative},
    {"prompt_logit_copies", &ServingEfficiency::prompt_logit_copies, Range::kNotNegative},
    {"sampling_activation_copies", &ServingEfficiency::sampling_activation_copies, Range::kNotNegative},
    {"kernel_workspace_bytes", &ServingEfficiency::kernel_workspace_bytes, Range::kNotNegative},
    {"index_rows", &ServingEfficiency::index_rows, Range::kCount},
    {"index_bytes_per_position", &ServingEfficiency::index_bytes_per_position, Range::kNotNegative},
    {"four_bit_scale_bytes", &ServingEfficiency::four_bit_scale_bytes, Range::kNotNegative},
    {"int4_scale_bytes", &ServingEfficiency::int4_scale_bytes, Range::kNotNegative},
    {"max_sequences", &ServingEfficiency::max_sequences, Range::kCount},
    {"activation_copies", &ServingEfficiency::activation_copies, Range::kNotNegative},
    {"decode_low_ratio", &ServingEfficiency::decode_low_ratio, Range::kIntervalEnd},
    {"decode_high_ratio", &ServingEfficiency::decode_high_ratio, Range::kIntervalEnd},
    {"expert_decode_low_ratio", &ServingEfficiency::expert_decode_low_ratio, Range::kIntervalEnd},
    {"expert_decode_high_ratio", &ServingEfficiency::expert_decode_high_ratio, Range::kIntervalEnd},
    {"prefill_low_ratio", &ServingEfficiency::prefill_low_ratio, Range::kIntervalEnd},
    {"prefill_high_ratio", &ServingEfficiency::prefill_high_ratio, Range::kIntervalEnd},
    {"first_token_low_ratio", &ServingEfficiency::first_token_low_ratio, Range::kIntervalEnd},
    {"first_token_high_ratio", &ServingEfficiency::first_token_high_ratio, Range::kIntervalEnd},
};

constexpr FlagConstant<ServingEfficiency> kFlags[] = {
    {"utilization_of_free_hbm", &ServingEfficiency::utilization_of_free_hbm},
    {"copies_kv_heads", &ServingEfficiency::copies_kv_heads},
    {"separate_prefill", &ServingEfficiency::separate_prefill},
    {"keeps_windowed_kv", &ServingEfficiency::keeps_windowed_kv},
    {"quantizes_head", &ServingEfficiency::quantizes_head},
    {"four_bit_latent_attention", &ServingEfficiency::four_bit_latent_attention},
    {"prefill_first", &ServingEfficiency::prefill_first},
    {"keeps_expert_workspace", &ServingEfficiency::keeps_expert_workspace},
    {"keeps_absorbed_copy", &ServingEfficiency::keeps_absorbed_copy},
    {"keeps_rotary_tables", &ServingEfficiency::keeps_rotary_tables},
    {"pool_before_activations", &ServingEfficiency::pool_before_activations},
};

}  // namespace

ServingEfficiency ServingEfficiencyOf(const v1::CalibrationProfile& record, absl::string_view accelerator_id,
                                      RecordProblems& problems) {
  return ProfileOf<ServingEfficiency>({kNumbers, kFlags, "server/roofline/serving_efficiency.h"}, record,
                                      accelerator_id, problems);
}

}  // namespace sliceplan::catalog
