// Decoders that attend to a window and to a compressed past (DeepSeek-V4).
#include "absl/strings/str_cat.h"
#include "server/transformer/hugging_face/decoder.h"
#include "server/transformer/hugging_face/family.h"

namespace sliceplan::transformer::hugging_face {
namespace {

constexpr int64_t kMaxPositions = (int64_t{1} << 31) - 1;
// Blocks of the sparse kind overlap and have an indexer, those of the heavy kind have neither.
constexpr int64_t kSparseCompression = 4;
constexpr int64_t kHeavyCompression = 128;

int32_t Narrow(int64_t value) { return static_cast<int32_t>(value); }

// Positions per entry of every layer; 0 for layers with the window only.
std::vector<int64_t> ReadCompressions(Config& config, int32_t layer_count) {
  if (const auto ratios = config.Ints("compress_ratios", 0, 65536)) {
    // Draft layers may be listed behind the stack.
    if (ratios->size() < static_cast<size_t>(layer_count)) {
      config.Violate("compress_ratios", absl::StrCat("lists ", ratios->size(), " of ", layer_count, " layers"),
                     "CONFLICT");
      return {};
    }
    return {ratios->begin(), ratios->begin() + layer_count};
  }
  std::vector<int64_t> compressions;
  for (const std::string& type : ReadLayerTypes(config, layer_count)) {
    if (type == "sliding_attention") {
      compressions.push_back(0);
    } else if (type == "compressed_sparse_attention") {
      compressions.push_back(kSparseCompression);
    } else if (type == "heavily_compressed_attention") {
      compressions.push_back(kHeavyCompression);
    } else {
      config.Unsupported("layer_types",
                         absl::StrCat("'", type.substr(0, 40), "' is no kind of attention of this family"));
      return {};
    }
  }
  if (compressions.empty()) config.Violate("compress_ratios", "is missing", "REQUIRED");
  return compressions;
}

CompressedAttention ReadCompressed(Config& config) {
  CompressedAttention attention;
  attention.query_head_count = Narrow(config.Required({"num_attention_heads"}, 1, kMaxHeadCount));
  attention.head_dim = Narrow(config.Required({"head_dim"}));
  attention.q_lora_rank = Narrow(config.Required({"q_lora_rank"}));
  attention.sliding_window = Narrow(config.Required({"sliding_window"}, 1, kMaxPositions));
  attention.output_group_count = Narrow(config.Required({"o_groups"}, 1, kMaxHeadCount));
  attention.output_lora_rank = Narrow(config.Required({"o_lora_rank"}));
  if (attention.query_head_count % attention.output_group_count != 0) {
    config.Violate("o_groups", absl::StrCat(attention.query_head_count, " heads do not divide over them"),
                   "NOT_DIVISIBLE");
  }
  if (config.IntOr({"num_key_value_heads"}, 1, 1, kMaxHeadCount) != 1) {
    config.Unsupported("num_key_value_heads", "must be 1: all heads share one key");
  }
  if (config.Bool({"attention_bias"}, false))
    config.Unsupported("attention_bias", "biases are not modelled in this family");
  return attention;
}

void BuildCompressed(Config& config, const DecoderTraits& traits, Architecture& architecture) {
  constexpr int64_t kMaxStreams = 64;
  ReadFrame(config, traits, architecture);
  const int32_t layer_count = ReadLayerCount(config);
  const CompressedAttention window = ReadCompressed(config);
  const std::vector<int64_t> compressions = ReadCompressions(config, layer_count);
  const int32_t indexer_heads = Narrow(config.Required({"index_n_heads"}, 1, kMaxHeadCount));
  const int32_t indexer_dim = Narrow(config.Required({"index_head_dim"}));
  const int32_t indexer_top_k = Narrow(config.Required({"index_topk"}, 1, kMaxPositions));
  const MixtureOfExperts experts = ReadExperts(config, traits);
  // The first layers look the experts up by token instead of choosing them.
  const int64_t hash_count = config.IntOr({"num_hash_layers"}, 0, 0, layer_count);
  config.Ignore({"compress_rope_theta", "hc_sinkhorn_iters", "qk_rope_head_dim", "mlp_layer_types", "compress_rates"});

  Layer base;
  base.norms = NormsOf(traits.norm, traits.norms_per_layer);
  base.residual_stream_count = Narrow(config.IntOr({"hc_mult"}, 1, 1, kMaxStreams));
  base.feed_forward = experts;
  base.attention = window;
  if (compressions.empty()) return;
  std::vector<Layer> layers(static_cast<size_t>(layer_count), base);
  for (size_t i = 0; i < layers.size(); ++i) {
    CompressedAttention attention = window;
    attention.compression = Narrow(compressions[i]);
    if (compressions[i] == kSparseCompression) {
      attention.overlapping = true;
      attention.indexer_head_count = indexer_heads;
      attention.indexer_head_dim = indexer_dim;
      attention.indexer_top_k = indexer_top_k;
    }
    layers[i].attention = attention;
    if (static_cast<int64_t>(i) < hash_count) {
      MixtureOfExperts hashed = experts;
      hashed.router_correction_bias = false;
      layers[i].feed_forward = hashed;
    }
  }
  architecture.layer_groups = GroupLayers(layers);
  ReadMtp(config, traits, base, architecture);
  if (hash_count > 0) {
    architecture.stored_buffers.push_back(
        {"expert numbers of every token in hash-routed layers",
         hash_count * static_cast<int64_t>(architecture.vocab_size) * experts.experts_per_token});
  }
}

constexpr Family kFamilies[] = {
    {{.model_type = "deepseek_v4",
      .moe = {.rule = MoeRule::kAllLayers, .shared = SharedExperts::kFused, .correction_bias = kAlways},
      .mtp = MtpRule::kSharedTables,
      .quantizes_mtp_projection = true},
     BuildCompressed},
};

}  // namespace

absl::Span<const Family> CompressedFamilies() { return kFamilies; }

}  // namespace sliceplan::transformer::hugging_face
