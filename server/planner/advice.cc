#include "server/planner/advice.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "server/planner/explain.h"
#include "server/planner/goodput.h"
#include "server/planner/legality.h"
#include "server/planner/pipeline_schedule.h"
#include "server/planner/remat.h"
#include "server/planner/saved_activations.h"
#include "server/planner/thresholds.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

// What takes less of the step is not worth a sentence.
constexpr double kWorthSaying = 0.02;
// A goodput above is good.
constexpr double kGoodGoodput = 0.95;
// Checkpoints written this much faster: asynchronous ones, or more writers.
constexpr double kFasterCheckpoints = 4;
// A type this much faster is worth another precision.
constexpr double kFasterType = 1.2;

enum class Kind {
  kAddTensor,
  kReduceTensor,
  kLargerBatch,
  kLargerBatchPerSlice,
  kMoreMicrobatches,
  kMergeAccumulation,
  kInterleave,
  kZeroBubble,
  kKeepMore,
  kLessAccumulation,
  kShardOptimizer,
  kLowerPrecision,
  kIdleChips,
  kFasterCheckpoints,
  kLargerMicrobatches,
};

// An idea before it is worded; `number` and `value` mean what its kind needs.
struct Idea {
  Kind kind;
  double step_time_ratio = 1;
  double memory_bytes = 0;
  int64_t number = 0;
  double value = 0;
};
using Ideas = absl::InlinedVector<Idea, 8>;

// Parts of the expected step, as shares of it.
struct Shares {
  double weights_traffic = 0;  // FSDP and data inside a slice
  double tensor_traffic = 0;
  double dcn = 0;
  double bubble = 0;
  double recompute = 0;
  double host = 0;
  double low_precision_matmuls = 0;  // those that a narrower type would speed up
};

struct Context {
  const TrainingJob& job;
  const TrainingEstimate& estimate;
  Shares shares;
};

int64_t Degree(const Parallelism& parallelism, LogicalAxis axis) {
  return int64_t{parallelism.ici[axis]} * parallelism.dcn[axis];
}

bool RunsInLowPrecision(transformer::Component component) {
  return component == transformer::Component::kAttentionProjections ||
         component == transformer::Component::kFeedForward;
}

Shares SharesOf(const TrainingEstimate& estimate) {
  Shares seconds;
  for (const BreakdownEntry& entry : estimate.breakdown) {
    if (entry.resource == StepResource::kBubble) seconds.bubble += entry.seconds;
    if (entry.resource == StepResource::kHost) seconds.host += entry.seconds;
    if (entry.resource == StepResource::kDcn) seconds.dcn += entry.seconds;
    if (entry.phase == Phase::kRecompute) seconds.recompute += entry.seconds;
    if (entry.resource == StepResource::kMatrixUnit && RunsInLowPrecision(entry.component)) {
      seconds.low_precision_matmuls += entry.seconds;
    }
    if (!entry.axis || !IsNetwork(entry.resource) || entry.resource == StepResource::kDcn) continue;
    if (*entry.axis == LogicalAxis::kFsdp || *entry.axis == LogicalAxis::kData)
      seconds.weights_traffic += entry.seconds;
    if (*entry.axis == LogicalAxis::kTensor) seconds.tensor_traffic += entry.seconds;
  }
  const double step = estimate.step_time.expected_seconds;
  if (step <= 0) return Shares();
  for (double* share : {&seconds.weights_traffic, &seconds.tensor_traffic, &seconds.dcn, &seconds.bubble,
                        &seconds.recompute, &seconds.host, &seconds.low_precision_matmuls}) {
    *share = std::min(1.0, *share / step);
  }
  return seconds;
}

// ---- Thresholds.

