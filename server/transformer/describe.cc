#include "server/transformer/describe.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace sliceplan::transformer {
namespace {

// Above, doubles no longer hold every whole byte; no cache that fits a machine comes near.
constexpr double kMaxBytes = 9007199254740992.0;  // 2^53

absl::StatusOr<KvCacheDescription> DescribeCache(const Architecture& architecture, const DescribeOptions& options) {
  const KvCache cache = KvCacheOf(architecture);
  const hardware::DataType dtype = options.kv_cache_dtype;
  const double bytes = BytesAtContext(cache, options.sequence_length, dtype);
  const double reserved = ReservedBytesAtContext(cache, options.sequence_length, dtype);
  if (reserved > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence_length: the cache of ", options.sequence_length, " tokens is larger than 2^53 bytes"));
  }
  KvCacheDescription description;
  description.bytes_per_token = GrowingBytesPerToken(cache, dtype);
  description.reserved_bytes_per_token = ReservedBytesPerToken(cache, dtype);
  description.indexer_bytes_per_token = IndexerBytesPerToken(cache, dtype);
  description.state_bytes = StateBytes(cache, dtype);
  description.bytes_at_context = static_cast<int64_t>(bytes);
  description.reserved_bytes_at_context = static_cast<int64_t>(reserved);
  description.growing_layer_count = cache.growing_layer_count;
  description.window_layer_count = cache.window_layer_count;
  description.state_layer_count = cache.state_layer_count;
  return description;
}

}  // namespace

absl::StatusOr<ModelDescription> DescribeModel(const Architecture& architecture, const DescribeOptions& options) {
  if (options.sequence_length < 1 || options.sequence_length > kMaxSequenceLength) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence_length: must be 1 to ", kMaxSequenceLength, ", is ", options.sequence_length));
  }
  const absl::StatusOr<ModelOperations> model = OperationsOf(architecture);
  if (!model.ok()) return model.status();
  const absl::StatusOr<KvCacheDescription> kv_cache = DescribeCache(architecture, options);
  if (!kv_cache.ok()) return kv_cache.status();

  ModelDescription description;
  description.name = architecture.name;
  description.parameters = CountParameters(architecture, *model);
  description.flops = CountFlops(*model, options.sequence_length, options.attention_mask);
  description.kv_cache = *kv_cache;
  description.layer_kinds = LayerKindsOf(architecture);
  description.largest_tensors = LargestTensors(*model, options.largest_tensor_limit);
  description.attention_share_ratio = AttentionShare(description.flops);
  description.attention_equal_length_tokens = AttentionEqualLength(*model, options.attention_mask);
  return description;
}

}  // namespace sliceplan::transformer
