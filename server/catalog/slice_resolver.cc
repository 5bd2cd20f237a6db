#include "server/catalog/slice_resolver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/catalog/chip_edit.h"
#include "server/catalog/gpu_domains.h"
#include "server/catalog/named_chip.h"
#include "server/catalog/near_names.h"
#include "server/catalog/shape_choice.h"
#include "server/catalog/torus_axes.h"
#include "server/hardware/topology.h"

namespace sliceplan::catalog {
namespace {

using hardware::AcceleratorSpec;
using hardware::Shape;
using hardware::ShapeName;
using hardware::Violation;

constexpr size_t kMaxNameLength = 128;

template <typename Counts>
std::string NearestCounts(const Counts& counts) {
  return absl::StrCat(counts.size() == 1 ? "the nearest count is " : "the nearest counts are ",
                      absl::StrJoin(counts, " and "));
}

int64_t BytesOf(double gibibytes) { return static_cast<int64_t>(gibibytes * (int64_t{1} << 30)); }

class Resolver {
 public:
  Resolver(const Catalog& catalog, const SliceQuery& query) : catalog_(catalog), query_(query) {}

  SliceResolution Resolve() {
    CheckForm();
    if (SetChip()) ResolveShape();
    SetSliceCount();
    SliceResolution resolution;
    if (violations_.empty()) {
      resolution.resolved = std::move(out_);
    } else {
      resolution.violations = FirstOfEachField();
    }
    return resolution;
  }

 private:
  void Fail(absl::string_view field, std::string description, absl::string_view reason,
            Violation::Kind kind = Violation::Kind::kInvalid) {
    violations_.push_back({std::string(field), std::move(description), std::string(reason), kind});
  }
  // A name that is too long to be read is not unknown as well.
  std::vector<Violation> FirstOfEachField() const {
    std::vector<Violation> first;
    for (const Violation& violation : violations_) {
      const bool known = std::any_of(first.begin(), first.end(),
                                     [&](const Violation& other) { return other.field == violation.field; });
      if (!known) first.push_back(violation);
    }
    return first;
  }
  void Note(std::string note) { out_.notes.push_back(std::move(note)); }

  absl::string_view machine_type() const {
    return query_.machine_type.empty() ? absl::string_view(named_.machine_type) : query_.machine_type;
  }
  const AcceleratorSpec& spec() const { return out_.slice.accelerator; }
  const std::string& id() const { return out_.accelerator->record.id(); }
  bool IsSwitched() const { return spec().fabric == hardware::FabricKind::kSwitched; }

  // What can be said of the query without the catalog.
  void CheckForm();
  // Sets the chip; false when it is not known.
  bool SetChip();

  void ResolveShape();
  void ResolveOneChip();
  void ResolveGpus(absl::string_view field, int64_t chip_count);
  void ResolveGpuMachine(int64_t chip_count);
  void ResolveTorusCount(absl::string_view field, int64_t chip_count);
  void ResolveTorusShape(absl::string_view field, const Shape& shape);
  // Of several hosts of one shape, the named one or the first.
  const v1::SliceRecord* ChooseHost(const std::vector<const v1::SliceRecord*>& records);
  void UseRecord(const v1::SliceRecord& record);
  void SetSliceCount();

