#include "server/planner/training_memory.h"

#include <algorithm>
#include <cmath>

#include "server/planner/host_memory.h"
#include "server/planner/optimizer_state.h"
#include "server/planner/pipeline_schedule.h"

namespace sliceplan::planner {
namespace {

using hardware::BytesPerElement;

// Without a profile: logits and their gradient in 16 bits, the fp32 softmax between them fused away.
constexpr double kLogitBytes = 2 + 2;
// Larger than any real chip's memory by far; keeps sums of absurd requests inside int64.
constexpr double kMaxBytes = 4e18;

int64_t ToBytes(double bytes) { return static_cast<int64_t>(std::ceil(std::min(bytes, kMaxBytes))); }

// Parameters of one stage on one chip before FSDP, and the largest and per-microbatch parts of its layers.
struct StageSums {
  double dense = 0;
  double expert = 0;
  double saved = 0;            // per microbatch
  double largest_weights = 0;  // elements of one layer gathered
  double largest_dense_weights = 0;
  double largest_intermediate = 0;
  double largest_collective = 0;
  double largest_scores = 0;  // query-key pairs that are in memory
};

StageSums SumStage(const StepLoad& load, const StageSplit& stages, int32_t stage) {
  StageSums sums;
  const auto add = [&](const LayerLoad& layer, double count) {
    if (count <= 0) return;
    sums.dense += count * layer.dense_parameter_count;
    sums.expert += count * layer.expert_parameter_count;
    sums.saved += count * layer.saved_bytes;
    sums.largest_weights = std::max(sums.largest_weights, layer.dense_parameter_count + layer.expert_parameter_count);
    sums.largest_dense_weights = std::max(sums.largest_dense_weights, layer.dense_parameter_count);
    sums.largest_intermediate = std::max(sums.largest_intermediate, layer.intermediate_bytes);
    sums.largest_scores = std::max(sums.largest_scores, layer.attention_score_bytes);
    sums.largest_collective =
        std::max({sums.largest_collective, layer.tensor_bytes, layer.context_bytes, layer.permute_bytes});
  };
  const auto counts = stages.OfStage(stage);
  for (size_t kind = 0; kind < counts.size(); ++kind) add(load.layers[kind], counts[kind]);
  if (stage == 0) sums.dense += load.edge.embedding_parameter_count;
  if (stage == stages.stage_count - 1) {
    add(load.mtp, load.mtp_layer_count);
    sums.dense += load.edge.head_parameter_count;
  }
  return sums;
}

}  // namespace

MemoryUse StageMemory(const TrainingJob& job, const StepPlan& plan, const StepLoad& load, const StageSplit& stages,
                      int32_t stage) {
  const TrainingWorkload& workload = job.workload;
  const TrainingPrecision& precision = workload.precision;
  const bool calibrated = job.mode == EstimationMode::kCalibrated && job.profile != nullptr;
  const WeightSharding sharding =
      ShardingOf(plan.parallelism, calibrated && job.profile->expert_axis_shards_dense_weights);
  const StageSums sums = SumStage(load, stages, stage);
  const bool last = stage == stages.stage_count - 1;

  const double parameters =
      BytesPerElement(precision.parameters) * (sums.dense / static_cast<double>(sharding.dense_shard_count) +
                                               sums.expert / static_cast<double>(sharding.shard_count));
  const double gradients =
      BytesPerElement(precision.gradients) * (sums.dense / static_cast<double>(sharding.gradient_shard_count) +
                                              sums.expert / static_cast<double>(sharding.expert_gradient_shard_count));
  const double state_bytes = MatrixStateBytes(workload);
  const double tables =
      (stage == 0 ? load.edge.embedding_parameter_count : 0) + (last ? load.edge.head_parameter_count : 0);
  const double optimizer =
      workload.optimizer_offload
          ? 0
          : state_bytes * (sums.dense / static_cast<double>(sharding.optimizer_shard_count) +
                           sums.expert / static_cast<double>(sharding.expert_optimizer_shard_count)) +
                (TableStateBytes(workload) - state_bytes) * tables /
                    static_cast<double>(sharding.optimizer_shard_count);
  const PipelineShape schedule = {plan.parallelism.schedule, stages.stage_count, plan.microbatch_count,
                                  plan.parallelism.virtual_stage_count};
  const double activations = sums.saved * MicrobatchesInFlight(schedule, stage);
  // Every device of a chip holds its own copy of the gathered layer.
  const double devices = job.slice.accelerator.devices_per_chip;
  const bool sharded = sharding.dense_shard_count > 1;
  const bool gathers = sharded || precision.parameters != precision.compute;
  const double gathered_layers = calibrated ? job.profile->gathered_layer_count : 1;
  const double gathered =
      gathers ? (sharded ? devices * gathered_layers : 1) * load.wide_bytes_per_element * sums.largest_weights : 0;
  const double logit_bytes = calibrated ? job.profile->logits_memory_bytes_per_element : kLogitBytes;
  const double logits =
      last ? logit_bytes * load.edge.logits_element_count / std::max(1, workload.logits_chunk_count) : 0;
  const double head = last && sharded ? devices * load.wide_bytes_per_element * load.edge.head_weight_count : 0;
  // Where the matmul adds into the gradient, autograd still hands on a gradient of the weight's shape that nobody
  // reads, one per shape: those of a layer, and of one of its experts, which is small.
  const double unread_gradients =
      calibrated && job.profile->fused_gradient_accumulation
          ? load.wide_bytes_per_element * (sums.largest_dense_weights + (last ? load.edge.head_weight_count : 0))
          : 0;
  const double workspace = sums.largest_intermediate + unread_gradients;
  const double buffers = sums.largest_collective + (stages.stage_count > 1 ? 2 * load.permute_bytes : 0);

  const double resident = parameters + optimizer;
  const double loss_moment = resident + gradients + activations + logits + head + unread_gradients + buffers;
  const double backward_moment = resident + gradients + activations + gathered + workspace + buffers;
  // Fused and multi-tensor optimizers, and XLA's fusions, update tensor by tensor in place: no second copy of
  // gradients.
  const double update_moment = resident + gradients;

  MemoryUse use;
  use.stage = stage;
  use.parameters_bytes = ToBytes(parameters);
  use.gradients_bytes = ToBytes(gradients);
  use.optimizer_bytes = ToBytes(optimizer);
  use.activations_bytes = ToBytes(activations);
  use.gathered_weights_bytes = ToBytes(std::max(gathered, head));
  use.workspace_bytes = ToBytes(workspace);
  use.attention_score_bytes = ToBytes(hardware::BytesPerElement(hardware::DataType::kFp32) * sums.largest_scores);
  use.logits_bytes = ToBytes(logits);
  use.buffers_bytes = ToBytes(buffers);
  use.capacity_bytes = job.slice.accelerator.AllocatableBytes().value_or(0);
  double reserve = 0;
  if (calibrated) {
    reserve =
        job.profile->reserved_hbm_bytes + job.profile->reserved_hbm_ratio * static_cast<double>(use.capacity_bytes);
  }
  use.reserve_bytes = ToBytes(reserve);
  const double peak = std::max({loss_moment, backward_moment, update_moment});
  use.worst_moment = peak == backward_moment ? MemoryMoment::kLayerBackward
                     : peak == loss_moment   ? MemoryMoment::kLoss
                                             : MemoryMoment::kOptimizerUpdate;
  use.used_bytes = ToBytes(peak + reserve);
  use.headroom_bytes = use.capacity_bytes - use.used_bytes;
  return use;
}

MemoryUse FullestStageMemory(const TrainingJob& job, const StepPlan& plan, const StepLoad& load,
                             const StageSplit& stages) {
  const TrainingWorkload& workload = job.workload;
  const bool offloads =
      workload.optimizer_offload || workload.activation_offload || workload.remat_policy == RematPolicy::kCustom;
  const bool host_limits = offloads && job.slice.host_memory_bytes.has_value();
  const auto of_stage = [&](int32_t stage) {
    MemoryUse use = StageMemory(job, plan, load, stages, stage);
    if (host_limits) SetHostMemory(job, plan, load, stages, use);
    return use;
  };
  MemoryUse fullest = of_stage(0);
  for (int32_t stage = 1; stage < stages.stage_count; ++stage) {
    // Of stages with the same layers the first holds the most microbatches.
    const bool last = stage == stages.stage_count - 1;
    if (stage > 1 && !last && stages.OfStage(stage) == stages.OfStage(stage - 1)) continue;
    const MemoryUse use = of_stage(stage);
    if (SlackBytes(use) < SlackBytes(fullest)) fullest = use;
  }
  return fullest;
}

}  // namespace sliceplan::planner
