// Decoders in the line of GPT: layer norms, plain MLPs, biases, learned positions or ALiBi, early rotary models.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/transformer/hugging_face/decoder.h"
#include "server/transformer/hugging_face/family.h"
#include "server/transformer/hugging_face/plain_layer.h"

namespace sliceplan::transformer::hugging_face {
namespace {

using QkNorm = GroupedQueryAttention::QkNorm;

// GPT-J, GPT-NeoX, CodeGen, Phi: nothing but the traits.
void BuildGpt(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  SetLayers(config, ReadPlainLayer(config, traits, architecture), architecture);
}

void BuildGpt2(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  BuildGpt(config, traits, architecture);
  ReadLearnedPositions(config, 0, architecture);
  config.Ignore({"n_special", "predict_special_tokens", "reorder_and_upcast_attn", "scale_attn_by_inverse_layer_idx",
                 "scale_attn_weights"});
  // Files that still name n_ctx come from releases that stored each layer's causal mask.
  if (config.Has("n_ctx") && !architecture.layer_groups.empty()) {
    const int64_t positions = architecture.learned_position_count;
    architecture.stored_buffers.push_back({"causal masks", architecture.LayerCount() * positions * positions});
  }
}

void BuildGptBigCode(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  BuildGpt(config, traits, architecture);
  ReadLearnedPositions(config, 0, architecture);
  if (config.Bool({"multi_query"}, true)) {
    for (LayerGroup& group : architecture.layer_groups) {
      for (Layer& layer : group.layers) std::get<GroupedQueryAttention>(layer.attention).kv_head_count = 1;
    }
  }
}

// Pairs of kinds and counts: [[["global", "local"], 12]].
void BuildGptNeo(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  ReadLearnedPositions(config, 0, architecture);
  const Layer layer = ReadPlainLayer(config, traits, architecture);
  const int32_t layer_count = ReadLayerCount(config);
  constexpr int64_t kDefaultWindow = 256;
  const int64_t window = config.IntOr({"window_size"}, kDefaultWindow);
  std::vector<Layer> layers;
  const auto add = [&](const std::string& kind) {
    layers.push_back(layer);
    if (kind == "local") {
      std::get<GroupedQueryAttention>(layers.back().attention).sliding_window = static_cast<int32_t>(window);
    }
  };
  if (const std::optional<std::vector<std::string>> kinds = config.Texts("attention_layers")) {
    for (size_t i = 0; i < kinds->size() && i < static_cast<size_t>(layer_count); ++i) add((*kinds)[i]);
    config.Ignore({"attention_types"});
  } else if (const nlohmann::json* types = config.Raw("attention_types")) {
    bool understood = types->is_array();
    for (size_t i = 0; understood && i < types->size(); ++i) {
      const nlohmann::json& pair = (*types)[i];
      understood = pair.is_array() && pair.size() == 2 && pair[0].is_array() && pair[1].is_number_integer();
      if (!understood) break;
      for (int64_t n = 0; n < pair[1].get<int64_t>() && layers.size() < static_cast<size_t>(layer_count); ++n) {
        for (const nlohmann::json& kind : pair[0]) {
          understood &= kind.is_string();
          if (kind.is_string() && layers.size() < static_cast<size_t>(layer_count)) add(kind.get<std::string>());
        }
        if (!understood || pair[0].empty()) break;
      }
    }
    if (!understood) config.Violate("attention_types", "must be a list of [kinds, count] pairs", "WRONG_TYPE");
  }
  if (layers.size() != static_cast<size_t>(layer_count)) {
    config.Violate("attention_types", absl::StrCat("describes ", layers.size(), " of ", layer_count, " layers"),
                   "CONFLICT");
    return;
  }
  architecture.layer_groups = GroupLayers(layers);
}

void BuildBloom(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  config.Ignore({"apply_residual_connection_post_layernorm", "attention_softmax_in_fp32", "slow_but_exact",
                 "skip_bias_add", "skip_bias_add_qkv", "masked_softmax_fusion", "offset_alibi", "unk_token_id",
                 "seq_length", "hidden_dropout", "bias_dropout_fusion"});
  ReadFrame(config, traits, architecture);
  architecture.embedding_norm = true;
  SetLayers(config, ReadPlainLayer(config, traits, architecture), architecture);
}

void BuildMpt(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  const bool bias = !config.Bool({"no_bias"}, false);
  const bool alibi_or_rotary = [&] {
    const nlohmann::json* object = config.Object("attn_config");
    if (object == nullptr) return false;
    Config part(*object, config.Path("attn_config"), config.report());
    return part.Bool({"alibi"}, false) || part.Bool({"rope"}, false);
  }();
  // ALiBi and rotary embeddings leave the table out, whatever learned_pos_emb says: published files say true.
  if (config.Bool({"learned_pos_emb"}, true) && !alibi_or_rotary) {
    architecture.learned_position_count = static_cast<int32_t>(config.Required({"max_seq_len"}));
  }
  const NormStyle norm = bias ? NormStyle::kLayerNorm : NormStyle::kLayerNormWithoutBias;
  architecture.final_norm = NormsOf(norm, 1);
  Layer layer;
  layer.norms = NormsOf(norm, 2);
  DecoderTraits biased = traits;
  biased.qkv_bias = biased.output_bias = biased.mlp_bias = {nullptr, bias};
  GroupedQueryAttention attention = ReadGroupedQuery(config, biased, architecture.hidden_dim);
  if (const nlohmann::json* object = config.Object("attn_config")) {
    Config part(*object, config.Path("attn_config"), config.report());
    part.Ignore({"alibi", "rope", "alibi_bias_max", "attn_impl", "attn_pdrop", "attn_type", "clip_qkv", "prefix_lm",
                 "softmax_scale", "attn_uses_sequence_id", "rope_theta", "rope_impl", "rope_dail_config",
                 "rope_hf_config"});
    if (part.Text({"attn_type"}) == "multiquery_attention") attention.kv_head_count = 1;
    attention.kv_head_count =
        static_cast<int32_t>(part.IntOr({"kv_n_heads"}, attention.kv_head_count, 1, kMaxHeadCount));
    attention.sliding_window =
        static_cast<int32_t>(std::max<int64_t>(part.IntOr({"sliding_window_size"}, -1, -1, (int64_t{1} << 31) - 1), 0));
    if (part.Bool({"qk_ln"}, false)) attention.qk_norm = QkNorm::kAllHeads;
    part.WarnUnknown();
  }
  CheckHeads(config, attention);
  layer.attention = attention;
  const std::optional<double> ratio = config.Number("expansion_ratio", 1e-3, 1e3);
  DenseFeedForward dense;
  dense.ffn_dim = static_cast<int32_t>(std::llround(ratio.value_or(static_cast<double>(kDefaultWidening)) *
                                                    static_cast<double>(architecture.hidden_dim)));
  dense.gated = traits.gated;
  dense.bias = bias;
  config.Ignore({"ffn_config", "init_config", "init_device", "logit_scale", "norm_type", "verbose",
                 "embedding_fraction", "emb_pdrop", "resid_pdrop"});
  layer.feed_forward = dense;
  SetLayers(config, layer, architecture);
}

void BuildFalcon(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  // The first release of the large models tells the newer architecture by its KV heads alone.
  const bool first_release = config.Has("n_head_kv") && !config.Has("multi_query");
  const bool new_architecture = config.Bool({"new_decoder_architecture"}, first_release);
  const bool multi_query = config.Bool({"multi_query"}, true);
  const bool parallel = config.Bool({"parallel_attn"}, true);
  const bool alibi = config.Bool({"alibi"}, false);
  Layer layer = ReadPlainLayer(config, traits, architecture);
  auto& attention = std::get<GroupedQueryAttention>(layer.attention);
  // Only the newer architecture heeds num_kv_heads; some files of the older one hold the number of query heads there.
  if (!new_architecture) {
    if (multi_query && config.HasAny({"num_kv_heads", "n_head_kv"})) {
      config.Warn(ImportWarning::Kind::kIgnoredValue, config.Has("num_kv_heads") ? "num_kv_heads" : "n_head_kv",
                  "is ignored: multi_query means one KV head");
    }
    attention.kv_head_count = multi_query ? 1 : attention.query_head_count;
  }
  constexpr int64_t kNewArchitectureNorms = 2;
  layer.parallel_block = parallel || new_architecture;
  layer.norms.count = new_architecture
                          ? static_cast<int32_t>(config.IntOr({"num_ln_in_parallel_attn"}, kNewArchitectureNorms, 1, 2))
                          : (parallel ? 1 : 2);
  architecture.stores_tied_table_twice = architecture.tied_embeddings && !alibi;
  SetLayers(config, layer, architecture);
}

// The dialect of ChatGLM2 and later.
void BuildChatGlm(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  // When both are there, the table has the padded size.
  const bool padded = config.Has("padded_vocab_size");
  if (padded) config.Ignore({"vocab_size"});
  architecture.hidden_dim = static_cast<int32_t>(config.Required({"hidden_size"}));
  architecture.vocab_size = static_cast<int32_t>(config.Required({padded ? "padded_vocab_size" : "vocab_size"}));
  architecture.tied_embeddings = config.Bool({"tie_word_embeddings"}, traits.tied);
  architecture.max_position_count =
      static_cast<int32_t>(config.FirstInt({"seq_length"}, 1, (int64_t{1} << 31) - 1).value_or(0));
  const NormStyle norm = config.Bool({"rmsnorm"}, true) ? NormStyle::kRms : NormStyle::kLayerNorm;
  architecture.final_norm = NormsOf(norm, config.Bool({"post_layer_norm"}, true) ? 1 : 0);
  Layer layer;
  layer.norms = NormsOf(norm, 2);
  const bool linear_bias = config.Bool({"add_bias_linear"}, false);
  DecoderTraits biased = traits;
  biased.qkv_bias = {nullptr, config.Bool({"add_qkv_bias"}, false) || linear_bias};
  biased.output_bias = {nullptr, linear_bias};
  GroupedQueryAttention attention = ReadGroupedQuery(config, biased, architecture.hidden_dim);
  if (config.Bool({"multi_query_attention"}, false)) {
    attention.kv_head_count = static_cast<int32_t>(config.Required({"multi_query_group_num"}, 1, kMaxHeadCount));
  } else {
    config.Ignore({"multi_query_group_num"});
  }
  CheckHeads(config, attention);
  layer.attention = attention;
  DenseFeedForward dense;
  dense.ffn_dim = static_cast<int32_t>(config.Required({"ffn_hidden_size"}));
  dense.bias = linear_bias;
  layer.feed_forward = dense;
  config.Ignore({"apply_query_key_layer_scaling", "apply_residual_connection_post_layernorm",
                 "attention_softmax_in_fp32", "bias_dropout_fusion", "fp32_residual_connection", "original_rope",
                 "prefix_projection", "rope_ratio", "kv_channels", "interleaved_qkv", "quantization_bit",
                 "pre_seq_len"});
  SetLayers(config, layer, architecture);
}

constexpr Family kFamilies[] = {
    {{.model_type = "gpt2",
      .tied = true,
      .norm = NormStyle::kLayerNorm,
      .qkv_bias = kAlways,
      .output_bias = kAlways,
      .gated = false,
      .mlp_bias = kAlways},
     BuildGpt2},
    {{.model_type = "gpt_neo",
      .tied = true,
      .norm = NormStyle::kLayerNorm,
      .output_bias = kAlways,
      .gated = false,
      .mlp_bias = kAlways},
     BuildGptNeo},
    {{.model_type = "gptj",
      .norm = NormStyle::kLayerNorm,
      .norms_per_layer = 1,
      .parallel_block = kAlways,
      .gated = false,
      .mlp_bias = kAlways,
      .head_bias = kAlways},
     BuildGpt},
    {{.model_type = "codegen",
      .norm = NormStyle::kLayerNorm,
      .norms_per_layer = 1,
      .parallel_block = kAlways,
      .gated = false,
      .mlp_bias = kAlways,
      .head_bias = kAlways},
     BuildGpt},
    {{.model_type = "gpt_neox",
      .norm = NormStyle::kLayerNorm,
      .parallel_block = {"use_parallel_residual", true},
      .qkv_bias = {"attention_bias", true},
      .output_bias = {"attention_bias", true},
      .gated = false,
      .mlp_bias = kAlways},
     BuildGpt},
    {{.model_type = "bloom",
      .tied = true,
      .norm = NormStyle::kLayerNorm,
      .qkv_bias = kAlways,
      .output_bias = kAlways,
      .gated = false,
      .mlp_bias = kAlways},
     BuildBloom},
    {{.model_type = "mpt", .tied = true, .gated = false}, BuildMpt},
    {{.model_type = "falcon",
      .tied = true,
      .norm = NormStyle::kLayerNorm,
      .qkv_bias = {"bias", false},
      .output_bias = {"bias", false},
      .gated = false,
      .mlp_bias = {"bias", false}},
     BuildFalcon},
    {{.model_type = "gpt_bigcode",
      .tied = true,
      .norm = NormStyle::kLayerNorm,
      .qkv_bias = kAlways,
      .output_bias = kAlways,
      .gated = false,
      .mlp_bias = kAlways,
      .stores_tied_table_twice = true},
     BuildGptBigCode},
    {{.model_type = "phi",
      .norm = NormStyle::kLayerNorm,
      .norms_per_layer = 1,
      .parallel_block = kAlways,
      .qkv_bias = kAlways,
      .output_bias = kAlways,
      .gated = false,
      .mlp_bias = kAlways,
      .head_bias = kAlways},
     BuildGpt},
    {{.model_type = "chatglm"}, BuildChatGlm},
};

}  // namespace

absl::Span<const Family> GptFamilies() { return kFamilies; }

}  // namespace sliceplan::transformer::hugging_face