// The plan with `factor` times the tensor degree (a power of two, or 1 over one), taken from or given to the axis where
// it costs least. False when no axis divides.
bool ScaleTensor(const Parallelism& plan, int64_t factor, bool up, Parallelism& changed, LogicalAxis& other) {
  for (const LogicalAxis axis : {LogicalAxis::kContext, LogicalAxis::kFsdp, LogicalAxis::kData}) {
    // What tensor gives up goes to the weights' shards.
    if (!up && axis != LogicalAxis::kFsdp) continue;
    const int64_t degree = plan.ici[axis];
    if (up && degree % factor != 0) continue;
    changed = plan;
    changed.mapping.clear();
    AxisDegrees& ici = changed.ici;
    ici[axis] = static_cast<int32_t>(up ? degree / factor : degree * factor);
    ici[LogicalAxis::kTensor] =
        static_cast<int32_t>(up ? ici[LogicalAxis::kTensor] * factor : ici[LogicalAxis::kTensor] / factor);
    other = axis;
    return true;
  }
  return false;
}

bool IsLegalFor(const Context& context, const Parallelism& parallelism) {
  const TrainingJob& job = context.job;
  return IsLegal(DivisorsOf(*job.model), job.slice, job.workload, parallelism,
                 {job.allow_idle_chips, job.allow_padding});
}

// Tokens per chip that FSDP needs beside `tensor`. Torus: the traffic falls with the tensor degree, on the axes that it
// leaves to FSDP. Switched: known at the best degree only. 0: not known.
double NeededBesideTensor(const Context& context, int64_t tensor) {
  const Thresholds& thresholds = context.estimate.thresholds;
  const int64_t own = Degree(context.estimate.parallelism, LogicalAxis::kTensor);
  if (context.job.slice.accelerator.fabric != hardware::FabricKind::kTorus) return 0;
  if (own > 1) {
    return thresholds.fsdp_tokens_per_chip.value_or(0) * static_cast<double>(own) / static_cast<double>(tensor);
  }
  const StrategyAxes axes = AxesOf(context.job.slice);
  if (axes.data <= 0) return 0;
  return thresholds.data_tokens_per_chip.value_or(0) * axes.all / axes.data / static_cast<double>(tensor);
}

void AddTensor(const Context& context, Ideas& ideas) {
  const TrainingEstimate& estimate = context.estimate;
  const Thresholds& thresholds = estimate.thresholds;
  const double needed = NeededTokensPerChip(estimate);
  const double tokens = thresholds.tokens_per_chip;
  if (needed <= 0 || tokens >= needed || context.shares.weights_traffic < kWorthSaying) return;
  const int64_t own = Degree(estimate.parallelism, LogicalAxis::kTensor);
  const double limit = thresholds.tensor_degree_limit.value_or(0);
  Idea best{Kind::kLargerBatch};
  Parallelism changed;
  LogicalAxis other;
  for (int64_t factor = 2; static_cast<double>(own * factor) <= limit; factor *= 2) {
    const double beside = NeededBesideTensor(context, own * factor);
    if (beside <= 0 || beside >= needed) continue;
    if (!ScaleTensor(estimate.parallelism, factor, true, changed, other) || !IsLegalFor(context, changed)) continue;
    best.kind = Kind::kAddTensor;
    best.number = factor;
    best.value = beside;
    // The traffic shrinks with what it needs; what is hidden already cannot show less.
    best.step_time_ratio = 1 - context.shares.weights_traffic * (1 - beside / needed);
    if (beside <= tokens) break;
  }
  if (best.kind == Kind::kLargerBatch) {
    best.number = static_cast<int64_t>(std::min(1e9, std::ceil(needed / tokens)));
    best.value = needed;
  }
  ideas.push_back(best);
}

void ReduceTensor(const Context& context, Ideas& ideas) {
  const TrainingEstimate& estimate = context.estimate;
  const int64_t tensor = estimate.parallelism.ici[LogicalAxis::kTensor];
  const double limit = estimate.thresholds.tensor_degree_limit.value_or(0);
  if (limit <= 0 || static_cast<double>(tensor) <= limit || tensor % 2 != 0) return;
  if (context.shares.tensor_traffic < kWorthSaying) return;
  Parallelism changed;
  LogicalAxis other;
  ScaleTensor(estimate.parallelism, 2, false, changed, other);
  if (!IsLegalFor(context, changed)) return;
  // Half the tensor degree moves half the activations of a chip.
  ideas.push_back({Kind::kReduceTensor, 1 - context.shares.tensor_traffic / 2, 0, tensor / 2, limit});
}

