#include "server/planner/remat.h"

namespace sliceplan::planner {
namespace {

using transformer::SavedTensor;
using transformer::TensorSplit;

constexpr TensorPlacement kSaved = TensorPlacement::kSaved;

}  // namespace

TensorPlacement RematPlan::Placement(SavedTensor tensor) const {
  if (save_everything) return kSaved;
  switch (tensor) {
    case SavedTensor::kQuery: return tensors.query;
    case SavedTensor::kKeyValue: return tensors.key_value;
    case SavedTensor::kContext: return tensors.context;
    case SavedTensor::kOutProjection: return tensors.out_projection;
    case SavedTensor::kMlpUpGate: return tensors.mlp_up_gate;
    case SavedTensor::kMlpDown: return tensors.mlp_down;
    case SavedTensor::kRouterOut:
    case SavedTensor::kNone: return TensorPlacement::kRecomputed;
  }
  return TensorPlacement::kRecomputed;
}

bool RematPlan::Recomputes(const transformer::WeightMatmul& matmul, bool parallel_block) const {
  if (save_everything) return false;
  if (whole_layer) return true;
  if (matmul.output == SavedTensor::kMlpDown) return false;
  if (matmul.output == SavedTensor::kOutProjection && parallel_block) return false;
  return Placement(matmul.output) == TensorPlacement::kRecomputed;
}

bool RematPlan::RecomputesAttention() const {
  if (save_everything) return false;
  return whole_layer || tensors.context == TensorPlacement::kRecomputed;
}

RematPlan PlanRemat(RematPolicy policy, const TrainingWorkload& workload, bool whole_layer_recompute) {
  RematPlan plan;
  CustomRemat& saved = plan.tensors;
  plan.checkpoints_per_layer = workload.checkpoints_per_layer;
  if (plan.checkpoints_per_layer > 0) {
    if (plan.checkpoints_per_layer > 1) saved.out_projection = kSaved;
    return plan;
  }
  switch (policy) {
    case RematPolicy::kNone: plan.save_everything = true; break;
    case RematPolicy::kBlock: plan.whole_layer = true; break;
    case RematPolicy::kFull: plan.whole_layer = whole_layer_recompute; break;
    case RematPolicy::kSaveAttention: saved.context = kSaved; break;
    case RematPolicy::kMinimalFlash: saved.context = kSaved; [[fallthrough]];
    case RematPolicy::kSaveMatmulOutputs:
    case RematPolicy::kMinimal:
      saved.query = saved.key_value = saved.out_projection = saved.mlp_up_gate = saved.mlp_down = kSaved;
      break;
    case RematPolicy::kSaveQkvProj: saved.query = saved.key_value = kSaved; break;
    case RematPolicy::kSaveDotWithContextExceptMlp: saved.context = kSaved; [[fallthrough]];
    case RematPolicy::kSaveDotExceptMlp: saved.query = saved.key_value = saved.out_projection = kSaved; break;
    case RematPolicy::kSaveDotExceptMlpWi:
      saved.query = saved.key_value = saved.out_projection = saved.mlp_down = kSaved;
      break;
    case RematPolicy::kCustom: saved = workload.custom_remat; break;
  }
  return plan;
}

absl::string_view RematPolicyName(RematPolicy policy) {
  switch (policy) {
    case RematPolicy::kNone: return "none";
    case RematPolicy::kFull: return "full";
    case RematPolicy::kBlock: return "block";
    case RematPolicy::kSaveMatmulOutputs: return "save_matmul_outputs";
    case RematPolicy::kSaveAttention: return "save_attention";
    case RematPolicy::kMinimal: return "minimal";
    case RematPolicy::kMinimalFlash: return "minimal_flash";
    case RematPolicy::kSaveQkvProj: return "save_qkv_proj";
    case RematPolicy::kSaveDotExceptMlp: return "save_dot_except_mlp";
    case RematPolicy::kSaveDotExceptMlpWi: return "save_dot_except_mlpwi";
    case RematPolicy::kSaveDotWithContextExceptMlp: return "save_dot_with_context_except_mlp";
    case RematPolicy::kCustom: return "custom";
  }
  return "";
}

}  // namespace sliceplan::planner
