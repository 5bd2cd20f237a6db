#include "server/planner/step_time.h"

#include <algorithm>
#include <cmath>

#include "server/planner/optimizer_state.h"
#include "server/planner/orthogonalisation.h"
#include "server/planner/pipeline_schedule.h"

namespace sliceplan::planner {
namespace {

using hardware::BytesPerElement;
using roofline::CollectiveLaw;
using roofline::EfficiencyProfile;
using transformer::Component;

// Everything that the stages of one plan have in common.
struct Context {
  const TrainingJob& job;
  const StepPlan& plan;
  const StepLoad& load;
  const PlanLaws& laws;
  const StageSplit& stages;
  const WeightSharding sharding;
  const LayerRates rates;
  const EfficiencyProfile* profile;  // null in roofline mode
};

double& Busy(BusySeconds& busy, StepResource resource) { return busy[static_cast<size_t>(resource)]; }

// Parameters of one stage on one chip before data, FSDP and context sharding.
struct StageParameters {
  double dense = 0;
  double expert = 0;
};

bool IsFirst(int32_t stage) { return stage == 0; }
bool IsLast(const StageSplit& stages, int32_t stage) { return stage == stages.stage_count - 1; }

StageParameters ParametersOf(const Context& context, int32_t stage) {
  StageParameters parameters;
  const auto counts = context.stages.OfStage(stage);
  for (size_t kind = 0; kind < counts.size(); ++kind) {
    parameters.dense += counts[kind] * context.load.layers[kind].dense_parameter_count;
    parameters.expert += counts[kind] * context.load.layers[kind].expert_parameter_count;
  }
  if (IsFirst(stage)) parameters.dense += context.load.edge.embedding_parameter_count;
  if (IsLast(context.stages, stage)) {
    parameters.dense += context.load.edge.head_parameter_count;
    parameters.dense += context.load.mtp_layer_count * context.load.mtp.dense_parameter_count;
    parameters.expert += context.load.mtp_layer_count * context.load.mtp.expert_parameter_count;
  }
  return parameters;
}

// Embedding lookup and output head of one microbatch: bounds, expectation and busy seconds.
void AddEmbedding(const Context& context, StepDetails& details, StageTime& stage, BusySeconds& busy) {
  const double seconds = 3 * context.load.edge.embedding_bytes / context.rates.hbm_bytes_per_second;
  details.embedding_bound = BoundPart{seconds, StepResource::kHbm, std::nullopt};
  stage.lower_seconds += seconds;
  stage.upper_seconds += seconds;
  Busy(busy, StepResource::kHbm) += seconds;
  if (context.profile == nullptr) return;
  details.embedding_seconds = seconds / context.profile->elementwise_hbm_ratio;
  stage.compute_seconds += details.embedding_seconds;
}

void AddHead(const Context& context, StepDetails& details, StageTime& stage, BusySeconds& busy) {
  const EdgeLoad& edge = context.load.edge;
  const LayerRates& rates = context.rates;
  const double passes = 1 + edge.mtp_head_passes;
  const double matrix = 3 * passes * edge.head_flops / rates.wide_flops_per_second;
  const double hbm = 3 * passes * edge.head_operand_bytes / rates.hbm_bytes_per_second;
  const double weight_bytes = context.load.wide_bytes_per_element * edge.head_weight_count;
  const double gradient_bytes = rates.gradient_bytes_per_element * edge.head_weight_count;
  const double gather = passes * (2 * rates.DenseGather(context.laws).Seconds(weight_bytes) +
                                  rates.DenseScatter(context.laws).Seconds(gradient_bytes));
  const StepResource gather_resource = ResourceOf(rates.DenseGather(context.laws).slowest_tier);
  BoundPart& bound = details.head_bound;
  bound = BoundPart{matrix, StepResource::kMatrixUnit, std::nullopt};
  if (hbm > bound.seconds) bound = BoundPart{hbm, StepResource::kHbm, std::nullopt};
  if (gather > bound.seconds) {
    bound = BoundPart{gather, gather_resource, LogicalAxis::kFsdp};
  }
  stage.lower_seconds += bound.seconds;
  stage.upper_seconds += matrix + hbm + gather;
  Busy(busy, StepResource::kMatrixUnit) += matrix;
  Busy(busy, StepResource::kHbm) += hbm;
  Busy(busy, gather_resource) += gather;
  if (context.profile == nullptr) return;
  const double forward = passes * edge.head_kernel_flops * rates.seconds_per_wide_flop;
  details.head = PhaseSeconds{forward, 2 * forward, 0};
  details.logits_seconds = passes * edge.logits_element_count * context.profile->logits_bytes_per_element /
                           rates.elementwise_bytes_per_second;
  stage.compute_seconds += details.head.Total() + details.logits_seconds;
  stage.weights_seconds += gather / context.profile->collective_ratio;
}

void AddLayers(const Context& context, const LayerTime& layer, double count, StageTime& stage, BusySeconds& busy,
               double& exposed) {
  if (count <= 0) return;
  stage.lower_seconds += count * layer.lower_seconds;
  stage.upper_seconds += count * layer.upper_seconds;
  for (int r = 0; r < kStepResourceCount; ++r) busy[r] += count * layer.busy[r];
  if (context.profile == nullptr) return;
  // The device runs ahead of the host or waits for it: the floor blends in where both are close.
  double compute = layer.compute_seconds;
  if (layer.host_seconds > 0) {
    const double squared = compute * compute;
    const double host_squared = layer.host_seconds * layer.host_seconds;
    compute = std::sqrt(std::sqrt(squared * squared + host_squared * host_squared));
    stage.host_extra_seconds += count * (compute - layer.compute_seconds);
  }
  stage.compute_seconds += count * compute;
  stage.weights_seconds += count * layer.weights_seconds;
  exposed += count * (layer.tensor_exposed_seconds + layer.context_exposed_seconds + layer.expert_exposed_seconds);
}

// Parameters of the embedding and of the head on one chip of a stage, before FSDP.
double TablesOf(const Context& context, int32_t stage_index) {
  return (IsFirst(stage_index) ? context.load.edge.embedding_parameter_count : 0) +
         (IsLast(context.stages, stage_index) ? context.load.edge.head_parameter_count : 0);
}

// Muon's products, shared by the chips that share the matrices and their state.
double OrthogonaliseSeconds(const Context& context, int32_t stage_index) {
  if (context.job.workload.optimizer != Optimizer::kMuon) return 0;
  const Parallelism& parallelism = context.plan.parallelism;
  const double tensor = parallelism.Degree(LogicalAxis::kTensor);
  const double dense_shards = tensor * static_cast<double>(context.sharding.optimizer_shard_count);
  const double expert_shards = tensor * parallelism.Degree(LogicalAxis::kExpert) *
                               static_cast<double>(context.sharding.expert_optimizer_shard_count);
  const auto counts = context.stages.OfStage(stage_index);
  double flops = 0;
  for (size_t kind = 0; kind < counts.size(); ++kind) {
    const Orthogonalisation layer = OrthogonalisationFlops(context.job.model->layers[kind]);
    flops += counts[kind] * (layer.dense / dense_shards + layer.expert / expert_shards);
  }
  return flops / context.rates.wide_flops_per_second;
}

// Gradient all-reduce and optimizer update of one stage, once per step.
void AddStepEnd(const Context& context, int32_t stage_index, double backward_lower_seconds, double backward_seconds,
                StageTime& stage, BusySeconds& busy) {
  const TrainingWorkload& workload = context.job.workload;
  const StageParameters parameters = ParametersOf(context, stage_index);
  // An all-reduce is a reduce-scatter and an all-gather of the same bytes. Under ZeRO 1 and 2 the second brings back
  // updated parameters in place of gradients.
  const double scattered_bytes = BytesPerElement(workload.precision.gradient_reduction);
  const bool sharded_update = context.plan.parallelism.data_zero_stage != ZeroStage::k0;
  const double gathered_bytes = sharded_update ? BytesPerElement(workload.precision.parameters) : scattered_bytes;
  const double reduced_bytes = (scattered_bytes + gathered_bytes) / 2;
  const double dense_owned = parameters.dense / static_cast<double>(context.sharding.dense_shard_count);
  const double expert_owned = parameters.expert / static_cast<double>(context.sharding.shard_count);
  double within_seconds = 0;
  double dcn_seconds = 0;
  const auto add = [&](const CollectiveLaw& law, double count) {
    const double bytes = reduced_bytes * count;
    const double total = law.Seconds(bytes);
    const double dcn = std::min(total, bytes * law.dcn_seconds_per_byte);
    stage.gradient_seconds += total;
    dcn_seconds += dcn;
    within_seconds += total - dcn;
    Busy(busy, StepResource::kDcn) += dcn;
    Busy(busy, law.scale_out_seconds_per_byte > 0  ? StepResource::kScaleOut
               : law.scale_up_seconds_per_byte > 0 ? StepResource::kScaleUp
                                                   : StepResource::kIci) += total - dcn;
  };
  const bool expert_axis_shards = context.rates.expert_axis_shards_dense_weights;
  add(expert_axis_shards ? context.laws.expert_gradient_reduce : context.laws.dense_gradient_reduce, dense_owned);
  add(context.laws.expert_gradient_reduce, expert_owned);
  stage.gradient_lower_seconds = std::max(0.0, stage.gradient_seconds - backward_lower_seconds);

  const double updated = parameters.dense / static_cast<double>(context.sharding.optimizer_shard_count) +
                         parameters.expert / static_cast<double>(context.sharding.expert_optimizer_shard_count);
  const double table_state_bytes = (TableStateBytes(workload) - MatrixStateBytes(workload)) *
                                   TablesOf(context, stage_index) /
                                   static_cast<double>(context.sharding.optimizer_shard_count);
  const double update_bytes = UpdateBytes(workload) * updated + 2 * table_state_bytes;
  const double orthogonalise_seconds = OrthogonaliseSeconds(context, stage_index);
  stage.optimizer_lower_seconds = update_bytes / context.rates.hbm_bytes_per_second + orthogonalise_seconds;
  Busy(busy, StepResource::kHbm) += stage.optimizer_lower_seconds - orthogonalise_seconds;
  Busy(busy, StepResource::kMatrixUnit) += orthogonalise_seconds;
  if (workload.optimizer_offload && context.job.slice.accelerator.pcie_bytes_per_second) {
    const double moved = 2 * (updated * MatrixStateBytes(workload) + table_state_bytes);
    stage.host_transfer_seconds += moved / *context.job.slice.accelerator.pcie_bytes_per_second;
  }
  if (context.profile == nullptr) return;
  const EfficiencyProfile& profile = *context.profile;
  stage.optimizer_seconds =
      (stage.optimizer_lower_seconds - orthogonalise_seconds) / profile.optimizer_hbm_ratio + orthogonalise_seconds;
  stage.gradient_exposed_seconds =
      ExposedSeconds(within_seconds / profile.collective_ratio, profile.data_exposed_ratio, backward_seconds);
  stage.dcn_exposed_seconds = ExposedSeconds(dcn_seconds, profile.dcn_exposed_ratio, backward_seconds);
  const double owned = dense_owned + expert_owned;
  const double rounds = static_cast<double>(context.plan.MicrobatchesPerStep());
  if (rounds > 1) {
    const double passes =
        profile.fused_gradient_accumulation ? profile.matmul_operand_bytes_ratio : 1 / profile.elementwise_hbm_ratio;
    stage.accumulation_seconds =
        rounds * profile.accumulation_bytes_per_parameter * owned * passes / context.rates.hbm_bytes_per_second;
  }
}

// Offloaded activations go out and come back over PCIe, beside compute.
void AddActivationOffload(const Context& context, int32_t stage_index, StageTime& stage) {
  const auto& pcie = context.job.slice.accelerator.pcie_bytes_per_second;
  double bytes = 0;
  const auto counts = context.stages.OfStage(stage_index);
  for (size_t kind = 0; kind < counts.size(); ++kind) bytes += counts[kind] * context.load.layers[kind].offloaded_bytes;
  if (bytes <= 0 || !pcie) return;
  const double rounds = static_cast<double>(context.plan.MicrobatchesPerStep());
  const double beside = context.profile == nullptr ? stage.lower_seconds : stage.compute_seconds;
  stage.host_transfer_seconds += rounds * std::max(0.0, 2 * bytes / *pcie - beside);
}

StageTime TimeStage(const Context& context, int32_t index, StepDetails& details, BusySeconds& busy) {
  StageTime stage;
  busy = {};
  double exposed = 0;
  double backward_lower = 0;
  double backward = 0;
  const auto counts = context.stages.OfStage(index);
  for (size_t kind = 0; kind < counts.size(); ++kind) {
    AddLayers(context, details.layers[kind], counts[kind], stage, busy, exposed);
    backward_lower += counts[kind] * details.layers[kind].backward_lower_seconds;
    backward += counts[kind] * details.layers[kind].backward_seconds;
  }
  if (IsFirst(index)) AddEmbedding(context, details, stage, busy);
  if (IsLast(context.stages, index)) {
    AddLayers(context, details.mtp, context.load.mtp_layer_count, stage, busy, exposed);
    AddHead(context, details, stage, busy);
  }
  const double microbatches = static_cast<double>(context.plan.MicrobatchesPerStep());
  for (double& seconds : busy) seconds *= microbatches;
  if (context.profile != nullptr) {
    const EfficiencyProfile& profile = *context.profile;
    const double hidden = std::min(stage.weights_seconds, profile.fsdp_hideable_compute_ratio * stage.compute_seconds);
    stage.weights_exposed_seconds = stage.weights_seconds - hidden + profile.fsdp_hidden_cost_ratio * hidden;
    stage.expected_seconds = stage.compute_seconds + stage.weights_exposed_seconds + exposed;
  } else {
    stage.expected_seconds = stage.lower_seconds;
  }
  AddStepEnd(context, index, backward_lower, backward, stage, busy);
  AddActivationOffload(context, index, stage);
  return stage;
}

}  // namespace

StepTimes TimeStep(const TrainingJob& job, const StepPlan& plan, const StepLoad& load, const PlanLaws& laws,
                   const StageSplit& stages, StepDetails& details) {
  const EfficiencyProfile* profile = job.mode == EstimationMode::kCalibrated ? job.profile : nullptr;
  const LayerRates rates = RatesOf(job);
  const WeightSharding sharding = ShardingOf(plan.parallelism, rates.expert_axis_shards_dense_weights);
  const Context context = {job, plan, load, laws, stages, sharding, rates, profile};
  const double wide_bytes = load.wide_bytes_per_element;
  details.layers.resize(load.layers.size());
  for (size_t kind = 0; kind < load.layers.size(); ++kind) {
    details.layers[kind] = TimeLayer(job, load.layers[kind], context.rates, laws, wide_bytes);
  }
  if (load.mtp_layer_count > 0) details.mtp = TimeLayer(job, load.mtp, context.rates, laws, wide_bytes);

  StepTimes times;
  details.stages.resize(static_cast<size_t>(stages.stage_count));
  double slowest = -1;
  double slowest_lower = 0;
  double all = 0;
  double all_lower = 0;
  double upper = 0;
  BusySeconds busy;
  const double microbatches = static_cast<double>(plan.MicrobatchesPerStep());
  for (int32_t s = 0; s < stages.stage_count; ++s) {
    StageTime& stage = details.stages[static_cast<size_t>(s)];
    stage = TimeStage(context, s, details, busy);
    slowest_lower = std::max(slowest_lower, stage.lower_seconds);
    all += stage.expected_seconds;
    all_lower += stage.lower_seconds;
    upper = std::max(upper, stage.upper_seconds);
    if (stage.expected_seconds > slowest) {
      slowest = stage.expected_seconds;
      times.slowest_stage = s;
      times.busy = busy;
    }
  }
  const Parallelism& parallelism = plan.parallelism;
  const int64_t pipeline = stages.stage_count;
  const PipelineShape schedule = {parallelism.schedule, pipeline, plan.microbatch_count,
                                  parallelism.virtual_stage_count};
  // The slowest stage waits while the others fill and drain: for their time, which is less than its own.
  const double waits = plan.gradient_accumulation * BubbleTime(schedule, {}) / StageWork().Total();
  const auto others = [&](double sum, double largest) {
    return pipeline > 1 && largest > 0 ? (sum - largest) / (largest * static_cast<double>(pipeline - 1)) : 1;
  };
  times.bubble_microbatches = waits * others(all, slowest);
  const double slots = microbatches + times.bubble_microbatches;
  const double slots_lower = microbatches + waits * others(all_lower, slowest_lower);

  const StageTime& stage = details.stages[static_cast<size_t>(times.slowest_stage)];
  // Activations forward and their gradients back, once per chunk boundary of this stage.
  const double permute = 2 * microbatches * std::max(1, parallelism.virtual_stage_count) *
                         laws.pipeline_permute.Seconds(load.permute_bytes);
  Busy(times.busy, ResourceOf(laws.pipeline_permute.slowest_tier)) += permute;
  times.lower_seconds = slots_lower * slowest_lower + stage.gradient_lower_seconds + stage.optimizer_lower_seconds +
                        stage.host_transfer_seconds;
  times.upper_seconds = (microbatches + waits) * upper + permute + stage.gradient_seconds +
                        stage.optimizer_lower_seconds + stage.host_transfer_seconds;
  Busy(times.busy, StepResource::kBubble) = times.bubble_microbatches * stage.expected_seconds;
  Busy(times.busy, StepResource::kPcie) = stage.host_transfer_seconds;
  if (profile == nullptr) {
    times.expected_seconds = times.lower_seconds;
    return times;
  }
  times.permute_exposed_seconds = ExposedSeconds(permute / profile->collective_ratio, profile->pipeline_exposed_ratio,
                                                 slots * stage.compute_seconds);
  if (job.slice.slice_count > 1) {
    times.jitter_seconds = profile->dcn_jitter_ratio_per_doubling * std::log2(job.slice.slice_count) * microbatches *
                           stage.compute_seconds;
  }
  times.expected_seconds = slots * stage.expected_seconds + times.permute_exposed_seconds + times.jitter_seconds +
                           stage.gradient_exposed_seconds + stage.dcn_exposed_seconds + stage.optimizer_seconds +
                           stage.accumulation_seconds + stage.host_transfer_seconds;
  // A profile fitted elsewhere must not promise more than the links and units can do.
  times.raised_seconds = std::max(0.0, times.lower_seconds - times.expected_seconds);
  times.expected_seconds += times.raised_seconds;
  return times;
}

}  // namespace sliceplan::planner