void BatchPerSlice(const Context& context, Ideas& ideas) {
  const Thresholds& thresholds = context.estimate.thresholds;
  const double needed = thresholds.dcn_tokens_per_slice.value_or(0);
  if (context.job.slice.slice_count < 2 || thresholds.tokens_per_slice >= needed) return;
  if (context.shares.dcn < kWorthSaying) return;
  const double factor = std::ceil(needed / thresholds.tokens_per_slice);
  ideas.push_back({Kind::kLargerBatchPerSlice, 1, 0, static_cast<int64_t>(std::min(1e9, factor)), needed});
}

// ---- The pipeline.

// Less idle time at the same work. `left`: share of the bubble that stays.
void AddBubble(const Context& context, Kind kind, double left, int64_t number, Ideas& ideas) {
  const double bubble = context.shares.bubble;
  const double ratio = 1 - bubble * (1 - left);
  ideas.push_back({kind, ratio, 0, number, bubble * left / ratio});
}

void FillPipeline(const Context& context, Ideas& ideas) {
  const TrainingEstimate& estimate = context.estimate;
  if (context.shares.bubble < kWorthSaying) return;
  const Parallelism& parallelism = estimate.parallelism;
  const int64_t stages = Degree(parallelism, LogicalAxis::kPipeline);
  const int64_t microbatches = estimate.microbatch_count;
  if (estimate.microbatch_size > 1 && microbatches * estimate.microbatch_size <= kMaxMicrobatches) {
    AddBubble(context, Kind::kMoreMicrobatches, 1 / static_cast<double>(estimate.microbatch_size),
              microbatches * estimate.microbatch_size, ideas);
    return;
  }
  if (estimate.gradient_accumulation > 1 && microbatches * estimate.gradient_accumulation <= kMaxMicrobatches &&
      parallelism.schedule != PipelineSchedule::kGpipe) {
    AddBubble(context, Kind::kMergeAccumulation, 1.0 / estimate.gradient_accumulation,
              microbatches * estimate.gradient_accumulation, ideas);
    return;
  }
  if (parallelism.virtual_stage_count > 1 || parallelism.schedule == PipelineSchedule::kZeroBubble) return;
  PipelineShape shape = {parallelism.schedule, stages, microbatches, 1};
  const double bubble = BubbleTime(shape, {});
  const int64_t layers = static_cast<int64_t>(context.job.model->layer_kind.size());
  if (bubble <= 0) return;
  if (microbatches % stages == 0 && layers % (2 * stages) == 0) {
    shape.schedule = PipelineSchedule::kInterleaved1F1B;
    shape.virtual_stage_count = 2;
    AddBubble(context, Kind::kInterleave, BubbleTime(shape, {}) / bubble, 2, ideas);
    return;
  }
  shape.schedule = PipelineSchedule::kZeroBubble;
  AddBubble(context, Kind::kZeroBubble, BubbleTime(shape, {}) / bubble, 0, ideas);
}

// ---- Memory.

void KeepMore(const Context& context, Ideas& ideas) {
  const TrainingEstimate& estimate = context.estimate;
  const TrainingWorkload& workload = context.job.workload;
  // Unset policies are chosen so already.
  if (!workload.remat_policy || context.shares.recompute < kWorthSaying) return;
  if (estimate.memory.headroom_bytes <= 0 || estimate.memory.activations_bytes <= 0) return;
  const KeepingMore more = CheapestPolicyWithin(context.job, estimate);
  if (!more.found) return;
  ideas.push_back({Kind::kKeepMore, 1 - context.shares.recompute * (1 - more.recompute_ratio), more.added_bytes,
                   static_cast<int64_t>(more.policy), context.shares.recompute});
}

