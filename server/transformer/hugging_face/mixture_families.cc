// Decoders with grouped-query attention and experts.
#include <algorithm>

#include "server/transformer/hugging_face/decoder.h"
#include "server/transformer/hugging_face/family.h"

namespace sliceplan::transformer::hugging_face {
namespace {

using QkNorm = GroupedQueryAttention::QkNorm;

constexpr Flag kAttentionBias = {"attention_bias", false};

// DBRX nests attention and MLP; its class default describes a toy, so every size is required.
void BuildDbrx(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  const int32_t layer_count = ReadLayerCount(config);
  Layer layer;
  layer.norms = NormsOf(traits.norm, traits.norms_per_layer);
  GroupedQueryAttention attention;
  const int64_t heads = config.Required({"n_heads", "num_attention_heads"}, 1, kMaxHeadCount);
  attention.query_head_count = static_cast<int32_t>(heads);
  attention.kv_head_count = attention.query_head_count;
  attention.head_dim = DerivedHeadDim(config, "n_heads", architecture.hidden_dim, heads);
  if (const nlohmann::json* object = config.Object("attn_config")) {
    Config part(*object, config.Path("attn_config"), config.report());
    part.Ignore({"clip_qkv"});
    attention.kv_head_count = static_cast<int32_t>(part.Required({"kv_n_heads"}, 1, kMaxHeadCount));
    part.WarnUnknown();
  } else {
    config.Violate("attn_config", "is missing", "REQUIRED");
  }
  CheckHeads(config, attention);
  layer.attention = attention;
  if (const nlohmann::json* object = config.Object("ffn_config")) {
    Config part(*object, config.Path("ffn_config"), config.report());
    part.Ignore({"ffn_act_fn", "moe_jitter_eps", "moe_loss_weight", "moe_normalize_expert_weights"});
    MixtureOfExperts moe;
    moe.expert_ffn_dim = static_cast<int32_t>(part.Required({"ffn_hidden_size"}));
    moe.expert_count = static_cast<int32_t>(part.Required({"moe_num_experts"}, 1, kMaxExpertCount));
    moe.experts_per_token = static_cast<int32_t>(part.Required({"moe_top_k"}, 1, kMaxExpertCount));
    if (moe.experts_per_token > moe.expert_count) part.Violate("moe_top_k", "is more than the experts that there are");
    layer.feed_forward = moe;
    part.WarnUnknown();
  } else {
    config.Violate("ffn_config", "is missing", "REQUIRED");
  }
  architecture.layer_groups = {{layer_count, {layer}}};
}

// A text model whose layers interleave dense MLPs and experts, and chunked and full attention.
void BuildLlama4(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  const int32_t layer_count = ReadLayerCount(config);
  GroupedQueryAttention attention = ReadGroupedQuery(config, traits, architecture.hidden_dim);
  config.Ignore({"use_qk_norm"});  // without learned weights
  const int64_t chunk = config.IntOr({"attention_chunk_size"}, 0, 1, (int64_t{1} << 31) - 1);
  std::vector<bool> chunked(static_cast<size_t>(layer_count), false);
  const std::vector<std::string> types = ReadLayerTypes(config, layer_count);
  const std::optional<std::vector<int64_t>> rotary = config.Ints("no_rope_layers", 0, 1);
  constexpr int64_t kDefaultInterval = 4;
  const int64_t interval = config.IntOr({"no_rope_layer_interval"}, kDefaultInterval, 1, kMaxLayerCount);
  if (rotary && !rotary->empty() && rotary->size() != chunked.size()) {
    config.Violate("no_rope_layers", "must list every layer", "CONFLICT");
  }
  for (size_t i = 0; i < chunked.size(); ++i) {
    if (!types.empty()) {
      chunked[i] = types[i] == "chunked_attention";
    } else if (rotary && rotary->size() == chunked.size()) {
      chunked[i] = (*rotary)[i] == 1;  // 1: has rotary embedding, and attends in chunks
    } else {
      chunked[i] = (static_cast<int64_t>(i) + 1) % interval != 0;
    }
  }
  std::vector<bool> expert(static_cast<size_t>(layer_count), false);
  const int64_t step = config.IntOr({"interleave_moe_layer_step"}, 1, 0, kMaxLayerCount);
  if (const auto listed = config.Ints("moe_layers", 0, layer_count - 1)) {
    for (const int64_t i : *listed) expert[static_cast<size_t>(i)] = true;
  } else if (step > 0) {
    for (int64_t i = step - 1; i < layer_count; i += step) expert[static_cast<size_t>(i)] = true;
  }
  const bool any_experts = std::find(expert.begin(), expert.end(), true) != expert.end();
  const bool any_dense = std::find(expert.begin(), expert.end(), false) != expert.end();
  MixtureOfExperts moe;
  if (any_experts) {
    moe = ReadExperts(config, traits);
    moe.shared_expert_count = 1;  // of the expert width, not written in the file
  }
  DenseFeedForward dense;
  if (any_dense) dense.ffn_dim = static_cast<int32_t>(config.Required({"intermediate_size_mlp"}));
  config.Ignore({"intermediate_size_mlp", "intermediate_size"});

  std::vector<Layer> layers(static_cast<size_t>(layer_count));
  for (size_t i = 0; i < layers.size(); ++i) {
    attention.chunked_window = chunked[i] ? static_cast<int32_t>(chunk) : 0;
    layers[i].attention = attention;
    layers[i].norms = NormsOf(traits.norm, traits.norms_per_layer);
    if (expert[i]) {
      layers[i].feed_forward = moe;
    } else {
      layers[i].feed_forward = dense;
    }
  }
  architecture.layer_groups = GroupLayers(layers);
}

// Full and sliding layers have head counts and sizes of their own, and a list says which layers hold experts.
void BuildMimoV2(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  const int32_t layer_count = ReadLayerCount(config);
  GroupedQueryAttention full = ReadGroupedQuery(config, traits, architecture.hidden_dim);
  full.value_head_dim = static_cast<int32_t>(config.IntOr({"v_head_dim"}, full.head_dim));
  full.sinks = config.Bool({"add_full_attention_sink_bias"}, false);
  GroupedQueryAttention sliding = full;
  sliding.query_head_count =
      static_cast<int32_t>(config.IntOr({"swa_num_attention_heads"}, full.query_head_count, 1, kMaxHeadCount));
  sliding.kv_head_count =
      static_cast<int32_t>(config.IntOr({"swa_num_key_value_heads"}, full.kv_head_count, 1, kMaxHeadCount));
  sliding.head_dim = static_cast<int32_t>(config.IntOr({"swa_head_dim"}, full.head_dim));
  sliding.value_head_dim = static_cast<int32_t>(config.IntOr({"swa_v_head_dim"}, full.value_head_dim));
  sliding.sinks = config.Bool({"add_swa_attention_sink_bias"}, false);
  CheckHeads(config, sliding);
  config.Ignore({"attention_chunk_size", "attention_value_scale", "swa_rope_theta"});

  std::vector<int64_t> kinds = config.Ints("hybrid_layer_pattern", 0, 1).value_or(std::vector<int64_t>());
  std::vector<int64_t> experts = config.Ints("moe_layer_freq", 0, 1).value_or(std::vector<int64_t>());
  for (const auto& [key, list] : {std::pair{"hybrid_layer_pattern", &kinds}, std::pair{"moe_layer_freq", &experts}}) {
    if (list->size() != static_cast<size_t>(layer_count)) {
      config.Violate(key, "must list every layer", "CONFLICT");
      list->assign(static_cast<size_t>(layer_count), 0);
    }
  }
  const bool any_sliding = std::find(kinds.begin(), kinds.end(), 1) != kinds.end();
  const bool any_dense = std::find(experts.begin(), experts.end(), 0) != experts.end();
  const bool any_experts = std::find(experts.begin(), experts.end(), 1) != experts.end();
  if (any_sliding) {
    sliding.sliding_window =
        static_cast<int32_t>(config.Required({"sliding_window", "sliding_window_size"}, 1, (int64_t{1} << 31) - 1));
  }
  MixtureOfExperts moe;
  DenseFeedForward dense;
  if (any_experts) moe = ReadExperts(config, traits);
  if (any_dense) dense = ReadDense(config, traits);
  std::vector<Layer> layers(static_cast<size_t>(layer_count));
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].attention = kinds[i] == 1 ? sliding : full;
    layers[i].norms = NormsOf(traits.norm, traits.norms_per_layer);
    if (experts[i] == 1) {
      layers[i].feed_forward = moe;
    } else {
      layers[i].feed_forward = dense;
    }
  }
  architecture.layer_groups = GroupLayers(layers);
}

