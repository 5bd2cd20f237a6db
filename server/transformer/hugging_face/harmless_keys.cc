// Keys that change no parameter, FLOP or cache byte, whatever their value.
#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "server/transformer/hugging_face/config.h"

namespace sliceplan::transformer::hugging_face {
namespace {

// Sorted.
constexpr absl::string_view kKeys[] = {
    "activation", "activation_function", "add_cross_attention", "architectures", "attention_multiplier",
    "attention_softmax_in_fp32", "attention_value_scale", "attn_logit_softcapping", "attn_output_multiplier",
    "attn_scale", "auto_map", "aux_loss_alpha", "bad_words_ids", "begin_suppress_tokens", "beta_fast", "beta_slow",
    "bf16", "cache_implementation", "chunk_size_feed_forward", "classifier_dropout", "clip_qkv",
    "context_window_size", "cross_attention_hidden_size", "custom_pipelines", "decoder_start_token_id",
    "diversity_penalty", "do_sample", "early_stopping", "embedding_multiplier", "embedding_multiplier_scale",
    "ep_size", "exponential_decay_length_penalty", "final_logit_softcapping", "finetuning_task", "flash_attn",
    "flash_rotary", "floor_scale", "fp16", "fp32", "fused_dense", "gradient_checkpointing", "hidden_act",
    "hidden_activation", "id2label", "image_size", "indexer_rope_interleave", "initial_context_length",
    "input_jitter_noise", "interleaved_rope", "interpolate_factor", "is_decoder", "is_llama_config",
    "keys_to_ignore_at_inference", "kv_cache_dtype", "label2id", "length_penalty", "logit_scale", "logits_scaling",
    "logits_soft_cap", "max_length", "mlp_hidden_act", "model_type", "moe_aux_loss_coeff", "moe_intermediate_act",
    "moe_router_dtype", "moe_router_pre_softmax", "n_group", "no_repeat_ngram_size", "no_rope_layer_interval",
    "no_rope_layers", "norm_topk_prob", "num_beam_groups", "num_beams", "num_expert_group", "num_return_sequences",
    "original_max_position_embeddings", "output_router_logits", "partial_rotary_factor", "partial_rotary_factors",
    "pipeline_parallel_size", "prefix", "pretraining_tp", "problem_type", "pruned_heads", "qk_layernorm_type",
    "query_pre_attn_scalar", "remove_invalid_values", "repetition_penalty", "rescale_prenorm_residual",
    "residual_multiplier", "return_dict", "return_dict_in_generate", "rotary", "rotary_base", "rotary_dim",
    "rotary_emb_base", "rotary_emb_fraction", "rotary_pct", "rotary_percent", "routed_scaling_factor",
    "router_aux_loss_coef", "router_jitter_noise", "scale_attention_softmax_in_fp32", "scale_attn_weights",
    "scale_depth", "scale_emb", "scoring_func", "seq_aux", "softmax_in_fp32", "summary_activation",
    "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj", "suppress_tokens",
    "swiglu_limit", "task_specific_params", "temperature", "tensor_parallel_size", "tf_legacy_loss",
    "time_step_floor", "time_step_init_scheme", "time_step_limit", "time_step_max", "time_step_min",
    "time_step_scale", "tokenizer_class", "top_k", "top_p", "topk_group", "topk_method", "torchscript",
    "transformers.js_config", "transformers_version", "typical_p", "use_bfloat16", "use_cache", "use_cache_kernel",
    "use_cache_quantization", "use_dynamic_ntk", "use_flash_attn", "use_logn_attn", "use_mamba_kernels",
    "use_parallel_embedding", "use_scaled_rope",
};

constexpr absl::string_view kPrefixes[] = {"_", "rope_", "initializer_", "init_", "output_", "tokenizer_", "image_", "video_",
                                           "vision_start", "vision_end", "audio_token", "bos_", "eos_", "pad_", "sep_",
                                           "z_loss", "router_z_loss"};
constexpr absl::string_view kSuffixes[] = {"_token_id", "_token_ids", "_token", "_token_index", "_dropout", "_dropout_prob",
                                           "_pdrop", "_dropout_rate", "dropout", "_eps", "_epsilon", "_loss_coef",
                                           "_loss_coeff", "_loss_alpha", "_rope_theta", "_base_freq", "_std", "layerdrop",
                                           "_impl"};

}  // namespace

bool IsHarmlessKey(absl::string_view key) {
  if (std::binary_search(std::begin(kKeys), std::end(kKeys), key)) return true;
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [key](absl::string_view prefix) { return absl::StartsWith(key, prefix); }) ||
         std::any_of(std::begin(kSuffixes), std::end(kSuffixes),
                     [key](absl::string_view suffix) { return absl::EndsWith(key, suffix); });
}

}  // namespace sliceplan::transformer::hugging_face
