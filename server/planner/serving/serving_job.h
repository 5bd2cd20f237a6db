// A serving job as the engine takes it: complete and legal in itself (the rpc room validates and fills defaults).
// Words as in proto/sliceplan/v1/serving.proto.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_JOB_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_JOB_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "server/hardware/data_type.h"
#include "server/hardware/slice.h"
#include "server/planner/parallelism.h"
#include "server/planner/serving/token_lengths.h"
#include "server/planner/training_job.h"
#include "server/roofline/serving_efficiency.h"
#include "server/transformer/architecture.h"
#include "server/transformer/operations.h"

namespace sliceplan::planner {

// Both outlive the job and describe the same model.
struct ServedModel {
  const transformer::Architecture* architecture = nullptr;
  const transformer::ModelOperations* operations = nullptr;
};

struct ServingPrecision {
  std::optional<hardware::DataType> weights;  // unset: as the checkpoint stores them
  hardware::DataType kv_cache = hardware::DataType::kBf16;
  hardware::DataType activations = hardware::DataType::kBf16;
  std::optional<hardware::DataType> compute;  // unset: the wider of weights and activations
};

// What happens to the cache when the tensor degree exceeds the parts that it can be divided into.
enum class KvCacheSplit { kCopies, kBatch, kSequence };

// What layers with a window keep: the window, or everything because all layers are paged alike.
enum class WindowedKvPolicy { kFree, kKeep };

// `draft_tokens` are drafted one after the other and checked in one pass.
struct Speculation {
  int32_t draft_tokens = 1;
  double acceptance_ratio = 0;             // of each drafted token, given those before it
  double draft_cost_ratio = 0;             // of one drafted token, in plain decode steps
  std::optional<ServedModel> draft_model;  // in place of the ratio
};

enum class ServingLoadKind {
  kLargestBatch,  // that meets the targets, without targets that fits
  kBatch,         // sequences resident per replica, started together
  kConcurrency,   // users over all replicas, each with one request at a time
  kRate,          // requests per second over all replicas
};

struct ServingWorkload {
  TokenLengths prompt = TokenLengths::Constant(1024);
  TokenLengths output = TokenLengths::Constant(256);
  ServingLoadKind load = ServingLoadKind::kLargestBatch;
  int32_t batch_size = 1;
  int32_t concurrency = 1;
  double requests_per_second = 1;
  ServingPrecision precision;
  double arrival_burstiness = 1;  // squared coefficient of variation of times between arrivals
  double prefix_cache_hit_ratio = 0;
  std::optional<Speculation> speculation;
  std::optional<int32_t> prefill_chunk_tokens;  // unset: the whole prompt in ROOFLINE mode, else the profile's
  int32_t kv_block_tokens = 16;
  std::optional<double> hbm_utilization_ratio;         // unset: 1 in ROOFLINE mode, else the profile's
  std::optional<KvCacheSplit> kv_cache_split;          // unset: kBatch in ROOFLINE mode, else the profile's
  std::optional<WindowedKvPolicy> windowed_kv_policy;  // unset: kFree in ROOFLINE mode, else the profile's
  std::optional<int32_t> max_batch_size;               // sequences resident per replica
  std::optional<double> expert_load_imbalance_ratio;   // in place of the model's
  bool prompt_logprobs = false;                        // logits of a whole chunk of prompts
  std::optional<int32_t> max_context_tokens;           // that the engine is started for; unset: the longest request
};

// Upper limits in seconds.
struct LatencyTargets {
  std::optional<double> mean_seconds;
  std::optional<double> p50_seconds;
  std::optional<double> p95_seconds;
  std::optional<double> p99_seconds;
  bool Any() const { return mean_seconds || p50_seconds || p95_seconds || p99_seconds; }
};

struct ServingSlo {
  LatencyTargets ttft;
  LatencyTargets tpot;
  LatencyTargets end_to_end;
  bool Any() const { return ttft.Any() || tpot.Any() || end_to_end.Any(); }
};

enum class PoolRole { kPrefill, kDecode, kBoth };

// Identical replicas.
struct ServingPool {
  PoolRole role = PoolRole::kBoth;
  hardware::Slice slice;                   // of one replica
  std::optional<Parallelism> parallelism;  // unset: the best
  bool allow_idle_chips = false;
  bool allow_padding = false;
  int32_t replica_count = 1;
  const roofline::ServingEfficiency* efficiency = nullptr;  // outlives the job; required in kCalibrated
  std::optional<double> usd_per_chip_hour;
};

// How the bill is split over tokens.
struct CostSplit {
  bool fixed_ratio = false;                // false: by the time that prefill and decode take
  double output_to_input_price_ratio = 4;  // with fixed_ratio
  double cached_to_input_price_ratio = 0;
};

struct ServingJob {
  ServedModel model;
  std::vector<ServingPool> pools;  // one of kBoth; or any number of kBoth; or of kPrefill and kDecode; or of kDecode
  bool pools_given = false;        // false: the one pool is the request's `slice`, for names of fields
  ServingWorkload workload;
  ServingSlo slo;
  EstimationMode mode = EstimationMode::kCalibrated;
  CostSplit cost_split;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_JOB_H_