void LessAccumulation(const Context& context, Ideas& ideas) {
  const TrainingEstimate& estimate = context.estimate;
  const MemoryUse& memory = estimate.memory;
  const bool asked = context.job.workload.gradient_accumulation.value_or(1) > 1;
  if (!asked || estimate.gradient_accumulation % 2 != 0 || context.shares.weights_traffic < kWorthSaying) return;
  // Twice the microbatch keeps and computes with twice as much.
  const int64_t added = memory.activations_bytes + memory.workspace_bytes + memory.logits_bytes + memory.buffers_bytes;
  if (added > memory.headroom_bytes) return;
  ideas.push_back({Kind::kLessAccumulation, 1 - context.shares.weights_traffic / 2, static_cast<double>(added),
                   estimate.gradient_accumulation / 2, context.shares.weights_traffic});
}

void ShardOptimizer(const Context& context, Ideas& ideas) {
  const TrainingEstimate& estimate = context.estimate;
  const MemoryUse& memory = estimate.memory;
  const int64_t data = Degree(estimate.parallelism, LogicalAxis::kData);
  if (data < 2 || estimate.parallelism.data_zero_stage != ZeroStage::k0) return;
  const double freed = static_cast<double>(memory.optimizer_bytes) * (1 - 1 / static_cast<double>(data));
  // Room that nothing asks for is no reason.
  const bool tight = memory.headroom_bytes < 0 || context.shares.recompute >= kWorthSaying;
  if (!tight || freed < kWorthSaying * static_cast<double>(memory.capacity_bytes)) return;
  ideas.push_back({Kind::kShardOptimizer, 1, -freed, data, 0});
}

// ---- The rest.

void LowerPrecision(const Context& context, Ideas& ideas) {
  const TrainingJob& job = context.job;
  const hardware::AcceleratorSpec& chip = job.slice.accelerator;
  const hardware::DataType own = job.workload.precision.compute;
  if (hardware::BytesPerElement(own) < 2) return;
  const double rate = chip.MatmulRate(own).value_or(0);
  if (rate <= 0 || context.shares.low_precision_matmuls < kWorthSaying) return;
  Idea best{Kind::kLowerPrecision};
  for (const hardware::DataType type :
       {hardware::DataType::kBf16, hardware::DataType::kFp8, hardware::DataType::kInt8}) {
    if (hardware::BytesPerElement(type) >= hardware::BytesPerElement(own)) continue;
    const double speedup = chip.MatmulRate(type).value_or(0) / rate;
    // The wider of equally fast types loses less.
    if (speedup < kFasterType || speedup <= best.value) continue;
    best.value = speedup;
    best.number = static_cast<int64_t>(type);
    best.step_time_ratio = 1 - context.shares.low_precision_matmuls * (1 - 1 / speedup);
  }
  if (best.value > 0) ideas.push_back(best);
}

void FasterCheckpoints(const Context& context, Ideas& ideas) {
  const Goodput& goodput = context.estimate.goodput;
  const Reliability& reliability = context.job.reliability;
  if (!goodput.optimal_checkpoint_interval_seconds || goodput.ratio >= kGoodGoodput ||
      reliability.checkpoint_write_seconds <= 0) {
    return;
  }
  const double write = reliability.checkpoint_write_seconds / kFasterCheckpoints;
  const double rate = InterruptionsPerSecond(reliability, context.estimate.chip_count);
  const double interval =
      std::max(OptimalCheckpointInterval(write, 1 / rate), context.estimate.step_time.expected_seconds);
  const double ratio = GoodputRatio(interval, write, reliability.restart_seconds, rate);
  if (ratio < goodput.ratio * (1 + kWorthSaying)) return;
  ideas.push_back({Kind::kFasterCheckpoints, 1, 0, 0, ratio});
}

void LargerMicrobatches(const Context& context, Ideas& ideas) {
  const TrainingEstimate& estimate = context.estimate;
  const int64_t rounds = int64_t{estimate.gradient_accumulation} * estimate.microbatch_count;
  if (context.shares.host < 0.1 || rounds < 2) return;
  ideas.push_back({Kind::kLargerMicrobatches, 1 - context.shares.host / 2, 0, rounds, context.shares.host});
}

// ---- Words.

std::string AxisField(LogicalAxis axis) { return absl::StrCat("parallelism.ici.", LogicalAxisName(axis)); }

