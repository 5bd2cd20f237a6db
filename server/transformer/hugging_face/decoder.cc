#include "server/transformer/hugging_face/decoder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sliceplan::transformer::hugging_face {
namespace {

constexpr int64_t kMaxPositions = (int64_t{1} << 31) - 1;
// Longest pattern of layers that grouping looks for.
constexpr size_t kLongestPattern = 32;
// Qwen2Config.
constexpr int64_t kDefaultMaxWindowLayers = 28;

// A key that is required unless the family has a default for it.
int64_t RequiredOr(Config& config, Keys keys, int64_t fallback, int64_t high = kMaxDim) {
  return fallback > 0 ? config.IntOrAssume(keys, fallback, 1, high) : config.Required(keys, 1, high);
}

int32_t Narrow(int64_t value) { return static_cast<int32_t>(value); }

// The class default stands for a key that is absent; null says that there is no window.
std::optional<int64_t> ReadWindow(Config& config, const DecoderTraits& traits) {
  const std::optional<int64_t> window = config.Int({"sliding_window", "sliding_window_size"}, 1, kMaxPositions);
  const bool mentioned = config.Mentions("sliding_window") || config.Mentions("sliding_window_size");
  if (window || mentioned || traits.default_window == 0) return window;
  return config.IntOrAssume({"sliding_window"}, traits.default_window);
}

// How often the `period` kinds from `begin` on repeat.
size_t Repeats(const std::vector<size_t>& kinds, size_t begin, size_t period) {
  size_t end = begin + period;
  while (end < kinds.size() && kinds[end] == kinds[end - period]) ++end;
  return (end - begin) / period;
}

}  // namespace

bool Read(Config& config, Flag flag) {
  return flag.key == nullptr ? flag.fallback : config.Bool({flag.key}, flag.fallback);
}

Norms NormsOf(NormStyle style, int32_t count) {
  Norms norms;
  norms.count = count;
  norms.bias = style == NormStyle::kLayerNorm;
  norms.has_weight = style != NormStyle::kWithoutWeight;
  return norms;
}

void ReadFrame(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  architecture.hidden_dim = Narrow(config.Required({"hidden_size", "n_embd", "d_model", "n_embed"}));
  architecture.vocab_size = Narrow(RequiredOr(config, {"vocab_size", "padded_vocab_size"}, traits.default_vocab_size));
  architecture.tied_embeddings = config.Bool({"tie_word_embeddings"}, traits.tied);
  architecture.final_norm = NormsOf(traits.norm, 1);
  architecture.head_bias = Read(config, traits.head_bias);
  architecture.max_position_count = Narrow(
      config
          .FirstInt({"max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx"}, 1, kMaxPositions)
          .value_or(traits.default_positions));
  architecture.stores_tied_table_twice = architecture.tied_embeddings && traits.stores_tied_table_twice;
}