// use_mtp announces layers that the checkpoint does not hold.
void BuildMinimaxM2(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  BuildDecoder(config, traits, architecture);
  if (config.Bool({"use_mtp"}, false)) {
    config.Warn(
        ImportWarning::Kind::kExcludedPart, "use_mtp",
        "checkpoints of this family announce multi-token prediction but store no such layers: none are counted");
  }
  config.Ignore({"num_mtp_modules", "mtp_transformer_layers", "qk_norm_type", "shared_intermediate_size"});
}

// Experts up to a last layer, which is the last of the stack in every published model.
void BuildErnieMoe(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  BuildDecoder(config, traits, architecture);
  const int64_t last = config.IntOr({"moe_layer_end_index"}, -1, -1, kMaxLayerCount);
  if (last >= 0 && last != architecture.LayerCount() - 1) {
    config.Unsupported("moe_layer_end_index", "experts that end before the last layer are not modelled");
  }
  config.Ignore({"moe_gate", "moe_capacity", "moe_norm_min"});
}

constexpr Family kFamilies[] = {
    {{.model_type = "mixtral",
      .window = WindowRule::kAllLayers,
      .moe = {.rule = MoeRule::kAllLayers, .width_is_intermediate_size = true}},
     BuildDecoder},
    {{.model_type = "qwen2_moe",
      .qkv_bias = {"qkv_bias", true},
      .window = WindowRule::kAfterSwitch,
      .moe = {.rule = MoeRule::kSparseStep, .shared = SharedExperts::kAbsolute}},
     BuildDecoder},
    {{.model_type = "qwen3_moe",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .qk_norm = QkNorm::kPerHeadDim,
      .qk_norm_on = {"use_qk_norm", true},
      .default_head_dim = 128,
      .window = WindowRule::kAfterSwitch,
      .moe = {.rule = MoeRule::kSparseStep}},
     BuildDecoder},
    {{.model_type = "olmoe",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .qk_norm = QkNorm::kAllHeads,
      .moe = {.rule = MoeRule::kAllLayers, .width_is_intermediate_size = true}},
     BuildDecoder},
    {{.model_type = "phimoe",
      .norm = NormStyle::kLayerNorm,
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .head_bias = {"lm_head_bias", false},
      .window = WindowRule::kAllLayers,
      .moe = {.rule = MoeRule::kAllLayers, .width_is_intermediate_size = true}},
     BuildDecoder},
    {{.model_type = "gpt_oss",
      .qkv_bias = {"attention_bias", true},
      .output_bias = {"attention_bias", true},
      .default_window = 128,
      .sinks = true,
      .window = WindowRule::kAlternate,
      .moe =
          {.rule = MoeRule::kAllLayers, .width_is_intermediate_size = true, .expert_bias = true, .router_bias = true}},
     BuildDecoder},
    {{.model_type = "grok-1",
      .tied = true,
      .norms_per_layer = 4,
      .moe = {.rule = MoeRule::kAllLayers, .width_is_intermediate_size = true}},
     BuildDecoder},
    {{.model_type = "dbrx", .norm = NormStyle::kLayerNormWithoutBias}, BuildDbrx},
    {{.model_type = "granitemoe",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .moe = {.rule = MoeRule::kAllLayers, .width_is_intermediate_size = true}},
     BuildDecoder},
    {{.model_type = "granitemoeshared",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .moe = {.rule = MoeRule::kAllLayers, .width_is_intermediate_size = true, .shared = SharedExperts::kByWidth}},
     BuildDecoder},
    {{.model_type = "glm4_moe",
      .qkv_bias = kAttentionBias,
      .qk_norm = QkNorm::kPerHeadDim,
      .qk_norm_on = {"use_qk_norm", false},
      .default_head_dim = 128,
      .moe = {.rule = MoeRule::kAfterDense, .shared = SharedExperts::kFused, .correction_bias = kAlways},
      .mtp = MtpRule::kOwnTables},
     BuildDecoder},
    {{.model_type = "deepseek",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .moe = {.rule = MoeRule::kAfterDense, .shared = SharedExperts::kFused}},
     BuildDecoder},
    {{.model_type = "ernie4_5_moe",
      .tied = true,
      .qkv_bias = {"use_bias", false},
      .output_bias = {"use_bias", false},
      .default_head_dim = 128,
      .mlp_bias = {"use_bias", false},
      .moe = {.rule = MoeRule::kAfterDense,
              .shared = SharedExperts::kFused,
              .correction_bias = {"moe_use_aux_free", true}}},
     BuildErnieMoe},
    {{.model_type = "bailing_moe_v2",
      .qkv_bias = {"use_qkv_bias", false},
      .output_bias = {"use_bias", false},
      .qk_norm = QkNorm::kPerHeadDim,
      .qk_norm_on = {"use_qk_norm", false},
      .mlp_bias = {"use_bias", false},
      .moe = {.rule = MoeRule::kAfterDense,
              .shared = SharedExperts::kFused,
              .correction_bias = {"moe_router_enable_expert_bias", true}},
      .mtp = MtpRule::kSharedTables},
     BuildDecoder},
    {{.model_type = "dots1",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .qk_norm = QkNorm::kPerHeadDim,
      .window = WindowRule::kAfterSwitch,
      .moe = {.rule = MoeRule::kAfterDense, .shared = SharedExperts::kFused, .correction_bias = kAlways}},
     BuildDecoder},
    {{.model_type = "minimax_m2",
      .qk_norm = QkNorm::kAllHeads,
      .qk_norm_on = {"use_qk_norm", true},
      .moe = {.rule = MoeRule::kAllLayers,
              .width_is_intermediate_size = true,
              .correction_bias = {"use_routing_bias", true}}},
     BuildMinimaxM2},
    {{.model_type = "mimo_v2_flash",
      .qkv_bias = kAttentionBias,
      .moe = {.rule = MoeRule::kAllLayers, .shared = SharedExperts::kFused, .correction_bias = kAlways}},
     BuildMimoV2},
    {{.model_type = "llama4_text",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .moe = {.rule = MoeRule::kAllLayers, .width_is_intermediate_size = true}},
     BuildLlama4},
};

}  // namespace

absl::Span<const Family> MixtureFamilies() { return kFamilies; }

}  // namespace sliceplan::transformer::hugging_face
