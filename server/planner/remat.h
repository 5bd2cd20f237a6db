// What the backward pass finds saved and what it computes again.
// Chapter 5 of "How To Scale Your Model" and the checkpoint policies of MaxText, which name tensors.
#ifndef SLICEPLAN_SERVER_PLANNER_REMAT_H_
#define SLICEPLAN_SERVER_PLANNER_REMAT_H_

#include "absl/strings/string_view.h"
#include "server/planner/training_job.h"
#include "server/transformer/operations.h"

namespace sliceplan::planner {

// Placement of every named tensor of a layer.
struct RematPlan {
  bool save_everything = false;  // also norms, activations and products
  bool whole_layer = false;      // recompute runs every operation of the layer, dead code included
  CustomRemat tensors;
  int32_t checkpoints_per_layer = 0;  // > 0: bytes are that many width-D tensors

  TensorPlacement Placement(transformer::SavedTensor tensor) const;
  bool RecomputesAnything() const { return !save_everything; }
  // Whether the backward pass runs this matmul again. Its output is needed unless it is the last of its residual
  // branch: the down projection never is, the attention output only feeds a later norm when the block is not parallel.
  bool Recomputes(const transformer::WeightMatmul& matmul, bool parallel_block) const;
  bool RecomputesAttention() const;
};

// `whole_layer_recompute`: the runtime checkpoints whole layers (profile); then kFull means kBlock.
RematPlan PlanRemat(RematPolicy policy, const TrainingWorkload& workload, bool whole_layer_recompute);

// "save_qkv_proj", ...
absl::string_view RematPolicyName(RematPolicy policy);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_REMAT_H_
