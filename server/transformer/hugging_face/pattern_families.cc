// Decoders whose every layer has sizes of its own, found by architecture search.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/transformer/hugging_face/decoder.h"
#include "server/transformer/hugging_face/family.h"

namespace sliceplan::transformer::hugging_face {
namespace {

constexpr Flag kAttentionBias = {"attention_bias", false};

// Two thirds of the multiple of the hidden width, as integer, up to the next multiple of 256.
int64_t WidthOf(double multiple, int64_t hidden_dim) {
  constexpr int64_t kMultipleOf = 256;
  const auto width = static_cast<int64_t>(2 * multiple * static_cast<double>(hidden_dim) / 3);
  return (width + kMultipleOf - 1) / kMultipleOf * kMultipleOf;
}

// Only the KV heads differ between layers.
void BuildDeci(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  const int32_t layer_count = ReadLayerCount(config);
  GroupedQueryAttention attention = ReadGroupedQuery(config, traits, architecture.hidden_dim);
  const DenseFeedForward dense = ReadDense(config, traits);
  const std::vector<int64_t> kv_heads =
      config.Ints("num_key_value_heads_per_layer", 1, kMaxHeadCount).value_or(std::vector<int64_t>());
  if (kv_heads.size() != static_cast<size_t>(layer_count)) {
    config.Violate("num_key_value_heads_per_layer", absl::StrCat("must list all ", layer_count, " layers"), "CONFLICT");
    return;
  }
  std::vector<Layer> layers;
  for (const int64_t count : kv_heads) {
    attention.kv_head_count = static_cast<int32_t>(count);
    CheckHeads(config, attention);
    Layer layer;
    layer.norms = NormsOf(traits.norm, traits.norms_per_layer);
    layer.attention = attention;
    layer.feed_forward = dense;
    layers.push_back(layer);
  }
  architecture.layer_groups = GroupLayers(layers);
}

// An attention or MLP that was removed takes its norm with it.
void BuildNas(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  if (!config.Has("block_configs") && config.Has("num_key_value_heads_per_layer")) {
    return BuildDeci(config, traits, architecture);
  }
  ReadFrame(config, traits, architecture);
  const int32_t layer_count = ReadLayerCount(config);
  const GroupedQueryAttention base = ReadGroupedQuery(config, traits, architecture.hidden_dim);
  const bool mlp_bias = Read(config, traits.mlp_bias);
  const nlohmann::json* blocks = config.Raw("block_configs");
  if (blocks == nullptr || !blocks->is_array() || blocks->size() != static_cast<size_t>(layer_count)) {
    config.Violate("block_configs", absl::StrCat("must be a list of ", layer_count, " blocks"), "REQUIRED");
    return;
  }
  std::vector<Layer> layers;
  for (size_t i = 0; i < blocks->size(); ++i) {
    const std::string path = absl::StrCat("block_configs[", i, "]");
    if (!(*blocks)[i].is_object()) {
      config.Violate(path, "must be an object", "WRONG_TYPE");
      return;
    }
    Config block((*blocks)[i], config.Path(path), config.report());
    Layer layer;
    layer.norms = NormsOf(traits.norm, 0);
    if (const nlohmann::json* object = block.Object("attention")) {
      Config part(*object, block.Path("attention"), config.report());
      part.Ignore({"num_sink_tokens", "unshifted_sink", "use_prefill_window_in_sink_attention"});
      if (part.Bool({"replace_with_linear"}, false) || part.Has("sparsify")) {
        part.Unsupported("replace_with_linear", "attention replaced by a linear or sparsified is not modelled");
      }
      if (!part.Bool({"no_op"}, false)) {
        GroupedQueryAttention attention = base;
        const int64_t group = part.Required({"n_heads_in_group"}, 1, kMaxHeadCount);
        if (attention.query_head_count % group != 0) {
          part.Violate("n_heads_in_group", absl::StrCat("does not divide ", attention.query_head_count, " heads"),
                       "NOT_DIVISIBLE");
        }
        attention.kv_head_count = static_cast<int32_t>(std::max<int64_t>(attention.query_head_count / group, 1));
        attention.sliding_window = static_cast<int32_t>(part.IntOr({"window_length"}, 0, 1, (int64_t{1} << 31) - 1));
        layer.attention = attention;
        ++layer.norms.count;
      }
    } else {
      block.Violate("attention", "is missing", "REQUIRED");
    }
    if (const nlohmann::json* object = block.Object("ffn")) {
      Config part(*object, block.Path("ffn"), config.report());
      if (part.Bool({"replace_with_linear"}, false) || part.Has("sparsify")) {
        part.Unsupported("replace_with_linear", "an MLP replaced by a linear or sparsified is not modelled");
      }
      if (!part.Bool({"no_op"}, false)) {
        DenseFeedForward dense;
        constexpr double kLeast = 1e-4;
        constexpr double kMost = 1e3;
        const std::optional<double> multiple = part.Number("ffn_mult", kLeast, kMost);
        if (!multiple) part.Violate("ffn_mult", "is missing or wrong", "REQUIRED");
        dense.ffn_dim = static_cast<int32_t>(std::min(WidthOf(multiple.value_or(1), architecture.hidden_dim), kMaxDim));
        dense.bias = mlp_bias;
        layer.feed_forward = dense;
        ++layer.norms.count;
      }
    } else {
      block.Violate("ffn", "is missing", "REQUIRED");
    }
    layers.push_back(layer);
  }
  architecture.layer_groups = GroupLayers(layers);
}

constexpr Family kFamilies[] = {
    {{.model_type = "nemotron-nas",
      .qkv_bias = kAttentionBias,
      .output_bias = kAttentionBias,
      .mlp_bias = {"mlp_bias", false}},
     BuildNas},
    {{.model_type = "deci", .qkv_bias = kAttentionBias, .output_bias = kAttentionBias}, BuildDeci},
};

}  // namespace

absl::Span<const Family> PatternFamilies() { return kFamilies; }

}  // namespace sliceplan::transformer::hugging_face
