// Dense decoders that a row of traits describes: norm, attention, MLP, norm. Rules read in the reference
// implementations (transformers, or the model's own code); parameter counts are checked against published ones in the
// tests.
#include "server/transformer/hugging_face/decoder.h"
#include "server/transformer/hugging_face/family.h"

namespace sliceplan::transformer::hugging_face {
namespace {

using QkNorm = GroupedQueryAttention::QkNorm;

constexpr Flag kAttentionBias = {"attention_bias", false};
constexpr Flag kMlpBias = {"mlp_bias", false};
constexpr Flag kBias = {"bias", false};

// The first version writes the width of gate and up together.
void BuildQwen1(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  // Queries, keys and values have biases although the file says no_bias.
  config.Ignore({"no_bias"});
  BuildDecoder(config, traits, architecture);
  for (LayerGroup& group : architecture.layer_groups) {
    for (Layer& layer : group.layers) {
      if (auto* dense = std::get_if<DenseFeedForward>(&layer.feed_forward)) {
        if (dense->ffn_dim % 2 != 0)
          config.Violate("intermediate_size", "must be even: gate and up together", "NOT_DIVISIBLE");
        dense->ffn_dim /= 2;
      }
    }
  }
}

// multi_query says what the head counts say.
void BuildPalm(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  BuildDecoder(config, traits, architecture);
  config.Ignore({"multi_query"});
}

constexpr Family kFamilies[] = {
    {{.model_type = "llama",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .mlp_bias = kMlpBias,
      .rotary_buffers = true},
     BuildDecoder},
    {{.model_type = "mistral", .default_window = 4096, .window = WindowRule::kAllLayers}, BuildDecoder},
    {{.model_type = "ministral", .default_window = 4096, .window = WindowRule::kAllLayers}, BuildDecoder},
    {{.model_type = "ministral3", .window = WindowRule::kAllLayers}, BuildDecoder},
    {{.model_type = "qwen", .qkv_bias = kAlways}, BuildQwen1},
    {{.model_type = "qwen2", .qkv_bias = kAlways, .default_window = 4096, .window = WindowRule::kAfterSwitch},
     BuildDecoder},
    // Qwen2 that says so.
    {{.model_type = "dots_ocr",
      .qkv_bias = {"attention_bias", true},
      .default_window = 4096,
      .window = WindowRule::kAfterSwitch},
     BuildDecoder},
    {{.model_type = "qwen3",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .qk_norm = QkNorm::kPerHeadDim,
      .default_head_dim = 128,
      .default_window = 4096,
      .window = WindowRule::kAfterSwitch},
     BuildDecoder},
    {{.model_type = "mimo", .qkv_bias = kAlways, .window = WindowRule::kAfterSwitch, .mtp = MtpRule::kSharedTables},
     BuildDecoder},
    {{.model_type = "phi3", .window = WindowRule::kAllLayers}, BuildDecoder},
    {{.model_type = "stablelm",
      .norm = NormStyle::kLayerNorm,
      .parallel_block = {"use_parallel_residual", false},
      .parallel_drops_norm = true,
      .qkv_bias = {"use_qkv_bias", false},
      .qk_norm = QkNorm::kAllHeads,
      .qk_norm_on = {"qk_layernorm", false}},
     BuildDecoder},
    {{.model_type = "olmo",
      .norm = NormStyle::kWithoutWeight,
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias},
     BuildDecoder},
    {{.model_type = "olmo2", .qkv_bias = kAttentionBias, .output_bias = kAttentionBias, .qk_norm = QkNorm::kAllHeads},
     BuildDecoder},
    {{.model_type = "olmo3",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .qk_norm = QkNorm::kAllHeads,
      .default_window = 4096,
      .window = WindowRule::kPeriod,
      .window_period = 4},
     BuildDecoder},
    {{.model_type = "nemotron",
      .norm = NormStyle::kLayerNorm,
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .gated = false,
      .mlp_bias = kMlpBias},
     BuildDecoder},
    {{.model_type = "cohere",
      .tied = true,
      .norm = NormStyle::kLayerNormWithoutBias,
      .norms_per_layer = 1,
      .parallel_block = kAlways,
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .qk_norm = QkNorm::kAllHeads,
      .qk_norm_on = {"use_qk_norm", false}},
     BuildDecoder},
    {{.model_type = "cohere2",
      .tied = true,
      .norm = NormStyle::kLayerNormWithoutBias,
      .norms_per_layer = 1,
      .parallel_block = kAlways,
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .default_window = 4096,
      .window = WindowRule::kPeriod,
      .window_period = 4},
     BuildDecoder},
    {{.model_type = "granite", .qkv_bias = kAttentionBias, .output_bias = kAttentionBias, .mlp_bias = kMlpBias},
     BuildDecoder},
    {{.model_type = "starcoder2",
      .tied = true,
      .norm = NormStyle::kLayerNorm,
      .qkv_bias = {"use_bias", true},
      .output_bias = {"use_bias", true},
      .gated = false,
      .mlp_bias = {"use_bias", true},
      .window = WindowRule::kAllLayers},
     BuildDecoder},
    {{.model_type = "internlm", .qkv_bias = {"bias", true}, .output_bias = {"bias", true}}, BuildDecoder},
    {{.model_type = "internlm2", .qkv_bias = kBias, .output_bias = kBias}, BuildDecoder},
    {{.model_type = "internlm3", .qkv_bias = {"qkv_bias", false}, .output_bias = kBias, .mlp_bias = kBias},
     BuildDecoder},
    {{.model_type = "smollm3",
      .tied = true,
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .mlp_bias = kMlpBias,
      .window = WindowRule::kAfterSwitch},
     BuildDecoder},
    {{.model_type = "glm", .qkv_bias = {"attention_bias", true}, .default_head_dim = 128}, BuildDecoder},
    {{.model_type = "glm4", .norms_per_layer = 4, .qkv_bias = {"attention_bias", false}, .default_head_dim = 128},
     BuildDecoder},
    {{.model_type = "glm4v_text", .norms_per_layer = 4, .qkv_bias = {"attention_bias", true}}, BuildDecoder},
    {{.model_type = "helium", .qkv_bias = kAttentionBias, .default_head_dim = 128, .mlp_bias = kMlpBias}, BuildDecoder},
    {{.model_type = "cwm",
      .default_head_dim = 128,
      .default_window = 8192,
      .window = WindowRule::kPeriod,
      .window_period = 4},
     BuildDecoder},
    {{.model_type = "palm",
      .tied = true,
      .norms_per_layer = 1,
      .parallel_block = {"parallel_attn", true},
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .mlp_bias = kMlpBias},
     BuildPalm},
    {{.model_type = "exaone", .qkv_bias = kAttentionBias, .output_bias = kAttentionBias}, BuildDecoder},
    {{.model_type = "exaone4",
      .qk_norm = QkNorm::kPerHeadDim,
      .default_window = 4096,
      .window = WindowRule::kPeriod,
      .window_period = 4},
     BuildDecoder},
    {{.model_type = "seed_oss",
      .qkv_bias = {"attention_bias", true},
      .output_bias = {"attention_out_bias", false},
      .default_head_dim = 128,
      .mlp_bias = kMlpBias},
     BuildDecoder},
    {{.model_type = "hunyuan_v1_dense",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .qk_norm = QkNorm::kPerHeadDim,
      .qk_norm_on = {"use_qk_norm", true}},
     BuildDecoder},
    {{.model_type = "ernie4_5",
      .tied = true,
      .qkv_bias = {"use_bias", false},
      .output_bias = {"use_bias", false},
      .default_head_dim = 128,
      .mlp_bias = {"use_bias", false}},
     BuildDecoder},
    {{.model_type = "baichuan"}, BuildDecoder},
    {{.model_type = "orion", .norm = NormStyle::kLayerNorm, .qkv_bias = kAttentionBias, .output_bias = kAttentionBias},
     BuildDecoder},
    {{.model_type = "arcee",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .gated = false,
      .mlp_bias = kMlpBias},
     BuildDecoder},
    // The activation has two learned numbers.
    {{.model_type = "apertus",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .qk_norm = QkNorm::kPerHeadDim,
      .qk_norm_on = {"qk_norm", true},
      .gated = false,
      .extra_parameters_per_layer = 2},
     BuildDecoder},
};

}  // namespace

absl::Span<const Family> LlamaFamilies() { return kFamilies; }

}  // namespace sliceplan::transformer::hugging_face
