// OPT and other decoders of its time: layer norms, biases, plain MLPs, positions that are learned or cost nothing.
#include "absl/strings/str_cat.h"
#include "server/transformer/hugging_face/decoder.h"
#include "server/transformer/hugging_face/family.h"
#include "server/transformer/hugging_face/plain_layer.h"

namespace sliceplan::transformer::hugging_face {
namespace {

using QkNorm = GroupedQueryAttention::QkNorm;

// Rows 0 and 1 of the position table are never used by real positions.
constexpr int64_t kPositionOffset = 2;

void SetPlainLayers(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  SetLayers(config, ReadPlainLayer(config, traits, architecture), architecture);
}

void BuildOpt(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  DecoderTraits own = traits;
  if (!config.Bool({"layer_norm_elementwise_affine"}, true)) own.norm = NormStyle::kWithoutWeight;
  ReadFrame(config, own, architecture);
  ReadLearnedPositions(config, kPositionOffset, architecture);
  const int64_t embedding_dim = config.IntOr({"word_embed_proj_dim"}, architecture.hidden_dim);
  if (embedding_dim != architecture.hidden_dim) architecture.embedding_dim = static_cast<int32_t>(embedding_dim);
  const bool norm_first = config.Bool({"do_layer_norm_before"}, true);
  const bool keeps_final_norm = norm_first && !config.Bool({"_remove_final_layer_norm"}, false);
  architecture.final_norm.count = keeps_final_norm ? 1 : 0;
  SetPlainLayers(config, own, architecture);
}

void BuildBioGpt(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  config.Ignore({"scale_embedding"});
  ReadFrame(config, traits, architecture);
  ReadLearnedPositions(config, kPositionOffset, architecture);
  SetPlainLayers(config, traits, architecture);
}

// Sinusoidal positions, which are computed.
void BuildXglm(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  config.Ignore({"scale_embedding"});
  ReadFrame(config, traits, architecture);
  SetPlainLayers(config, traits, architecture);
}

void BuildJais(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  DecoderTraits own = traits;
  own.gated = config.Text({"activation_function"}) == "swiglu";
  config.Ignore({"alibi_scaling", "embeddings_scale", "mup_embeddings_scale", "mup_output_alpha",
                 "mup_scale_qk_dot_by_d", "mup_width_scale", "reorder_and_upcast_attn",
                 "scale_attn_by_inverse_layer_idx", "scale_qk_dot_by_d", "width_scale"});
  ReadFrame(config, own, architecture);
  const std::string positions = config.Text({"position_embedding_type"});
  if (positions.empty() || positions == "learned") {
    ReadLearnedPositions(config, 0, architecture);
  } else if (positions != "alibi") {
    config.Unsupported("position_embedding_type",
                       absl::StrCat("'", positions.substr(0, 40), "' is neither learned nor alibi"));
  }
  SetPlainLayers(config, own, architecture);
}

// Norms of queries and keys are layer norms with biases.
void BuildPersimmon(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  Layer& layer = SetLayers(config, ReadPlainLayer(config, traits, architecture), architecture);
  const auto& attention = std::get<GroupedQueryAttention>(layer.attention);
  if (attention.qk_norm != QkNorm::kNone) layer.extra_parameter_count = int64_t{2} * attention.head_dim;
  if (config.Has("patch_size")) {
    config.Warn(ImportWarning::Kind::kExcludedPart, "patch_size",
                "the projection of image patches is not counted: only the language part is");
  }
  config.Ignore({"patch_size", "num_channels", "text_config"});
}

constexpr Family kFamilies[] = {
    {{.model_type = "opt",
      .tied = true,
      .norm = NormStyle::kLayerNorm,
      .qkv_bias = {"enable_bias", true},
      .output_bias = {"enable_bias", true},
      .gated = false,
      .mlp_bias = {"enable_bias", true}},
     BuildOpt},
    {{.model_type = "biogpt",
      .tied = true,
      .norm = NormStyle::kLayerNorm,
      .qkv_bias = kAlways,
      .output_bias = kAlways,
      .gated = false,
      .mlp_bias = kAlways},
     BuildBioGpt},
    {{.model_type = "xglm",
      .tied = true,
      .norm = NormStyle::kLayerNorm,
      .qkv_bias = kAlways,
      .output_bias = kAlways,
      .gated = false,
      .mlp_bias = kAlways},
     BuildXglm},
    {{.model_type = "jais",
      .tied = true,
      .norm = NormStyle::kLayerNorm,
      .qkv_bias = kAlways,
      .output_bias = kAlways,
      .mlp_bias = kAlways},
     BuildJais},
    {{.model_type = "persimmon",
      .norm = NormStyle::kLayerNorm,
      .qkv_bias = kAlways,
      .output_bias = kAlways,
      .qk_norm = QkNorm::kPerHeadDim,
      .qk_norm_on = {"qk_layernorm", true},
      .gated = false,
      .mlp_bias = kAlways},
     BuildPersimmon},
};

}  // namespace

absl::Span<const Family> OptFamilies() { return kFamilies; }

}  // namespace sliceplan::transformer::hugging_face
