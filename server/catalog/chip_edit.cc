#include "server/catalog/chip_edit.h"

#include "absl/strings/str_cat.h"
#include "server/hardware/spec_check.h"

namespace sliceplan::catalog {
namespace {

using hardware::AcceleratorSpec;
using hardware::Violation;

constexpr char kConflict[] = "CONFLICTING_FIELDS";

}  // namespace

AcceleratorSpec CustomSpec(const SliceQuery& query, std::vector<Violation>& violations) {
  AcceleratorSpec custom = *query.custom;
  hardware::CheckSpec(custom, "custom.", violations);
  const bool has_several_dims = query.topology.find_first_of("xX") != absl::string_view::npos;
  const bool names_torus = custom.ici_torus_dims.has_value() || custom.ici_link_bytes_per_second.has_value() ||
                           !query.axis_wraps.empty() || query.twisted || has_several_dims;
  const bool names_switches = custom.scale_up_domain_size.has_value() || custom.scale_up_bytes_per_second.has_value() ||
                              custom.network_bytes_per_second.has_value();
  if (names_torus && names_switches) {
    violations.push_back({"custom",
                          "A custom chip is joined by a torus (ici fields, a topology of several dimensions) or by "
                          "switches (scale_up and network fields), not both.",
                          kConflict});
  }
  custom.fabric = names_torus ? hardware::FabricKind::kTorus : hardware::FabricKind::kSwitched;
  custom.wrap_rule = hardware::WrapRule::kNever;
  return custom;
}

AcceleratorSpec OverriddenSpec(const Accelerator& accelerator, const SliceQuery& query,
                               std::vector<Violation>& violations) {
  const AcceleratorSpec& listed = accelerator.spec;
  AcceleratorSpec edited = listed;
  if (!query.override_fields && query.axis_wraps.empty()) return edited;
  if (query.override_fields) query.override_fields(edited);
  if (edited.hbm_bytes != listed.hbm_bytes && edited.hbm_usable_bytes == listed.hbm_usable_bytes) {
    // The listed share of another memory says nothing about this one.
    edited.hbm_usable_bytes.reset();
  }
  hardware::CheckSpec(edited, "override.", violations);
  if (edited.ici_torus_dims != listed.ici_torus_dims) {
    violations.push_back({"override.ici_torus_dims",
                          "The dimensions of the torus belong to the chip; describe a custom chip.", kConflict});
  }
  const bool is_switched = listed.fabric == hardware::FabricKind::kSwitched;
  const bool names_torus = edited.ici_link_bytes_per_second != listed.ici_link_bytes_per_second ||
                           edited.ici_hop_seconds != listed.ici_hop_seconds || !query.axis_wraps.empty();
  const bool names_switches = edited.scale_up_domain_size != listed.scale_up_domain_size ||
                              edited.scale_up_bytes_per_second != listed.scale_up_bytes_per_second ||
                              edited.network_bytes_per_second != listed.network_bytes_per_second;
  if (is_switched && names_torus) {
    violations.push_back({"override",
                          absl::StrCat(accelerator.record.id(), " is joined by switches: the ici fields do not apply."),
                          kConflict});
  } else if (!is_switched && names_switches) {
    violations.push_back(
        {"override",
         absl::StrCat(accelerator.record.id(), " is joined by a torus: the scale_up and network fields do not apply."),
         kConflict});
  }
  return edited;
}

}  // namespace sliceplan::catalog