int32_t ReadLayerCount(Config& config) {
  return Narrow(config.Required({"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, 1, kMaxLayerCount));
}

int32_t DerivedHeadDim(const Config& config, const char* key, int64_t hidden_dim, int64_t head_count) {
  if (hidden_dim % head_count != 0) {
    if (config.IsViolated(
            {"hidden_size", "n_embd", "d_model", "n_embed", "num_attention_heads", "n_head", "n_heads", "num_heads"})) {
      return 1;
    }
    config.Violate(key, absl::StrCat("is missing, and ", hidden_dim, " does not divide over ", head_count, " heads"),
                   "NOT_DIVISIBLE");
    return 1;
  }
  return Narrow(hidden_dim / head_count);
}

void CheckHeads(const Config& config, const GroupedQueryAttention& attention) {
  if (attention.kv_head_count > 0 && attention.query_head_count % attention.kv_head_count != 0 &&
      !config.IsViolated({"num_attention_heads", "n_head", "n_heads", "num_heads"})) {
    config.Violate("num_key_value_heads",
                   absl::StrCat(attention.query_head_count, " query heads do not divide over ", attention.kv_head_count,
                                " KV heads"),
                   "NOT_DIVISIBLE");
  }
}

GroupedQueryAttention ReadGroupedQuery(Config& config, const DecoderTraits& traits, int64_t hidden_dim) {
  GroupedQueryAttention attention;
  const int64_t heads = RequiredOr(config, {"num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"},
                                   traits.default_head_count, kMaxHeadCount);
  attention.query_head_count = Narrow(heads);
  const Keys kv_keys = {"num_key_value_heads", "num_kv_heads", "n_head_kv"};
  attention.kv_head_count = Narrow(traits.default_kv_head_count > 0
                                       ? config.IntOrAssume(kv_keys, traits.default_kv_head_count, 1, kMaxHeadCount)
                                       : config.IntOr(kv_keys, heads, 1, kMaxHeadCount));
  const std::optional<int64_t> head_dim = config.Int({"head_dim", "attention_head_dim", "kv_channels"}, 1, kMaxDim);
  if (head_dim) {
    attention.head_dim = Narrow(*head_dim);
  } else if (traits.default_head_dim > 0) {
    attention.head_dim = Narrow(config.IntOrAssume({"head_dim"}, traits.default_head_dim));
  } else {
    attention.head_dim = DerivedHeadDim(config, "head_dim", hidden_dim, heads);
  }
  attention.qkv_bias = Read(config, traits.qkv_bias);
  attention.output_bias = Read(config, traits.output_bias);
  if (traits.qk_norm != GroupedQueryAttention::QkNorm::kNone && Read(config, traits.qk_norm_on)) {
    attention.qk_norm = traits.qk_norm;
  }
  attention.sinks = traits.sinks;
  CheckHeads(config, attention);
  return attention;
}

DenseFeedForward ReadDense(Config& config, const DecoderTraits& traits) {
  DenseFeedForward dense;
  dense.ffn_dim = Narrow(config.Required({"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"}));
  dense.gated = traits.gated;
  dense.bias = Read(config, traits.mlp_bias);
  return dense;
}

MixtureOfExperts ReadExperts(Config& config, const DecoderTraits& traits) {
  const MoeTraits& moe_traits = traits.moe;
  MixtureOfExperts moe;
  moe.expert_count = Narrow(
      config.Required({"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts"}, 1,
                      kMaxExpertCount));
  moe.experts_per_token =
      Narrow(config.Required({"num_experts_per_tok", "num_experts_per_token", "experts_per_token",
                              "num_selected_experts", "moe_topk", "moe_top_k", "moe_k", "top_k_experts"},
                             1, kMaxExpertCount));
  if (moe.experts_per_token > moe.expert_count &&
      !config.IsViolated(
          {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts"})) {
    config.Violate("num_experts_per_tok",
                   absl::StrCat("is ", moe.experts_per_token, ", more than the ", moe.expert_count, " experts"));
  }
  if (moe_traits.width_is_intermediate_size) {
    moe.expert_ffn_dim = Narrow(config.Required({"intermediate_size"}));
  } else {
    moe.expert_ffn_dim = Narrow(config.Required({"moe_intermediate_size"}));
  }
  switch (moe_traits.shared) {
    case SharedExperts::kNone: break;
    case SharedExperts::kFused:
      moe.shared_expert_count =
          Narrow(config.IntOr({"n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"},
                              0, 0, kMaxExpertCount));
      break;
    case SharedExperts::kAbsolute:
      moe.shared_expert_ffn_dim = Narrow(config.IntOr({"shared_expert_intermediate_size"}, 0, 0));
      moe.shared_expert_count = moe.shared_expert_ffn_dim > 0 ? 1 : 0;
      moe.shared_expert_gate = moe.shared_expert_count > 0;
      break;
    case SharedExperts::kByWidth:
      moe.shared_expert_ffn_dim = Narrow(config.IntOr({"shared_intermediate_size"}, 0, 0));
      moe.shared_expert_count = moe.shared_expert_ffn_dim > 0 ? 1 : 0;
      break;
  }
  moe.gated = moe_traits.gated;
  moe.expert_bias = moe_traits.expert_bias;
  moe.router_bias = moe_traits.router_bias;
  moe.router_correction_bias = Read(config, moe_traits.correction_bias);
  return moe;
}

std::vector<bool> ExpertLayers(Config& config, const MoeTraits& traits, int32_t layer_count) {
  std::vector<bool> expert(static_cast<size_t>(layer_count), traits.rule != MoeRule::kNever);
  if (traits.rule == MoeRule::kAfterDense) {
    const int64_t first = config.IntOr({"first_k_dense_replace", "moe_layer_start_index"}, 0, 0, kMaxLayerCount);
    const int64_t step = config.IntOr({"moe_layer_freq", "moe_layer_interval"}, 1, 1, kMaxLayerCount);
    for (int32_t i = 0; i < layer_count; ++i) expert[static_cast<size_t>(i)] = i >= first && i % step == 0;
  } else if (traits.rule == MoeRule::kSparseStep) {
    const int64_t step = config.IntOr({"decoder_sparse_step"}, 1, 1, kMaxLayerCount);
    for (int32_t i = 0; i < layer_count; ++i) expert[static_cast<size_t>(i)] = (i + 1) % step == 0;
    for (const int64_t dense : config.Ints("mlp_only_layers", 0, layer_count - 1).value_or(std::vector<int64_t>())) {
      expert[static_cast<size_t>(dense)] = false;
    }
  }
  return expert;
}

std::vector<std::string> ReadLayerTypes(Config& config, int32_t layer_count) {
  std::vector<std::string> types = config.Texts("layer_types").value_or(std::vector<std::string>());
  if (!types.empty() && types.size() != static_cast<size_t>(layer_count)) {
    if (config.IsViolated({"num_hidden_layers", "n_layer", "n_layers", "num_layers"})) return {};
    config.Violate("layer_types", absl::StrCat("lists ", types.size(), " layers, but there are ", layer_count),
                   "CONFLICT");
    types.clear();
  }
  return types;
}

std::vector<int32_t> Windows(Config& config, const DecoderTraits& traits, int32_t layer_count) {
  std::vector<int32_t> windows(static_cast<size_t>(layer_count), 0);
  const bool switched_off = traits.window == WindowRule::kAfterSwitch && !config.Bool({"use_sliding_window"}, false);
  const std::vector<std::string> types = ReadLayerTypes(config, layer_count);
  if (!types.empty()) {
    const bool any_slides = std::find(types.begin(), types.end(), "sliding_attention") != types.end();
    const std::optional<int64_t> window = any_slides ? ReadWindow(config, traits) : std::nullopt;
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i] == "sliding_attention") {
        windows[i] = Narrow(window ? *window : config.Required({"sliding_window"}, 1, kMaxPositions));
      } else if (types[i] == "chunked_attention") {
        windows[i] = Narrow(-config.Required({"attention_chunk_size"}, 1, kMaxPositions));
      } else if (types[i] != "full_attention") {
        config.Unsupported(absl::StrCat("layer_types[", i, "]"),
                           absl::StrCat("'", types[i].substr(0, 40), "' is no kind of attention of this family"));
        break;
      }
    }
    config.Ignore({"sliding_window", "sliding_window_pattern", "max_window_layers"});
    return windows;
  }
  if (traits.window == WindowRule::kNone) return windows;
  if (switched_off) {
    config.Ignore({"sliding_window", "max_window_layers"});
    return windows;
  }
  // An absent window leaves attention full.
  const std::optional<int64_t> window = ReadWindow(config, traits);
  int64_t period = traits.window_period;
  std::string letters;
  if (traits.window == WindowRule::kPeriod) {
    const nlohmann::json* pattern = config.Raw("sliding_window_pattern");
    if (pattern != nullptr && pattern->is_string()) {
      letters = config.Text({"sliding_window_pattern"});
      if (letters.empty() || letters.find_first_not_of("LG") != std::string::npos) {
        config.Violate("sliding_window_pattern", "must be a number or letters L (local) and G (global)", "WRONG_TYPE");
        letters.clear();
      }
    } else {
      period = config.IntOr({"sliding_window_pattern"}, period, 1, kMaxLayerCount);
    }
  }
  int64_t first = 0;
  if (traits.window == WindowRule::kAfterSwitch) {
    first = config.IntOrAssume({"max_window_layers"}, kDefaultMaxWindowLayers, 0, kMaxLayerCount);
  }
  if (!window) return windows;
  for (int32_t i = 0; i < layer_count; ++i) {
    bool slides = i >= first;
    if (traits.window == WindowRule::kAlternate) slides = i % 2 == 0;
    if (traits.window == WindowRule::kPeriod) slides = (i + 1) % period != 0;
    if (!letters.empty()) slides = letters[static_cast<size_t>(i) % letters.size()] == 'L';
    if (slides) windows[static_cast<size_t>(i)] = Narrow(*window);
  }
  return windows;
}

std::vector<LayerGroup> GroupLayers(const std::vector<Layer>& layers) {
  std::vector<const Layer*> prototypes;
  std::vector<size_t> kinds;
  kinds.reserve(layers.size());
  for (const Layer& layer : layers) {
    size_t kind = 0;
    while (kind < prototypes.size() && !(*prototypes[kind] == layer)) ++kind;
    if (kind == prototypes.size()) prototypes.push_back(&layer);
    kinds.push_back(kind);
  }
  std::vector<LayerGroup> groups;
  for (size_t begin = 0; begin < kinds.size();) {
    size_t best_period = 1;
    size_t best_repeats = 1;
    for (size_t period = 1; period <= std::min(kLongestPattern, kinds.size() - begin); ++period) {
      const size_t repeats = Repeats(kinds, begin, period);
      if (repeats > 1 && repeats * period > best_repeats * best_period) {
        best_period = period;
        best_repeats = repeats;
      }
    }
    if (best_repeats == 1 && !groups.empty() && groups.back().repeat_count == 1) {
      groups.back().layers.push_back(layers[begin]);
    } else {
      LayerGroup group;
      group.repeat_count = Narrow(static_cast<int64_t>(best_repeats));
      group.layers.assign(layers.begin() + static_cast<std::ptrdiff_t>(begin),
                          layers.begin() + static_cast<std::ptrdiff_t>(begin + best_period));
      groups.push_back(std::move(group));
    }
    begin += best_period * best_repeats;
  }
  return groups;
}

void ReadMtp(Config& config, const DecoderTraits& traits, const Layer& layer, Architecture& architecture) {
  if (traits.mtp == MtpRule::kNone) return;
  architecture.mtp_layer_count = Narrow(
      config.IntOr({"num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp_num_layers"}, 0, 0, kMaxMtpLayerCount));
  architecture.mtp_layer = layer;
  architecture.mtp_shares_embeddings = traits.mtp == MtpRule::kSharedTables;
}

void BuildDecoder(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  ReadFrame(config, traits, architecture);
  const int32_t layer_count = ReadLayerCount(config);
  GroupedQueryAttention attention = ReadGroupedQuery(config, traits, architecture.hidden_dim);
  const std::vector<int32_t> windows = Windows(config, traits, layer_count);
  const std::vector<bool> expert_layers = ExpertLayers(config, traits.moe, layer_count);
  const bool any_experts = std::find(expert_layers.begin(), expert_layers.end(), true) != expert_layers.end();
  const bool any_dense = std::find(expert_layers.begin(), expert_layers.end(), false) != expert_layers.end();
  DenseFeedForward dense;
  MixtureOfExperts experts;
  if (any_dense) dense = ReadDense(config, traits);
  if (any_experts) experts = ReadExperts(config, traits);
  if (traits.moe.rule != MoeRule::kNever) config.Ignore({"intermediate_size"});

  Layer layer;
  layer.parallel_block = Read(config, traits.parallel_block);
  const bool drops_norm = layer.parallel_block && traits.parallel_drops_norm;
  layer.norms = NormsOf(traits.norm, traits.norms_per_layer - (drops_norm ? 1 : 0));
  layer.extra_parameter_count = traits.extra_parameters_per_layer;
  std::vector<Layer> layers;
  layers.reserve(static_cast<size_t>(layer_count));
  for (size_t i = 0; i < static_cast<size_t>(layer_count); ++i) {
    attention.sliding_window = std::max(windows[i], 0);
    attention.chunked_window = std::max(-windows[i], 0);
    layer.attention = attention;
    if (expert_layers[i]) {
      layer.feed_forward = experts;
    } else {
      layer.feed_forward = dense;
    }
    layers.push_back(layer);
  }
  ReadMtp(config, traits, layers.back(), architecture);
  architecture.layer_groups = GroupLayers(layers);
  if (traits.rotary_buffers && !config.HasAny({"rope_theta", "rope_parameters"})) {
    architecture.stored_buffers.push_back(
        {"rotary inverse frequencies", static_cast<int64_t>(layer_count) * (attention.head_dim / 2)});
  }
}

}  // namespace sliceplan::transformer::hugging_face