std::string BatchField() { return "workload.global_batch_size"; }

std::string UpTo(double step_time_ratio) {
  return absl::StrCat("at best ", PercentWords(1 - step_time_ratio), " less step time");
}

void WordTensor(const Context& context, const Idea& idea, bool up, Advice& advice) {
  const TrainingEstimate& estimate = context.estimate;
  const int64_t factor = up ? idea.number : 2;
  Parallelism changed;
  LogicalAxis other = LogicalAxis::kFsdp;
  ScaleTensor(estimate.parallelism, factor, up, changed, other);
  const int64_t tensor = changed.ici[LogicalAxis::kTensor];
  const std::string swap =
      absl::StrCat(CountWords(tensor), " with ", LogicalAxisName(other), " ", CountWords(changed.ici[other]),
                   " instead of ", CountWords(estimate.parallelism.ici[other]));
  if (up) {
    advice.code = "ADD_TENSOR_PARALLELISM";
    advice.sentence =
        absl::StrCat("FSDP traffic does not hide at ", NumberWords(estimate.thresholds.tokens_per_chip),
                     " tokens per chip: it needs ", NumberWords(NeededTokensPerChip(estimate)), ". Beside tensor ",
                     swap, " it needs ", NumberWords(idea.value), ": ", UpTo(idea.step_time_ratio), ".");
  } else {
    advice.code = "REDUCE_TENSOR_PARALLELISM";
    advice.sentence =
        absl::StrCat("Tensor ", CountWords(estimate.parallelism.ici[LogicalAxis::kTensor]), " is beyond the ",
                     NumberWords(idea.value), " that stay bound by compute, and its traffic shows for ",
                     PercentWords(context.shares.tensor_traffic), " of the step. Tensor ", swap,
                     " would halve it: ", UpTo(idea.step_time_ratio), ".");
  }
  advice.changes = {{AxisField(LogicalAxis::kTensor), absl::StrCat(tensor)},
                    {AxisField(other), absl::StrCat(changed.ici[other])}};
}

void WordBatch(const Context& context, const Idea& idea, Advice& advice) {
  const TrainingEstimate& estimate = context.estimate;
  const double batch = static_cast<double>(context.job.workload.global_batch_size);
  const double larger = batch * static_cast<double>(idea.number);
  const bool between_slices = idea.kind == Kind::kLargerBatchPerSlice;
  advice.code = between_slices ? "LARGER_BATCH_PER_SLICE" : "LARGER_BATCH";
  advice.sentence =
      between_slices ? absl::StrCat("Gradients between slices hide behind ", NumberWords(idea.value),
                                    " tokens per slice; there are ", NumberWords(estimate.thresholds.tokens_per_slice))
                     : absl::StrCat("Weights and gradients hide behind ", NumberWords(idea.value),
                                    " tokens per chip; there are ", NumberWords(estimate.thresholds.tokens_per_chip));
  absl::StrAppend(&advice.sentence, ". A batch of ", NumberWords(larger),
                  between_slices ? " sequences, or fewer slices, would do." : " sequences, or fewer chips, would do.");
  advice.changes = {{BatchField(), absl::StrCat(static_cast<int64_t>(larger))}};
}

