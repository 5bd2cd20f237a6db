// Mixtures of experts with a dense MLP beside the experts, or with lists where others have numbers.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/transformer/hugging_face/decoder.h"
#include "server/transformer/hugging_face/family.h"

namespace sliceplan::transformer::hugging_face {
namespace {

using QkNorm = GroupedQueryAttention::QkNorm;

constexpr Flag kAttentionBias = {"attention_bias", false};

void AddDenseResidual(int64_t ffn_dim, Architecture& architecture) {
  for (LayerGroup& group : architecture.layer_groups) {
    for (Layer& layer : group.layers) {
      auto* const moe = std::get_if<MixtureOfExperts>(&layer.feed_forward);
      if (moe != nullptr) moe->dense_residual_ffn_dim = static_cast<int32_t>(ffn_dim);
    }
  }
}

// The dense MLP has the hidden width and a norm of its own.
void BuildArctic(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  constexpr int64_t kDefaultFrequency = 2;
  BuildDecoder(config, traits, architecture);
  if (config.IntOr({"moe_layer_frequency"}, kDefaultFrequency, 1, kMaxLayerCount) != 1) {
    config.Unsupported("moe_layer_frequency", "only 1, experts in every layer, is modelled in this family");
  }
  if (!config.Bool({"parallel_attn_mlp_res"}, false) || !config.Bool({"use_residual"}, false)) {
    config.Unsupported("parallel_attn_mlp_res", "only true, a dense MLP beside the experts, is modelled");
  }
  AddDenseResidual(architecture.hidden_dim, architecture);
  config.Ignore({"enable_expert_tensor_parallelism", "moe_eval_capacity_factor", "moe_min_capacity",
                 "moe_token_dropping", "moe_train_capacity_factor"});
}

void BuildGrok2(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  BuildDecoder(config, traits, architecture);
  if (config.Bool({"residual_moe"}, false)) {
    AddDenseResidual(config.Required({"intermediate_size"}), architecture);
  }
  const std::optional<int64_t> window = config.Int({"sliding_window_size"}, -1, (int64_t{1} << 31) - 1);
  if (window.value_or(0) > 0) config.Unsupported("sliding_window_size", "windows are not modelled in this family");
  config.Ignore({"attn_temperature_len", "global_attn_every_n", "router_logit_softcapping"});
}

// Values that are listed for every layer, all equal.
void BuildHunyuan(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  nlohmann::json flat = config.object();
  for (const char* key : {"moe_intermediate_size", "moe_topk", "num_experts", "num_shared_expert"}) {
    const auto place = flat.find(key);
    if (place == flat.end() || !place->is_array() || place->empty()) continue;
    const nlohmann::json first = place->front();
    if (std::any_of(place->begin(), place->end(), [&first](const nlohmann::json& value) { return value != first; })) {
      config.Unsupported(key, "differs between layers, which is not modelled in this family");
    }
    *place = first;
  }
  if (config.Bool({"use_cla"}, false)) {
    config.Unsupported("use_cla", "layers that share keys and values are not modelled in this family");
  }
  DecoderTraits own = traits;
  own.moe.width_is_intermediate_size = !config.Has("moe_intermediate_size");
  Config scalars(flat, config.Path(""), config.report());
  BuildDecoder(scalars, own, architecture);
  config.IgnoreWhatRead(scalars);
  config.Ignore({"capacity_factor", "cla_share_factor", "group_limited_greedy", "moe_drop_tokens",
                 "moe_layer_num_skipped", "moe_random_routing_dropped_token", "norm_type", "use_mixed_mlp_moe"});
}

constexpr Family kFamilies[] = {
    {{.model_type = "arctic",
      .norms_per_layer = 3,
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .moe = {.rule = MoeRule::kAllLayers, .width_is_intermediate_size = true}},
     BuildArctic},
    {{.model_type = "grok-2", .norms_per_layer = 4, .moe = {.rule = MoeRule::kAllLayers}}, BuildGrok2},
    {{.model_type = "hunyuan_v1_moe",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .qk_norm = QkNorm::kPerHeadDim,
      .qk_norm_on = {"use_qk_norm", false},
      .moe = {.rule = MoeRule::kAllLayers, .shared = SharedExperts::kFused}},
     BuildHunyuan},
    {{.model_type = "bailing_moe",
      .qkv_bias = {"use_qkv_bias", false},
      .output_bias = {"use_bias", false},
      .mlp_bias = {"use_bias", false},
      .moe = {.rule = MoeRule::kAfterDense, .shared = SharedExperts::kFused}},
     BuildDecoder},
};

}  // namespace

absl::Span<const Family> MixtureVariants() { return kFamilies; }

}  // namespace sliceplan::transformer::hugging_face
