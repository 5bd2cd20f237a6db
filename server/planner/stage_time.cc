#include "server/planner/stage_time.h"

#include <algorithm>
#include <cmath>

#include "server/planner/optimizer_state.h"
#include "server/planner/orthogonalisation.h"

namespace sliceplan::planner {
namespace {

using hardware::BytesPerElement;
using roofline::CollectiveLaw;
using roofline::EfficiencyProfile;
using transformer::Component;

// Parameters of one stage on one chip before data, FSDP and context sharding.
struct StageParameters {
  double dense = 0;
  double expert = 0;
};

bool IsFirst(int32_t stage) { return stage == 0; }
bool IsLast(const StageSplit& stages, int32_t stage) { return stage == stages.stage_count - 1; }

StageParameters ParametersOf(const StageContext& context, int32_t stage) {
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
void AddEmbedding(const StageContext& context, StepDetails& details, StageTime& stage, BusySeconds& busy) {
  const double seconds = 3 * context.load.edge.embedding_bytes / context.rates.hbm_bytes_per_second;
  details.embedding_bound = BoundPart{seconds, StepResource::kHbm, std::nullopt};
  stage.lower_seconds += seconds;
  stage.upper_seconds += seconds;
  Busy(busy, StepResource::kHbm) += seconds;
  if (context.profile == nullptr) return;
  details.embedding_seconds = seconds / context.profile->elementwise_hbm_ratio;
  stage.compute_seconds += details.embedding_seconds;
}

// FSDP traffic of the head's weights in one microbatch.
double HeadGatherSeconds(const StageContext& context) {
  const EdgeLoad& edge = context.load.edge;
  const double weight_bytes = context.load.wide_bytes_per_element * edge.head_weight_count;
  const double gradient_bytes = context.rates.gradient_bytes_per_element * edge.head_weight_count;
  return (1 + edge.mtp_head_passes) * (2 * context.rates.DenseGather(context.laws).Seconds(weight_bytes) +
                                       context.rates.DenseScatter(context.laws).Seconds(gradient_bytes));
}

void AddHead(const StageContext& context, StepDetails& details, StageTime& stage, BusySeconds& busy) {
  const EdgeLoad& edge = context.load.edge;
  const LayerRates& rates = context.rates;
  const double passes = 1 + edge.mtp_head_passes;
  const double matrix = 3 * passes * edge.head_flops / rates.wide_flops_per_second;
  const double hbm = 3 * passes * edge.head_operand_bytes / rates.hbm_bytes_per_second;
  const double gather = HeadGatherSeconds(context);
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

double ExposedInLayer(const LayerTime& layer) {
  return layer.tensor_exposed_seconds + layer.context_exposed_seconds + layer.expert_exposed_seconds;
}

void AddLayers(const StageContext& context, const LayerTime& layer, double count, StageTime& stage, BusySeconds& busy,
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
  exposed += count * ExposedInLayer(layer);
}

// Parameters of the embedding and of the head on one chip of a stage, before FSDP.
double TablesOf(const StageContext& context, int32_t stage_index) {
  return (IsFirst(stage_index) ? context.load.edge.embedding_parameter_count : 0) +
         (IsLast(context.stages, stage_index) ? context.load.edge.head_parameter_count : 0);
}

// Muon's products, shared by the chips that share the matrices and their state.
double OrthogonaliseSeconds(const StageContext& context, int32_t stage_index) {
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

// Seconds of the gradient all-reduce of one stage.
struct GradientSeconds {
  double within = 0;  // a slice
  double dcn = 0;
};

void AddReduction(const CollectiveLaw& law, double bytes, GradientSeconds& seconds, BusySeconds* busy) {
  const double total = law.Seconds(bytes);
  const double dcn = std::min(total, bytes * law.dcn_seconds_per_byte);
  seconds.dcn += dcn;
  seconds.within += total - dcn;
  if (busy == nullptr) return;
  Busy(*busy, StepResource::kDcn) += dcn;
  Busy(*busy, law.scale_out_seconds_per_byte > 0  ? StepResource::kScaleOut
              : law.scale_up_seconds_per_byte > 0 ? StepResource::kScaleUp
                                                  : StepResource::kIci) += total - dcn;
}

GradientSeconds ReduceGradients(const StageContext& context, const StageTime& stage, BusySeconds* busy) {
  GradientSeconds seconds;
  const bool expert_axis_shards = context.rates.expert_axis_shards_dense_weights;
  AddReduction(expert_axis_shards ? context.laws.expert_gradient_reduce : context.laws.dense_gradient_reduce,
               stage.dense_reduced_bytes, seconds, busy);
  AddReduction(context.laws.expert_gradient_reduce, stage.expert_reduced_bytes, seconds, busy);
  return seconds;
}

void ExposeGradients(const GradientSeconds& seconds, const EfficiencyProfile& profile, StageTime& stage) {
  stage.gradient_exposed_seconds =
      ExposedSeconds(seconds.within / profile.collective_ratio, profile.data_exposed_ratio, stage.backward_seconds);
  stage.dcn_exposed_seconds = ExposedSeconds(seconds.dcn, profile.dcn_exposed_ratio, stage.backward_seconds);
}

// Gradient all-reduce and optimizer update of one stage, once per step.
void AddStepEnd(const StageContext& context, int32_t stage_index, double backward_lower_seconds, StageTime& stage,
                BusySeconds& busy) {
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
  stage.dense_reduced_bytes = reduced_bytes * dense_owned;
  stage.expert_reduced_bytes = reduced_bytes * expert_owned;
  const GradientSeconds gradients = ReduceGradients(context, stage, &busy);
  stage.gradient_seconds = gradients.within + gradients.dcn;
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
  ExposeGradients(gradients, profile, stage);
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
void AddActivationOffload(const StageContext& context, int32_t stage_index, StageTime& stage) {
  const auto& pcie = context.job.slice.accelerator.pcie_bytes_per_second;
  double bytes = 0;
  const auto counts = context.stages.OfStage(stage_index);
  for (size_t kind = 0; kind < counts.size(); ++kind) bytes += counts[kind] * context.load.layers[kind].offloaded_bytes;
  if (bytes <= 0 || !pcie) return;
  const double rounds = static_cast<double>(context.plan.MicrobatchesPerStep());
  const double beside = context.profile == nullptr ? stage.lower_seconds : stage.compute_seconds;
  stage.activation_transfer_seconds = rounds * std::max(0.0, 2 * bytes / *pcie - beside);
  stage.host_transfer_seconds += stage.activation_transfer_seconds;
}

// What of the FSDP traffic of a stage shows beside its compute, and the sum of one microbatch.
void ExpectStage(const EfficiencyProfile& profile, double exposed, StageTime& stage) {
  const double hidden = std::min(stage.weights_seconds, profile.fsdp_hideable_compute_ratio * stage.compute_seconds);
  stage.weights_exposed_seconds = stage.weights_seconds - hidden + profile.fsdp_hidden_cost_ratio * hidden;
  stage.expected_seconds = stage.compute_seconds + stage.weights_exposed_seconds + exposed;
}

}  // namespace

StageTime TimeStage(const StageContext& context, int32_t index, StepDetails& details, BusySeconds& busy) {
  StageTime stage;
  busy = {};
  double exposed = 0;
  double backward_lower = 0;
  const auto counts = context.stages.OfStage(index);
  for (size_t kind = 0; kind < counts.size(); ++kind) {
    AddLayers(context, details.layers[kind], counts[kind], stage, busy, exposed);
    backward_lower += counts[kind] * details.layers[kind].backward_lower_seconds;
    stage.backward_seconds += counts[kind] * details.layers[kind].backward_seconds;
  }
  if (IsFirst(index)) AddEmbedding(context, details, stage, busy);
  if (IsLast(context.stages, index)) {
    AddLayers(context, details.mtp, context.load.mtp_layer_count, stage, busy, exposed);
    AddHead(context, details, stage, busy);
  }
  const double microbatches = static_cast<double>(context.plan.MicrobatchesPerStep());
  for (double& seconds : busy) seconds *= microbatches;
  if (context.profile != nullptr) {
    ExpectStage(*context.profile, exposed, stage);
  } else {
    stage.expected_seconds = stage.lower_seconds;
  }
  AddStepEnd(context, index, backward_lower, stage, busy);
  AddActivationOffload(context, index, stage);
  return stage;
}

void RetimeStage(const StageContext& context, int32_t index, StepDetails& details) {
  StageTime& stage = details.stages[static_cast<size_t>(index)];
  double exposed = 0;
  stage.weights_seconds = 0;
  const auto add = [&](const LayerTime& layer, double count) {
    stage.weights_seconds += count * layer.weights_seconds;
    exposed += count * ExposedInLayer(layer);
  };
  const auto counts = context.stages.OfStage(index);
  for (size_t kind = 0; kind < counts.size(); ++kind) {
    if (counts[kind] > 0) add(details.layers[kind], counts[kind]);
  }
  if (IsLast(context.stages, index)) {
    if (context.load.mtp_layer_count > 0) add(details.mtp, context.load.mtp_layer_count);
    stage.weights_seconds += HeadGatherSeconds(context) / context.profile->collective_ratio;
  }
  ExpectStage(*context.profile, exposed, stage);
}

void RetimeGradients(const StageContext& context, StageTime& stage) {
  ExposeGradients(ReduceGradients(context, stage, nullptr), *context.profile, stage);
}

}  // namespace sliceplan::planner