  const Catalog& catalog_;
  const SliceQuery& query_;
  ResolvedSlice out_;
  std::vector<Violation> violations_;
  NamedChip named_;
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

bool Resolver::SetChip() {
  if (query_.custom != nullptr) {
    out_.slice.accelerator = CustomSpec(query_, violations_);
    if (query_.accelerator_type.empty()) return true;
    Fail("accelerator_type",
         "accelerator_type names a chip of the catalog; give topology or chip_count for a custom chip.",
         "CONFLICTING_FIELDS");
    return false;
  }
  named_ = FindNamedChip(catalog_, query_, violations_);
  if (named_.accelerator == nullptr) return false;
  out_.accelerator = named_.accelerator;
  out_.slice.accelerator = OverriddenSpec(*named_.accelerator, query_, violations_);
  out_.slice.accelerator_id = id();
  return true;
}

void Resolver::ResolveShape() {
  if (out_.accelerator != nullptr && out_.accelerator->record.status() == v1::AVAILABILITY_STATUS_ANNOUNCED) {
    Note(absl::StrCat(id(), " is announced and not yet offered: its figures are provisional."));
  }
  if (out_.accelerator == nullptr && !machine_type().empty()) {
    Fail("machine_type", "machine_type names a host of the catalog; a custom chip has none.", "CONFLICTING_FIELDS");
  }
  if (!named_.slices.empty()) {
    if (const v1::SliceRecord* record = ChooseHost({named_.slices.begin(), named_.slices.end()})) {
      if (record->name_counts() == v1::NAME_COUNTS_TENSORCORES) {
        Note(absl::StrCat("The number in ", query_.accelerator_type, " counts TensorCores: ", record->topology(), ", ",
                          record->chip_count(), " chips."));
      }
      UseRecord(*record);
    }
  } else if (named_.shape.has_value()) {
    ResolveTorusShape("accelerator_type", *named_.shape);
  } else if (named_.chip_count.has_value()) {
    if (IsSwitched()) {
      ResolveGpus("accelerator_type", *named_.chip_count);
    } else {
      ResolveTorusCount("accelerator_type", *named_.chip_count);
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
  int64_t domain = DomainSizeOf(spec());
  const int64_t host = spec().chips_per_host.value_or(1);
  ResolveGpuMachine(chip_count);
  // A machine with fewer (or more) chips than the usual host holds its own domain, unless domains span hosts.
  if (out_.gpu_machine != nullptr && domain <= host) domain = out_.gpu_machine->gpu_count();

  const DomainSplit split = SplitIntoDomains(chip_count, domain, std::min(host, domain));
  if (split.domain_size == 0) {
    Fail(field,
         absl::StrCat(chip_count, " chips do not fill whole scale-up domains of ", domain, " evenly; ",
                      NearestCounts(split.nearest_counts), "."),
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
    if (out_.gpu_machine->has_memory_gib()) slice.host_memory_bytes = BytesOf(out_.gpu_machine->memory_gib());
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
  if (!machine_type().empty()) {
    const auto found = std::find_if(machines.begin(), machines.end(), [this](const v1::GpuMachineRecord* machine) {
      return absl::EqualsIgnoreCase(machine->machine_type(), machine_type());
    });
    if (found == machines.end()) {
      const std::string known = absl::StrJoin(
          machines, ", ",
          [](std::string* out, const v1::GpuMachineRecord* machine) { absl::StrAppend(out, machine->machine_type()); });
      Fail("machine_type",
           absl::StrCat(Quoted(machine_type()), " is not a machine with ", id(),
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
    SetTorus(query_, shape, out_, violations_);
    return;
  }
  const std::optional<Shape> shape = MostCubicShape(*out_.accelerator, chip_count);
  if (!shape.has_value()) {
    const std::vector<int64_t> nearest = NearestChipCounts(*out_.accelerator, chip_count);
    Fail(field,
         nearest.empty() ? absl::StrCat("No slice of ", id(), " is public; describe a custom chip.")
                         : absl::StrCat("No slice of ", id(), " has ", chip_count, chip_count == 1 ? " chip" : " chips",
                                        "; ", NearestCounts(nearest), ". ", LegalShapes(*out_.accelerator)),
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
    SetTorus(query_, asked, out_, violations_);
    return;
  }
  const Shape shape = hardware::CanonicalOrder(asked);
  const std::vector<const v1::SliceRecord*> records = ListedSlices(*out_.accelerator, shape);
  if (records.empty() && !IsLegalByRule(*out_.accelerator, shape)) {
    Fail(field, absl::StrCat(ShapeName(asked), " is not a slice of ", id(), ". ", LegalShapes(*out_.accelerator)),
         "ILLEGAL_TOPOLOGY");
    return;
  }
  if (shape != asked) {
    Note(absl::StrCat(ShapeName(asked), " is read as ", ShapeName(shape), ": axes count in that order."));
  }
  if (!records.empty()) {
    if (const v1::SliceRecord* record = ChooseHost(records)) UseRecord(*record);
    return;
  }
  v1::SliceRecord derived = DeriveSlice(*out_.accelerator, shape);
  if (!machine_type().empty() && !absl::EqualsIgnoreCase(machine_type(), derived.machine_type())) {
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

const v1::SliceRecord* Resolver::ChooseHost(const std::vector<const v1::SliceRecord*>& records) {
  const auto describe = [](std::string* out, const v1::SliceRecord* record) {
    absl::StrAppend(out, record->machine_type(), " (", record->host_count(),
                    record->host_count() == 1 ? " host)" : " hosts)");
  };
  if (!machine_type().empty()) {
    for (const v1::SliceRecord* record : records) {
      if (absl::EqualsIgnoreCase(record->machine_type(), machine_type())) return record;
    }
    Fail("machine_type",
         absl::StrCat(records.front()->topology(), " does not come on ", Quoted(machine_type()), "; it comes on ",
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
  for (const v1::HostRecord& host : out_.accelerator->record.hosts()) {
    if (host.machine_type() == record.machine_type() && host.has_memory_gib()) {
      slice.host_memory_bytes = BytesOf(host.memory_gib());
    }
  }
  if (record.has_single_slice_schedulable() && !record.single_slice_schedulable()) {
    slice.schedulable = false;
    const std::string& largest = out_.accelerator->record.interconnect().max_slice_shape();
    Note(absl::StrCat(record.topology(), " (", record.chip_count(), " chips) is not sold as one slice",
                      largest.empty() ? "." : "; the largest that is: ", largest, largest.empty() ? "" : "."));
  }
  SetTorus(query_, shape, out_, violations_);
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
