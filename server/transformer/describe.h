// Everything that DescribeModel answers: parameters, FLOPs, cache, and what was understood of the layers.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_DESCRIBE_H_
#define SLICEPLAN_SERVER_TRANSFORMER_DESCRIBE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/transformer/architecture.h"
#include "server/transformer/flops.h"
#include "server/transformer/kv_cache.h"
#include "server/transformer/parameter_count.h"

namespace sliceplan::transformer {

inline constexpr int64_t kDefaultSequenceLength = 8192;
inline constexpr int64_t kMaxSequenceLength = (int64_t{1} << 31) - 1;

struct DescribeOptions {
  int64_t sequence_length = kDefaultSequenceLength;  // of FLOPs, and the context of the cache; 1 to kMaxSequenceLength
  AttentionMask attention_mask = AttentionMask::kCausal;
  hardware::DataType kv_cache_dtype = hardware::DataType::kBf16;
  size_t largest_tensor_limit = 8;
};

// Layers that are alike, in words.
struct LayerKind {
  int64_t count = 0;
  std::string attention;     // "full attention, 64 heads of 128 over 8 KV heads"
  std::string feed_forward;  // "8 of 128 experts of 768"
};

struct KvCacheDescription {
  int64_t bytes_per_token = 0;            // layers that grow
  int64_t reserved_bytes_per_token = 0;   // every attention layer paged alike
  int64_t indexer_bytes_per_token = 0;    // keys of a sparse-attention indexer, in neither of the two above
  int64_t state_bytes = 0;                // constant state of one sequence
  int64_t bytes_at_context = 0;           // one sequence: growing layers, windows, indexer keys and state
  int64_t reserved_bytes_at_context = 0;  // the same with windows at full length
  int64_t growing_layer_count = 0;
  int64_t window_layer_count = 0;
  int64_t state_layer_count = 0;
};

struct ModelDescription {
  std::string name;
  ParameterCount parameters;
  FlopsPerToken flops;
  KvCacheDescription kv_cache;
  std::vector<LayerKind> layer_kinds;  // by first occurrence
  std::vector<TensorSize> largest_tensors;
  double attention_share_ratio = 0;  // of the forward FLOPs at this sequence length
  // Length from which attention costs more than the layers' matmuls; empty when none up to 2^40 does.
  std::optional<double> attention_equal_length_tokens;
};

// INVALID_ARGUMENT: the architecture is not valid, or an option is out of range.
absl::StatusOr<ModelDescription> DescribeModel(const Architecture& architecture, const DescribeOptions& options);

// The layers of an architecture in words.
std::vector<LayerKind> LayerKindsOf(const Architecture& architecture);

}  // namespace sliceplan::transformer

#endif  // SLICEPLAN_SERVER_TRANSFORMER_DESCRIBE_H_
