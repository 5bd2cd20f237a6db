#include "server/catalog/accelerator_spec.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "server/hardware/spec_check.h"
#include "server/hardware/topology.h"
#include "server/hardware/violation.h"

namespace sliceplan::catalog {
namespace {

using hardware::AcceleratorSpec;

// Where a figure goes: a member of the spec, or nowhere (kept for readers, or used below).
using Target = std::variant<std::monostate, std::optional<double> AcceleratorSpec::*,
                            std::optional<int64_t> AcceleratorSpec::*, std::optional<int32_t> AcceleratorSpec::*>;

const absl::flat_hash_map<absl::string_view, Target>& Targets() {
  static const auto& targets = *new absl::flat_hash_map<absl::string_view, Target>{
      {"bf16_flops_per_second", &AcceleratorSpec::bf16_flops_per_second},
      {"int8_ops_per_second", &AcceleratorSpec::int8_ops_per_second},
      {"int4_ops_per_second", &AcceleratorSpec::int4_ops_per_second},
      {"fp8_flops_per_second", &AcceleratorSpec::fp8_flops_per_second},
      {"fp6_flops_per_second", {}},
      {"fp4_flops_per_second", &AcceleratorSpec::fp4_flops_per_second},
      {"tf32_flops_per_second", {}},
      {"fp32_flops_per_second", &AcceleratorSpec::fp32_flops_per_second},
      {"measured_matmul_bf16_flops_per_second", {}},
      {"measured_matmul_fp8_flops_per_second", {}},
      {"sustained_matmul_ratio", &AcceleratorSpec::sustained_matmul_ratio},
      {"vector_flops_per_second", &AcceleratorSpec::vector_flops_per_second},
      {"tensorcore_count", &AcceleratorSpec::tensorcore_count},
      {"mxus_per_tensorcore", &AcceleratorSpec::mxus_per_tensorcore},
      {"mxu_dim", &AcceleratorSpec::mxu_dim},
      {"sparsecore_count", {}},
      {"jax_devices_per_chip", {}},
      {"sm_count", &AcceleratorSpec::sm_count},
      {"tensorcore_clock_hz", {}},
      {"hbm_bytes", &AcceleratorSpec::hbm_bytes},
      {"hbm_usable_bytes", &AcceleratorSpec::hbm_usable_bytes},
      {"hbm_bytes_per_second", &AcceleratorSpec::hbm_bytes_per_second},
      {"vmem_bytes", &AcceleratorSpec::vmem_bytes},
      {"vmem_bytes_per_second", &AcceleratorSpec::vmem_bytes_per_second},
      {"cmem_bytes", {}},
      {"smem_bytes_per_sm", &AcceleratorSpec::smem_bytes_per_sm},
      {"l2_bytes", {}},
      {"llc_bytes", {}},
      {"ici_torus_dims", &AcceleratorSpec::ici_torus_dims},
      {"ici_links_per_chip", {}},
      {"ici_link_bytes_per_second", &AcceleratorSpec::ici_link_bytes_per_second},
      {"ici_link_nominal_bytes_per_second", {}},
      {"ici_chip_bidirectional_bytes_per_second", {}},
      {"ici_hop_latency_seconds", &AcceleratorSpec::ici_hop_seconds},
      {"pod_chip_count", {}},
      {"max_slice_chip_count", {}},
      {"scale_up_domain_size", &AcceleratorSpec::scale_up_domain_size},
      {"scale_up_bytes_per_second", &AcceleratorSpec::scale_up_bytes_per_second},
      {"scale_up_link_bytes_per_second", {}},
      {"scale_up_latency_seconds", &AcceleratorSpec::scale_up_latency_seconds},
      {"network_bytes_per_second", &AcceleratorSpec::network_bytes_per_second},
      {"network_latency_seconds", &AcceleratorSpec::network_latency_seconds},
      {"dcn_bytes_per_second", &AcceleratorSpec::dcn_bytes_per_second},
      {"dcn_latency_seconds", &AcceleratorSpec::dcn_latency_seconds},
      {"pcie_bytes_per_second", &AcceleratorSpec::pcie_bytes_per_second},
      {"chips_per_physical_host", {}},
      {"chips_per_vm", &AcceleratorSpec::chips_per_host},
      {"gpus_per_host", &AcceleratorSpec::chips_per_host},
      {"power_min_watts", {}},
      {"power_mean_watts", &AcceleratorSpec::mean_watts},
      {"power_max_watts", {}},
      {"tdp_watts", &AcceleratorSpec::tdp_watts},
  };
  return targets;
}

template <typename Integer>
void SetInteger(const v1::Figure& figure, absl::string_view path, std::optional<Integer>& member,
                RecordProblems& problems) {
  const double value = figure.value();
  // Integers are exact in a double up to 2^53; the check comes before the cast, which has no meaning out of range.
  constexpr double kMax = sizeof(Integer) == sizeof(int64_t) ? 9007199254740992.0 : std::numeric_limits<int32_t>::max();
  if (value != std::floor(value) || value > kMax) {
    problems.Add(path, absl::StrCat(value, " is not a whole number in range"));
    return;
  }
  member = static_cast<Integer>(value);
}

void Set(const v1::Figure& figure, absl::string_view path, const Target& target, AcceleratorSpec& spec,
         RecordProblems& problems) {
  if (const auto* rate = std::get_if<std::optional<double> AcceleratorSpec::*>(&target)) {
    spec.*(*rate) = figure.value();
  } else if (const auto* bytes = std::get_if<std::optional<int64_t> AcceleratorSpec::*>(&target)) {
    SetInteger(figure, path, spec.*(*bytes), problems);
  } else if (const auto* count = std::get_if<std::optional<int32_t> AcceleratorSpec::*>(&target)) {
    SetInteger(figure, path, spec.*(*count), problems);
  }
}

// The chosen figures by name, checked.
absl::flat_hash_map<absl::string_view, const v1::Figure*> ChosenFigures(const v1::AcceleratorRecord& record,
                                                                        RecordProblems& problems) {
  absl::flat_hash_map<absl::string_view, const v1::Figure*> chosen;
  for (int i = 0; i < record.figures_size(); ++i) {
    const v1::Figure& figure = record.figures(i);
    const std::string path = absl::StrCat("figures[", i, "]", figure.field().empty() ? "" : " ", figure.field());
    problems.Require(absl::StrCat(path, ".source"), !figure.source().empty());
    problems.RequireDate(absl::StrCat(path, ".as_of"), figure.as_of());
    if (!Targets().contains(figure.field())) {
      problems.Add(path, "is not a field of the schema");
    } else if (!figure.has_value()) {
      problems.Add(absl::StrCat(path, ".value"), "is required");
    } else if (!std::isfinite(figure.value()) || figure.value() < 0 || (figure.chosen() && figure.value() == 0)) {
      problems.Add(absl::StrCat(path, ".value"),
                   figure.chosen() ? "must be finite and above 0" : "must be finite and not negative");
    } else if (figure.chosen() && !chosen.emplace(figure.field(), &figure).second) {
      problems.Add(path, "is chosen twice");
    }
  }
  return chosen;
}

// A shape, or an empty one with a problem. Empty text is an empty shape.
void CheckShape(absl::string_view field, absl::string_view text, RecordProblems& problems) {
  if (!text.empty() && !hardware::ParseShape(text).has_value()) {
    problems.Add(field, absl::StrCat("\"", text, "\" is not a shape like 8x8x16"));
  }
}

void SetInterconnect(const v1::AcceleratorRecord& record, AcceleratorSpec& spec, RecordProblems& problems) {
  const v1::Interconnect& interconnect = record.interconnect();
  problems.Require("interconnect", record.has_interconnect());
  if (!record.has_interconnect()) return;
  problems.Require("interconnect.source", !interconnect.source().empty());
  problems.RequireDate("interconnect.as_of", interconnect.as_of());
  CheckShape("interconnect.pod_shape", interconnect.pod_shape(), problems);
  CheckShape("interconnect.max_slice_shape", interconnect.max_slice_shape(), problems);
  for (const std::string& shape : interconnect.twisted_torus().supported_shapes()) {
    CheckShape("interconnect.twisted_torus.supported_shapes", shape, problems);
  }

  int32_t dims = 0;
  switch (interconnect.kind()) {
    case v1::FABRIC_KIND_TORUS_2D: dims = 2; break;
    case v1::FABRIC_KIND_TORUS_3D: dims = 3; break;
    case v1::FABRIC_KIND_SWITCHED: spec.fabric = hardware::FabricKind::kSwitched; break;
    case v1::FABRIC_KIND_OTHER: break;
    default: problems.Add("interconnect.kind", "is required"); break;
  }
  if (spec.ici_torus_dims.value_or(dims) != dims) {
    problems.Add("figures ici_torus_dims", "contradicts interconnect.kind");
  }
  switch (interconnect.wrap_rule()) {
    case v1::WRAP_RULE_CUBES_WRAP_ALL_AXES: spec.wrap_rule = hardware::WrapRule::kWholeCubes; break;
    case v1::WRAP_RULE_AXIS_OF_16_WRAPS: spec.wrap_rule = hardware::WrapRule::kAxisOf16; break;
    case v1::WRAP_RULE_FULL_POD_ONLY: spec.wrap_rule = hardware::WrapRule::kFullPodOnly; break;
    default: spec.wrap_rule = hardware::WrapRule::kNever; break;
  }
  if (interconnect.tiers_size() > 0) {
    const v1::NetworkTier& domain = interconnect.tiers(0);
    if (domain.has_domain_size() && domain.domain_size() != spec.scale_up_domain_size.value_or(0)) {
      problems.Add("interconnect.tiers[0].domain_size", "contradicts the figure scale_up_domain_size");
    }
    spec.in_network_reduction = domain.in_network_reduction();
    for (int i = 1; i < interconnect.tiers_size(); ++i) {
      if (interconnect.tiers(i).in_network_reduction()) spec.network_in_network_reduction = true;
    }
  }
}

}  // namespace

AcceleratorSpec ToAcceleratorSpec(const v1::AcceleratorRecord& record, RecordProblems& problems) {
  problems.Require("id", !record.id().empty());
  problems.Require("kind", record.kind() != v1::ACCELERATOR_KIND_UNSPECIFIED);
  problems.Require("vendor", !record.vendor().empty());
  problems.Require("status", record.status() != v1::AVAILABILITY_STATUS_UNSPECIFIED);
  problems.Require("source", !record.source().empty());
  problems.RequireDate("as_of", record.as_of());

  AcceleratorSpec spec;
  spec.name = record.id();
  const auto chosen = ChosenFigures(record, problems);
  for (const auto& [field, figure] : chosen)
    Set(*figure, absl::StrCat("figures ", field), Targets().at(field), spec, problems);

  const auto value_of = [&chosen](absl::string_view field) -> std::optional<double> {
    const auto found = chosen.find(field);
    return found == chosen.end() ? std::nullopt : std::optional<double>(found->second->value());
  };
  // GPUs run fp32 matmuls on the tensor cores as tf32.
  if (!spec.fp32_flops_per_second) spec.fp32_flops_per_second = value_of("tf32_flops_per_second");
  const std::optional<double> measured_bf16 = value_of("measured_matmul_bf16_flops_per_second");
  if (measured_bf16 && spec.bf16_flops_per_second)
    spec.sustained_matmul_ratio = *measured_bf16 / *spec.bf16_flops_per_second;
  const std::optional<double> measured_fp8 = value_of("measured_matmul_fp8_flops_per_second");
  if (measured_fp8 && spec.fp8_flops_per_second)
    spec.sustained_fp8_matmul_ratio = *measured_fp8 / *spec.fp8_flops_per_second;
  std::optional<int32_t> devices_per_chip;
  if (const auto found = chosen.find("jax_devices_per_chip"); found != chosen.end()) {
    SetInteger(*found->second, "figures jax_devices_per_chip", devices_per_chip, problems);
  }
  spec.devices_per_chip = devices_per_chip.value_or(1);
  SetInterconnect(record, spec, problems);

  std::vector<hardware::Violation> violations;
  hardware::CheckSpec(spec, "", violations);
  for (const hardware::Violation& violation : violations) problems.Add(violation.field, violation.description);
  return spec;
}

}  // namespace sliceplan::catalog
