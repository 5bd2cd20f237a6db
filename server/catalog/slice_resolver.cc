#include "server/catalog/slice_resolver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/catalog/near_names.h"
#include "server/catalog/shape_choice.h"
#include "server/hardware/spec_check.h"
#include "server/hardware/topology.h"

namespace sliceplan::catalog {
namespace {

using hardware::AcceleratorSpec;
using hardware::Shape;
using hardware::ShapeName;
using hardware::Violation;

constexpr size_t kMaxNameLength = 128;
constexpr size_t kMaxQuoted = 80;

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", text.substr(0, kMaxQuoted), text.size() > kMaxQuoted ? "..." : "", "\"");
}

class Resolver {
 public:
  Resolver(const Catalog& catalog, const SliceQuery& query) : catalog_(catalog), query_(query) {}

  SliceResolution Resolve() {
    CheckForm();
    FindChip();
    if (chip_known_) {
      EditChip();
      ResolveShape();
    }
    SetSliceCount();
    SliceResolution resolution;
    if (violations_.empty()) {
      resolution.resolved = std::move(out_);
    } else {
      resolution.violations = std::move(violations_);
    }
    return resolution;
  }

 private:
  void Fail(absl::string_view field, std::string description, absl::string_view reason,
            Violation::Kind kind = Violation::Kind::kInvalid) {
    violations_.push_back({std::string(field), std::move(description), std::string(reason), kind});
  }
  void Note(std::string note) { out_.notes.push_back(std::move(note)); }

  const AcceleratorSpec& spec() const { return out_.slice.accelerator; }
  const std::string& id() const { return out_.accelerator->record.id(); }
  bool IsSwitched() const { return spec().fabric == hardware::FabricKind::kSwitched; }

  // What can be said of the query without the catalog.
  void CheckForm();
  void FindChip();
  void FindChipOfType();
  void EditChip();
  // The fabric of a chip that the catalog does not have.
  void SetCustomFabric();

  void ResolveShape();
  void ResolveOneChip();
  void ResolveGpus(absl::string_view field, int64_t chip_count);
  void ResolveGpuMachine(int64_t chip_count);
  void ResolveTorusCount(absl::string_view field, int64_t chip_count);
  void ResolveTorusShape(absl::string_view field, const Shape& shape);
  void ResolveCustomShape(const Shape& shape);
  // Of several hosts of one shape, the named one or the first.
  const v1::SliceRecord* ChooseHost(const std::vector<const v1::SliceRecord*>& records);
  void UseRecord(const v1::SliceRecord& record);
  void SetAxes(const Shape& shape);
  void SetTwist(const Shape& shape);
  void SetSliceCount();

  const Catalog& catalog_;
  const SliceQuery& query_;
  ResolvedSlice out_;
  std::vector<Violation> violations_;
  bool chip_known_ = false;
  // What `accelerator_type` says; at most one is set.
  absl::Span<const v1::SliceRecord* const> type_records_;
  std::optional<Shape> type_shape_;
  std::optional<int64_t> type_chip_count_;
};

void Resolver::CheckForm() {
  if (query_.custom != nullptr && !query_.accelerator.empty()) {
    Fail("accelerator", "accelerator and custom exclude each other.", "CONFLICTING_FIELDS");
  }
  const int shape_count = (query_.topology.empty() ? 0 : 1) + (query_.accelerator_type.empty() ? 0 : 1) +
                          (query_.chip_count.has_value() ? 1 : 0);
  if (shape_count > 1) {
    Fail("topology", "topology, accelerator_type and chip_count exclude each other.", "CONFLICTING_FIELDS");
  }
  if (query_.custom != nullptr && query_.override_fields) {
    Fail("override", "override is for a chip of the catalog; change custom itself.", "CONFLICTING_FIELDS");
  }
  if (query_.chip_count.has_value() && (*query_.chip_count < 1 || *query_.chip_count > hardware::kMaxChipCount)) {
    Fail("chip_count", absl::StrCat("chip_count must be between 1 and ", hardware::kMaxChipCount, "."), "OUT_OF_RANGE");
  }
  for (const auto& [field, text] : {std::pair<absl::string_view, absl::string_view>{"accelerator", query_.accelerator},
                                    {"topology", query_.topology},
                                    {"accelerator_type", query_.accelerator_type},
                                    {"machine_type", query_.machine_type}}) {
    if (text.size() > kMaxNameLength) {
      Fail(field, absl::StrCat(field, " is longer than ", kMaxNameLength, " bytes."), "OUT_OF_RANGE");
    }
  }
}

