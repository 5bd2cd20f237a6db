// What a pool does where the request leaves it open: the book's way in ROOFLINE mode, else the runtime's.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_POLICY_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_POLICY_H_

#include <cstdint>
#include <optional>

#include "server/hardware/data_type.h"
#include "server/planner/serving/serving_job.h"

namespace sliceplan::planner {

// Every default of a workload filled in, for one pool.
struct ServingPolicy {
  std::optional<hardware::DataType> weights;  // unset: as stored
  bool head_in_weights_type = true;           // false: embedding and head stay in 16 bits
  bool four_bit_latent_attention = true;      // false: its projections stay in 16 bits beside four-bit weights
  double four_bit_scale_bytes = 0;            // beside each weight in four-bit floating point
  double int4_scale_bytes = 0;                // beside each four-bit integer
  hardware::DataType kv_cache = hardware::DataType::kBf16;
  hardware::DataType activations = hardware::DataType::kBf16;
  std::optional<hardware::DataType> compute;  // unset: that of each weight, as far as the chip has a rate for it
  std::optional<int32_t> prefill_chunk_tokens;
  double hbm_utilization_ratio = 1;
  KvCacheSplit kv_cache_split = KvCacheSplit::kBatch;
  WindowedKvPolicy windowed_kv_policy = WindowedKvPolicy::kFree;
  std::optional<int32_t> max_batch_size;
};

ServingPolicy PolicyOf(const ServingJob& job, const ServingPool& pool);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_POLICY_H_
