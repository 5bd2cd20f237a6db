// Dense decoders close to Llama, each with a deviation that no trait expresses.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/transformer/hugging_face/decoder.h"
#include "server/transformer/hugging_face/family.h"

namespace sliceplan::transformer::hugging_face {
namespace {

using QkNorm = GroupedQueryAttention::QkNorm;

constexpr Flag kAttentionBias = {"attention_bias", false};

void ForEachLayer(Architecture& architecture, void (*change)(Layer& layer)) {
  for (LayerGroup& group : architecture.layer_groups) std::for_each(group.layers.begin(), group.layers.end(), change);
}

// Some files of the name hold experts.
void BuildMiniCpm(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  DecoderTraits own = traits;
  if (config.IntOr({"num_experts"}, 0, 0, kMaxExpertCount) > 0) {
    own.moe = {.rule = MoeRule::kAllLayers, .width_is_intermediate_size = true};
  }
  BuildDecoder(config, own, architecture);
  if (config.Has("sparse_config")) {
    config.Warn(ImportWarning::Kind::kIgnoredValue, "sparse_config", "is ignored: attention is counted in full");
  }
  config.Ignore({"dim_model_base", "sparse_config"});
}

// A norm before each output projection: one over the hidden width, one over the MLP's.
void BuildBitNet(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  BuildDecoder(config, traits, architecture);
  ForEachLayer(architecture, [](Layer& layer) {
    layer.extra_parameter_count = std::get<DenseFeedForward>(layer.feed_forward).ffn_dim;
  });
}

// The width is that of gate and up together, and image tokens have rows beside the table, which the head does not
// score. As a lookup they count like learned positions.
void BuildMolmo(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  constexpr int32_t kAddedRows = 128;
  BuildDecoder(config, traits, architecture);
  const bool weight_tying = config.Bool({"weight_tying"}, true);
  architecture.tied_embeddings &= weight_tying;
  architecture.vocab_size = static_cast<int32_t>(config.IntOr({"embedding_size"}, architecture.vocab_size));
  architecture.learned_position_count = kAddedRows;
  const std::string norm = config.Text({"layer_norm_type"});
  if (!norm.empty() && norm != "rms") {
    config.Unsupported("layer_norm_type", absl::StrCat("'", norm.substr(0, 40), "' is not modelled in this family"));
  }
  if (config.Has("moe_num_experts") || config.Has("num_experts")) {
    config.Unsupported("moe_num_experts", "experts are not modelled in this family");
  }
  config.Ignore({"use_position_ids", "norm_after"});  // norms after or before: as many
  ForEachLayer(architecture, [](Layer& layer) { std::get<DenseFeedForward>(layer.feed_forward).ffn_dim /= 2; });
  const nlohmann::json* width = config.Raw("intermediate_size");
  if (width != nullptr && width->is_number_integer() && width->get<int64_t>() % 2 != 0) {
    config.Violate("intermediate_size", "must be even: gate and up together", "NOT_DIVISIBLE");
  }
}

void BuildPhi3Small(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  Layer layer;
  layer.norms = NormsOf(traits.norm, traits.norms_per_layer);
  layer.attention = ReadGroupedQuery(config, traits, architecture.hidden_dim);
  DenseFeedForward dense;
  dense.ffn_dim = static_cast<int32_t>(config.Required({"ff_intermediate_size"}));
  dense.bias = Read(config, traits.mlp_bias);
  layer.feed_forward = dense;
  if (config.HasAny({"blocksparse_block_size", "blocksparse_num_local_blocks"})) {
    config.Warn(ImportWarning::Kind::kIgnoredValue, "blocksparse_block_size",
                "is ignored: every layer is counted as attending in full");
  }
  config.Ignore({"blocksparse_block_size", "blocksparse_homo_head_pattern", "blocksparse_num_local_blocks",
                 "blocksparse_triton_kernel_block_size", "blocksparse_vert_stride", "dense_attention_every_n_layers",
                 "dummy_token_indices", "ff_dim_multiplier", "gegelu_limit", "gegelu_pad_to_256", "mup_attn_multiplier",
                 "mup_embedding_multiplier", "mup_use_scaling", "mup_width_multiplier", "reorder_and_upcast_attn"});
  architecture.layer_groups = {{ReadLayerCount(config), {layer}}};
}

// Of the MLP only the down projection has a bias. Files of the family tie the table or do not, so they must say it.
void BuildTelechat(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  BuildDecoder(config, traits, architecture);
  if (!config.Has("tie_word_embeddings")) config.Violate("tie_word_embeddings", "is missing", "REQUIRED");
  if (config.Bool({"embed_layernorm"}, false)) {
    config.Unsupported("embed_layernorm", "a norm after the embedding is not modelled in this family");
  }
  config.Ignore({"base_seqlen", "logn", "training_seqlen", "unk_token_id"});
  for (LayerGroup& group : architecture.layer_groups) {
    for (Layer& layer : group.layers) layer.extra_parameter_count = architecture.hidden_dim;
  }
}

constexpr Family kFamilies[] = {
    {{.model_type = "minicpm", .tied = true, .qkv_bias = kAttentionBias, .output_bias = kAttentionBias}, BuildMiniCpm},
    {{.model_type = "bitnet", .norms_per_layer = 3, .qkv_bias = kAttentionBias, .output_bias = kAttentionBias},
     BuildBitNet},
    {{.model_type = "molmo",
      .tied = true,
      .qkv_bias = {"qkv_bias", false},
      .qk_norm = QkNorm::kAllHeads,
      .qk_norm_on = {"attention_layer_norm", false}},
     BuildMolmo},
    {{.model_type = "phi3small",
      .tied = true,
      .norm = NormStyle::kLayerNorm,
      .qkv_bias = kAlways,
      .output_bias = kAlways,
      .mlp_bias = kAlways},
     BuildPhi3Small},
    {{.model_type = "telechat", .output_bias = kAlways}, BuildTelechat},
};

}  // namespace

absl::Span<const Family> LlamaVariants() { return kFamilies; }

}  // namespace sliceplan::transformer::hugging_face
