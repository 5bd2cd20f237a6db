// The sentences of the advice.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/planner/advice_ideas.h"
#include "server/planner/explain.h"
#include "server/planner/remat.h"
#include "server/planner/saved_activations.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

constexpr absl::string_view IciField(LogicalAxis axis) {
  switch (axis) {
    case LogicalAxis::kData: return "parallelism.ici.data";
    case LogicalAxis::kFsdp: return "parallelism.ici.fsdp";
    case LogicalAxis::kTensor: return "parallelism.ici.tensor";
    case LogicalAxis::kContext: return "parallelism.ici.context";
    case LogicalAxis::kExpert: return "parallelism.ici.expert";
    case LogicalAxis::kPipeline: return "parallelism.ici.pipeline";
  }
  return "";
}

void Change(Advice& advice, absl::string_view field, std::string value) {
  FieldChange& change = advice.changes.emplace_back();
  change.field.assign(field.data(), field.size());
  change.value = std::move(value);
}

std::string UpTo(double step_time_ratio) {
  return absl::StrCat("at best ", PercentWords(1 - step_time_ratio), " less step time");
}

void WordTensor(const AdviceContext& context, const AdviceIdea& idea, bool up, Advice& advice) {
  const TrainingEstimate& estimate = context.estimate;
  const TensorChange change = up ? MoreTensor(estimate.parallelism, idea.number) : LessTensor(estimate.parallelism);
  const AxisDegrees& changed = change.parallelism.ici;
  const LogicalAxis other = change.other;
  const int64_t tensor = changed[LogicalAxis::kTensor];
  const std::string swap =
      absl::StrCat(CountWords(tensor), " with ", LogicalAxisName(other), " ", CountWords(changed[other]),
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
  advice.changes.reserve(2);
  Change(advice, IciField(LogicalAxis::kTensor), absl::StrCat(tensor));
  Change(advice, IciField(other), absl::StrCat(changed[other]));
}

void WordBatch(const AdviceContext& context, const AdviceIdea& idea, Advice& advice) {
  const TrainingEstimate& estimate = context.estimate;
  const double batch = static_cast<double>(context.job.workload.global_batch_size);
  const double larger = batch * static_cast<double>(idea.number);
  const bool between_slices = idea.kind == AdviceKind::kLargerBatchPerSlice;
  advice.code = between_slices ? "LARGER_BATCH_PER_SLICE" : "LARGER_BATCH";
  advice.sentence =
      between_slices ? absl::StrCat("Gradients between slices hide behind ", NumberWords(idea.value),
                                    " tokens per slice; there are ", NumberWords(estimate.thresholds.tokens_per_slice))
                     : absl::StrCat("Weights and gradients hide behind ", NumberWords(idea.value),
                                    " tokens per chip; there are ", NumberWords(estimate.thresholds.tokens_per_chip));
  absl::StrAppend(&advice.sentence, ". A batch of ", NumberWords(larger),
                  between_slices ? " sequences, or fewer slices, would do." : " sequences, or fewer chips, would do.");
  Change(advice, "workload.global_batch_size", absl::StrCat(static_cast<int64_t>(larger)));
}

void WordPipeline(const AdviceContext& context, const AdviceIdea& idea, Advice& advice) {
  const TrainingEstimate& estimate = context.estimate;
  const std::string idle = absl::StrCat("The pipeline idles ", PercentWords(context.shares.bubble), " of the step: ");
  const std::string leaves = absl::StrCat(" leave ", PercentWords(idea.value), ".");
  const std::string microbatches = absl::StrCat(idea.number);
  switch (idea.kind) {
    case AdviceKind::kMoreMicrobatches:
      advice.code = "MORE_MICROBATCHES";
      advice.sentence = absl::StrCat(idle, CountWords(idea.number), " microbatches instead of ",
                                     CountWords(estimate.microbatch_count), leaves);
      Change(advice, "parallelism.microbatch_count", microbatches);
      return;
    case AdviceKind::kMergeAccumulation:
      advice.code = "MERGE_ACCUMULATION";
      advice.sentence = absl::StrCat(idle, CountWords(idea.number), " microbatches in one pass instead of ",
                                     CountWords(estimate.gradient_accumulation), " passes of ",
                                     CountWords(estimate.microbatch_count), leaves);
      Change(advice, "workload.gradient_accumulation", "1");
      Change(advice, "parallelism.microbatch_count", microbatches);
      return;
    case AdviceKind::kInterleave:
      advice.code = "INTERLEAVE_STAGES";
      advice.sentence = absl::StrCat(idle, "2 virtual stages per stage", leaves);
      Change(advice, "parallelism.schedule", "PIPELINE_SCHEDULE_INTERLEAVED_1F1B");
      Change(advice, "parallelism.virtual_stage_count", "2");
      return;
    default:
      advice.code = "ZERO_BUBBLE_SCHEDULE";
      advice.sentence = absl::StrCat(idle, "weight gradients run in the gaps (zero-bubble schedule)", leaves);
      Change(advice, "parallelism.schedule", "PIPELINE_SCHEDULE_ZERO_BUBBLE");
  }
}

void WordMemory(const AdviceContext& context, const AdviceIdea& idea, Advice& advice) {
  const TrainingEstimate& estimate = context.estimate;
  const std::string bytes = BytesWords(std::abs(idea.memory_bytes));
  switch (idea.kind) {
    case AdviceKind::kKeepMore: {
      const RematPolicy policy = static_cast<RematPolicy>(idea.number);
      const double recompute_flops = estimate.hardware_flops_per_step - estimate.model_flops_per_step;
      advice.code = "KEEP_MORE_ACTIVATIONS";
      advice.sentence = absl::StrCat(
          "Recompute of ", FlopsWords(recompute_flops), " takes ", PercentWords(idea.value), " of the step while ",
          BytesWords(static_cast<double>(estimate.memory.headroom_bytes)), " per chip are free: policy ",
          RematPolicyName(policy), " keeps about ", bytes, " more and takes ", UpTo(idea.step_time_ratio), ".");
      Change(advice, "workload.remat_policy", RematPolicyField(policy));
      return;
    }
    case AdviceKind::kLessAccumulation:
      advice.code = "LESS_ACCUMULATION";
      advice.sentence = absl::StrCat("Weights are gathered in each of ", CountWords(estimate.gradient_accumulation),
                                     " accumulation steps, which shows for ", PercentWords(idea.value),
                                     " of the step. Half as many steps need ", bytes, " more and take ",
                                     UpTo(idea.step_time_ratio), ".");
      Change(advice, "workload.gradient_accumulation", absl::StrCat(idea.number));
      return;
    default:
      advice.code = "SHARD_OPTIMIZER_STATE";
      advice.sentence = absl::StrCat("ZeRO stage 1 spreads the optimizer state over data ", CountWords(idea.number),
                                     " and frees about ", bytes, " per chip.");
      Change(advice, "parallelism.data_zero_stage", "ZERO_STAGE_1");
  }
}

std::string DataTypeField(hardware::DataType type) {
  switch (type) {
    case hardware::DataType::kFp8: return "DATA_TYPE_FP8";
    case hardware::DataType::kInt8: return "DATA_TYPE_INT8";
    default: return "DATA_TYPE_BF16";
  }
}

void WordOther(const AdviceContext& context, const AdviceIdea& idea, Advice& advice) {
  const TrainingEstimate& estimate = context.estimate;
  switch (idea.kind) {
    case AdviceKind::kLowerPrecision: {
      const hardware::DataType type = static_cast<hardware::DataType>(idea.number);
      advice.code = "LOWER_PRECISION";
      advice.sentence =
          absl::StrCat("Matmuls take ", PercentWords(context.shares.low_precision_matmuls),
                       " of the step, and this chip runs ", hardware::DataTypeName(type), " ", NumberWords(idea.value),
                       " times as fast: ", UpTo(idea.step_time_ratio), " where the training bears it.");
      Change(advice, "workload.precision.compute", DataTypeField(type));
      return;
    }
    case AdviceKind::kIdleChips:
      advice.code = "IDLE_CHIPS";
      advice.sentence = absl::StrCat(CountWords(estimate.idle_chip_count), " of ", CountWords(estimate.chip_count),
                                     " chips are paid for and idle, ", PercentWords(idea.value),
                                     " of the cost: a smaller slice or a plan that fills this one would save it.");
      return;
    case AdviceKind::kFasterCheckpoints:
      advice.code = "FASTER_CHECKPOINTS";
      advice.sentence = absl::StrCat(
          "Failures leave a goodput of ", PercentWords(estimate.goodput.ratio), "; checkpoints written in ",
          SecondsWords(context.job.reliability.checkpoint_write_seconds / kFasterCheckpoints), " instead of ",
          SecondsWords(context.job.reliability.checkpoint_write_seconds), " would leave ", PercentWords(idea.value),
          ".");
      Change(advice, "reliability.checkpoint_write_seconds",
             absl::StrCat(context.job.reliability.checkpoint_write_seconds / kFasterCheckpoints));
      return;
    default:
      advice.code = "LARGER_MICROBATCHES";
      advice.sentence =
          absl::StrCat("The host launches ", CountWords(idea.number), " microbatches per step, which shows for ",
                       PercentWords(idea.value), " of it: half as many take ", UpTo(idea.step_time_ratio), ".");
  }
}

}  // namespace