void WordPipeline(const Context& context, const Idea& idea, Advice& advice) {
  const TrainingEstimate& estimate = context.estimate;
  const std::string idle = absl::StrCat("The pipeline idles ", PercentWords(context.shares.bubble), " of the step: ");
  const std::string leaves = absl::StrCat(" leave ", PercentWords(idea.value), ".");
  const std::string microbatches = absl::StrCat(idea.number);
  switch (idea.kind) {
    case Kind::kMoreMicrobatches:
      advice.code = "MORE_MICROBATCHES";
      advice.sentence = absl::StrCat(idle, CountWords(idea.number), " microbatches instead of ",
                                     CountWords(estimate.microbatch_count), leaves);
      advice.changes = {{"parallelism.microbatch_count", microbatches}};
      return;
    case Kind::kMergeAccumulation:
      advice.code = "MERGE_ACCUMULATION";
      advice.sentence = absl::StrCat(idle, CountWords(idea.number), " microbatches in one pass instead of ",
                                     CountWords(estimate.gradient_accumulation), " passes of ",
                                     CountWords(estimate.microbatch_count), leaves);
      advice.changes = {{"workload.gradient_accumulation", "1"}, {"parallelism.microbatch_count", microbatches}};
      return;
    case Kind::kInterleave:
      advice.code = "INTERLEAVE_STAGES";
      advice.sentence = absl::StrCat(idle, "2 virtual stages per stage", leaves);
      advice.changes = {{"parallelism.schedule", "PIPELINE_SCHEDULE_INTERLEAVED_1F1B"},
                        {"parallelism.virtual_stage_count", "2"}};
      return;
    default:
      advice.code = "ZERO_BUBBLE_SCHEDULE";
      advice.sentence = absl::StrCat(idle, "weight gradients run in the gaps (zero-bubble schedule)", leaves);
      advice.changes = {{"parallelism.schedule", "PIPELINE_SCHEDULE_ZERO_BUBBLE"}};
  }
}

void WordMemory(const Context& context, const Idea& idea, Advice& advice) {
  const TrainingEstimate& estimate = context.estimate;
  const std::string bytes = BytesWords(std::abs(idea.memory_bytes));
  switch (idea.kind) {
    case Kind::kKeepMore: {
      const RematPolicy policy = static_cast<RematPolicy>(idea.number);
      const double recompute_flops = estimate.hardware_flops_per_step - estimate.model_flops_per_step;
      advice.code = "KEEP_MORE_ACTIVATIONS";
      advice.sentence = absl::StrCat(
          "Recompute of ", FlopsWords(recompute_flops), " takes ", PercentWords(idea.value), " of the step while ",
          BytesWords(static_cast<double>(estimate.memory.headroom_bytes)), " per chip are free: policy ",
          RematPolicyName(policy), " keeps about ", bytes, " more and takes ", UpTo(idea.step_time_ratio), ".");
      advice.changes = {{"workload.remat_policy", RematPolicyField(policy)}};
      return;
    }
    case Kind::kLessAccumulation:
      advice.code = "LESS_ACCUMULATION";
      advice.sentence = absl::StrCat("Weights are gathered in each of ", CountWords(estimate.gradient_accumulation),
                                     " accumulation steps, which shows for ", PercentWords(idea.value),
                                     " of the step. Half as many steps need ", bytes, " more and take ",
                                     UpTo(idea.step_time_ratio), ".");
      advice.changes = {{"workload.gradient_accumulation", absl::StrCat(idea.number)}};
      return;
    default:
      advice.code = "SHARD_OPTIMIZER_STATE";
      advice.sentence = absl::StrCat("ZeRO stage 1 spreads the optimizer state over data ", CountWords(idea.number),
                                     " and frees about ", bytes, " per chip.");
      advice.changes = {{"parallelism.data_zero_stage", "ZERO_STAGE_1"}};
  }
}

std::string DataTypeField(hardware::DataType type) {
  switch (type) {
    case hardware::DataType::kFp8: return "DATA_TYPE_FP8";
    case hardware::DataType::kInt8: return "DATA_TYPE_INT8";
    default: return "DATA_TYPE_BF16";
  }
}

