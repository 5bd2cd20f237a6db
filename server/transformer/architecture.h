// What a decoder-only model is: enough to count its parameters, FLOPs and cache exactly.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_ARCHITECTURE_H_
#define SLICEPLAN_SERVER_TRANSFORMER_ARCHITECTURE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "server/hardware/data_type.h"

namespace sliceplan::transformer {

// Multi-head, multi-query and grouped-query attention. Shapes per layer: Q [D, N*H], K and V [D, K*H], O [N*Hv, D].
struct GroupedQueryAttention {
  int32_t query_head_count = 0;
  int32_t kv_head_count = 0;
  int32_t head_dim = 0;
  int32_t value_head_dim = 0;  // 0: head_dim
  bool qkv_bias = false;
  bool output_bias = false;
  // Elements of learned norms on q and k: none, one head_dim vector each, or one over all heads each.
  enum class QkNorm { kNone, kPerHeadDim, kAllHeads } qk_norm = QkNorm::kNone;
  bool sinks = false;              // one learned logit per query head
  bool key_is_value = false;       // K and V share one projection
  int32_t sliding_window = 0;      // tokens; 0: full
  int32_t chunked_window = 0;      // attends inside fixed chunks; 0: no
  bool shares_earlier_kv = false;  // reads the cache of an earlier layer: no K, V projections, no cache of its own
  bool output_gate = false;        // the q projection is twice as wide, half of it gates the output
  bool kv_replicated_cache = false;
  bool operator==(const GroupedQueryAttention&) const = default;
};

// Multi-head latent attention (DeepSeek-V2). q_lora_rank 0: q is projected directly.
struct LatentAttention {
  int32_t query_head_count = 0;
  int32_t q_lora_rank = 0;
  int32_t kv_lora_rank = 0;
  int32_t qk_nope_head_dim = 0;
  int32_t qk_rope_head_dim = 0;
  int32_t v_head_dim = 0;
  bool qkv_bias = false;
  // Sparse-attention indexer (DeepSeek-V3.2); 0 heads: none.
  int32_t indexer_head_count = 0;
  int32_t indexer_head_dim = 0;
  int32_t indexer_top_k = 0;
  bool operator==(const LatentAttention&) const = default;
};

// Attention to a sliding window and to a compressed past (DeepSeek-V4). One vector per position is key and value of all
// heads. Past positions are pooled: one entry for every `compression` of them, of which an indexer may pick the best.
struct CompressedAttention {
  int32_t query_head_count = 0;
  int32_t head_dim = 0;
  int32_t q_lora_rank = 0;
  int32_t sliding_window = 0;
  int32_t compression = 0;   // positions per entry; 0: the window is all that is seen
  bool overlapping = false;  // an entry pools two neighbouring blocks: its projections are twice as wide
  int32_t output_group_count =
      0;  // heads are projected in groups to output_lora_rank each, then together to hidden_dim
  int32_t output_lora_rank = 0;
  bool sinks = true;
  int32_t indexer_head_count = 0;  // 0: all entries are seen
  int32_t indexer_head_dim = 0;
  int32_t indexer_top_k = 0;
  bool operator==(const CompressedAttention&) const = default;
};

// Attention whose cache does not grow: gated and Kimi delta rule, lightning attention, Mamba-1 and -2.
struct LinearAttention {
  enum class Kind { kGatedDelta, kKimiDelta, kLightning, kMamba1, kMamba2 } kind = Kind::kMamba2;
  int32_t key_head_count = 0;    // groups in Mamba-2
  int32_t value_head_count = 0;  // heads
  int32_t key_head_dim = 0;      // state size
  int32_t value_head_dim = 0;    // head dim
  int32_t inner_dim = 0;         // width of the value path
  int32_t conv_width = 0;        // taps of the causal convolution; 0: none
  int32_t dt_rank = 0;           // Mamba-1
  bool projection_bias = false;
  bool conv_bias = false;
  bool output_norm = true;   // Mamba-2: over inner_dim; delta rule: over value_head_dim; lightning: over inner_dim
  bool state_norms = false;  // Mamba-1: learned norms on dt, B and C
  int32_t chunk_size =
      0;  // tokens of one chunk of the parallel form; 0: 64 (delta rule), 128 (Mamba-2), 256 (lightning)
  bool operator==(const LinearAttention&) const = default;
};

struct DenseFeedForward {
  int32_t ffn_dim = 0;
  bool gated = true;  // two up matrices and one down; otherwise one and one
  bool bias = false;
  bool operator==(const DenseFeedForward&) const = default;
};

struct MixtureOfExperts {
  int32_t expert_count = 0;
  int32_t experts_per_token = 0;
  int32_t expert_ffn_dim = 0;
  int32_t shared_expert_count = 0;
  int32_t shared_expert_ffn_dim = 0;  // of one shared expert; 0: expert_ffn_dim
  bool shared_expert_gate = false;    // a [D, 1] gate on the shared experts
  bool gated = true;
  bool expert_bias = false;
  bool router_bias = false;             // additive bias of the router projection
  bool router_correction_bias = false;  // one value per expert used in selection only
  int32_t dense_residual_ffn_dim = 0;   // a dense MLP beside the experts; 0: none
  bool dense_residual_gated = true;
  double capacity_factor = 0;       // 0: dropless
  double load_imbalance_ratio = 1;  // busiest expert group over the mean, at least 1
  int32_t latent_dim = 0;           // experts work in a projected width (0: hidden_dim)
  bool operator==(const MixtureOfExperts&) const = default;
};

// No mixing part (an attention-only or FFN-only block of a hybrid).
struct NoAttention {
  bool operator==(const NoAttention&) const = default;
};
struct NoFeedForward {
  bool operator==(const NoFeedForward&) const = default;
};

using Attention =
    std::variant<NoAttention, GroupedQueryAttention, LatentAttention, LinearAttention, CompressedAttention>;
using FeedForward = std::variant<NoFeedForward, DenseFeedForward, MixtureOfExperts>;

struct Norms {
  int32_t count = 2;  // norms of width hidden_dim in this layer (2 usual, 4 with post-norms, 1 for parallel blocks)
  bool bias = false;  // layer norm: weight and bias
  bool has_weight = true;  // false: non-parametric
  bool operator==(const Norms&) const = default;
};

struct Layer {
  Attention attention;
  FeedForward feed_forward;
  Norms norms;
  bool parallel_block = false;  // attention and MLP read the same input and are summed
  // Width of an input that each token has for this layer alone (Gemma 4 small): gated in, projected out, normed; 0:
  // none.
  int32_t per_layer_input_dim = 0;
  // Parallel residual streams that learned mixes join before and spread after each part (hyper-connections).
  int32_t residual_stream_count = 1;
  int64_t extra_parameter_count = 0;  // small learned vectors that no other field covers (layer scalars, ...)
  bool operator==(const Layer&) const = default;
};

// `repeat_count` times the pattern `layers`, in order.
struct LayerGroup {
  int32_t repeat_count = 1;
  std::vector<Layer> layers;
};

// Which rule of a quantised checkpoint a weight falls under.
enum class WeightClass {
  kAttention,
  kDenseFeedForward,
  kExpert,
  kSharedExpert,
  kRouter,
  kHead,
  kEmbedding,
  kMtpProjection,
  kPerLayerInput,  // and the projections of a narrower embedding
};
inline constexpr size_t kWeightClassCount = 9;

// How a quantised weight [rows = outputs, columns = inputs] is stored. One scale per block of block_rows x
// block_columns; 0 rows or columns: the block spans the whole side.
struct WeightFormat {
  hardware::DataType dtype = hardware::DataType::kBf16;
  int32_t block_rows = 0;
  int32_t block_columns = 0;
  double scale_bytes = 0;          // 0: no scales
  double zero_point_bytes = 0;     // per block
  double column_bytes = 0;         // per input column (the group index of activation-ordered GPTQ)
  double tensor_scalar_bytes = 0;  // scalars of the whole tensor (activation scale, scale of the scales, shape)
};

// A weight that the quantisation leaves in the checkpoint's format.
struct UnquantizedWeight {
  WeightClass weight_class = WeightClass::kHead;
  std::string name;    // of the matmul (operations.h); empty: all of the class
  int32_t layer = -1;  // index in the stack; -1: all layers
};

// How the checkpoint's matmul weights are stored when it is quantised. Classes that are not quantised keep
// Architecture::checkpoint_dtype, and so do biases, norms and other vectors.
struct Quantization {
  std::string method;                                  // "fp8", "mxfp4", "awq", ... as the config names it; empty: none
  std::array<bool, kWeightClassCount> quantized = {};  // by WeightClass
  std::array<WeightFormat, kWeightClassCount> formats = {};  // of the quantised classes
  std::vector<UnquantizedWeight> exceptions;                 // by ascending layer

