// The operations of one forward pass through each distinct layer, from which training and serving steps are made.
// Shapes are global (nothing is sharded yet): the planner applies a parallelism. Chapter 4 of "How To Scale Your
// Model".
#ifndef SLICEPLAN_SERVER_TRANSFORMER_OPERATIONS_H_
#define SLICEPLAN_SERVER_TRANSFORMER_OPERATIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/transformer/architecture.h"

namespace sliceplan::transformer {

// What a cost belongs to in replies.
enum class Component {
  kEmbedding,
  kOutputHead,
  kAttentionProjections,
  kAttentionScores,
  kFeedForward,
  kRouter,
  kNorm,
  kMtp,
  kOther
};
inline constexpr size_t kComponentCount = 9;

// Which named tensor of the MaxText/JAX checkpoint policies an operation's output is.
enum class SavedTensor { kNone, kQuery, kKeyValue, kContext, kOutProjection, kMlpUpGate, kMlpDown, kRouterOut };

// How tensor parallelism splits a weight: by its output dimension (the input is gathered), by its input dimension (the
// output is reduced), or not at all (every chip of the tensor group holds and computes it whole).
enum class TensorSplit { kNone, kColumn, kRow };

// A matmul with a weight [k, n] applied to `rows_per_token` rows of each token. Experts: `expert_count` such weights,
// of which each token visits `rows_per_token`.
struct WeightMatmul {
  const char* name = "";  // as Hugging Face names the weight: "q_proj", "experts.down_proj"
  WeightClass weight_class = WeightClass::kAttention;
  Component component = Component::kOther;
  SavedTensor output = SavedTensor::kNone;
  TensorSplit split = TensorSplit::kNone;
  int64_t k = 0;
  int64_t n = 0;
  int32_t expert_count = 0;  // 0: a dense weight
  double rows_per_token = 1;
  // Heads (or groups) that the split dimension is made of: tensor parallelism divides these, not single columns; 0:
  // any.
  int32_t split_unit_count = 0;
  // KV projections are copied when tensor exceeds their heads.
  bool copies_beyond_units = false;
  int64_t bias_count = 0;             // elements added to the output, of all experts
  bool low_precision_allowed = true;  // false: router, head
};

// Scores and context of softmax attention of one layer.
struct SoftmaxAttention {
  int32_t query_head_count = 0;
  int32_t kv_head_count = 0;
  int32_t qk_head_dim = 0;  // as the training kernel multiplies it (latent attention expanded)
  int32_t value_head_dim = 0;
  int32_t window = 0;  // sliding window in tokens; 0: full
  int32_t chunk = 0;   // chunked window in tokens; 0: no
  // Compressed past (DeepSeek-V4): beside its window a query sees one entry for every `compression` earlier positions.
  int32_t compression = 0;  // 0: none
  // Sparse attention (DeepSeek-V3.2): an indexer scores all keys with few, small heads; the softmax sees the best.
  int32_t selected_key_count = 0;  // keys per query, compressed entries where there are any; 0: all
  int32_t indexer_head_count = 0;
  int32_t indexer_head_dim = 0;
  // What generation reads of every earlier key (kv_cache.h has the sums over layers): `cache_head_count` parts of
  // `cache_width` elements each. Tensor parallelism divides whole parts; 1: one vector for all heads.
  int32_t cache_head_count = 0;
  int32_t cache_width = 0;
  bool reads_earlier_cache = false;  // of another layer; this one stores none
  // Widths of a score and of a value against a latent cache, the up projection absorbed into queries and outputs
  // (DeepSeek-V2, section 2.1.2); 0: as in training.
  int32_t absorbed_qk_dim = 0;
  int32_t absorbed_value_dim = 0;
};

// Recurrence of a constant-state layer. FLOPs are linear in tokens.
struct LinearScan {
  double flops_per_token = 0;              // forward
  double bytes_per_token = 0;              // activations read and written in bf16
  int64_t state_elements = 0;              // recurrent state per sequence, usually fp32
  int64_t convolution_state_elements = 0;  // past inputs of the convolution per sequence
};

// Everything of one distinct layer.
struct LayerOperations {
  int64_t count = 0;               // layers of this kind in the model
  int32_t group_index = 0;         // layer group of its first occurrence
  std::vector<int32_t> positions;  // indices in the stack, ascending
  bool parallel_block = false;
  std::vector<WeightMatmul> matmuls;
  bool has_softmax = false;
  SoftmaxAttention softmax;
  bool has_scan = false;
  LinearScan scan;
  // Elementwise traffic in elements per token (norms, residuals, rotary, activations, gates), forward, each read or
  // written once: `hidden_elements` are not split by tensor parallelism without sequence parallelism, the others are.
  double hidden_elements_per_token = 0;
  double split_elements_per_token = 0;
  int64_t norm_parameter_count = 0;  // replicated over tensor
  int64_t other_parameter_count = 0;
  // Mixture of experts: tokens sent to experts.
  int32_t expert_count = 0;
  int32_t experts_per_token = 0;
  double capacity_factor = 0;  // 0: dropless
  double load_imbalance_ratio = 1;
  int32_t expert_ffn_dim = 0;
};

struct ModelOperations {
  int64_t hidden_dim = 0;
  int64_t vocab_size = 0;
  bool tied_embeddings = false;
  int64_t embedding_parameter_count = 0;  // lookup tables (tokens, positions)
  int64_t head_parameter_count = 0;       // output head as stored: 0 when tied, its bias always
  WeightMatmul head;                      // always computed; n is 0 where there is none
  // Projections between a narrower embedding and the residual stream (one in, one out), of per-layer inputs, and of
  // several residual streams to one: usually none.
  std::vector<WeightMatmul> embedding_projections;
  int64_t final_norm_parameter_count = 0;  // the norm after the embedding, where there is one, included
  std::vector<LayerOperations> layers;     // distinct layers, by first occurrence
  std::vector<int32_t> layer_kind;         // stack order: index into `layers`
  // Multi-token-prediction layers: a block, the projection of two hidden states to one, and norms. Each also passes
  // through the output head once more.
  int32_t mtp_layer_count = 0;
  LayerOperations mtp;
};

// INVALID_ARGUMENT when `Validate` (validate.h) finds something; the message is its first finding.
absl::StatusOr<ModelOperations> OperationsOf(const Architecture& architecture);

}  // namespace sliceplan::transformer

#endif  // SLICEPLAN_SERVER_TRANSFORMER_OPERATIONS_H_
