// Checkpoint policies in MaxText's names (base.yml, commit 000b810). Its "none" is not here: a policy of None makes
// jax.checkpoint save nothing.
#include "server/planner/render/maxtext_remat.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace sliceplan::planner {
namespace {

absl::string_view PlacementName(TensorPlacement placement) {
  switch (placement) {
    case TensorPlacement::kRecomputed: return "remat";
    case TensorPlacement::kSaved: return "device";
    case TensorPlacement::kOffloaded: return "offload";
  }
  return "";
}

// MaxText's name of a policy; "custom" where it has none.
absl::string_view PolicyName(RematPolicy policy, const TrainingWorkload& workload) {
  if (workload.activation_offload || workload.checkpoints_per_layer > 0) return "custom";
  switch (policy) {
    case RematPolicy::kNone:
    case RematPolicy::kMinimalFlash: return "minimal_with_context";
    case RematPolicy::kFull:
    case RematPolicy::kBlock: return "full";
    case RematPolicy::kSaveMatmulOutputs:
    case RematPolicy::kMinimal: return "minimal";
    case RematPolicy::kSaveQkvProj:
    case RematPolicy::kSaveDotExceptMlp:
    case RematPolicy::kSaveDotExceptMlpWi:
    case RematPolicy::kSaveDotWithContextExceptMlp: return RematPolicyName(policy);
    case RematPolicy::kSaveAttention:
    case RematPolicy::kCustom: return "custom";
  }
  return "custom";
}

}  // namespace

std::string MaxTextRemat(const RenderInput& input) {
  std::string text;
  const absl::string_view name = PolicyName(input.estimate->remat_policy, *input.workload);
  if (input.estimate->remat_policy == RematPolicy::kNone) {
    absl::StrAppend(&text, "# Nearest to saving everything: MaxText computes norms and activation functions again.\n");
  }
  absl::StrAppend(&text, "remat_policy: ", name, "\n");
  if (name != "custom") return text;
  const CustomRemat& tensors = SavedTensors(input).tensors;
  const ModelFacts facts = FactsOf(*input.model);
  const auto add = [&](absl::string_view key, TensorPlacement placement) {
    absl::StrAppend(&text, key, ": ", PlacementName(placement), "\n");
  };
  add("decoder_layer_input", tensors.layer_input);
  if (facts.has_latent_attention) {
    add("query_wa_proj", tensors.query);
    add("kv_wa_proj", tensors.key_value);
  }
  add("query_proj", tensors.query);
  add("key_proj", tensors.key_value);
  add("value_proj", tensors.key_value);
  add("context", tensors.context);
  add("out_proj", tensors.out_projection);
  if (facts.has_dense_feed_forward) {
    if (facts.gated) {
      add("mlpwi_0", tensors.mlp_up_gate);
      add("mlpwi_1", tensors.mlp_up_gate);
    } else {
      add("mlpwi", tensors.mlp_up_gate);
    }
    add("mlpwo", tensors.mlp_down);
  }
  if (facts.has_experts) {
    add("moe_mlpwi_0", tensors.mlp_up_gate);
    add("moe_mlpwi_1", tensors.mlp_up_gate);
    add("moe_mlpwo", tensors.mlp_down);
  }
  return text;
}

}  // namespace sliceplan::planner
