// JAX: a Mesh, the PartitionSpec of every weight and activation class, and the checkpoint policy.
// jax.sharding and jax.experimental.mesh_utils as documented for JAX 0.7 (2025).
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/planner/render/jax_specs.h"
#include "server/planner/render/render_words.h"

namespace sliceplan::planner {
namespace {

// Mesh order on a torus: create_device_mesh wants the axis with most traffic last.
constexpr LogicalAxis kTorusOrder[] = {LogicalAxis::kPipeline, LogicalAxis::kData,    LogicalAxis::kFsdp,
                                       LogicalAxis::kExpert,   LogicalAxis::kContext, LogicalAxis::kTensor};

// The axes of the mesh. Behind switches devices are numbered in order, so that axes by falling stride lie where the
// plan has them.
std::vector<LogicalAxis> MeshAxes(const RenderInput& input, const DeviceDegrees& degrees) {
  std::vector<LogicalAxis> axes;
  for (const LogicalAxis axis : kTorusOrder) {
    if (degrees.Degree(axis) > 1) axes.push_back(axis);
  }
  if (axes.empty()) axes.push_back(LogicalAxis::kData);
  if (!IsTorus(input)) {
    std::stable_sort(axes.begin(), axes.end(),
                     [&](LogicalAxis a, LogicalAxis b) { return Stride(input, a) > Stride(input, b); });
  }
  return axes;
}

std::string ShapeTuple(const std::vector<LogicalAxis>& axes, const AxisDegrees& degrees) {
  return absl::StrCat(
      "(", absl::StrJoin(axes, ", ", [&](std::string* out, LogicalAxis axis) { absl::StrAppend(out, degrees[axis]); }),
      axes.size() == 1 ? ",)" : ")");
}

// Whether an axis takes a part of a physical axis, which create_device_mesh does only when told.
bool SplitsPhysicalAxes(const RenderInput& input) {
  if (input.slice->accelerator.devices_per_chip > 1) return true;
  for (const AxisPlacement& placement : input.estimate->mapping) {
    for (const hardware::GroupPiece& piece : placement.group.pieces) {
      if (piece.factor != input.slice->axes[static_cast<size_t>(piece.axis)].size) return true;
    }
  }
  return false;
}

std::string MeshText(const RenderInput& input, const DeviceDegrees& degrees) {
  const std::vector<LogicalAxis> axes = MeshAxes(input, degrees);
  std::string text = "# Where the plan has each axis (physical axis: chips, stride):\n";
  for (const AxisPlacement& placement : input.estimate->mapping) {
    if (placement.degree <= 1) continue;
    std::vector<std::string> pieces;
    for (const hardware::GroupPiece& piece : placement.group.pieces) {
      pieces.push_back(absl::StrCat(piece.axis, ": ", piece.factor, ", ", piece.stride));
    }
    if (placement.group.slice_count > 1) pieces.push_back(absl::StrCat(placement.group.slice_count, " slices"));
    absl::StrAppend(&text, "#   ", LogicalAxisName(placement.axis), " -> ", absl::StrJoin(pieces, "; "), "\n");
  }
  if (degrees.devices_per_chip > 1) {
    absl::StrAppend(&text, "# ", degrees.devices_per_chip, " devices a chip: ", LogicalAxisName(degrees.doubled),
                    " counts both.\n");
  }
  const std::string names = absl::StrJoin(
      axes, ", ", [](std::string* out, LogicalAxis axis) { absl::StrAppend(out, "\"", LogicalAxisName(axis), "\""); });
  absl::StrAppend(&text, "AXES = (", names, axes.size() == 1 ? ",)\n" : ")\n");
  const absl::string_view split = IsTorus(input) && SplitsPhysicalAxes(input) ? "True" : "False";
  if (input.slice->slice_count > 1) {
    absl::StrAppend(&text, "devices = mesh_utils.create_hybrid_device_mesh(\n    ", ShapeTuple(axes, degrees.ici),
                    ",  # within a slice\n    ", ShapeTuple(axes, degrees.dcn), ",  # across slices\n");
  } else {
    absl::StrAppend(&text, "devices = mesh_utils.create_device_mesh(\n    ", ShapeTuple(axes, degrees.ici), ",\n");
  }
  absl::StrAppend(&text, "    allow_split_physical_axes=", split, ",\n)\nmesh = Mesh(devices, AXES)\n\n");
  return text;
}

// Names as MaxText gives them with jax.ad_checkpoint.checkpoint_name.
std::string PolicyText(const RenderInput& input) {
  const RematPlan plan = SavedTensors(input);
  const ModelFacts facts = FactsOf(*input.model);
  std::string text = absl::StrCat("# Recompute: ", RematPolicyName(input.estimate->remat_policy),
                                  ". Pass to jax.checkpoint around one layer; tensors are named with "
                                  "jax.ad_checkpoint.checkpoint_name.\n");
  std::vector<absl::string_view> saved;
  std::vector<absl::string_view> offloaded;
  const auto place = [&](TensorPlacement placement, std::vector<absl::string_view> names) {
    std::vector<absl::string_view>* list = placement == TensorPlacement::kSaved       ? &saved
                                           : placement == TensorPlacement::kOffloaded ? &offloaded
                                                                                      : nullptr;
    if (list != nullptr) list->insert(list->end(), names.begin(), names.end());
  };
  place(plan.tensors.query, {"query_proj"});
  place(plan.tensors.key_value, {"key_proj", "value_proj"});
  place(plan.tensors.context, {"context"});
  place(plan.tensors.out_projection, {"out_proj"});
  if (facts.gated) {
    place(plan.tensors.mlp_up_gate, {"mlpwi_0", "mlpwi_1"});
  } else {
    place(plan.tensors.mlp_up_gate, {"mlpwi"});
  }
  place(plan.tensors.mlp_down, {"mlpwo"});
  if (plan.tensors.layer_input == TensorPlacement::kOffloaded) offloaded.push_back("decoder_layer_input");
  const auto list = [](const std::vector<absl::string_view>& names) {
    return absl::StrJoin(names, ", ",
                         [](std::string* out, absl::string_view name) { absl::StrAppend(out, "\"", name, "\""); });
  };
  if (plan.save_everything) {
    absl::StrAppend(&text, "REMAT_POLICY = jax.checkpoint_policies.everything_saveable\n");
  } else if (!offloaded.empty()) {
    absl::StrAppend(&text, "REMAT_POLICY = jax.checkpoint_policies.save_and_offload_only_these_names(\n",
                    "    names_which_can_be_saved=[", list(saved), "],\n    names_which_can_be_offloaded=[",
                    list(offloaded), "],\n    offload_src=\"device\",\n    offload_dst=\"pinned_host\",\n)\n");
  } else if (saved.empty()) {
    absl::StrAppend(&text, "REMAT_POLICY = jax.checkpoint_policies.nothing_saveable\n");
  } else {
    absl::StrAppend(&text, "REMAT_POLICY = jax.checkpoint_policies.save_only_these_names(\n    ", list(saved), "\n)\n");
  }
  return text;
}

std::string StepText(const RenderInput& input) {
  const TrainingEstimate& estimate = *input.estimate;
  const TrainingPrecision& precision = input.workload->precision;
  std::string text =
      absl::StrCat("\nGLOBAL_BATCH = ", input.workload->global_batch_size,
                   "  # sequences of an optimizer step\nSEQUENCE_LENGTH = ", input.workload->sequence_length,
                   "\nGRADIENT_ACCUMULATION = ", estimate.gradient_accumulation,
                   "  # passes before the optimizer's update\nMICROBATCHES = ", estimate.microbatch_count,
                   "  # of one pass through the pipeline\nMICROBATCH_SIZE = ", estimate.microbatch_size,
                   "  # sequences per batch shard\n");
  if (input.workload->logits_chunk_count > 1) {
    absl::StrAppend(&text, "LOGITS_CHUNKS = ", input.workload->logits_chunk_count,
                    "  # head and loss run over slices\n");
  }
  absl::StrAppend(&text, "# Formats: compute ", hardware::DataTypeName(precision.compute), ", parameters ",
                  hardware::DataTypeName(precision.parameters), ", gradients ",
                  hardware::DataTypeName(precision.gradients), ", optimizer state ",
                  hardware::DataTypeName(precision.optimizer_state), ".\n");
  if (input.workload->optimizer_offload) {
    absl::StrAppend(&text, "OPTIMIZER_MEMORY_KIND = \"pinned_host\"  # of the NamedShardings of OPTIMIZER_STATE\n");
  }
  if (estimate.parallelism.Degree(LogicalAxis::kPipeline) > 1) {
    const StageSplit stages = StagesOf(input);
    absl::StrAppend(&text, "LAYERS_PER_STAGE = [", absl::StrJoin(stages.layers_per_chunk, ", "),
                    "]  # chunk c runs on stage c % ", stages.stage_count, "\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> RenderJax(const RenderInput& input) {
  if (input.estimate->idle_chip_count > 0) {
    return CannotExpress(RenderTarget::kJax, "a mesh takes all devices of the slices, and some chips stay idle");
  }
  const DeviceDegrees degrees = DegreesInDevices(input);
  return absl::StrCat(PlanComment(input),
                      "import jax\nfrom jax.experimental import mesh_utils\n"
                      "from jax.sharding import Mesh, PartitionSpec as P\n\n",
                      MeshText(input, degrees), JaxWeightSpecs(input, degrees), JaxActivationSpecs(input, degrees),
                      PolicyText(input), StepText(input));
}

}  // namespace sliceplan::planner