void Resolver::FindChip() {
  if (query_.custom != nullptr) {
    out_.slice.accelerator = *query_.custom;
    chip_known_ = true;
    if (!query_.accelerator_type.empty()) {
      Fail("accelerator_type",
           "accelerator_type names a chip of the catalog; give topology or chip_count for a custom chip.",
           "CONFLICTING_FIELDS");
      chip_known_ = false;
    }
    return;
  }
  if (!query_.accelerator.empty()) {
    AcceleratorLookup lookup = catalog_.FindAccelerator(query_.accelerator);
    if (lookup.violation.has_value()) violations_.push_back(*std::move(lookup.violation));
    out_.accelerator = lookup.accelerator;
  }
  if (!query_.accelerator_type.empty()) {
    FindChipOfType();
  } else if (query_.accelerator.empty()) {
    Fail("accelerator", "accelerator is required, or accelerator_type, or custom.", "REQUIRED");
  }
  if (out_.accelerator == nullptr) return;
  out_.slice.accelerator = out_.accelerator->spec;
  out_.slice.accelerator_id = id();
  chip_known_ = true;
}

void Resolver::FindChipOfType() {
  const absl::string_view type = query_.accelerator_type;
  const Accelerator* named = nullptr;
  type_records_ = catalog_.FindSlices(type);
  if (!type_records_.empty()) {
    named = catalog_.FindAccelerator(type_records_.front()->accelerator()).accelerator;
  } else if (const size_t hyphen = type.rfind('-'); hyphen != absl::string_view::npos) {
    // "v5p-512" or "v5p-4x4x16", of a chip by any of its names.
    AcceleratorLookup lookup = catalog_.FindAccelerator(type.substr(0, hyphen), "accelerator_type");
    const std::optional<Shape> shape = hardware::ParseShape(type.substr(hyphen + 1));
    if (shape.has_value() && lookup.violation.has_value() && lookup.violation->reason == "AMBIGUOUS_ACCELERATOR") {
      violations_.push_back(*std::move(lookup.violation));
      return;
    }
    if (shape.has_value() && lookup.accelerator != nullptr) {
      named = lookup.accelerator;
      if (shape->size() > 1) {
        type_shape_ = shape;
      } else {
        const int64_t number = shape->front();
        const int32_t cores = CoresPerNamedChip(*named);
        if (number % cores != 0) {
          Fail("accelerator_type",
               absl::StrCat("The number in ", Quoted(type), " counts TensorCores, ", cores, " a chip; ", number,
                            " is not a multiple of ", cores, "."),
               "ILLEGAL_CHIP_COUNT");
          return;
        }
        type_chip_count_ = number / cores;
      }
    }
  }
  if (named == nullptr) {
    if (catalog_.FindAccelerator(type).accelerator != nullptr) {
      Fail("accelerator_type", absl::StrCat(Quoted(type), " names a chip, not a slice; it belongs in accelerator."),
           "UNKNOWN_ACCELERATOR_TYPE", Violation::Kind::kNotFound);
      return;
    }
    std::vector<absl::string_view> names;
    for (const v1::SliceRecord& record : catalog_.slices()) {
      if (!record.slice_name().empty()) names.push_back(record.slice_name());
    }
    const std::string hint = DidYouMean(NearNames(type, names));
    Fail("accelerator_type", absl::StrCat("There is no accelerator type ", Quoted(type), hint.empty() ? "." : hint),
         "UNKNOWN_ACCELERATOR_TYPE", Violation::Kind::kNotFound);
    return;
  }
  if (out_.accelerator != nullptr && out_.accelerator != named) {
    Fail("accelerator_type",
         absl::StrCat(Quoted(type), " is a slice of ", named->record.id(), ", but accelerator says ", id(), "."),
         "CONFLICTING_FIELDS");
    return;
  }
  if (!query_.accelerator.empty() && out_.accelerator == nullptr) return;  // reported: an unknown accelerator
  out_.accelerator = named;
}

