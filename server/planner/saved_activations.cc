#include "server/planner/saved_activations.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace sliceplan::planner {
namespace {

using transformer::LayerOperations;
using transformer::SavedTensor;
using transformer::TensorSplit;
using transformer::WeightMatmul;

// Beside matmul outputs, saving everything keeps the normed inputs of both branches and the residual between them.
constexpr double kHiddenCopies = 3;
// Least recompute first.
constexpr std::array<RematPolicy, 6> kPolicies = {
    RematPolicy::kNone,    RematPolicy::kMinimalFlash,     RematPolicy::kSaveDotWithContextExceptMlp,
    RematPolicy::kMinimal, RematPolicy::kSaveDotExceptMlp, RematPolicy::kSaveQkvProj};

bool IsKept(const RematPlan& plan, const WeightMatmul& matmul, bool parallel_block) {
  if (matmul.output == SavedTensor::kMlpDown) return false;
  if (matmul.output == SavedTensor::kOutProjection && (parallel_block || plan.save_everything)) return false;
  return plan.Placement(matmul.output) == TensorPlacement::kSaved;
}

void AddLayer(const TrainingJob& job, const LayerOperations& layer, const RematPlan& plan, double tensor,
              double hidden_shards, double count, KeptPerToken& kept) {
  const double hidden_dim = static_cast<double>(job.model->hidden_dim);
  double elements = plan.tensors.layer_input == TensorPlacement::kSaved ? hidden_dim / hidden_shards : 0;
  double flops = 0;
  double product = 0;
  for (const WeightMatmul& matmul : layer.matmuls) {
    const double shards = matmul.split == TensorSplit::kColumn ? tensor : hidden_shards;
    const double output = matmul.rows_per_token * static_cast<double>(matmul.n) / shards;
    if (matmul.output == SavedTensor::kMlpUpGate && output > product) product = output;
    if (IsKept(plan, matmul, layer.parallel_block)) elements += output;
    if (plan.Recomputes(matmul, layer.parallel_block)) {
      flops += 2 * matmul.rows_per_token * static_cast<double>(matmul.k) * static_cast<double>(matmul.n);
    }
  }
  if (layer.has_softmax) {
    if (plan.Placement(SavedTensor::kContext) == TensorPlacement::kSaved) {
      elements += static_cast<double>(layer.softmax.query_head_count) * layer.softmax.value_head_dim / tensor;
    }
  }
  if (plan.save_everything) elements += kHiddenCopies * hidden_dim / hidden_shards + product;
  if (plan.checkpoints_per_layer > 0) elements = plan.checkpoints_per_layer * hidden_dim / hidden_shards;
  if (plan.RecomputesAttention()) {
    flops += transformer::AttentionFlops(layer, job.workload.sequence_length, job.workload.attention_mask);
  }
  kept.elements += count * elements;
  kept.recompute_flops += count * flops;
}

}  // namespace

KeptPerToken KeptBy(const TrainingJob& job, const RematPlan& plan, int64_t tensor_degree, bool sequence_parallel) {
  const double tensor = static_cast<double>(tensor_degree);
  const double hidden_shards = sequence_parallel ? tensor : 1;
  KeptPerToken kept;
  for (const LayerOperations& layer : job.model->layers) {
    AddLayer(job, layer, plan, tensor, hidden_shards, static_cast<double>(layer.count), kept);
  }
  if (job.model->mtp_layer_count > 0) {
    AddLayer(job, job.model->mtp, plan, tensor, hidden_shards, job.model->mtp_layer_count, kept);
  }
  return kept;
}

KeepingMore CheapestPolicyWithin(const TrainingJob& job, const TrainingEstimate& estimate) {
  const bool whole_layer =
      job.mode == EstimationMode::kCalibrated && job.profile != nullptr && job.profile->whole_layer_recompute;
  const int64_t tensor =
      int64_t{estimate.parallelism.ici[LogicalAxis::kTensor]} * estimate.parallelism.dcn[LogicalAxis::kTensor];
  const bool sharded = estimate.parallelism.sequence_parallel;
  const KeptPerToken now = KeptBy(job, PlanRemat(estimate.remat_policy, job.workload, whole_layer), tensor, sharded);
  KeepingMore more;
  if (now.elements <= 0 || now.recompute_flops <= 0) return more;
  // A policy is looked for in place of whatever the job asks for.
  TrainingWorkload workload;
  const double bytes_per_element = static_cast<double>(estimate.memory.activations_bytes) / now.elements;
  for (const RematPolicy policy : kPolicies) {
    const KeptPerToken then = KeptBy(job, PlanRemat(policy, workload, whole_layer), tensor, sharded);
    const double added_bytes = bytes_per_element * (then.elements - now.elements);
    if (then.recompute_flops >= now.recompute_flops) continue;
    if (added_bytes > static_cast<double>(estimate.memory.headroom_bytes)) continue;
    return {true, policy, added_bytes, then.recompute_flops / now.recompute_flops};
  }
  return more;
}

std::string RematPolicyField(RematPolicy policy) {
  return absl::StrCat("REMAT_POLICY_", absl::AsciiStrToUpper(RematPolicyName(policy)));
}

}  // namespace sliceplan::planner
