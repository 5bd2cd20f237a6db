#include "server/rpc/convert/job_parts.h"

#include "server/rpc/convert/ranges.h"

namespace sliceplan::rpc {
namespace {

constexpr double kMaxCheckpointInterval = 1e9;

}  // namespace

bool IsTpu(const catalog::ResolvedSlice& slice) {
  if (slice.accelerator != nullptr) return slice.accelerator->record.kind() == catalog::v1::ACCELERATOR_KIND_TPU;
  return slice.slice.accelerator.fabric == hardware::FabricKind::kTorus;
}

planner::Reliability ToReliability(const v1::Reliability& proto, const FieldPath& path, Violations& violations) {
  planner::Reliability reliability;
  if (proto.has_mean_seconds_between_failures_per_chip()) {
    reliability.mean_seconds_between_failures_per_chip = proto.mean_seconds_between_failures_per_chip();
  }
  if (proto.has_checkpoint_write_seconds()) reliability.checkpoint_write_seconds = proto.checkpoint_write_seconds();
  if (proto.has_restart_seconds()) reliability.restart_seconds = proto.restart_seconds();
  if (proto.has_preemptions_per_hour()) reliability.preemptions_per_hour = proto.preemptions_per_hour();
  if (proto.has_checkpoint_interval_seconds() &&
      CheckPositive(proto.checkpoint_interval_seconds(), kMaxCheckpointInterval,
                    FieldPath(path, "checkpoint_interval_seconds"), violations)) {
    reliability.checkpoint_interval_seconds = proto.checkpoint_interval_seconds();
  }
  return reliability;
}

std::optional<transformer::ModelOperations> EditedExperts(const v1::TrainingWorkload& workload,
                                                          const transformer::ModelOperations* operations,
                                                          const FieldPath& path, Violations& violations) {
  if (!workload.has_expert_capacity_factor() && !workload.has_expert_load_imbalance_ratio()) return std::nullopt;
  constexpr double kMaxRatio = 65536;
  bool legal = true;
  if (workload.has_expert_capacity_factor()) {
    legal &= CheckPositive(workload.expert_capacity_factor(), kMaxRatio, FieldPath(path, "expert_capacity_factor"),
                           violations);
  }
  if (workload.has_expert_load_imbalance_ratio()) {
    legal &= CheckRange(workload.expert_load_imbalance_ratio(), 1, kMaxRatio,
                        FieldPath(path, "expert_load_imbalance_ratio"), violations);
  }
  if (!legal || operations == nullptr) return std::nullopt;
  transformer::ModelOperations edited = *operations;
  const auto edit = [&](transformer::LayerOperations& layer) {
    if (layer.expert_count == 0) return;
    if (workload.has_expert_capacity_factor()) layer.capacity_factor = workload.expert_capacity_factor();
    if (workload.has_expert_load_imbalance_ratio()) {
      layer.load_imbalance_ratio = workload.expert_load_imbalance_ratio();
    }
  };
  for (transformer::LayerOperations& layer : edited.layers) edit(layer);
  edit(edited.mtp);
  return edited;
}

}  // namespace sliceplan::rpc