void Resolver::EditChip() {
  if (out_.accelerator == nullptr) {
    hardware::CheckSpec(spec(), "custom.", violations_);
    SetCustomFabric();
    return;
  }
  if (!query_.override_fields && query_.axis_wraps.empty()) return;
  const AcceleratorSpec& listed = out_.accelerator->spec;
  AcceleratorSpec& edited = out_.slice.accelerator;
  if (query_.override_fields) query_.override_fields(edited);
  if (edited.hbm_bytes != listed.hbm_bytes && edited.hbm_usable_bytes == listed.hbm_usable_bytes) {
    // The listed share of another memory says nothing about this one.
    edited.hbm_usable_bytes.reset();
  }
  hardware::CheckSpec(edited, "override.", violations_);
  if (edited.ici_torus_dims != listed.ici_torus_dims) {
    Fail("override.ici_torus_dims", "The dimensions of the torus belong to the chip; describe a custom chip.",
         "CONFLICTING_FIELDS");
  }
  const bool names_torus = edited.ici_link_bytes_per_second != listed.ici_link_bytes_per_second ||
                           edited.ici_hop_seconds != listed.ici_hop_seconds || !query_.axis_wraps.empty();
  const bool names_switches = edited.scale_up_domain_size != listed.scale_up_domain_size ||
                              edited.scale_up_bytes_per_second != listed.scale_up_bytes_per_second ||
                              edited.network_bytes_per_second != listed.network_bytes_per_second;
  if (IsSwitched() && names_torus) {
    Fail("override", absl::StrCat(id(), " is joined by switches: the ici fields do not apply."), "CONFLICTING_FIELDS");
  } else if (!IsSwitched() && names_switches) {
    Fail("override", absl::StrCat(id(), " is joined by a torus: the scale_up and network fields do not apply."),
         "CONFLICTING_FIELDS");
  }
}

void Resolver::SetCustomFabric() {
  AcceleratorSpec& custom = out_.slice.accelerator;
  const bool names_torus = custom.ici_torus_dims.has_value() || custom.ici_link_bytes_per_second.has_value() ||
                           !query_.axis_wraps.empty() || query_.twisted || absl::StrContains(query_.topology, 'x');
  const bool names_switches = custom.scale_up_domain_size.has_value() || custom.scale_up_bytes_per_second.has_value() ||
                              custom.network_bytes_per_second.has_value();
  if (names_torus && names_switches) {
    Fail("custom",
         "A custom chip is joined by a torus (ici fields, a topology of several dimensions) or by switches "
         "(scale_up and network fields), not both.",
         "CONFLICTING_FIELDS");
  }
  custom.fabric = names_torus ? hardware::FabricKind::kTorus : hardware::FabricKind::kSwitched;
  custom.wrap_rule = hardware::WrapRule::kNever;
}

