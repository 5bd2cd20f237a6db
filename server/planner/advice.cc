#include "server/planner/advice.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "server/planner/advice_ideas.h"
#include "server/planner/explain.h"
#include "server/planner/goodput.h"
#include "server/planner/legality.h"
#include "server/planner/pipeline_schedule.h"
#include "server/planner/plan_fields.h"
#include "server/planner/saved_activations.h"
#include "server/planner/thresholds.h"

namespace sliceplan::planner {
namespace {

// What takes less of the step is not worth a sentence.
constexpr double kWorthSaying = 0.02;
// A goodput above is good.
constexpr double kGoodGoodput = 0.95;
// A type this much faster is worth another precision.
constexpr double kFasterType = 1.2;

using Ideas = absl::InlinedVector<AdviceIdea, 8>;

int64_t Degree(const Parallelism& parallelism, LogicalAxis axis) {
  return int64_t{parallelism.ici[axis]} * parallelism.dcn[axis];
}

bool RunsInLowPrecision(transformer::Component component) {
  return component == transformer::Component::kAttentionProjections ||
         component == transformer::Component::kFeedForward;
}

StepShares SharesOf(const TrainingEstimate& estimate) {
  StepShares seconds;
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
  if (step <= 0) return StepShares();
  for (double* share : {&seconds.weights_traffic, &seconds.tensor_traffic, &seconds.dcn, &seconds.bubble,
                        &seconds.recompute, &seconds.host, &seconds.low_precision_matmuls}) {
    *share = std::min(1.0, *share / step);
  }
  return seconds;
}

// ---- Thresholds.

bool IsLegalFor(const TrainingJob& job, const ModelDivisors& divisors, const Parallelism& parallelism) {
  return IsLegal(divisors, job.slice, job.workload, parallelism, {job.allow_idle_chips, job.allow_padding});
}

// Tokens per chip that FSDP needs beside `tensor`. Torus: the traffic falls with the tensor degree, on the axes that it
// leaves to FSDP. Switched: known at the best degree only. 0: not known.
double NeededBesideTensor(const AdviceContext& context, int64_t tensor) {
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

void AddTensor(const AdviceContext& context, Ideas& ideas) {
  const TrainingEstimate& estimate = context.estimate;
  const Thresholds& thresholds = estimate.thresholds;
  const double needed = NeededTokensPerChip(estimate);
  const double tokens = thresholds.tokens_per_chip;
  if (needed <= 0 || tokens >= needed || context.shares.weights_traffic < kWorthSaying) return;
  const int64_t own = Degree(estimate.parallelism, LogicalAxis::kTensor);
  const double limit = thresholds.tensor_degree_limit.value_or(0);
  AdviceIdea best{AdviceKind::kLargerBatch};
  const ModelDivisors divisors = DivisorsOf(*context.job.model);
  for (int64_t factor = 2; static_cast<double>(own * factor) <= limit; factor *= 2) {
    const double beside = NeededBesideTensor(context, own * factor);
    if (beside <= 0 || beside >= needed) continue;
    const TensorChange change = MoreTensor(estimate.parallelism, factor);
    if (!change.possible || !IsLegalFor(context.job, divisors, change.parallelism)) {
      continue;
    }
    best.kind = AdviceKind::kAddTensor;
    best.number = factor;
    best.value = beside;
    // The traffic shrinks with what it needs; what is hidden already cannot show less.
    best.step_time_ratio = 1 - context.shares.weights_traffic * (1 - beside / needed);
    if (beside <= tokens) break;
  }
  if (best.kind == AdviceKind::kLargerBatch) {
    best.number = static_cast<int64_t>(std::min(1e9, std::ceil(needed / tokens)));
    best.value = needed;
  }
  ideas.push_back(best);
}

void ReduceTensor(const AdviceContext& context, Ideas& ideas) {
  const TrainingEstimate& estimate = context.estimate;
  const int64_t tensor = estimate.parallelism.ici[LogicalAxis::kTensor];
  const double limit = estimate.thresholds.tensor_degree_limit.value_or(0);
  if (limit <= 0 || static_cast<double>(tensor) <= limit || tensor % 2 != 0) return;
  if (context.shares.tensor_traffic < kWorthSaying) return;
  const TensorChange change = LessTensor(estimate.parallelism);
  if (!change.possible || !IsLegalFor(context.job, DivisorsOf(*context.job.model), change.parallelism)) return;
  // Half the tensor degree moves half the activations of a chip.
  ideas.push_back({AdviceKind::kReduceTensor, 1 - context.shares.tensor_traffic / 2, 0, tensor / 2, limit});
}

void BatchPerSlice(const AdviceContext& context, Ideas& ideas) {
  const Thresholds& thresholds = context.estimate.thresholds;
  const double needed = thresholds.dcn_tokens_per_slice.value_or(0);
  if (context.job.slice.slice_count < 2 || thresholds.tokens_per_slice >= needed) return;
  if (context.shares.dcn < kWorthSaying) return;
  const double factor = std::ceil(needed / thresholds.tokens_per_slice);
  ideas.push_back({AdviceKind::kLargerBatchPerSlice, 1, 0, static_cast<int64_t>(std::min(1e9, factor)), needed});
}

// ---- The pipeline.

// Less idle time at the same work. `left`: share of the bubble that stays.
void AddBubble(const AdviceContext& context, AdviceKind kind, double left, int64_t number, Ideas& ideas) {
  const double bubble = context.shares.bubble;
  const double ratio = 1 - bubble * (1 - left);
  ideas.push_back({kind, ratio, 0, number, bubble * left / ratio});
}

void FillPipeline(const AdviceContext& context, Ideas& ideas) {
  const TrainingEstimate& estimate = context.estimate;
  if (context.shares.bubble < kWorthSaying) return;
  const Parallelism& parallelism = estimate.parallelism;
  const int64_t stages = Degree(parallelism, LogicalAxis::kPipeline);
  const int64_t microbatches = estimate.microbatch_count;
  if (estimate.microbatch_size > 1 && microbatches * estimate.microbatch_size <= kMaxMicrobatches) {
    AddBubble(context, AdviceKind::kMoreMicrobatches, 1 / static_cast<double>(estimate.microbatch_size),
              microbatches * estimate.microbatch_size, ideas);
    return;
  }
  if (estimate.gradient_accumulation > 1 && microbatches * estimate.gradient_accumulation <= kMaxMicrobatches &&
      parallelism.schedule != PipelineSchedule::kGpipe) {
    AddBubble(context, AdviceKind::kMergeAccumulation, 1.0 / estimate.gradient_accumulation,
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
    AddBubble(context, AdviceKind::kInterleave, BubbleTime(shape, {}) / bubble, 2, ideas);
    return;
  }
  shape.schedule = PipelineSchedule::kZeroBubble;
  AddBubble(context, AdviceKind::kZeroBubble, BubbleTime(shape, {}) / bubble, 0, ideas);
}

// ---- Memory.

void KeepMore(const AdviceContext& context, Ideas& ideas) {
  const TrainingEstimate& estimate = context.estimate;
  const TrainingWorkload& workload = context.job.workload;
  // Unset policies are chosen so already.
  if (!workload.remat_policy || context.shares.recompute < kWorthSaying) return;
  if (estimate.memory.headroom_bytes <= 0 || estimate.memory.activations_bytes <= 0) return;
  const KeepingMore more = CheapestPolicyWithin(context.job, estimate);
  if (!more.found) return;
  ideas.push_back({AdviceKind::kKeepMore, 1 - context.shares.recompute * (1 - more.recompute_ratio), more.added_bytes,
                   static_cast<int64_t>(more.policy), context.shares.recompute});
}

void LessAccumulation(const AdviceContext& context, Ideas& ideas) {
  const TrainingEstimate& estimate = context.estimate;
  const MemoryUse& memory = estimate.memory;
  const bool asked = context.job.workload.gradient_accumulation.value_or(1) > 1;
  if (!asked || estimate.gradient_accumulation % 2 != 0 || context.shares.weights_traffic < kWorthSaying) return;
  // Twice the microbatch keeps and computes with twice as much.
  const int64_t added = memory.activations_bytes + memory.workspace_bytes + memory.logits_bytes + memory.buffers_bytes;
  if (added > memory.headroom_bytes) return;
  ideas.push_back({AdviceKind::kLessAccumulation, 1 - context.shares.weights_traffic / 2, static_cast<double>(added),
                   estimate.gradient_accumulation / 2, context.shares.weights_traffic});
}

void ShardOptimizer(const AdviceContext& context, Ideas& ideas) {
  const TrainingEstimate& estimate = context.estimate;
  const MemoryUse& memory = estimate.memory;
  const int64_t data = Degree(estimate.parallelism, LogicalAxis::kData);
  if (data < 2 || estimate.parallelism.data_zero_stage != ZeroStage::k0) return;
  const double freed = static_cast<double>(memory.optimizer_bytes) * (1 - 1 / static_cast<double>(data));
  // Room that nothing asks for is no reason.
  const bool tight = memory.headroom_bytes < 0 || context.shares.recompute >= kWorthSaying;
  if (!tight || freed < kWorthSaying * static_cast<double>(memory.capacity_bytes)) return;
  ideas.push_back({AdviceKind::kShardOptimizer, 1, -freed, data, 0});
}

// ---- The rest.

void LowerPrecision(const AdviceContext& context, Ideas& ideas) {
  const TrainingJob& job = context.job;
  const hardware::AcceleratorSpec& chip = job.slice.accelerator;
  const hardware::DataType own = job.workload.precision.compute;
  if (hardware::BytesPerElement(own) < 2) return;
  const double rate = chip.MatmulRate(own).value_or(0);
  if (rate <= 0 || context.shares.low_precision_matmuls < kWorthSaying) return;
  AdviceIdea best{AdviceKind::kLowerPrecision};
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

void FasterCheckpoints(const AdviceContext& context, Ideas& ideas) {
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
  ideas.push_back({AdviceKind::kFasterCheckpoints, 1, 0, 0, ratio});
}

void LargerMicrobatches(const AdviceContext& context, Ideas& ideas) {
  const TrainingEstimate& estimate = context.estimate;
  const int64_t rounds = int64_t{estimate.gradient_accumulation} * estimate.microbatch_count;
  if (context.shares.host < 0.1 || rounds < 2) return;
  ideas.push_back({AdviceKind::kLargerMicrobatches, 1 - context.shares.host / 2, 0, rounds, context.shares.host});
}

// Useful FLOPs at the chips' peak over the expected step; at most 1.
double ComputeFloorRatio(const TrainingEstimate& estimate) {
  const double peak = estimate.peak_flops_per_second_per_chip * static_cast<double>(estimate.chip_count) *
                      estimate.step_time.expected_seconds;
  return peak > 0 ? std::min(1.0, estimate.model_flops_per_step / peak) : 0;
}

}  // namespace

TensorChange MoreTensor(const Parallelism& plan, int64_t factor) {
  TensorChange change;
  for (const LogicalAxis axis : {LogicalAxis::kContext, LogicalAxis::kFsdp, LogicalAxis::kData}) {
    if (plan.ici[axis] % factor != 0) continue;
    change.parallelism = plan;
    change.parallelism.mapping.clear();
    change.parallelism.ici[axis] = static_cast<int32_t>(plan.ici[axis] / factor);
    change.parallelism.ici[LogicalAxis::kTensor] = static_cast<int32_t>(plan.ici[LogicalAxis::kTensor] * factor);
    change.other = axis;
    change.possible = true;
    break;
  }
  return change;
}

TensorChange LessTensor(const Parallelism& plan) {
  TensorChange change;
  if (plan.ici[LogicalAxis::kTensor] % 2 != 0 || plan.ici[LogicalAxis::kFsdp] > (1 << 19)) return change;
  change.parallelism = plan;
  change.parallelism.mapping.clear();
  change.parallelism.ici[LogicalAxis::kTensor] /= 2;
  change.parallelism.ici[LogicalAxis::kFsdp] *= 2;
  change.possible = true;
  return change;
}

void Advise(const TrainingJob& job, TrainingEstimate& estimate) {
  estimate.bottleneck.sentence = ExplainBottleneck(job, estimate);
  estimate.shortfall = DescribeShortfall(job, estimate);
  estimate.advice.clear();
  if (estimate.outcome == Outcome::kNoLegalPlan) return;

  const AdviceContext context = {job, estimate, SharesOf(estimate)};
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
      ideas.push_back({AdviceKind::kIdleChips, 1, 0, 0,
                       static_cast<double>(estimate.idle_chip_count) / static_cast<double>(estimate.chip_count)});
    }
  }
  // Nothing but other number formats makes a step shorter than its FLOPs at peak.
  const double floor_ratio = ComputeFloorRatio(estimate);
  for (AdviceIdea& idea : ideas) {
    if (idea.kind != AdviceKind::kLowerPrecision) idea.step_time_ratio = std::max(idea.step_time_ratio, floor_ratio);
  }
  std::stable_sort(ideas.begin(), ideas.end(),
                   [](const AdviceIdea& a, const AdviceIdea& b) { return a.step_time_ratio < b.step_time_ratio; });
  const size_t count = std::min<size_t>(ideas.size(), kMaxAdvice);
  estimate.advice.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    Advice advice = WordIdea(context, ideas[i]);
    // What is changed of a plan that was found here means the rest of it too.
    if (!job.parallelism) CompletePlan(estimate.parallelism, advice.changes);
    estimate.advice.push_back(std::move(advice));
  }
}

}  // namespace sliceplan::planner