void WordOther(const Context& context, const Idea& idea, Advice& advice) {
  const TrainingEstimate& estimate = context.estimate;
  switch (idea.kind) {
    case Kind::kLowerPrecision: {
      const hardware::DataType type = static_cast<hardware::DataType>(idea.number);
      advice.code = "LOWER_PRECISION";
      advice.sentence =
          absl::StrCat("Matmuls take ", PercentWords(context.shares.low_precision_matmuls),
                       " of the step, and this chip runs ", hardware::DataTypeName(type), " ", NumberWords(idea.value),
                       " times as fast: ", UpTo(idea.step_time_ratio), " where the training bears it.");
      advice.changes = {{"workload.precision.compute", DataTypeField(type)}};
      return;
    }
    case Kind::kIdleChips:
      advice.code = "IDLE_CHIPS";
      advice.sentence = absl::StrCat(CountWords(estimate.idle_chip_count), " of ", CountWords(estimate.chip_count),
                                     " chips are paid for and idle, ", PercentWords(idea.value),
                                     " of the cost: a smaller slice or a plan that fills this one would save it.");
      return;
    case Kind::kFasterCheckpoints:
      advice.code = "FASTER_CHECKPOINTS";
      advice.sentence = absl::StrCat(
          "Failures leave a goodput of ", PercentWords(estimate.goodput.ratio), "; checkpoints written in ",
          SecondsWords(context.job.reliability.checkpoint_write_seconds / kFasterCheckpoints), " instead of ",
          SecondsWords(context.job.reliability.checkpoint_write_seconds), " would leave ", PercentWords(idea.value),
          ".");
      advice.changes = {{"reliability.checkpoint_write_seconds",
                         absl::StrCat(context.job.reliability.checkpoint_write_seconds / kFasterCheckpoints)}};
      return;
    default:
      advice.code = "LARGER_MICROBATCHES";
      advice.sentence =
          absl::StrCat("The host launches ", CountWords(idea.number), " microbatches per step, which shows for ",
                       PercentWords(idea.value), " of it: half as many take ", UpTo(idea.step_time_ratio), ".");
  }
}

Advice Word(const Context& context, const Idea& idea) {
  Advice advice;
  advice.step_time_ratio = idea.step_time_ratio;
  advice.memory_bytes = static_cast<int64_t>(idea.memory_bytes);
  switch (idea.kind) {
    case Kind::kAddTensor: WordTensor(context, idea, true, advice); break;
    case Kind::kReduceTensor: WordTensor(context, idea, false, advice); break;
    case Kind::kLargerBatch:
    case Kind::kLargerBatchPerSlice: WordBatch(context, idea, advice); break;
    case Kind::kMoreMicrobatches:
    case Kind::kMergeAccumulation:
    case Kind::kInterleave:
    case Kind::kZeroBubble: WordPipeline(context, idea, advice); break;
    case Kind::kKeepMore:
    case Kind::kLessAccumulation:
    case Kind::kShardOptimizer: WordMemory(context, idea, advice); break;
    case Kind::kLowerPrecision:
    case Kind::kIdleChips:
    case Kind::kFasterCheckpoints:
    case Kind::kLargerMicrobatches: WordOther(context, idea, advice); break;
  }
  return advice;
}

}  // namespace

void Advise(const TrainingJob& job, TrainingEstimate& estimate) {
  estimate.bottleneck.sentence = ExplainBottleneck(job, estimate);
  estimate.shortfall = DescribeShortfall(job, estimate);
  estimate.advice.clear();
  if (estimate.outcome == Outcome::kNoLegalPlan) return;

  const Context context = {job, estimate, SharesOf(estimate)};
  Ideas ideas;
  ShardOptimizer(context, ideas);
  // A faster step is no use to a job that does not fit.
  if (estimate.outcome != Outcome::kOutOfMemory) {
    AddTensor(context, ideas);
    ReduceTensor(context, ideas);
    BatchPerSlice(context, ideas);
    FillPipeline(context, ideas);
    KeepMore(context, ideas);
    LessAccumulation(context, ideas);
    LowerPrecision(context, ideas);
    LargerMicrobatches(context, ideas);
    FasterCheckpoints(context, ideas);
    if (estimate.idle_chip_count > 0) {
      ideas.push_back({Kind::kIdleChips, 1, 0, 0,
                       static_cast<double>(estimate.idle_chip_count) / static_cast<double>(estimate.chip_count)});
    }
  }
  std::stable_sort(ideas.begin(), ideas.end(),
                   [](const Idea& a, const Idea& b) { return a.step_time_ratio < b.step_time_ratio; });
  const size_t count = std::min<size_t>(ideas.size(), kMaxAdvice);
  estimate.advice.reserve(count);
  for (size_t i = 0; i < count; ++i) estimate.advice.push_back(Word(context, ideas[i]));
}

}  // namespace sliceplan::planner