void Resolver::ResolveShape() {
  if (out_.accelerator != nullptr && out_.accelerator->record.status() == v1::AVAILABILITY_STATUS_ANNOUNCED) {
    Note(absl::StrCat(id(), " is announced and not yet offered: its figures are provisional."));
  }
  if (out_.accelerator == nullptr && !query_.machine_type.empty()) {
    Fail("machine_type", "machine_type names a host of the catalog; a custom chip has none.", "CONFLICTING_FIELDS");
  }
  if (!type_records_.empty()) {
    if (const v1::SliceRecord* record = ChooseHost({type_records_.begin(), type_records_.end()})) {
      if (record->name_counts() == v1::NAME_COUNTS_TENSORCORES) {
        Note(absl::StrCat(query_.accelerator_type, " counts TensorCores: ", record->topology(), ", ",
                          record->chip_count(), " chips."));
      }
      UseRecord(*record);
    }
  } else if (type_shape_.has_value()) {
    ResolveTorusShape("accelerator_type", *type_shape_);
  } else if (type_chip_count_.has_value()) {
    if (IsSwitched()) {
      ResolveGpus("accelerator_type", *type_chip_count_);
    } else {
      ResolveTorusCount("accelerator_type", *type_chip_count_);
    }
  } else if (!query_.topology.empty()) {
    const std::optional<Shape> shape = hardware::ParseShape(query_.topology);
    if (!shape.has_value()) {
      Fail("topology",
           absl::StrCat(Quoted(query_.topology),
                        " is not a topology: 1 to 3 sizes joined by \"x\", as in 8x8x16, at most ",
                        hardware::kMaxChipCount, " chips."),
           "MALFORMED_TOPOLOGY");
    } else if (IsSwitched() && shape->size() == 1) {
      ResolveGpus("topology", shape->front());
    } else if (IsSwitched()) {
      Fail("topology", "Chips joined by switches have no torus shape; give their number as chip_count.",
           "ILLEGAL_TOPOLOGY");
    } else {
      ResolveTorusShape("topology", *shape);
    }
  } else if (query_.chip_count.has_value()) {
    if (*query_.chip_count < 1 || *query_.chip_count > hardware::kMaxChipCount) return;  // reported
    if (IsSwitched()) {
      ResolveGpus("chip_count", *query_.chip_count);
    } else {
      ResolveTorusCount("chip_count", *query_.chip_count);
    }
  } else if (query_.one_chip_without_shape) {
    ResolveOneChip();
  } else if (query_.accelerator_type.empty()) {
    const std::string legal = out_.accelerator == nullptr ? "" : LegalShapes(*out_.accelerator);
    Fail(
        "topology",
        absl::StrCat("A shape is required: topology, accelerator_type or chip_count.", legal.empty() ? "" : " ", legal),
        "REQUIRED");
  }
}

void Resolver::ResolveOneChip() {
  const size_t dims = IsSwitched() ? 1 : static_cast<size_t>(std::clamp(spec().ici_torus_dims.value_or(1), 1, 3));
  out_.slice.axes.assign(dims, {1, false});
  out_.slice.topology = ShapeName(Shape(dims, 1));
  Note("One chip: no shape was given.");
}

void Resolver::ResolveGpus(absl::string_view field, int64_t chip_count) {
  if (query_.twisted) Fail("twisted", "Only a torus can be twisted.", "TWIST_NOT_OFFERED");
  hardware::Slice& slice = out_.slice;
  // Chips of a scale-up domain; of a host where the chips meet on its PCIe alone.
  int64_t domain = 1;
  if (spec().scale_up_domain_size.has_value()) {
    domain = *spec().scale_up_domain_size;
  } else if (spec().scale_up_bytes_per_second.has_value() && spec().chips_per_host.has_value()) {
    domain = *spec().chips_per_host;
  }
  const int64_t host = spec().chips_per_host.value_or(1);
  ResolveGpuMachine(chip_count);
  // A machine with fewer (or more) chips than the usual host holds its own domain, unless domains span hosts.
  if (out_.gpu_machine != nullptr && domain <= host) domain = out_.gpu_machine->gpu_count();

  const DomainSplit split = SplitIntoDomains(chip_count, domain, std::min(host, domain));
  if (split.domain_size == 0) {
    Fail(field,
         absl::StrCat(chip_count, " chips do not fill whole scale-up domains of ", domain,
                      " evenly; the nearest counts are ", absl::StrJoin(split.nearest_counts, " and "), "."),
         "ILLEGAL_CHIP_COUNT");
    return;
  }
  slice.chip_count = chip_count;
  slice.domain_size = static_cast<int32_t>(split.domain_size);
  slice.axes.assign(1, {static_cast<int32_t>(chip_count), false});
  slice.topology = absl::StrCat(chip_count);
  if (split.domain_size < domain && chip_count > domain) {
    Note(absl::StrCat(chip_count, " chips: ", chip_count / split.domain_size, " scale-up domains with ",
                      split.domain_size, " of ", domain, " chips in use each."));
  }
  if (chip_count > 1 && domain == 1 && !spec().scale_up_domain_size.has_value()) {
    Note("The size of the scale-up domain is not known: every chip counts as one of its own.");
  }
  if (out_.gpu_machine != nullptr) {
    slice.machine_type = out_.gpu_machine->machine_type();
    slice.chips_per_host = out_.gpu_machine->gpu_count();
  } else if (spec().chips_per_host.has_value()) {
    slice.chips_per_host = static_cast<int32_t>(std::min<int64_t>(host, chip_count));
  }
  if (slice.chips_per_host > 0) {
    slice.host_count = static_cast<int32_t>((chip_count + slice.chips_per_host - 1) / slice.chips_per_host);
  }
  if (out_.accelerator != nullptr) slice.listed = out_.gpu_machine != nullptr;
}

