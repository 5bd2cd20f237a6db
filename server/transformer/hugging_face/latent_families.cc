// Decoders with multi-head latent attention.
#include <algorithm>

#include "server/transformer/hugging_face/decoder.h"
#include "server/transformer/hugging_face/family.h"

namespace sliceplan::transformer::hugging_face {
namespace {

void BuildLatent(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  const int32_t layer_count = ReadLayerCount(config);
  // Some models of the family keep its experts and attend with plain heads.
  const bool latent = config.Bool({"use_mla"}, true);
  Attention attention;
  if (latent) {
    attention = ReadLatent(config);
  } else {
    attention = ReadGroupedQuery(config, traits, architecture.hidden_dim);
    config.Ignore(
        {"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "lm_head", "rm_head"});
  }
  const std::vector<bool> expert_layers = ExpertLayers(config, traits.moe, layer_count);
  const bool any_experts = std::find(expert_layers.begin(), expert_layers.end(), true) != expert_layers.end();
  const bool any_dense = std::find(expert_layers.begin(), expert_layers.end(), false) != expert_layers.end();
  DenseFeedForward dense;
  MixtureOfExperts experts;
  if (any_dense) dense = ReadDense(config, traits);
  if (any_experts) experts = ReadExperts(config, traits);
  config.Ignore({"intermediate_size"});

  std::vector<Layer> layers(static_cast<size_t>(layer_count));
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].attention = attention;
    layers[i].norms = NormsOf(traits.norm, traits.norms_per_layer);
    if (expert_layers[i]) {
      layers[i].feed_forward = experts;
    } else {
      layers[i].feed_forward = dense;
    }
  }
  ReadMtp(config, traits, layers.back(), architecture);
  architecture.layer_groups = GroupLayers(layers);
}

// A missing width of values is hidden / heads.
void BuildMiniCpm3(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  config.Ignore({"dim_model_base"});
  if (config.Has("v_head_dim")) return BuildLatent(config, traits, architecture);
  nlohmann::json whole = config.object();
  Config derived(whole, config.Path(""), config.report());
  const int64_t hidden_dim = derived.Required({"hidden_size"});
  const int64_t heads = derived.Required({"num_attention_heads"}, 1, kMaxHeadCount);
  whole["v_head_dim"] = DerivedHeadDim(derived, "v_head_dim", hidden_dim, heads);
  BuildLatent(derived, traits, architecture);
  config.IgnoreWhatRead(derived);
}

constexpr Family kFamilies[] = {
    {{.model_type = "deepseek_v2", .moe = {.rule = MoeRule::kAfterDense, .shared = SharedExperts::kFused}},
     BuildLatent},
    {{.model_type = "deepseek_v3",
      .moe = {.rule = MoeRule::kAfterDense, .shared = SharedExperts::kFused, .correction_bias = kAlways},
      .mtp = MtpRule::kOwnTables},
     BuildLatent},
    {{.model_type = "deepseek_v32",
      .moe = {.rule = MoeRule::kAfterDense, .shared = SharedExperts::kFused, .correction_bias = kAlways},
      .mtp = MtpRule::kOwnTables},
     BuildLatent},
    {{.model_type = "kimi_k2",
      .moe = {.rule = MoeRule::kAfterDense, .shared = SharedExperts::kFused, .correction_bias = kAlways},
      .mtp = MtpRule::kOwnTables},
     BuildLatent},
    {{.model_type = "glm_moe_dsa",
      .moe = {.rule = MoeRule::kAfterDense, .shared = SharedExperts::kFused, .correction_bias = kAlways},
      .mtp = MtpRule::kSharedTables},
     BuildLatent},
    {{.model_type = "glm4_moe_lite",
      .moe = {.rule = MoeRule::kAfterDense, .shared = SharedExperts::kFused, .correction_bias = kAlways},
      .mtp = MtpRule::kOwnTables},
     BuildLatent},
    {{.model_type = "minicpm3", .tied = true}, BuildMiniCpm3},
};

}  // namespace

LatentAttention ReadLatent(Config& config) {
  LatentAttention attention;
  attention.query_head_count = static_cast<int32_t>(config.Required({"num_attention_heads"}, 1, kMaxHeadCount));
  attention.q_lora_rank = static_cast<int32_t>(config.IntOr({"q_lora_rank"}, 0, 1));
  attention.kv_lora_rank = static_cast<int32_t>(config.Required({"kv_lora_rank"}));
  attention.qk_nope_head_dim = static_cast<int32_t>(config.Required({"qk_nope_head_dim"}));
  attention.qk_rope_head_dim = static_cast<int32_t>(config.Required({"qk_rope_head_dim"}, 0));
  attention.v_head_dim = static_cast<int32_t>(config.Required({"v_head_dim"}));
  attention.qkv_bias = config.Bool({"attention_bias"}, false);
  attention.indexer_head_count = static_cast<int32_t>(config.IntOr({"index_n_heads"}, 0, 1, kMaxHeadCount));
  if (attention.indexer_head_count > 0) {
    attention.indexer_head_dim = static_cast<int32_t>(config.Required({"index_head_dim"}));
    attention.indexer_top_k = static_cast<int32_t>(config.Required({"index_topk"}, 1, (int64_t{1} << 31) - 1));
  }
  // The cache holds the latent: neither of these says anything about it.
  config.Ignore({"num_key_value_heads", "head_dim", "qk_head_dim"});
  return attention;
}

absl::Span<const Family> LatentFamilies() { return kFamilies; }

}  // namespace sliceplan::transformer::hugging_face
