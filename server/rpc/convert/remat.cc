#include "server/rpc/convert/remat.h"

#include <array>
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/ranges.h"

namespace sliceplan::rpc {
namespace {

using planner::CustomRemat;
using planner::TensorPlacement;

struct TensorField {
  v1::LayerTensor tensor;
  TensorPlacement CustomRemat::*member;
};

// Keys and values share a placement in the engine.
constexpr TensorField kTensors[] = {
    {v1::LAYER_TENSOR_LAYER_INPUT, &CustomRemat::layer_input},
    {v1::LAYER_TENSOR_QUERY_PROJ, &CustomRemat::query},
    {v1::LAYER_TENSOR_KEY_PROJ, &CustomRemat::key_value},
    {v1::LAYER_TENSOR_VALUE_PROJ, &CustomRemat::key_value},
    {v1::LAYER_TENSOR_CONTEXT, &CustomRemat::context},
    {v1::LAYER_TENSOR_OUT_PROJ, &CustomRemat::out_projection},
    {v1::LAYER_TENSOR_MLPWI, &CustomRemat::mlp_up_gate},
    {v1::LAYER_TENSOR_MLPWO, &CustomRemat::mlp_down},
};
constexpr size_t kTensorCount = v1::LayerTensor_ARRAYSIZE;
using Placements = std::array<std::optional<TensorPlacement>, kTensorCount>;

void ReadList(const google::protobuf::RepeatedField<int>& list, TensorPlacement placement, absl::string_view name,
              const FieldPath& path, Violations& violations, Placements& placements) {
  if (!CheckCount(list.size(), static_cast<int>(kTensorCount), FieldPath(path, name), violations)) return;
  for (int i = 0; i < list.size(); ++i) {
    const FieldPath entry_path(path, name, i);
    if (!v1::LayerTensor_IsValid(list[i]) || list[i] == v1::LAYER_TENSOR_UNSPECIFIED) {
      violations.Add(
          entry_path,
          absl::StrCat(list[i], " is no LayerTensor; legal are ", LegalEnumNames(*v1::LayerTensor_descriptor()), "."),
          "UNKNOWN_ENUM_VALUE");
      continue;
    }
    std::optional<TensorPlacement>& known = placements[static_cast<size_t>(list[i])];
    if (known.has_value()) {
      violations.Add(entry_path, absl::StrCat(v1::LayerTensor_Name(list[i]), " is listed twice."), "CONFLICT");
    }
    known = placement;
  }
}

void SetCustomRemat(const v1::CustomRemat& proto, const FieldPath& path, Violations& violations, CustomRemat& remat) {
  Placements placements;
  ReadList(proto.saved(), TensorPlacement::kSaved, "saved", path, violations, placements);
  ReadList(proto.recomputed(), TensorPlacement::kRecomputed, "recomputed", path, violations, placements);
  ReadList(proto.offloaded(), TensorPlacement::kOffloaded, "offloaded", path, violations, placements);
  const auto placement_of = [&](v1::LayerTensor tensor) {
    return placements[static_cast<size_t>(tensor)].value_or(TensorPlacement::kRecomputed);
  };
  if (placement_of(v1::LAYER_TENSOR_KEY_PROJ) != placement_of(v1::LAYER_TENSOR_VALUE_PROJ)) {
    violations.Add(path, "LAYER_TENSOR_KEY_PROJ and LAYER_TENSOR_VALUE_PROJ must be in the same list.", "CONFLICT");
  }
  for (const TensorField& field : kTensors) remat.*field.member = placement_of(field.tensor);
}

}  // namespace

void SetRemat(const v1::TrainingWorkload& proto, const FieldPath& path, Violations& violations,
              planner::TrainingWorkload& workload) {
  workload.remat_policy = FromProto(kRematPolicies, proto.remat_policy(), FieldPath(path, "remat_policy"), violations);
  const FieldPath custom_path(path, "custom_remat");
  const bool is_custom = proto.remat_policy() == v1::REMAT_POLICY_CUSTOM;
  if (is_custom && !proto.has_custom_remat()) {
    AddRequired("with REMAT_POLICY_CUSTOM, custom_remat", custom_path, violations);
  } else if (!is_custom && proto.has_custom_remat()) {
    violations.Add(custom_path, "belongs to REMAT_POLICY_CUSTOM, which the request does not ask for.", "CONFLICT");
  } else if (is_custom) {
    SetCustomRemat(proto.custom_remat(), custom_path, violations, workload.custom_remat);
  }
  if (!proto.has_checkpoints_per_layer()) return;
  if (proto.checkpoints_per_layer() < 1) {
    violations.Add(FieldPath(path, "checkpoints_per_layer"),
                   absl::StrCat("must be 1 to 1,024; it is ", proto.checkpoints_per_layer(), "."), "OUT_OF_RANGE");
  } else {
    workload.checkpoints_per_layer = proto.checkpoints_per_layer();
  }
}

void ToProto(const CustomRemat& remat, v1::CustomRemat* proto) {
  for (const TensorField& field : kTensors) {
    switch (remat.*field.member) {
      case TensorPlacement::kSaved: proto->add_saved(field.tensor); break;
      case TensorPlacement::kRecomputed: proto->add_recomputed(field.tensor); break;
      case TensorPlacement::kOffloaded: proto->add_offloaded(field.tensor); break;
    }
  }
}

}  // namespace sliceplan::rpc