void Resolver::ResolveGpuMachine(int64_t chip_count) {
  if (out_.accelerator == nullptr) return;
  const std::vector<const v1::GpuMachineRecord*>& machines = out_.accelerator->gpu_machines;
  if (!query_.machine_type.empty()) {
    const auto found = std::find_if(machines.begin(), machines.end(), [this](const v1::GpuMachineRecord* machine) {
      return absl::EqualsIgnoreCase(machine->machine_type(), query_.machine_type);
    });
    if (found == machines.end()) {
      const std::string known = absl::StrJoin(
          machines, ", ",
          [](std::string* out, const v1::GpuMachineRecord* machine) { absl::StrAppend(out, machine->machine_type()); });
      Fail("machine_type",
           absl::StrCat(Quoted(query_.machine_type), " is not a machine with ", id(),
                        known.empty() ? "; none is listed." : "; those are ", known, known.empty() ? "" : "."),
           "UNKNOWN_MACHINE_TYPE", Violation::Kind::kNotFound);
      return;
    }
    out_.gpu_machine = *found;
    if (chip_count % (*found)->gpu_count() != 0) {
      Fail("machine_type",
           absl::StrCat((*found)->machine_type(), " has ", (*found)->gpu_count(), " GPUs: ", chip_count,
                        " is not a whole number of machines."),
           "ILLEGAL_CHIP_COUNT");
    }
    return;
  }
  // The usual host filled, or as many chips as are asked for: the machine when only one fits.
  const int64_t wanted = std::min<int64_t>(chip_count, spec().chips_per_host.value_or(1));
  const v1::GpuMachineRecord* only = nullptr;
  for (const v1::GpuMachineRecord* machine : machines) {
    if (machine->gpu_count() != wanted) continue;
    if (only != nullptr) return;
    only = machine;
  }
  if (only != nullptr && chip_count % wanted == 0) out_.gpu_machine = only;
}

void Resolver::ResolveTorusCount(absl::string_view field, int64_t chip_count) {
  if (out_.accelerator == nullptr) {
    if (chip_count > 1 && !spec().ici_torus_dims.has_value()) {
      Fail(field, "The shape of a custom torus is not known from its chips; give topology, or custom.ici_torus_dims.",
           "ILLEGAL_CHIP_COUNT");
      return;
    }
    const size_t dims = static_cast<size_t>(std::clamp(spec().ici_torus_dims.value_or(1), 1, 3));
    const Shape shape = hardware::ShapesOf(chip_count, dims, 1).front();
    Note(absl::StrCat(chip_count, " chips: planned as ", ShapeName(shape), ", the most cubic shape."));
    ResolveCustomShape(shape);
    return;
  }
  const std::optional<Shape> shape = MostCubicShape(*out_.accelerator, chip_count, query_.machine_type);
  if (!shape.has_value()) {
    const std::vector<int64_t> nearest = NearestChipCounts(*out_.accelerator, chip_count);
    Fail(field,
         nearest.empty() ? absl::StrCat("No slice of ", id(), " is public; describe a custom chip.")
                         : absl::StrCat("No slice of ", id(), " has ", chip_count, chip_count == 1 ? " chip" : " chips",
                                        "; the nearest counts are ", absl::StrJoin(nearest, " and "), ". ",
                                        LegalShapes(*out_.accelerator)),
         "ILLEGAL_CHIP_COUNT");
    return;
  }
  Note(absl::StrCat(chip_count, chip_count == 1 ? " chip" : " chips", ": planned as ", ShapeName(*shape),
                    ", the most cubic legal shape."));
  ResolveTorusShape(field, *shape);
}

