// Decoders with constant-state layers: gated delta rule, Kimi delta attention, lightning attention, Mamba.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/transformer/hugging_face/decoder.h"
#include "server/transformer/hugging_face/family.h"

namespace sliceplan::transformer::hugging_face {
namespace {

using QkNorm = GroupedQueryAttention::QkNorm;

constexpr Flag kAttentionBias = {"attention_bias", false};
constexpr int64_t kMaxConvWidth = 4096;

int32_t Narrow(int64_t value) { return static_cast<int32_t>(value); }

// Experts or a dense MLP for every layer of the stack.
std::vector<FeedForward> ReadFeedForwards(Config& config, const DecoderTraits& traits,
                                          const std::vector<bool>& expert) {
  const bool any_experts = std::find(expert.begin(), expert.end(), true) != expert.end();
  const bool any_dense = std::find(expert.begin(), expert.end(), false) != expert.end();
  FeedForward dense;
  FeedForward experts;
  if (any_dense) dense = ReadDense(config, traits);
  if (any_experts) experts = ReadExperts(config, traits);
  config.Ignore({"intermediate_size"});
  std::vector<FeedForward> feed_forwards;
  feed_forwards.reserve(expert.size());
  for (const bool is_expert : expert) feed_forwards.push_back(is_expert ? experts : dense);
  return feed_forwards;
}

// Full attention in every `full_attention_interval`-th layer, the gated delta rule in the others.
void BuildQwenHybrid(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  constexpr int64_t kInterval = 4;
  ReadFrame(config, traits, architecture);
  const int32_t layer_count = ReadLayerCount(config);
  GroupedQueryAttention full = ReadGroupedQuery(config, traits, architecture.hidden_dim);
  full.output_gate = config.Bool({"attn_output_gate"}, true);
  LinearAttention linear;
  linear.kind = LinearAttention::Kind::kGatedDelta;
  linear.key_head_count = Narrow(config.Required({"linear_num_key_heads"}, 1, kMaxHeadCount));
  linear.value_head_count = Narrow(config.Required({"linear_num_value_heads"}, 1, kMaxHeadCount));
  linear.key_head_dim = Narrow(config.Required({"linear_key_head_dim"}));
  linear.value_head_dim = Narrow(config.Required({"linear_value_head_dim"}));
  linear.conv_width = Narrow(config.Required({"linear_conv_kernel_dim"}, 1, kMaxConvWidth));
  const int64_t interval = config.IntOr({"full_attention_interval"}, kInterval, 1, kMaxLayerCount);
  const std::vector<std::string> types = ReadLayerTypes(config, layer_count);
  const std::vector<FeedForward> feed_forwards =
      ReadFeedForwards(config, traits, ExpertLayers(config, traits.moe, layer_count));
  config.Ignore({"mtp_use_dedicated_embeddings", "mamba_ssm_dtype"});

  std::vector<Layer> layers(static_cast<size_t>(layer_count));
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool is_full = types.empty() ? (static_cast<int64_t>(i) + 1) % interval == 0 : types[i] == "full_attention";
    if (!types.empty() && !is_full && types[i] != "linear_attention") {
      config.Unsupported(absl::StrCat("layer_types[", i, "]"), "is no kind of attention of this family");
      return;
    }
    if (is_full) {
      layers[i].attention = full;
    } else {
      layers[i].attention = linear;
    }
    layers[i].feed_forward = feed_forwards[i];
    layers[i].norms = NormsOf(traits.norm, traits.norms_per_layer);
  }
  // The draft layer attends in full.
  Layer draft = layers.back();
  draft.attention = full;
  ReadMtp(config, traits, draft, architecture);
  architecture.layer_groups = GroupLayers(layers);
}

// Qwen3-Next stores one draft layer that its config does not mention.
void BuildQwen3Next(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  BuildQwenHybrid(config, traits, architecture);
  if (!config.HasAny({"num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp_num_layers"})) {
    architecture.mtp_layer_count = 1;
    config.Warn(
        ImportWarning::Kind::kAssumedValue, "mtp_num_hidden_layers",
        "is missing: one multi-token-prediction layer is counted beside the main model, as this family's checkpoints "
        "store one");
  }
}

void BuildMinimax(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  const int32_t layer_count = ReadLayerCount(config);
  const GroupedQueryAttention full = ReadGroupedQuery(config, traits, architecture.hidden_dim);
  LinearAttention linear;
  linear.kind = LinearAttention::Kind::kLightning;
  linear.key_head_count = linear.value_head_count = full.query_head_count;
  linear.key_head_dim = linear.value_head_dim = full.head_dim;
  linear.chunk_size = Narrow(config.IntOr({"block_size"}, 0, 1, 65536));
  const std::vector<std::string> types = ReadLayerTypes(config, layer_count);
  std::vector<int64_t> softmax = config.Ints("attn_type_list", 0, 1).value_or(std::vector<int64_t>());
  if (softmax.empty()) {
    for (const std::string& type : types) softmax.push_back(type == "full_attention" ? 1 : 0);
  }
  if (softmax.size() != static_cast<size_t>(layer_count)) {
    config.Violate("attn_type_list", absl::StrCat("must list all ", layer_count, " layers"), "CONFLICT");
    return;
  }
  MixtureOfExperts moe = ReadExperts(config, traits);
  config.Ignore({"postnorm", "shared_moe_mode", "layernorm_full_attention_alpha", "layernorm_full_attention_beta",
                 "layernorm_linear_attention_alpha", "layernorm_linear_attention_beta", "layernorm_mlp_alpha",
                 "layernorm_mlp_beta", "full_attn_alpha_factor", "full_attn_beta_factor", "linear_attn_alpha_factor",
                 "linear_attn_beta_factor", "mlp_alpha_factor", "mlp_beta_factor"});
  std::vector<Layer> layers(static_cast<size_t>(layer_count));
  for (size_t i = 0; i < layers.size(); ++i) {
    if (softmax[i] == 1) {
      layers[i].attention = full;
    } else {
      layers[i].attention = linear;
    }
    layers[i].feed_forward = moe;
    layers[i].norms = NormsOf(traits.norm, traits.norms_per_layer);
  }
  architecture.layer_groups = GroupLayers(layers);
}

// Width of the low-rank step size; "auto" and absence mean hidden / 16, rounded up.
int32_t ReadStepRank(Config& config, const char* key, int64_t hidden_dim) {
  constexpr int64_t kAutoDivisor = 16;
  const int64_t automatic = (hidden_dim + kAutoDivisor - 1) / kAutoDivisor;
  const nlohmann::json* value = config.Raw(key);
  if (value == nullptr || (value->is_string() && *value == "auto")) return Narrow(automatic);
  return Narrow(config.Required({key}));
}

void BuildJamba(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  constexpr int64_t kKvHeads = 8;  // unlike other families, not the number of heads
  ReadFrame(config, traits, architecture);
  const int32_t layer_count = ReadLayerCount(config);
  GroupedQueryAttention full = ReadGroupedQuery(config, traits, architecture.hidden_dim);
  if (!config.Has("num_key_value_heads")) {
    full.kv_head_count = Narrow(config.IntOrAssume({"num_key_value_heads"}, kKvHeads, 1, kMaxHeadCount));
    CheckHeads(config, full);
  }
  LinearAttention mamba;
  mamba.kind = LinearAttention::Kind::kMamba1;
  mamba.inner_dim = Narrow(config.IntOrAssume({"mamba_expand"}, 2, 1, 64) * architecture.hidden_dim);
  mamba.key_head_dim = Narrow(config.IntOrAssume({"mamba_d_state"}, 16));
  mamba.conv_width = Narrow(config.IntOrAssume({"mamba_d_conv"}, 4, 1, kMaxConvWidth));
  mamba.dt_rank = ReadStepRank(config, "mamba_dt_rank", architecture.hidden_dim);
  mamba.conv_bias = config.Bool({"mamba_conv_bias"}, true);
  mamba.projection_bias = config.Bool({"mamba_proj_bias"}, false);
  mamba.state_norms = config.Bool({"mamba_inner_layernorms"}, true);
  const int64_t attention_period = config.IntOrAssume({"attn_layer_period"}, 8, 1, kMaxLayerCount);
  const int64_t attention_offset = config.IntOrAssume({"attn_layer_offset"}, 4, 0, kMaxLayerCount);
  const int64_t expert_period = config.IntOrAssume({"expert_layer_period"}, 2, 1, kMaxLayerCount);
  const int64_t expert_offset = config.IntOrAssume({"expert_layer_offset"}, 1, 0, kMaxLayerCount);
  const int64_t experts = config.Required({"num_experts"}, 1, kMaxExpertCount);
  std::vector<bool> expert(static_cast<size_t>(layer_count));
  for (int64_t i = 0; i < layer_count; ++i) {
    expert[static_cast<size_t>(i)] = experts > 1 && i % expert_period == expert_offset;
  }
  const std::vector<FeedForward> feed_forwards = ReadFeedForwards(config, traits, expert);
  config.Ignore({"num_experts_per_tok", "use_mamba_kernels", "num_logits_to_keep"});
  std::vector<Layer> layers(static_cast<size_t>(layer_count));
  for (size_t i = 0; i < layers.size(); ++i) {
    if (static_cast<int64_t>(i) % attention_period == attention_offset) {
      layers[i].attention = full;
    } else {
      layers[i].attention = mamba;
    }
    layers[i].feed_forward = feed_forwards[i];
    layers[i].norms = NormsOf(traits.norm, traits.norms_per_layer);
  }
  architecture.layer_groups = GroupLayers(layers);
}

// Mamba-1 layers and nothing else.
void BuildMamba(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  LinearAttention mamba;
  mamba.kind = LinearAttention::Kind::kMamba1;
  const int64_t expand = config.IntOr({"expand"}, 2, 1, 64);
  mamba.inner_dim = Narrow(config.IntOr({"intermediate_size", "d_inner"}, expand * architecture.hidden_dim));
  mamba.key_head_dim = Narrow(config.Required({"state_size"}));
  mamba.conv_width = Narrow(config.Required({"conv_kernel"}, 1, kMaxConvWidth));
  mamba.dt_rank = ReadStepRank(config, "time_step_rank", architecture.hidden_dim);
  mamba.conv_bias = config.Bool({"use_conv_bias"}, true);
  mamba.projection_bias = config.Bool({"use_bias"}, false);
  config.Ignore({"d_model", "fused_add_norm", "rescale_prenorm_residual", "residual_in_fp32", "rms_norm", "ssm_cfg",
                 "pad_vocab_size_multiple", "use_mambapy", "mixer_rms_eps"});
  Layer layer;
  layer.attention = mamba;
  layer.norms = NormsOf(traits.norm, traits.norms_per_layer);
  architecture.layer_groups = {{ReadLayerCount(config), {layer}}};
}

// Mamba-2 sizes under the keys of Mamba2Config and NemotronHConfig.
LinearAttention ReadMamba2(Config& config, Keys head_count_keys, Keys head_dim_keys, int64_t hidden_dim) {
  LinearAttention mamba;
  mamba.kind = LinearAttention::Kind::kMamba2;
  mamba.value_head_count = Narrow(config.Required(head_count_keys, 1, kMaxHeadCount));
  mamba.value_head_dim = Narrow(config.Required(head_dim_keys));
  mamba.key_head_count = Narrow(config.Required({"n_groups"}, 1, kMaxHeadCount));
  mamba.key_head_dim = Narrow(config.Required({"ssm_state_size", "state_size"}));
  mamba.conv_width = Narrow(config.Required({"conv_kernel"}, 1, kMaxConvWidth));
  mamba.chunk_size = Narrow(config.IntOr({"chunk_size"}, 0, 1, 65536));
  mamba.conv_bias = config.Bool({"use_conv_bias"}, true);
  mamba.projection_bias = config.Bool({"mamba_proj_bias", "use_bias"}, false);
  const int64_t inner = static_cast<int64_t>(mamba.value_head_count) * mamba.value_head_dim;
  if (inner > kMaxDim)
    config.Violate(*head_count_keys.begin(), absl::StrCat("heads x head dim must be at most ", kMaxDim));
  mamba.inner_dim = Narrow(std::min(inner, kMaxDim));
  if (mamba.value_head_count % mamba.key_head_count != 0) {
    config.Violate("n_groups", absl::StrCat(mamba.value_head_count, " heads do not divide over them"), "NOT_DIVISIBLE");
  }
  // The inner width is heads x head dim; expand x hidden, where it differs, is not used.
  const int64_t expand = config.IntOr({"expand"}, 2, 1, 64);
  if (expand * hidden_dim != inner) {
    config.Warn(ImportWarning::Kind::kIgnoredValue, "expand", "is ignored: the inner width is heads x head dim");
  }
  config.Ignore({"mamba_hidden_act", "mamba_ssm_cache_dtype", "rescale_prenorm_residual", "residual_in_fp32",
                 "use_mamba_kernels", "rms_norm", "time_step_rank", "norm_before_gate"});
  return mamba;
}

void BuildMamba2(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  Layer layer;
  layer.attention = ReadMamba2(config, {"num_heads"}, {"head_dim"}, architecture.hidden_dim);
  layer.norms = NormsOf(traits.norm, traits.norms_per_layer);
  architecture.layer_groups = {{ReadLayerCount(config), {layer}}};
}

// One letter a layer: M Mamba-2, * attention, - MLP, E experts. Each is a block of its own with one norm.
void BuildNemotronH(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  const int32_t layer_count = ReadLayerCount(config);
  const std::string pattern = config.Text({"hybrid_override_pattern"});
  if (pattern.size() != static_cast<size_t>(layer_count)) {
    config.Violate("hybrid_override_pattern",
                   absl::StrCat("must hold one letter for each of ", layer_count, " layers, holds ", pattern.size()),
                   "CONFLICT");
    return;
  }
  const size_t stranger = pattern.find_first_not_of("M*-E");
  if (stranger != std::string::npos) {
    config.Unsupported("hybrid_override_pattern", absl::StrCat("letter ", stranger, " is none of M, *, - and E"));
    return;
  }
  const auto holds = [&pattern](char letter) { return pattern.find(letter) != std::string::npos; };
  Layer mamba;
  Layer attention;
  Layer mlp;
  Layer experts;
  if (holds('M')) {
    mamba.attention = ReadMamba2(config, {"mamba_num_heads"}, {"mamba_head_dim"}, architecture.hidden_dim);
  }
  if (holds('*')) attention.attention = ReadGroupedQuery(config, traits, architecture.hidden_dim);
  if (holds('-')) mlp.feed_forward = ReadDense(config, traits);
  if (holds('E')) {
    MixtureOfExperts moe = ReadExperts(config, traits);
    moe.shared_expert_count = Narrow(config.IntOr({"n_shared_experts"}, 0, 0, kMaxExpertCount));
    if (moe.shared_expert_count > 0) {
      moe.shared_expert_ffn_dim = Narrow(config.Required({"moe_shared_expert_intermediate_size"}));
    }
    moe.latent_dim = Narrow(config.IntOr({"moe_latent_size"}, 0, 0));
    experts.feed_forward = moe;
  }
  for (Layer* layer : {&mamba, &attention, &mlp, &experts}) layer->norms = NormsOf(traits.norm, traits.norms_per_layer);
  config.Ignore({"intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "attention_head_dim",
                 "mlp_hidden_act", "mlp_bias", "moe_shared_expert_overlap", "sliding_window", "num_query_groups"});
  const auto layer_of = [&](char letter) -> const Layer& {
    switch (letter) {
      case 'M': return mamba;
      case '*': return attention;
      case 'E': return experts;
      default: return mlp;
    }
  };
  std::vector<Layer> layers;
  layers.reserve(pattern.size());
  for (const char letter : pattern) layers.push_back(layer_of(letter));
  architecture.layer_groups = GroupLayers(layers);

  const std::string draft = config.Text({"mtp_hybrid_override_pattern"});
  const int64_t draft_count = config.IntOr({"num_nextn_predict_layers"}, 0, 0, kMaxMtpLayerCount);
  if (draft_count == 0) return;
  if (draft != "*E" || !holds('*') || !holds('E')) {
    config.Unsupported("mtp_hybrid_override_pattern", "only '*E', attention and experts, is understood");
    return;
  }
  Layer block;
  block.attention = attention.attention;
  block.feed_forward = experts.feed_forward;
  block.norms = NormsOf(traits.norm, 2 * traits.norms_per_layer);
  architecture.mtp_layer = block;
  architecture.mtp_layer_count = Narrow(draft_count);
}

// Layers are listed from 1: latent attention without positions in some, Kimi delta attention in the others.
void BuildKimiLinear(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  const int32_t layer_count = ReadLayerCount(config);
  const LatentAttention full = ReadLatent(config);
  LinearAttention linear;
  linear.kind = LinearAttention::Kind::kKimiDelta;
  std::vector<bool> is_full(static_cast<size_t>(layer_count), false);
  if (const nlohmann::json* object = config.Object("linear_attn_config")) {
    Config part(*object, config.Path("linear_attn_config"), config.report());
    linear.key_head_count = linear.value_head_count = Narrow(part.Required({"num_heads"}, 1, kMaxHeadCount));
    linear.key_head_dim = linear.value_head_dim = Narrow(part.Required({"head_dim"}));
    linear.conv_width = Narrow(part.Required({"short_conv_kernel_size"}, 1, kMaxConvWidth));
    for (const int64_t i : part.Ints("full_attn_layers", 1, layer_count).value_or(std::vector<int64_t>())) {
      is_full[static_cast<size_t>(i - 1)] = true;
    }
    part.Ignore({"kda_layers"});
    part.WarnUnknown();
  } else {
    config.Violate("linear_attn_config", "is missing", "REQUIRED");
  }
  const std::vector<FeedForward> feed_forwards =
      ReadFeedForwards(config, traits, ExpertLayers(config, traits.moe, layer_count));
  config.Ignore(
      {"mla_use_nope", "moe_renormalize", "moe_router_activation_func", "num_expert_group", "use_grouped_topk"});
  std::vector<Layer> layers(static_cast<size_t>(layer_count));
  for (size_t i = 0; i < layers.size(); ++i) {
    if (is_full[i]) {
      layers[i].attention = full;
    } else {
      layers[i].attention = linear;
    }
    layers[i].feed_forward = feed_forwards[i];
    layers[i].norms = NormsOf(traits.norm, traits.norms_per_layer);
  }
  architecture.layer_groups = GroupLayers(layers);
}

constexpr Family kFamilies[] = {
    {{.model_type = "qwen3_next",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .qk_norm = QkNorm::kPerHeadDim,
      .default_head_dim = 256,
      .moe = {.rule = MoeRule::kSparseStep, .shared = SharedExperts::kAbsolute},
      .mtp = MtpRule::kSharedTables},
     BuildQwen3Next},
    {{.model_type = "qwen3_5_moe_text",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .qk_norm = QkNorm::kPerHeadDim,
      .default_head_dim = 256,
      .moe = {.rule = MoeRule::kSparseStep, .shared = SharedExperts::kAbsolute},
      .mtp = MtpRule::kSharedTables},
     BuildQwenHybrid},
    {{.model_type = "qwen3_5_text",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .qk_norm = QkNorm::kPerHeadDim,
      .default_head_dim = 256,
      .mtp = MtpRule::kSharedTables},
     BuildQwenHybrid},
    {{.model_type = "minimax_text_01",
      .moe = {.rule = MoeRule::kAllLayers, .width_is_intermediate_size = true, .shared = SharedExperts::kByWidth}},
     BuildMinimax},
    {{.model_type = "minimax", .moe = {.rule = MoeRule::kAllLayers, .width_is_intermediate_size = true}}, BuildMinimax},
    {{.model_type = "jamba", .moe = {.width_is_intermediate_size = true}}, BuildJamba},
    {{.model_type = "mamba", .tied = true, .norms_per_layer = 1}, BuildMamba},
    {{.model_type = "falcon_mamba", .norms_per_layer = 1}, BuildMamba},
    {{.model_type = "mamba2", .norms_per_layer = 1}, BuildMamba2},
    {{.model_type = "nemotron_h",
      .norms_per_layer = 1,
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .gated = false,
      .mlp_bias = {"mlp_bias", false},
      .moe = {.gated = false, .correction_bias = kAlways}},
     BuildNemotronH},
    {{.model_type = "kimi_linear",
      .moe = {.rule = MoeRule::kAfterDense, .shared = SharedExperts::kFused, .correction_bias = kAlways}},
     BuildKimiLinear},
};

}  // namespace

absl::Span<const Family> HybridFamilies() { return kFamilies; }

}  // namespace sliceplan::transformer::hugging_face
