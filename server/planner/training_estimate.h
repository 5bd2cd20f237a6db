// The answer to a training job. Every total comes with the parts that add up to it. All numbers are finite.
#ifndef SLICEPLAN_SERVER_PLANNER_TRAINING_ESTIMATE_H_
#define SLICEPLAN_SERVER_PLANNER_TRAINING_ESTIMATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/hardware/slice.h"
#include "server/planner/parallelism.h"
#include "server/planner/training_job.h"
#include "server/roofline/collective.h"
#include "server/transformer/operations.h"

namespace sliceplan::planner {

enum class Outcome { kFeasible, kOutOfMemory, kMissesDeadline, kOverBudget, kNoLegalPlan };

// What keeps a step busy. Network tiers apart.
enum class StepResource { kMatrixUnit, kVectorUnit, kHbm, kIci, kScaleUp, kScaleOut, kDcn, kPcie, kBubble, kHost };

enum class Phase { kForward, kBackward, kRecompute, kGradientReduction, kOptimizer, kSchedule, kHost };

// One part of the step. Parts sum to expected_seconds. Seconds of one chip of the slowest pipeline stage.
struct BreakdownEntry {
  int32_t layer_group = -1;  // -1: outside the layers
  transformer::Component component = transformer::Component::kOther;
  StepResource resource = StepResource::kMatrixUnit;
  Phase phase = Phase::kForward;
  std::optional<LogicalAxis> axis;  // of exposed communication
  double seconds = 0;
};

struct StepTime {
  double roofline_lower_seconds = 0;
  double roofline_upper_seconds = 0;
  double expected_seconds = 0;
  std::optional<double> p05_seconds;
  std::optional<double> p95_seconds;
  bool assumed = false;  // from assumed_mfu_ratio
};

// When memory peaks.
enum class MemoryMoment { kLoss, kLayerBackward, kOptimizerUpdate };

// Bytes of one chip of one pipeline stage at the worst moment of the step.
struct MemoryUse {
  int64_t parameters_bytes = 0;
  int64_t gradients_bytes = 0;
  int64_t optimizer_bytes = 0;    // moments and master copies
  int64_t activations_bytes = 0;  // saved for the backward pass, microbatches in flight included
  int64_t gathered_weights_bytes = 0;
  int64_t workspace_bytes = 0;        // the layer being computed
  int64_t attention_score_bytes = 0;  // the part of it that is scores in fp32
  int64_t logits_bytes = 0;
  int64_t buffers_bytes = 0;  // collective buffers
  int64_t reserve_bytes = 0;  // runtime
  int64_t used_bytes = 0;     // worst moment: not the sum of all above
  int64_t capacity_bytes = 0;
  int64_t headroom_bytes = 0;       // negative when it does not fit
  int64_t host_bytes = 0;           // offloaded to the host, per chip
  int64_t host_capacity_bytes = 0;  // a chip's share of the host's memory; 0: not known
  int32_t stage = 0;
  MemoryMoment worst_moment = MemoryMoment::kLayerBackward;
};

struct Bottleneck {
  StepResource resource = StepResource::kMatrixUnit;
  double share_ratio = 0;  // of the roofline lower bound's ideal: busy seconds of this resource over the step
  StepResource next_resource = StepResource::kHbm;
  double next_share_ratio = 0;
  std::string sentence;  // what binds, with numbers
};

// Tokens per chip that each strategy needs on this slice to be compute-bound, beside this job's own.
struct Thresholds {
  double tokens_per_chip = 0;  // this job's
  std::optional<double> data_tokens_per_chip;
  std::optional<double> fsdp_tokens_per_chip;
  std::optional<double> fsdp_tensor_tokens_per_chip;
  std::optional<double> tensor_degree_limit;
  std::optional<double> dcn_tokens_per_slice;
  double tokens_per_slice = 0;                // this job's
  std::optional<double> optimal_fsdp_degree;  // book's X_opt at this batch
  std::optional<double> pipeline_bubble_ratio;
};

struct Cost {
  double usd_per_chip_hour = 0;
  double usd_per_step = 0;
  std::optional<double> usd_per_million_tokens;  // with failures; unset for a job that does not finish
  std::optional<double> total_usd;
};

struct Goodput {
  double ratio = 1;
  std::optional<double> optimal_checkpoint_interval_seconds;
  std::optional<double> checkpoint_interval_seconds;  // the one that all ratios are for
  double failures_per_day = 0;
  double lost_work_seconds_per_day = 0;
  double restart_seconds_per_day = 0;
  double checkpoint_seconds_per_day = 0;
  std::optional<double> wall_seconds;  // time to train with failures
  bool finishes = true;                // false: next to no time is left to train, and wall_seconds is unset
};

struct Energy {
  double joules_per_step = 0;
  std::optional<double> total_kilowatt_hours;
};

// One field of the request changed: path in proto names, value as in proto3 JSON without quotes.
struct FieldChange {
  std::string field;
  std::string value;
};

struct Advice {
  std::string code;            // UPPER_SNAKE
  std::string sentence;        // with numbers
  double step_time_ratio = 1;  // new over old expected step time, when it changes
  double cost_ratio = 1;       // new over old cost per token, when it changes (serving)
  int64_t memory_bytes = 0;    // change of used bytes per chip
  std::vector<FieldChange> changes;
};

// The smallest change that makes the job fit.
struct Fix {
  std::string code;
  std::string sentence;
  std::vector<FieldChange> changes;
  std::optional<double> expected_seconds;  // step time afterwards, where it was computed
};

// Something that was rounded up to divide evenly, or copied (legality.h).
struct Padding {
  absl::string_view what;  // "vocabulary", "query heads", "KV heads (copied)", "layers (uneven)", ...
  int64_t original_count = 0;
  int64_t padded_count = 0;
  std::string sentence;
};

// Where one logical axis lies.
struct AxisPlacement {
  LogicalAxis axis = LogicalAxis::kData;
  int32_t degree = 1;
  hardware::Group group;
  roofline::Tier slowest_tier = roofline::Tier::kNone;
};

struct TrainingEstimate {
  Outcome outcome = Outcome::kFeasible;
  std::string shortfall;        // empty when feasible
  double shortfall_amount = 0;  // bytes, seconds or dollars by outcome
  std::optional<Fix> smallest_fix;

