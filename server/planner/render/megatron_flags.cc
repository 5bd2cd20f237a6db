#include "server/planner/render/megatron_flags.h"

#include <string>

namespace sliceplan::planner {
namespace {

using hardware::DataType;

constexpr RenderTarget kTarget = RenderTarget::kMegatron;

}  // namespace

absl::Status AddRecompute(const RenderInput& input, const ModelFacts& facts, MegatronFlags& flags) {
  const RematPlan plan = SavedTensors(input);
  const CustomRemat& tensors = plan.tensors;
  if (plan.save_everything) return absl::OkStatus();
  for (const TensorPlacement placement : {tensors.query, tensors.key_value, tensors.context, tensors.out_projection,
                                          tensors.mlp_up_gate, tensors.mlp_down, tensors.layer_input}) {
    if (placement == TensorPlacement::kOffloaded) {
      return CannotExpress(kTarget, "no flag of it offloads single activations to the host");
    }
  }
  const auto saved = [](TensorPlacement placement) { return placement == TensorPlacement::kSaved; };
  if (plan.checkpoints_per_layer > 1) {
    return CannotExpress(kTarget, "it keeps one checkpoint of a layer, not several");
  }
  const bool projections = saved(tensors.query) && saved(tensors.key_value) && saved(tensors.out_projection);
  const bool nothing = !saved(tensors.query) && !saved(tensors.key_value) && !saved(tensors.out_projection) &&
                       !saved(tensors.context) && !saved(tensors.mlp_up_gate) && !saved(tensors.mlp_down);
  if (nothing) {
    flags.Add("--recompute-granularity", "full");
    flags.Add("--recompute-method", "uniform");
    flags.Add("--recompute-num-layers", 1);
    return absl::OkStatus();
  }
  if (!projections || (!saved(tensors.mlp_up_gate) && saved(tensors.mlp_down))) {
    return CannotExpress(kTarget, absl::StrCat("it recomputes whole modules, not the tensors of policy ",
                                               RematPolicyName(input.estimate->remat_policy)));
  }
  std::string modules = "layernorm";
  if (!saved(tensors.context)) modules += " core_attn";
  if (!saved(tensors.mlp_up_gate)) {
    if (facts.has_dense_feed_forward) modules += " mlp";
    if (facts.has_experts) modules += " moe";
  } else if (facts.has_experts) {
    modules += " moe_act";
  }
  flags.Add("--recompute-granularity", "selective");
  flags.Add("--recompute-modules", modules);
  return absl::OkStatus();
}

absl::Status AddFormats(const TrainingWorkload& workload, MegatronFlags& flags, std::string& notes) {
  const TrainingPrecision& precision = workload.precision;
  switch (precision.compute) {
    case DataType::kFp32: break;
    case DataType::kFp16: flags.Add("--fp16"); break;
    case DataType::kBf16: flags.Add("--bf16"); break;
    case DataType::kFp8:
      flags.Add("--bf16");
      flags.Add("--fp8-format", "hybrid");
      break;
    case DataType::kFp4:
      flags.Add("--bf16");
      flags.Add("--fp4-format", "e2m1");
      break;
    case DataType::kInt8:
    case DataType::kInt4:
      return CannotExpress(kTarget, absl::StrCat("it does not train in ", hardware::DataTypeName(precision.compute)));
  }
  if (precision.compute == DataType::kFp32) return absl::OkStatus();
  if (precision.gradient_reduction == DataType::kBf16) {
    flags.Add("--grad-reduce-in-bf16");
  } else {
    flags.Add("--accumulate-allreduce-grads-in-fp32");
  }
  if (precision.parameters == DataType::kFp32 && !precision.master_weights.has_value()) {
    absl::StrAppend(&notes,
                    "# Megatron keeps 16-bit parameters beside fp32 ones: 2 bytes a parameter more than planned.\n");
  }
  return absl::OkStatus();
}

absl::Status AddOptimizer(const TrainingWorkload& workload, bool distributed, MegatronFlags& flags) {
  switch (workload.optimizer) {
    case Optimizer::kAdamw: flags.Add("--optimizer", "adam"); break;
    case Optimizer::kSgd: flags.Add("--optimizer", "sgd"); break;
    case Optimizer::kMuon: flags.Add("--optimizer", "muon"); break;
    case Optimizer::kAdafactor: return CannotExpress(kTarget, "it has no Adafactor");
    case Optimizer::kAdamw8Bit: return CannotExpress(kTarget, "it has no 8-bit AdamW");
  }
  const DataType state = workload.precision.optimizer_state;
  if (state == DataType::kFp32 && !workload.optimizer_offload) return absl::OkStatus();
  if (!distributed) {
    return CannotExpress(kTarget,
                         "only its distributed optimizer (ZeRO 1 and up) keeps state in other formats than "
                         "fp32 or offloads it");
  }
  flags.Add("--use-precision-aware-optimizer");
  if (state != DataType::kFp32) {
    const absl::string_view name = hardware::DataTypeName(state);
    if (state != DataType::kBf16 && state != DataType::kFp16 && state != DataType::kFp8) {
      return CannotExpress(kTarget, absl::StrCat("it keeps no optimizer state in ", name));
    }
    flags.Add("--exp-avg-dtype", name);
    flags.Add("--exp-avg-sq-dtype", name);
  }
  if (workload.optimizer_offload) flags.Add("--optimizer-cpu-offload");
  return absl::OkStatus();
}

}  // namespace sliceplan::planner
