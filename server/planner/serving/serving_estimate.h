// The answer to a serving job. Words as in proto/sliceplan/v1/serving.proto. All numbers are finite.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_ESTIMATE_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_ESTIMATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/hardware/violation.h"
#include "server/planner/serving/serving_job.h"
#include "server/planner/training_estimate.h"

namespace sliceplan::planner {

// Bytes of the fullest chip of a replica.
struct ServingMemory {
  int64_t weights_bytes = 0;
  int64_t kv_cache_bytes = 0;  // of the resident batch, whole blocks, constant states included
  int64_t activations_bytes = 0;
  int64_t buffers_bytes = 0;
  int64_t reserve_bytes = 0;
  int64_t used_bytes = 0;  // the sum of those above
  int64_t capacity_bytes = 0;
  int64_t headroom_bytes = 0;  // negative when it does not fit
  int64_t kv_pool_bytes = 0;   // what the engine reserves for caches
  int64_t kv_pool_tokens = 0;  // that fit into it, per replica
  int32_t stage = 0;
  int32_t layer_count = 0;         // of the stage
  int64_t kv_bytes_per_token = 0;  // that one more token of a long sequence adds on this chip
  int32_t max_context_tokens = 0;  // of one sequence alone, as far as this chip's pool goes
};

// Expected seconds of one part of a pass.
struct PassPart {
  transformer::Component component = transformer::Component::kOther;
  StepResource resource = StepResource::kMatrixUnit;
  std::optional<LogicalAxis> axis;  // of a collective
  double seconds = 0;
};

// Prefill of one prompt, or one decode step of the resident batch.
struct PassTime {
  StepTime time;
  double kv_seconds = 0;       // reading the cache (decode)
  double weights_seconds = 0;  // reading the weights
  double compute_seconds = 0;  // decode: matmuls with weights; prefill: attention too
  double hbm_seconds = 0;      // prefill: weights, activations and cache
  double network_seconds = 0;
  StepResource bound = StepResource::kMatrixUnit;
  std::optional<double> mfu_ratio;  // prefill
  std::vector<PassPart> parts;      // sum to time.expected_seconds
};

struct Latency {
  double mean_seconds = 0;
  double p50_seconds = 0;
  double p95_seconds = 0;
  double p99_seconds = 0;
  // 90% interval of the mean.
  std::optional<double> mean_p05_seconds = std::nullopt;
  std::optional<double> mean_p95_seconds = std::nullopt;
};

struct ServingThroughput {
  double output_tokens_per_second = 0;
  double output_tokens_per_second_per_chip = 0;
  double requests_per_second = 0;
  double saturation_requests_per_second = 0;
  std::optional<double> goodput_requests_per_second;  // that meet every target
  double input_tokens_per_second = 0;
  // 90% interval of `output_tokens_per_second`.
  std::optional<double> output_tokens_per_second_p05;
  std::optional<double> output_tokens_per_second_p95;
};

struct ServingCost {
  double usd_per_hour = 0;
  std::optional<double> usd_per_chip_hour;  // when all pools have one price
  double usd_per_million_input_tokens = 0;
  double usd_per_million_cached_input_tokens = 0;
  double usd_per_million_output_tokens = 0;
};

// One way to run the load.
struct ServingPoint {
  int32_t batch_size = 0;
  Parallelism parallelism;
  double tpot_seconds = 0;
  std::optional<double> ttft_seconds;
  double output_tokens_per_second_per_chip = 0;
  std::optional<double> usd_per_million_output_tokens;
};

struct Disaggregation {
  double prefill_per_decode_ratio = 0;
  double kv_transfer_seconds = 0;
  int64_t kv_transfer_bytes = 0;
  roofline::Tier tier = roofline::Tier::kNone;
};

struct PoolEstimate {
  Parallelism parallelism;
  std::vector<AxisPlacement> mapping;
  std::vector<Padding> paddings;
  int32_t replica_count = 1;
  ServingMemory memory;
  std::vector<ServingMemory> stages;  // each pipeline stage; empty without a pipeline
  std::optional<double> busy_ratio;
};

enum class ServingOutcome { kFeasible, kNoLegalPlan, kOutOfMemory, kUnstable, kMissesSlo };

// What the load lacks, with the name of the field or figure that limits.
struct ServingShortfall {
  std::string limit;  // "hbm_bytes", "requests_per_second", "slo.ttft.p95_seconds", "legal_plan"
  double needed = 0;
  double available = 0;
  double missing = 0;
  std::optional<double> floor;
  std::string sentence;
};

// The load as it was computed: every default filled in.
struct LoadUsed {
  ServingLoadKind kind = ServingLoadKind::kBatch;
  hardware::DataType weights = hardware::DataType::kBf16;  // the widest share of them
  bool weights_as_stored = false;
  hardware::DataType compute = hardware::DataType::kBf16;
  std::optional<int32_t> prefill_chunk_tokens;  // unset: whole prompts
  double hbm_utilization_ratio = 1;
  KvCacheSplit kv_cache_split = KvCacheSplit::kBatch;
  WindowedKvPolicy windowed_kv_policy = WindowedKvPolicy::kFree;
  std::optional<int32_t> max_batch_size;
  int32_t max_context_tokens = 0;
};

struct ServingEstimate {
  ServingOutcome outcome = ServingOutcome::kFeasible;
  std::optional<ServingShortfall> shortfall;
  std::optional<Fix> smallest_fix;
  int32_t max_batch_size = 0;
  int32_t max_context_tokens = 0;
  std::optional<double> critical_batch_size;
  std::optional<double> tensor_degree_limit;
  ServingMemory memory;  // of the decode pool
  PassTime prefill;
  PassTime decode;
  std::optional<Latency> ttft;
  std::optional<Latency> tpot;
  std::optional<Latency> inter_token_latency;
  std::optional<Latency> end_to_end;
  std::optional<Latency> normalized_time_per_output_token;
  ServingThroughput throughput;
  std::optional<ServingCost> cost;
  std::vector<ServingPoint> frontier;
  std::optional<ServingPoint> best_point;
  std::optional<Disaggregation> disaggregation;
  std::optional<int32_t> replica_count;
  int64_t kv_bytes_per_token = 0;
  int32_t batch_size = 0;
  int64_t chip_count = 0;
  std::vector<PoolEstimate> pools;  // in the order of the job
  std::optional<double> kilowatt_hours_per_million_output_tokens;
  LoadUsed load;
  std::vector<Advice> advice;
  std::vector<std::string> assumptions;  // "field: sentence"
  std::vector<std::string> warnings;
};

// Either an estimate or what makes the request senseless: fields relative to the request ("pools[1].parallelism.ici").
struct ServingAnswer {
  std::vector<hardware::Violation> violations;
  bool cancelled = false;
  ServingEstimate estimate;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_ESTIMATE_H_
