// A training job as the engine takes it: complete and legal in itself (the rpc room validates and fills defaults).
#ifndef SLICEPLAN_SERVER_PLANNER_TRAINING_JOB_H_
#define SLICEPLAN_SERVER_PLANNER_TRAINING_JOB_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/hardware/slice.h"
#include "server/planner/parallelism.h"
#include "server/roofline/efficiency.h"
#include "server/transformer/flops.h"
#include "server/transformer/operations.h"

namespace sliceplan::planner {

enum class EstimationMode { kRoofline, kCalibrated };

// What the backward pass finds saved. The MaxText names mean what MaxText means (jax checkpoint policies by tensor).
enum class RematPolicy {
  kNone,               // everything saved
  kFull,               // layer inputs only; per-tensor recompute drops dead code
  kBlock,              // layer inputs only; the whole layer is run again
  kSaveMatmulOutputs,  // outputs of all weight matmuls
  kSaveAttention,      // layer input and attention context
  kMinimal,            // MaxText minimal: all weight matmuls, the attention kernel runs again
  kMinimalFlash,       // and the attention context
  kSaveQkvProj,
  kSaveDotExceptMlp,             // q, k, v and output projections
  kSaveDotExceptMlpWi,           // and the down projection
  kSaveDotWithContextExceptMlp,  // q, k, v, output projections and the context
  kCustom,
};

// Where one tensor lives until its backward pass, for kCustom. Default: recomputed.
enum class TensorPlacement { kRecomputed, kSaved, kOffloaded };

struct CustomRemat {
  TensorPlacement query = TensorPlacement::kRecomputed;
  TensorPlacement key_value = TensorPlacement::kRecomputed;
  TensorPlacement context = TensorPlacement::kRecomputed;
  TensorPlacement out_projection = TensorPlacement::kRecomputed;
  TensorPlacement mlp_up_gate = TensorPlacement::kRecomputed;
  TensorPlacement mlp_down = TensorPlacement::kRecomputed;
  TensorPlacement layer_input = TensorPlacement::kSaved;
};

enum class Optimizer { kAdamw, kAdafactor, kSgd, kMuon, kAdamw8Bit };
// kFlashFusedBackward: one backward kernel for the gradients of queries, keys and values.
enum class AttentionKernel { kFlash, kMaterialized, kFlashFusedBackward };
using transformer::AttentionMask;

struct TrainingPrecision {
  hardware::DataType compute = hardware::DataType::kBf16;
  hardware::DataType parameters = hardware::DataType::kFp32;
  hardware::DataType gradients = hardware::DataType::kFp32;
  hardware::DataType gradient_reduction = hardware::DataType::kBf16;
  hardware::DataType optimizer_state = hardware::DataType::kFp32;
  std::optional<hardware::DataType> master_weights;  // a further copy beside `parameters`
  // In place of `gradients` in plans that accumulate, where the caller left both open.
  std::optional<hardware::DataType> accumulated_gradients;
};

struct TrainingWorkload {
  int32_t sequence_length = 8192;
  int64_t global_batch_size = 512;  // sequences per optimizer step over all chips
  std::optional<int64_t> total_tokens;
  TrainingPrecision precision;
  Optimizer optimizer = Optimizer::kAdamw;
  std::optional<RematPolicy> remat_policy;  // unset: the cheapest that fits
  CustomRemat custom_remat;
  int32_t checkpoints_per_layer = 0;             // > 0: that many width-D tensors saved per layer, in place of a policy
  std::optional<int32_t> gradient_accumulation;  // unset: the cheapest that fits
  bool optimizer_offload = false;
  bool activation_offload = false;
  AttentionKernel attention_kernel = AttentionKernel::kFlash;
  AttentionMask attention_mask = AttentionMask::kCausal;
  int32_t logits_chunk_count = 1;  // the head and loss run over this many slices of the tokens
};

struct Reliability {
  std::optional<double> mean_seconds_between_failures_per_chip;
  double checkpoint_write_seconds = 60;
  double restart_seconds = 600;
  double preemptions_per_hour = 0;                    // of the whole job
  std::optional<double> checkpoint_interval_seconds;  // unset: the one that loses least
};

struct TrainingJob {
  const transformer::ModelOperations* model = nullptr;  // outlives the job
  hardware::Slice slice;
  TrainingWorkload workload;
  std::optional<Parallelism> parallelism;  // unset: the best of the slice
  bool allow_idle_chips = false;
  bool allow_padding = false;
  EstimationMode mode = EstimationMode::kCalibrated;
  const roofline::EfficiencyProfile* profile = nullptr;  // outlives the job; required in kCalibrated
  std::optional<double> assumed_mfu_ratio;
  double min_headroom_ratio = 0;  // share of the usable memory that must stay free
  std::optional<double> usd_per_chip_hour;
  Reliability reliability;
  std::optional<double> deadline_seconds;
  std::optional<double> budget_usd;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_TRAINING_JOB_H_