Advice WordIdea(const AdviceContext& context, const AdviceIdea& idea) {
  Advice advice;
  advice.step_time_ratio = idea.step_time_ratio;
  advice.memory_bytes = static_cast<int64_t>(idea.memory_bytes);
  switch (idea.kind) {
    case AdviceKind::kAddTensor: WordTensor(context, idea, true, advice); break;
    case AdviceKind::kReduceTensor: WordTensor(context, idea, false, advice); break;
    case AdviceKind::kLargerBatch:
    case AdviceKind::kLargerBatchPerSlice: WordBatch(context, idea, advice); break;
    case AdviceKind::kMoreMicrobatches:
    case AdviceKind::kMergeAccumulation:
    case AdviceKind::kInterleave:
    case AdviceKind::kZeroBubble: WordPipeline(context, idea, advice); break;
    case AdviceKind::kKeepMore:
    case AdviceKind::kLessAccumulation:
    case AdviceKind::kShardOptimizer: WordMemory(context, idea, advice); break;
    case AdviceKind::kLowerPrecision:
    case AdviceKind::kIdleChips:
    case AdviceKind::kFasterCheckpoints:
    case AdviceKind::kLargerMicrobatches: WordOther(context, idea, advice); break;
  }
  return advice;
}

}  // namespace sliceplan::planner
