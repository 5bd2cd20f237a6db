// The Gemma line: tied tables, wide heads, post-norms, local and global layers.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/transformer/hugging_face/decoder.h"
#include "server/transformer/hugging_face/family.h"

namespace sliceplan::transformer::hugging_face {
namespace {

using QkNorm = GroupedQueryAttention::QkNorm;

constexpr Flag kAttentionBias = {"attention_bias", false};

// Kinds of layers: sliding ones with `head_dim` and `num_key_value_heads`, full ones with sizes of their own and, in
// some models, one projection for keys and values. The last layers may share the caches of earlier ones.
void BuildGemma4(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  constexpr int64_t kGlobalHeadDim = 512;
  constexpr int64_t kPeriod = 6;
  constexpr int64_t kPerLayerInput = 256;
  constexpr int64_t kPerLayerVocab = 262144;
  ReadFrame(config, traits, architecture);
  const int32_t layer_count = ReadLayerCount(config);
  GroupedQueryAttention sliding = ReadGroupedQuery(config, traits, architecture.hidden_dim);
  sliding.sliding_window = static_cast<int32_t>(config.Required({"sliding_window"}, 1, (int64_t{1} << 31) - 1));
  GroupedQueryAttention full = sliding;
  full.sliding_window = 0;
  full.head_dim = static_cast<int32_t>(config.IntOrAssume({"global_head_dim"}, kGlobalHeadDim));
  full.key_is_value = config.Bool({"attention_k_eq_v"}, false);
  const int64_t global_kv_heads = config.IntOr({"num_global_key_value_heads"}, sliding.kv_head_count, 1, kMaxHeadCount);
  if (full.key_is_value) full.kv_head_count = static_cast<int32_t>(global_kv_heads);
  CheckHeads(config, full);

  std::vector<std::string> types = ReadLayerTypes(config, layer_count);
  if (types.empty()) {
    for (int32_t i = 0; i < layer_count; ++i) {
      types.push_back((i + 1) % kPeriod == 0 ? "full_attention" : "sliding_attention");
    }
  }
  types.back() = "full_attention";
  const int64_t shared_count = config.IntOr({"num_kv_shared_layers"}, 0, 0, layer_count - 1);
  const bool double_wide = config.Bool({"use_double_wide_mlp"}, false);

  Layer layer;
  const bool has_experts = config.Bool({"enable_moe_block"}, false);
  constexpr int32_t kExpertNorms = 3;
  layer.norms = NormsOf(traits.norm, traits.norms_per_layer + (has_experts ? kExpertNorms : 0));
  layer.per_layer_input_dim =
      static_cast<int32_t>(config.IntOrAssume({"hidden_size_per_layer_input"}, kPerLayerInput, 0));
  if (layer.per_layer_input_dim > 0) {
    architecture.per_layer_vocab_size =
        static_cast<int32_t>(config.IntOrAssume({"vocab_size_per_layer_input"}, kPerLayerVocab));
  }
  config.Ignore({"vocab_size_per_layer_input"});
  const DenseFeedForward dense = ReadDense(config, traits);
  MixtureOfExperts moe;
  if (has_experts) {
    moe = ReadExperts(config, traits);
    moe.dense_residual_ffn_dim = dense.ffn_dim;
    // The router scales its input by a learned vector and its output by one number an expert.
    layer.extra_parameter_count = architecture.hidden_dim + moe.expert_count;
  }
  config.Ignore({"num_experts", "top_k_experts", "moe_intermediate_size", "use_bidirectional_attention"});

  std::vector<Layer> layers;
  for (int32_t i = 0; i < layer_count; ++i) {
    const std::string& type = types[static_cast<size_t>(i)];
    if (type != "full_attention" && type != "sliding_attention") {
      config.Unsupported(absl::StrCat("layer_types[", i, "]"), "is no kind of attention of this family");
      return;
    }
    const bool shares = i >= layer_count - shared_count && shared_count > 0;
    GroupedQueryAttention attention = type == "full_attention" ? full : sliding;
    attention.shares_earlier_kv = shares;
    layer.attention = attention;
    if (has_experts) {
      layer.feed_forward = moe;
    } else {
      DenseFeedForward width = dense;
      if (shares && double_wide) width.ffn_dim *= 2;
      layer.feed_forward = width;
    }
    layers.push_back(layer);
  }
  architecture.layer_groups = GroupLayers(layers);
}

constexpr Family kFamilies[] = {
    {{.model_type = "gemma",
      .tied = true,
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .default_head_dim = 256},
     BuildDecoder},
    {{.model_type = "gemma2",
      .tied = true,
      .norms_per_layer = 4,
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .default_head_dim = 256,
      .default_window = 4096,
      .window = WindowRule::kAlternate},
     BuildDecoder},
    {{.model_type = "vaultgemma",
      .tied = true,
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .default_head_dim = 256,
      .default_window = 4096,
      .window = WindowRule::kAlternate},
     BuildDecoder},
    {{.model_type = "gemma3_text",
      .tied = true,
      .norms_per_layer = 4,
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .qk_norm = QkNorm::kPerHeadDim,
      .default_head_dim = 256,
      .default_vocab_size = 262208,
      .default_head_count = 8,
      .default_kv_head_count = 4,
      .default_window = 4096,
      .default_positions = 131072,
      .window = WindowRule::kPeriod,
      .window_period = 6},
     BuildDecoder},
    {{.model_type = "gemma4_text",
      .tied = true,
      .norms_per_layer = 4,
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .qk_norm = QkNorm::kPerHeadDim,
      .default_head_dim = 256,
      .moe = {.rule = MoeRule::kAllLayers},
      .stores_tied_table_twice = true},
     BuildGemma4},
};

}  // namespace

absl::Span<const Family> GemmaFamilies() { return kFamilies; }

}  // namespace sliceplan::transformer::hugging_face