  bool Quantizes(WeightClass weight_class) const { return quantized[static_cast<size_t>(weight_class)]; }
  const WeightFormat& FormatOf(WeightClass weight_class) const { return formats[static_cast<size_t>(weight_class)]; }
};

// Values that a checkpoint stores and nobody trains.
struct StoredBuffer {
  std::string name;
  int64_t count = 0;
};

struct Architecture {
  std::string name;
  int32_t hidden_dim = 0;
  int32_t vocab_size = 0;
  bool tied_embeddings = false;
  int32_t embedding_dim = 0;           // 0: hidden_dim; otherwise projected in and out
  int32_t learned_position_count = 0;  // rows of a learned position table
  bool embedding_norm = false;
  // Rows of the table that holds the per-layer inputs of all layers side by side; 0: none.
  int32_t per_layer_vocab_size = 0;
  bool head_bias = false;
  // Outputs of the head. -1: one for every row of the table. 0: there is no head (embedding models). More: a
  // classifier.
  int32_t head_output_count = -1;
  Norms final_norm = {1, false, true};
  std::vector<LayerGroup> layer_groups;
  int32_t mtp_layer_count = 0;  // multi-token-prediction layers beyond the main model
  Layer mtp_layer;
  bool mtp_shares_embeddings = true;
  int32_t max_position_count = 0;  // context limit of the config; 0: none stated
  // What its checkpoint holds.
  hardware::DataType checkpoint_dtype = hardware::DataType::kBf16;  // of everything that is not quantised
  Quantization quantization;
  bool stores_tied_table_twice = false;
  std::vector<StoredBuffer> stored_buffers;

  int64_t LayerCount() const {
    int64_t count = 0;
    for (const LayerGroup& group : layer_groups) {
      count += static_cast<int64_t>(group.repeat_count) * static_cast<int64_t>(group.layers.size());
    }
    return count;
  }
};

}  // namespace sliceplan::transformer

#endif  // SLICEPLAN_SERVER_TRANSFORMER_ARCHITECTURE_H_
