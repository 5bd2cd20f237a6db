#include "server/planner/serving/serving_policy.h"

#include <algorithm>

namespace sliceplan::planner {
namespace {

using hardware::BytesPerElement;
using hardware::DataType;

// The wider of two formats.
DataType Wider(DataType a, DataType b) { return BytesPerElement(a) >= BytesPerElement(b) ? a : b; }

}  // namespace

ServingPolicy PolicyOf(const ServingJob& job, const ServingPool& pool) {
  const ServingWorkload& workload = job.workload;
  const bool calibrated = job.mode == EstimationMode::kCalibrated && pool.efficiency != nullptr;
  const roofline::ServingEfficiency ideal;
  const roofline::ServingEfficiency& runtime = calibrated ? *pool.efficiency : ideal;
  ServingPolicy policy;
  policy.weights = workload.precision.weights;
  policy.head_in_weights_type = runtime.quantizes_head;
  policy.four_bit_latent_attention = runtime.four_bit_latent_attention;
  policy.four_bit_scale_bytes = runtime.four_bit_scale_bytes;
  policy.int4_scale_bytes = runtime.int4_scale_bytes;
  policy.kv_cache = workload.precision.kv_cache;
  policy.activations = workload.precision.activations;
  policy.compute = workload.precision.compute;
  if (!policy.compute && !calibrated) {
    policy.compute = policy.weights ? Wider(*policy.weights, policy.activations) : policy.activations;
  }
  policy.prefill_chunk_tokens = workload.prefill_chunk_tokens;
  if (!policy.prefill_chunk_tokens && runtime.prefill_chunk_tokens > 0) {
    policy.prefill_chunk_tokens = static_cast<int32_t>(runtime.prefill_chunk_tokens);
  }
  policy.hbm_utilization_ratio = workload.hbm_utilization_ratio.value_or(runtime.hbm_utilization_ratio);
  policy.kv_cache_split =
      workload.kv_cache_split.value_or(runtime.copies_kv_heads ? KvCacheSplit::kCopies : KvCacheSplit::kBatch);
  policy.windowed_kv_policy = workload.windowed_kv_policy.value_or(runtime.keeps_windowed_kv ? WindowedKvPolicy::kKeep
                                                                                             : WindowedKvPolicy::kFree);
  policy.max_batch_size = workload.max_batch_size;
  return policy;
}

}  // namespace sliceplan::planner
