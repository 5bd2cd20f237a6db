#include "server/planner/host_memory.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "server/planner/optimizer_state.h"
#include "server/planner/pipeline_schedule.h"
#include "server/planner/plan_laws.h"

namespace sliceplan::planner {
namespace {

// Far above any host; keeps absurd requests inside int64.
constexpr double kMaxBytes = 4e18;

}  // namespace

void SetHostMemory(const TrainingJob& job, const StepPlan& plan, const StepLoad& load, const StageSplit& stages,
                   MemoryUse& use) {
  const bool first = use.stage == 0;
  const bool last = use.stage == stages.stage_count - 1;
  double dense = 0, expert = 0, offloaded = 0;
  const auto add = [&](const LayerLoad& layer, double count) {
    dense += count * layer.dense_parameter_count;
    expert += count * layer.expert_parameter_count;
    offloaded += count * layer.offloaded_bytes;
  };
  const auto counts = stages.OfStage(use.stage);
  for (size_t kind = 0; kind < counts.size(); ++kind) add(load.layers[kind], counts[kind]);
  if (last) add(load.mtp, load.mtp_layer_count);
  const double tables = (first ? load.edge.embedding_parameter_count : 0) + (last ? load.edge.head_parameter_count : 0);

  double bytes = 0;
  if (offloaded > 0) {
    const PipelineShape schedule = {plan.parallelism.schedule, stages.stage_count, plan.microbatch_count,
                                    plan.parallelism.virtual_stage_count};
    bytes += offloaded * MicrobatchesInFlight(schedule, use.stage);
  }
  if (job.workload.optimizer_offload) {
    const bool calibrated = job.mode == EstimationMode::kCalibrated && job.profile != nullptr;
    const WeightSharding sharding =
        ShardingOf(plan.parallelism, calibrated && job.profile->expert_axis_shards_dense_weights);
    const double dense_shards = static_cast<double>(sharding.optimizer_shard_count);
    const double expert_shards = static_cast<double>(sharding.expert_optimizer_shard_count);
    bytes += MatrixStateBytes(job.workload) * (dense / dense_shards + expert / expert_shards) +
             TableStateBytes(job.workload) * tables / dense_shards;
  }
  use.host_bytes = static_cast<int64_t>(std::ceil(std::min(bytes, kMaxBytes)));
  if (job.slice.host_memory_bytes && job.slice.chips_per_host > 0) {
    use.host_capacity_bytes = *job.slice.host_memory_bytes / job.slice.chips_per_host;
  }
}

}  // namespace sliceplan::planner
