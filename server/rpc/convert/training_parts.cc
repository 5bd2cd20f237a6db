#include "server/rpc/convert/training_parts.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/planner/budget.h"
#include "server/planner/words.h"
#include "server/rpc/convert/enums.h"

namespace sliceplan::rpc {
namespace {

constexpr absl::string_view MomentWords(planner::MemoryMoment moment) {
  switch (moment) {
    case planner::MemoryMoment::kLoss: return "backward pass of the output head";
    case planner::MemoryMoment::kLayerBackward: return "backward pass of a layer";
    case planner::MemoryMoment::kOptimizerUpdate: return "optimizer update";
  }
  return "";
}

// "512 tokens per chip: data parallelism or FSDP alone needs 850 (not met); FSDP with tensor needs 113 (met)."
std::string ThresholdWords(const planner::Thresholds& thresholds) {
  std::string sentence = absl::StrCat(planner::NumberWords(thresholds.tokens_per_chip), " tokens per chip");
  const char* separator = ": ";
  const auto add = [&](const std::optional<double>& needed, double own, absl::string_view strategy) {
    if (!needed.has_value()) return;
    absl::StrAppend(&sentence, separator, strategy, " needs ", planner::NumberWords(*needed),
                    own >= *needed ? " (met)" : " (not met)");
    separator = "; ";
  };
  add(thresholds.data_tokens_per_chip, thresholds.tokens_per_chip, "data parallelism or FSDP alone");
  add(thresholds.fsdp_tensor_tokens_per_chip, thresholds.tokens_per_chip, "FSDP with tensor parallelism");
  add(thresholds.dcn_tokens_per_slice, thresholds.tokens_per_slice,
      absl::StrCat("data parallelism between slices, with ", planner::NumberWords(thresholds.tokens_per_slice),
                   " tokens per slice,"));
  return absl::StrCat(sentence, ".");
}

void AddChanges(const std::vector<planner::FieldChange>& changes,
                google::protobuf::RepeatedPtrField<v1::FieldChange>* proto) {
  for (const planner::FieldChange& ours : changes) {
    v1::FieldChange* const change = proto->Add();
    change->set_field(ours.field);
    change->set_value(ours.value);
  }
}

}  // namespace

void ToProto(const planner::StepTime& time, v1::StepTime* proto) {
  proto->set_roofline_lower_seconds(time.roofline_lower_seconds);
  proto->set_roofline_upper_seconds(time.roofline_upper_seconds);
  proto->set_expected_seconds(time.expected_seconds);
  if (time.p05_seconds.has_value()) proto->set_p05_seconds(*time.p05_seconds);
  if (time.p95_seconds.has_value()) proto->set_p95_seconds(*time.p95_seconds);
  proto->set_assumed(time.assumed);
}

void ToProto(const planner::Fix& fix, v1::Fix* proto) {
  proto->set_code(fix.code);
  proto->set_sentence(fix.sentence);
  AddChanges(fix.changes, proto->mutable_changes());
  if (fix.expected_seconds.has_value()) proto->set_expected_seconds(*fix.expected_seconds);
}

void ToProto(const planner::MemoryUse& use, int32_t layer_count, v1::TrainingMemory* proto) {
  proto->set_used_bytes(use.used_bytes);
  proto->set_capacity_bytes(use.capacity_bytes);
  proto->set_parameters_bytes(use.parameters_bytes);
  proto->set_gradients_bytes(use.gradients_bytes);
  proto->set_optimizer_bytes(use.optimizer_bytes);
  proto->set_activations_bytes(use.activations_bytes);
  proto->set_logits_bytes(use.logits_bytes);
  proto->set_gathered_weights_bytes(use.gathered_weights_bytes);
  proto->set_workspace_bytes(use.workspace_bytes);
  proto->set_buffers_bytes(use.buffers_bytes);
  proto->set_reserve_bytes(use.reserve_bytes);
  proto->set_headroom_bytes(use.headroom_bytes);
  proto->set_host_bytes(use.host_bytes);
  proto->set_stage_index(use.stage);
  proto->set_layer_count(layer_count);
  const absl::string_view moment = MomentWords(use.worst_moment);
  proto->set_moment(moment.data(), moment.size());
  const int64_t classes = use.parameters_bytes + use.gradients_bytes + use.optimizer_bytes + use.activations_bytes +
                          use.logits_bytes + use.gathered_weights_bytes + use.workspace_bytes + use.buffers_bytes +
                          use.reserve_bytes;
  proto->set_not_coexisting_bytes(classes - use.used_bytes);
  proto->set_attention_score_bytes(use.attention_score_bytes);
}

void ToProto(const planner::Thresholds& thresholds, v1::TrainingThresholds* proto) {
  proto->set_tokens_per_chip(thresholds.tokens_per_chip);
  proto->set_tokens_per_slice(thresholds.tokens_per_slice);
  if (thresholds.data_tokens_per_chip) proto->set_data_tokens_per_chip(*thresholds.data_tokens_per_chip);
  if (thresholds.fsdp_tensor_tokens_per_chip) {
    proto->set_fsdp_tensor_tokens_per_chip(*thresholds.fsdp_tensor_tokens_per_chip);
  }
  if (thresholds.tensor_degree_limit) proto->set_tensor_degree_limit(*thresholds.tensor_degree_limit);
  if (thresholds.dcn_tokens_per_slice) proto->set_dcn_tokens_per_slice(*thresholds.dcn_tokens_per_slice);
  if (thresholds.fsdp_tokens_per_chip) proto->set_own_split_tokens_per_chip(*thresholds.fsdp_tokens_per_chip);
  if (thresholds.optimal_fsdp_degree) proto->set_optimal_fsdp_degree(*thresholds.optimal_fsdp_degree);
  proto->set_sentence(ThresholdWords(thresholds));
}

void ToProto(const planner::Bottleneck& bottleneck, v1::Bottleneck* proto) {
  proto->set_resource(ToProto(kStepResources, bottleneck.resource));
  proto->set_share_ratio(bottleneck.share_ratio);
  proto->set_next_resource(ToProto(kStepResources, bottleneck.next_resource));
  proto->set_next_share_ratio(bottleneck.next_share_ratio);
  if (bottleneck.next_share_ratio > 0) {
    proto->set_next_speedup_ratio(bottleneck.share_ratio / bottleneck.next_share_ratio);
  }
  proto->set_sentence(bottleneck.sentence);
}

void ToProto(const planner::Padding& padding, v1::Padding* proto) {
  proto->set_what(padding.what.data(), padding.what.size());
  proto->set_original_count(padding.original_count);
  proto->set_padded_count(padding.padded_count);
  proto->set_sentence(padding.sentence);
}

void ToProto(const planner::Cost& cost, int64_t chip_count, v1::TrainingCost* proto) {
  if (cost.total_usd.has_value()) proto->set_total_usd(*cost.total_usd);
  proto->set_usd_per_chip_hour(cost.usd_per_chip_hour);
  if (cost.usd_per_million_tokens.has_value()) proto->set_usd_per_million_tokens(*cost.usd_per_million_tokens);
  proto->set_usd_per_hour(cost.usd_per_chip_hour * static_cast<double>(chip_count));
  proto->set_usd_per_step(cost.usd_per_step);
}

void ToProto(const planner::Energy& energy, const hardware::AcceleratorSpec& accelerator, v1::Energy* proto) {
  proto->set_watts_per_chip(accelerator.mean_watts.value_or(accelerator.tdp_watts.value_or(0)));
  proto->set_joules_per_step(energy.joules_per_step);
  if (energy.total_kilowatt_hours.has_value()) proto->set_total_kilowatt_hours(*energy.total_kilowatt_hours);
  proto->set_sentence(accelerator.mean_watts.has_value()
                          ? "The mean power of a chip under load; hosts, network and cooling are left out."
                          : "The thermal design power of a chip; hosts, network and cooling are left out.");
}

void ToProto(const planner::Advice& advice, double expected_seconds, v1::Advice* proto) {
  proto->set_code(advice.code);
  proto->set_sentence(advice.sentence);
  AddChanges(advice.changes, proto->mutable_changes());
  if (advice.step_time_ratio != 1 && expected_seconds > 0) {
    proto->set_expected_seconds(expected_seconds * advice.step_time_ratio);
    proto->set_time_change_ratio(advice.step_time_ratio - 1);
  }
  if (advice.cost_ratio != 1) proto->set_cost_change_ratio(advice.cost_ratio - 1);
  if (advice.memory_bytes != 0) proto->set_memory_change_bytes(static_cast<double>(advice.memory_bytes));
}

void AddBreakdown(const std::vector<std::string>& group_names, const std::vector<planner::BreakdownEntry>& breakdown,
                  google::protobuf::RepeatedPtrField<v1::BreakdownEntry>* proto) {
  proto->Reserve(static_cast<int>(breakdown.size()));
  for (const planner::BreakdownEntry& ours : breakdown) {
    if (ours.seconds == 0) continue;
    v1::BreakdownEntry* const entry = proto->Add();
    const auto group = static_cast<size_t>(ours.layer_group);
    if (ours.layer_group >= 0 && group < group_names.size()) entry->set_layer_group(group_names[group]);
    entry->set_component(ToProto(kComponents, ours.component));
    entry->set_resource(ToProto(kStepResources, ours.resource));
    entry->set_phase(ToProto(kPhases, ours.phase));
    entry->set_seconds(ours.seconds);
    if (ours.axis.has_value()) entry->set_axis(ToProto(kParallelismAxes, *ours.axis));
  }
}

void SetRun(const planner::TrainingJob& job, const planner::TrainingEstimate& estimate, v1::TrainingEstimate* proto) {
  if (estimate.step_time.expected_seconds <= 0) return;
  const planner::Goodput& goodput = estimate.goodput;
  proto->set_goodput_ratio(goodput.ratio);
  if (goodput.wall_seconds.has_value()) proto->set_wall_seconds(*goodput.wall_seconds);
  if (goodput.optimal_checkpoint_interval_seconds.has_value()) {
    proto->set_optimal_checkpoint_interval_seconds(*goodput.optimal_checkpoint_interval_seconds);
  }
  const bool breaks =
      job.reliability.mean_seconds_between_failures_per_chip.has_value() || job.reliability.preemptions_per_hour > 0;
  if (!breaks) return;
  v1::Goodput* const parts = proto->mutable_goodput();
  parts->set_lost_work_ratio(goodput.lost_work_seconds_per_day / planner::kSecondsPerDay);
  parts->set_checkpoint_ratio(goodput.checkpoint_seconds_per_day / planner::kSecondsPerDay);
  parts->set_restart_ratio(goodput.restart_seconds_per_day / planner::kSecondsPerDay);
  parts->set_interruptions_per_day(goodput.failures_per_day);
  parts->set_checkpoint_interval_seconds(goodput.checkpoint_interval_seconds.value_or(0));
}

int32_t LayersOfStage(const planner::TrainingEstimate& estimate, int32_t stage) {
  const int32_t stages = std::max(estimate.parallelism.Degree(planner::LogicalAxis::kPipeline), 1);
  int32_t layers = 0;
  // Chunks are listed in the order that they run: stage 0, 1, ..., then the next round.
  for (size_t chunk = static_cast<size_t>(stage); chunk < estimate.layers_per_stage.size();
       chunk += static_cast<size_t>(stages)) {
    layers += estimate.layers_per_stage[chunk];
  }
  return layers;
}

}  // namespace sliceplan::rpc