void Resolver::ResolveTorusShape(absl::string_view field, const Shape& asked) {
  if (out_.accelerator == nullptr) {
    if (spec().ici_torus_dims.has_value() && asked.size() != static_cast<size_t>(*spec().ici_torus_dims)) {
      Fail(field,
           absl::StrCat(ShapeName(asked), " has ", asked.size(), " dimensions, custom.ici_torus_dims says ",
                        *spec().ici_torus_dims, "."),
           "ILLEGAL_TOPOLOGY");
      return;
    }
    ResolveCustomShape(asked);
    return;
  }
  const Shape shape = hardware::CanonicalOrder(asked);
  const std::vector<const v1::SliceRecord*> records = ListedSlices(*out_.accelerator, shape);
  if (records.empty() && !IsLegalByRule(*out_.accelerator, shape)) {
    Fail(field, absl::StrCat(ShapeName(asked), " is not a slice of ", id(), ". ", LegalShapes(*out_.accelerator)),
         "ILLEGAL_TOPOLOGY");
    return;
  }
  if (shape != asked)
    Note(absl::StrCat(ShapeName(asked), " is read as ", ShapeName(shape), ": axes count in that order."));
  if (!records.empty()) {
    if (const v1::SliceRecord* record = ChooseHost(records)) UseRecord(*record);
    return;
  }
  v1::SliceRecord derived = DeriveSlice(*out_.accelerator, shape);
  if (!query_.machine_type.empty() && !absl::EqualsIgnoreCase(query_.machine_type, derived.machine_type())) {
    Fail("machine_type", absl::StrCat(ShapeName(shape), " comes on ", derived.machine_type(), "."),
         "UNKNOWN_MACHINE_TYPE", Violation::Kind::kNotFound);
    return;
  }
  Note(absl::StrCat(ShapeName(shape), " is not among the listed slices of ", id(), "; its rule allows it."));
  UseRecord(derived);
  out_.slice.listed = false;
  out_.listed = nullptr;
  out_.derived = std::move(derived);
}

void Resolver::ResolveCustomShape(const Shape& shape) {
  SetAxes(shape);
  SetTwist(shape);
}

const v1::SliceRecord* Resolver::ChooseHost(const std::vector<const v1::SliceRecord*>& records) {
  const auto describe = [](std::string* out, const v1::SliceRecord* record) {
    absl::StrAppend(out, record->machine_type(), " (", record->host_count(),
                    record->host_count() == 1 ? " host)" : " hosts)");
  };
  if (!query_.machine_type.empty()) {
    for (const v1::SliceRecord* record : records) {
      if (absl::EqualsIgnoreCase(record->machine_type(), query_.machine_type)) return record;
    }
    Fail("machine_type",
         absl::StrCat(records.front()->topology(), " does not come on ", Quoted(query_.machine_type), "; it comes on ",
                      absl::StrJoin(records, ", ", describe), "."),
         "UNKNOWN_MACHINE_TYPE", Violation::Kind::kNotFound);
    return nullptr;
  }
  if (records.size() > 1) {
    Note(absl::StrCat(records.front()->topology(), " comes on ", absl::StrJoin(records, ", ", describe),
                      "; planned on the first."));
  }
  return records.front();
}

void Resolver::UseRecord(const v1::SliceRecord& record) {
  hardware::Slice& slice = out_.slice;
  const Shape shape(record.dims().begin(), record.dims().end());
  out_.listed = &record;
  slice.listed = true;
  slice.accelerator_type =
      record.cloud_tpu_accelerator_type().empty() ? record.slice_name() : record.cloud_tpu_accelerator_type();
  slice.machine_type = record.machine_type();
  slice.host_count = record.host_count();
  slice.chips_per_host = record.chips_per_host();
  if (record.has_single_slice_schedulable() && !record.single_slice_schedulable()) {
    slice.schedulable = false;
    const std::string& largest = out_.accelerator->record.interconnect().max_slice_shape();
    Note(absl::StrCat(record.topology(), " (", record.chip_count(), " chips) is not sold as one slice",
                      largest.empty() ? "." : "; the largest that is: ", largest, largest.empty() ? "" : "."));
  }
  SetAxes(shape);
  SetTwist(shape);
}

