#include "server/catalog/named_chip.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "server/catalog/near_names.h"
#include "server/catalog/shape_choice.h"

namespace sliceplan::catalog {
namespace {

using hardware::Shape;
using hardware::Violation;

constexpr char kField[] = "accelerator_type";

Violation UnknownType(const Catalog& catalog, absl::string_view type) {
  Violation violation{kField, "", "UNKNOWN_ACCELERATOR_TYPE", Violation::Kind::kNotFound};
  if (catalog.FindAccelerator(type).accelerator != nullptr) {
    violation.description = absl::StrCat(Quoted(type), " names a chip, not a slice; it belongs in accelerator.");
    return violation;
  }
  std::vector<absl::string_view> names;
  for (const v1::SliceRecord& record : catalog.slices()) {
    if (!record.slice_name().empty()) names.push_back(record.slice_name());
  }
  const std::string hint = DidYouMean(NearNames(type, names));
  violation.description = absl::StrCat("There is no accelerator type ", Quoted(type), hint.empty() ? "." : hint);
  return violation;
}

// "v5p-512" or "v5p-4x4x16", of a chip by any of its names.
NamedChip ReadChipAndShape(const Catalog& catalog, absl::string_view type, std::vector<Violation>& violations) {
  NamedChip named;
  const size_t hyphen = type.rfind('-');
  const std::optional<Shape> shape =
      hyphen == absl::string_view::npos ? std::nullopt : hardware::ParseShape(type.substr(hyphen + 1));
  if (!shape.has_value()) {
    violations.push_back(UnknownType(catalog, type));
    return named;
  }
  AcceleratorLookup lookup = catalog.FindAccelerator(type.substr(0, hyphen), kField);
  if (lookup.accelerator == nullptr) {
    const bool is_ambiguous = lookup.violation->kind == Violation::Kind::kInvalid;
    violations.push_back(is_ambiguous ? *std::move(lookup.violation) : UnknownType(catalog, type));
    return named;
  }
  if (shape->size() > 1) {
    named.shape = shape;
  } else {
    const int64_t number = shape->front();
    const int32_t cores = CoresPerNamedChip(*lookup.accelerator);
    if (number % cores != 0) {
      violations.push_back({kField,
                            absl::StrCat("The number in ", Quoted(type), " counts TensorCores, ", cores, " a chip; ",
                                         number, " is not a multiple of ", cores, "."),
                            "ILLEGAL_CHIP_COUNT"});
      return named;
    }
    named.chip_count = number / cores;
  }
  named.accelerator = lookup.accelerator;
  return named;
}

// The machine that `accelerator` names instead of a chip; nothing when there is none.
NamedChip FindMachine(const Catalog& catalog, const SliceQuery& query) {
  NamedChip named;
  const bool has_shape = !query.topology.empty() || query.chip_count.has_value() || !query.accelerator_type.empty();
  const auto use = [&](const Accelerator& accelerator, const std::string& machine_type, int64_t chip_count) {
    named.accelerator = &accelerator;
    named.machine_type = machine_type;
    if (!has_shape && chip_count > 0) named.chip_count = chip_count;
  };
  for (const Accelerator& accelerator : catalog.accelerators()) {
    for (const v1::GpuMachineRecord* machine : accelerator.gpu_machines) {
      if (!absl::EqualsIgnoreCase(machine->machine_type(), query.accelerator)) continue;
      use(accelerator, machine->machine_type(), machine->gpu_count());
      return named;
    }
    for (const v1::HostRecord& host : accelerator.record.hosts()) {
      if (!absl::EqualsIgnoreCase(host.machine_type(), query.accelerator)) continue;
      use(accelerator, host.machine_type(), host.chip_count());
      return named;
    }
  }
  return named;
}

std::string WithoutHyphens(absl::string_view name) { return absl::StrReplaceAll(NormalizeName(name), {{"-", ""}}); }

// What a name that is no chip's may be instead: a shape, or a slice's name.
void ExplainName(const Catalog& catalog, absl::string_view name, Violation& violation) {
  if (const std::optional<Shape> shape = hardware::ParseShape(name); shape.has_value() && shape->size() > 1) {
    std::vector<absl::string_view> ids;
    for (const Accelerator& accelerator : catalog.accelerators()) {
      const Shape ordered = hardware::CanonicalOrder(*shape);
      if (!ListedSlices(accelerator, ordered).empty() || IsLegalByRule(accelerator, ordered)) {
        ids.push_back(accelerator.record.id());
      }
    }
    violation.description = absl::StrCat(
        Quoted(name), " is a topology and belongs in topology, beside a chip; ",
        ids.empty() ? "no chip comes in it." : absl::StrCat("it is a slice of ", absl::StrJoin(ids, ", "), "."));
    return;
  }
  for (const v1::SliceRecord& record : catalog.slices()) {
    if (record.slice_name().empty() || WithoutHyphens(record.slice_name()) != WithoutHyphens(name)) continue;
    violation.description = absl::StrCat("There is no accelerator ", Quoted(name), "; did you mean the slice \"",
                                         record.slice_name(), "\"?");
    return;
  }
}

}  // namespace

NamedChip FindNamedChip(const Catalog& catalog, const SliceQuery& query, std::vector<Violation>& violations) {
  NamedChip named;
  if (!query.accelerator.empty()) {
    AcceleratorLookup lookup = catalog.FindAccelerator(query.accelerator);
    named.accelerator = lookup.accelerator;
    if (lookup.violation.has_value()) {
      named = FindMachine(catalog, query);
      if (named.accelerator == nullptr) {
        ExplainName(catalog, query.accelerator, *lookup.violation);
        violations.push_back(*std::move(lookup.violation));
      }
    }
  } else if (query.accelerator_type.empty()) {
    violations.push_back({"accelerator", "accelerator is required, or accelerator_type, or custom.", "REQUIRED"});
  }
  if (query.accelerator_type.empty()) return named;

  NamedChip by_type;
  by_type.slices = catalog.FindSlices(query.accelerator_type);
  if (by_type.slices.empty()) {
    by_type = ReadChipAndShape(catalog, query.accelerator_type, violations);
  } else {
    by_type.accelerator = catalog.FindAccelerator(by_type.slices.front()->accelerator()).accelerator;
  }
  if (query.accelerator.empty() || by_type.accelerator == named.accelerator) return by_type;
  if (by_type.accelerator != nullptr && named.accelerator != nullptr) {
    violations.push_back(
        {kField,
         absl::StrCat(Quoted(query.accelerator_type), " is a slice of ", by_type.accelerator->record.id(),
                      ", but accelerator says ", named.accelerator->record.id(), "."),
         "CONFLICTING_FIELDS"});
  }
  return NamedChip();
}

}  // namespace sliceplan::catalog
