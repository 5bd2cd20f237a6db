#include <algorithm>

#include "server/planner/step_time.h"

namespace sliceplan::planner {
namespace {

using transformer::Component;

// Collects parts, adding up equal ones.
class Parts {
 public:
  void Add(int32_t layer_group, Component component, StepResource resource, Phase phase, double seconds,
           std::optional<LogicalAxis> axis = std::nullopt) {
    if (seconds <= 0) return;
    for (BreakdownEntry& entry : entries_) {
      if (entry.layer_group == layer_group && entry.component == component && entry.resource == resource &&
          entry.phase == phase && entry.axis == axis) {
        entry.seconds += seconds;
        return;
      }
    }
    entries_.push_back(BreakdownEntry{layer_group, component, resource, phase, axis, seconds});
  }

  std::vector<BreakdownEntry> Take() {
    std::stable_sort(entries_.begin(), entries_.end(), [](const BreakdownEntry& a, const BreakdownEntry& b) {
      return a.layer_group != b.layer_group ? a.layer_group > b.layer_group : a.seconds > b.seconds;
    });
    return std::move(entries_);
  }

  void Reserve(size_t count) { entries_.reserve(count); }

 private:
  std::vector<BreakdownEntry> entries_;
};

void AddPhases(Parts& parts, int32_t group, Component component, StepResource resource, const PhaseSeconds& seconds,
               double count) {
  parts.Add(group, component, resource, Phase::kForward, count * seconds.forward);
  parts.Add(group, component, resource, Phase::kBackward, count * seconds.backward);
  parts.Add(group, component, resource, Phase::kRecompute, count * seconds.recompute);
}

Component ComponentOf(const GroupLoad& group, Component fallback) {
  return group.operand_bytes > 0 || group.kernel_matmul_flops > 0 ? group.component : fallback;
}

void AddBoundLayer(Parts& parts, const LayerLoad& load, const LayerTime& time, Component fallback, double count) {
  for (size_t g = 0; g < kOpGroupCount; ++g) {
    const Component component = g == static_cast<size_t>(OpGroup::kScores) ? Component::kAttentionScores
                                                                           : ComponentOf(load.groups[g], fallback);
    const BoundPart& forward = time.forward_bound[g];
    const BoundPart& backward = time.backward_bound[g];
    parts.Add(load.layer_group, component, forward.resource, Phase::kForward, count * forward.seconds, forward.axis);
    parts.Add(load.layer_group, component, backward.resource, Phase::kBackward, count * backward.seconds,
              backward.axis);
  }
}

void AddExpectedLayer(Parts& parts, const LayerLoad& load, const LayerTime& time, const PlanLaws& laws,
                      Component fallback, double count) {
  const int32_t group = load.layer_group;
  for (size_t g = 0; g < kOpGroupCount; ++g) {
    const Component component = g == static_cast<size_t>(OpGroup::kScores) ? Component::kAttentionScores
                                                                           : ComponentOf(load.groups[g], fallback);
    AddPhases(parts, group, component, StepResource::kMatrixUnit, time.matrix[g], count);
    AddPhases(parts, group, component, StepResource::kHbm, time.hbm[g], count);
  }
  AddPhases(parts, group, Component::kAttentionScores, StepResource::kMatrixUnit, time.attention, count);
  parts.Add(group, Component::kOther, StepResource::kHbm, Phase::kForward, count * time.gathered_weights_seconds,
            LogicalAxis::kFsdp);
  parts.Add(group, Component::kOther, StepResource::kHost, Phase::kHost, count * time.launch_seconds);
  parts.Add(group, Component::kOther, ResourceOf(laws.tensor_gather.slowest_tier), Phase::kBackward,
            count * time.tensor_exposed_seconds, LogicalAxis::kTensor);
  parts.Add(group, Component::kAttentionScores, ResourceOf(laws.context_gather.slowest_tier), Phase::kBackward,
            count * time.context_exposed_seconds, LogicalAxis::kContext);
  parts.Add(group, Component::kFeedForward, ResourceOf(laws.expert_exchange.slowest_tier), Phase::kBackward,
            count * time.expert_exposed_seconds, LogicalAxis::kExpert);
}

}  // namespace

std::vector<BreakdownEntry> Breakdown(const TrainingJob& job, const StepPlan& plan, const StepLoad& load,
                                      const PlanLaws& laws, const StageSplit& stages, const StepDetails& details,
                                      const StepTimes& times) {
  const bool expected = job.mode == EstimationMode::kCalibrated && job.profile != nullptr;
  const double microbatches = static_cast<double>(plan.MicrobatchesPerStep());
  const int32_t index = times.slowest_stage;
  const StageTime& stage = details.stages[static_cast<size_t>(index)];
  const auto counts = stages.OfStage(index);
  const bool last = index == stages.stage_count - 1;
  Parts parts;
  parts.Reserve(24 * (counts.size() + 1));

  const auto add_layer = [&](const LayerLoad& layer, const LayerTime& time, Component fallback, double count) {
    if (count <= 0) return;
    if (expected) {
      AddExpectedLayer(parts, layer, time, laws, fallback, count * microbatches);
    } else {
      AddBoundLayer(parts, layer, time, fallback, count * microbatches);
    }
  };
  for (size_t kind = 0; kind < counts.size(); ++kind) {
    add_layer(load.layers[kind], details.layers[kind], Component::kOther, counts[kind]);
  }
  if (last) add_layer(load.mtp, details.mtp, Component::kMtp, load.mtp_layer_count);

  if (expected) {
    if (index == 0) {
      parts.Add(-1, Component::kEmbedding, StepResource::kHbm, Phase::kForward,
                microbatches * details.embedding_seconds);
    }
    if (last) {
      AddPhases(parts, -1, Component::kOutputHead, StepResource::kMatrixUnit, details.head, microbatches);
      parts.Add(-1, Component::kOutputHead, StepResource::kHbm, Phase::kBackward,
                microbatches * details.logits_seconds);
    }
    parts.Add(-1, Component::kOther, StepResource::kHost, Phase::kHost, microbatches * stage.host_extra_seconds);
    parts.Add(-1, Component::kOther, ResourceOf(laws.weights_gather.slowest_tier), Phase::kForward,
              microbatches * stage.weights_exposed_seconds, LogicalAxis::kFsdp);
    parts.Add(-1, Component::kOther, ResourceOf(laws.dense_gradient_reduce.slowest_tier), Phase::kGradientReduction,
              stage.gradient_exposed_seconds, LogicalAxis::kData);
    parts.Add(-1, Component::kOther, StepResource::kDcn, Phase::kGradientReduction, stage.dcn_exposed_seconds,
              LogicalAxis::kData);
    parts.Add(-1, Component::kOther, StepResource::kDcn, Phase::kGradientReduction, times.jitter_seconds,
              LogicalAxis::kData);
    parts.Add(-1, Component::kOther, StepResource::kHbm, Phase::kGradientReduction, stage.accumulation_seconds);
    parts.Add(-1, Component::kOther, StepResource::kHbm, Phase::kOptimizer, stage.optimizer_seconds);
    parts.Add(-1, Component::kOther, ResourceOf(laws.pipeline_permute.slowest_tier), Phase::kSchedule,
              times.permute_exposed_seconds, LogicalAxis::kPipeline);
    parts.Add(-1, Component::kOther, StepResource::kHost, Phase::kHost, times.raised_seconds);
  } else {
    if (index == 0) {
      parts.Add(-1, Component::kEmbedding, StepResource::kHbm, Phase::kForward,
                microbatches * details.embedding_bound.seconds);
    }
    if (last) {
      parts.Add(-1, Component::kOutputHead, details.head_bound.resource, Phase::kBackward,
                microbatches * details.head_bound.seconds, details.head_bound.axis);
    }
    parts.Add(-1, Component::kOther, ResourceOf(laws.dense_gradient_reduce.slowest_tier), Phase::kGradientReduction,
              stage.gradient_lower_seconds, LogicalAxis::kData);
    parts.Add(-1, Component::kOther, StepResource::kHbm, Phase::kOptimizer, stage.optimizer_lower_seconds);
  }
  parts.Add(-1, Component::kOther, StepResource::kBubble, Phase::kSchedule,
            times.bubble_microbatches * stage.expected_seconds, LogicalAxis::kPipeline);
  parts.Add(-1, Component::kOther, StepResource::kPcie, Phase::kHost, stage.host_transfer_seconds);
  return parts.Take();
}

}  // namespace sliceplan::planner