  Parallelism parallelism;
  std::vector<AxisPlacement> mapping;
  std::vector<Padding> paddings;
  int64_t chip_count = 0;  // paid for
  int64_t idle_chip_count = 0;
  RematPolicy remat_policy = RematPolicy::kNone;
  int32_t gradient_accumulation = 1;
  int32_t microbatch_count = 1;
  int64_t microbatch_size = 1;  // sequences per data shard
  std::vector<int32_t> layers_per_stage;

  StepTime step_time;
  std::vector<BreakdownEntry> breakdown;
  Bottleneck bottleneck;
  MemoryUse memory;                     // of the fullest stage
  std::vector<MemoryUse> stage_memory;  // one per pipeline stage when pipelined

  double model_flops_per_step = 0;
  double hardware_flops_per_step = 0;  // with recompute
  double peak_flops_per_second_per_chip = 0;
  double mfu_ratio = 0;
  double hfu_ratio = 0;
  double tokens_per_step = 0;
  double tokens_per_second = 0;
  double tokens_per_second_per_chip = 0;
  Thresholds thresholds;
  std::optional<double> time_to_train_seconds;
  std::optional<double> chip_hours;
  Goodput goodput;
  std::optional<Cost> cost;
  std::optional<Energy> energy;
  std::vector<Advice> advice;
  std::vector<std::string> assumptions;
  std::vector<std::string> warnings;
  int64_t plans_evaluated = 1;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_TRAINING_ESTIMATE_H_