void Resolver::SetAxes(const Shape& shape) {
  hardware::Slice& slice = out_.slice;
  slice.chip_count = hardware::ChipCount(shape);
  slice.topology = ShapeName(shape);
  hardware::AxisWraps wraps;
  if (!query_.axis_wraps.empty()) {
    const absl::string_view field = out_.accelerator == nullptr ? "custom.ici_axis_wraps" : "override.ici_axis_wraps";
    if (query_.axis_wraps.size() != shape.size()) {
      Fail(field,
           absl::StrCat("ici_axis_wraps has ", query_.axis_wraps.size(), " entries, ", slice.topology, " has ",
                        shape.size(), " axes."),
           "ILLEGAL_AXIS_WRAPS");
      return;
    }
    for (size_t i = 0; i < shape.size(); ++i) {
      if (query_.axis_wraps[i] && shape[i] == 2) {
        Note(absl::StrCat("Axis ", i, " has two chips: it does not close, since both links would join the same pair."));
      }
      wraps.push_back(query_.axis_wraps[i] && shape[i] > 2);
    }
  } else if (out_.accelerator == nullptr) {
    for (int32_t size : shape) wraps.push_back(size > 2);
    Note("Every axis of the custom chip with more than two chips closes into a ring: ici_axis_wraps was not given.");
  } else {
    wraps = hardware::WrapsOf(spec().wrap_rule, shape, out_.accelerator->pod_shape);
    const bool is_rule_known = spec().wrap_rule == hardware::WrapRule::kAxisOf16 ||
                               spec().wrap_rule == hardware::WrapRule::kWholeCubes ||
                               shape == out_.accelerator->pod_shape;
    if (!is_rule_known && slice.chip_count > 1) {
      Note(absl::StrCat("No source says which axes of ", slice.topology, " close on ", id(), ": planned as open."));
    }
  }
  slice.axes.clear();
  for (size_t i = 0; i < shape.size(); ++i) slice.axes.push_back({shape[i], wraps[i]});
}

void Resolver::SetTwist(const Shape& shape) {
  const bool offered = out_.accelerator != nullptr && IsTwistOffered(*out_.accelerator, shape);
  if (!query_.twisted) {
    if (offered && !out_.accelerator->record.interconnect().twisted_torus().default_text().empty()) {
      Note(absl::StrCat("Planned untwisted. ", ShapeName(shape), ": ",
                        out_.accelerator->record.interconnect().twisted_torus().default_text(), "."));
    }
    return;
  }
  if (out_.accelerator == nullptr) {
    const bool closed = std::all_of(out_.slice.axes.begin(), out_.slice.axes.end(),
                                    [](const hardware::TorusAxis& axis) { return axis.wraps; });
    if (!hardware::IsTwistable(hardware::CanonicalOrder(shape)) || !closed) {
      Fail("twisted",
           absl::StrCat("A twisted torus has the shape k x 2k, k x k x 2k or k x 2k x 2k and closes along every axis; ",
                        ShapeName(shape), " does not."),
           "TWIST_NOT_OFFERED");
      return;
    }
  } else if (!offered) {
    Fail("twisted",
         absl::StrCat(id(), " ", ShapeName(shape), " is not offered twisted. ", TwistedShapes(*out_.accelerator)),
         "TWIST_NOT_OFFERED");
    return;
  }
  out_.slice.twisted = true;
}

void Resolver::SetSliceCount() {
  const int32_t slice_count = query_.slice_count.value_or(1);
  if (slice_count < 1 || slice_count > kMaxSliceCount) {
    Fail("slice_count", absl::StrCat("slice_count must be between 1 and ", kMaxSliceCount, "."), "OUT_OF_RANGE");
    return;
  }
  out_.slice.slice_count = slice_count;
  if (out_.slice.TotalChips() > kMaxTotalChipCount) {
    Fail("slice_count",
         absl::StrCat(slice_count, " slices of ", out_.slice.chip_count, " chips are more than ", kMaxTotalChipCount,
                      " chips."),
         "OUT_OF_RANGE");
  }
}

}  // namespace

SliceResolution ResolveSlice(const Catalog& catalog, const SliceQuery& query) {
  return Resolver(catalog, query).Resolve();
}

}  // namespace sliceplan::catalog
