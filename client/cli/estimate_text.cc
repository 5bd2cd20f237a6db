#include "client/cli/estimate_text.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/choices.h"
#include "client/cli/text.h"

namespace sliceplan::cli {
namespace {

// "--sequence" for a field that has a flag, the field's path for another.
std::string FlagOrField(const std::string& field, const Flags& flags) {
  const std::string flag = flags.FlagFor(field);
  return flag.empty() ? field : flag;
}

// In the order of AxisDegrees.
constexpr absl::string_view kShortAxes[] = {"dp", "fsdp", "tp", "cp", "ep", "pp"};

std::string PieceText(const v1::AxisAssignment& piece) {
  std::string text = absl::StrCat("axis ", piece.physical_axis(), " x", piece.factor());
  if (piece.has_stride() && piece.stride() > 1) absl::StrAppend(&text, " every ", piece.stride());
  return text;
}

std::string SignedPercent(double ratio) { return absl::StrFormat("%+.1f%%", 100 * ratio); }

}  // namespace

std::string ChangesText(const google::protobuf::RepeatedPtrField<v1::FieldChange>& changes, const Flags& flags) {
  std::vector<std::string> texts;
  std::string last_flag;
  for (const v1::FieldChange& change : changes) {
    const std::string text = flags.ChangeAsFlag(change.field(), change.value());
    // "--parallelism fsdp=8" and "--parallelism tensor=4" are one flag with two pairs.
    const std::string flag = absl::StrContains(text, '=') ? text.substr(0, text.find(' ') + 1) : "";
    if (!flag.empty() && flag == last_flag && absl::StartsWith(flag, "--")) {
      absl::StrAppend(&texts.back(), ",", text.substr(flag.size()));
    } else {
      texts.push_back(text);
    }
    last_flag = flag;
  }
  return absl::StrJoin(texts, ", ");
}

std::string ResourceText(v1::Resource resource) {
  switch (resource) {
    case v1::RESOURCE_VMEM: return "VMEM";
    case v1::RESOURCE_HBM: return "HBM";
    case v1::RESOURCE_ICI: return "ICI";
    case v1::RESOURCE_SCALE_UP: return "scale-up links";
    case v1::RESOURCE_DCN: return "DCN";
    case v1::RESOURCE_PCIE: return "PCIe";
    case v1::RESOURCE_HBM_CAPACITY: return "HBM capacity";
    case v1::RESOURCE_UNSPECIFIED: return "nothing";
    default: return absl::StrReplaceAll(ChoiceName(resource), {{"-", " "}});
  }
}

std::string ComponentText(v1::Component component) {
  if (component == v1::COMPONENT_MTP) return "multi-token prediction";
  return component == v1::COMPONENT_UNSPECIFIED ? "" : absl::StrReplaceAll(ChoiceName(component), {{"-", " "}});
}

std::string OutcomeText(v1::Outcome outcome) {
  return absl::AsciiStrToUpper(absl::StrReplaceAll(ChoiceName(outcome), {{"-", " "}}));
}

std::string SliceText(const v1::SliceUsed& slice) {
  const v1::SliceInfo& info = slice.slice();
  std::string text = slice.slice_count() > 1 ? absl::StrCat(Grouped(slice.slice_count()), " x ") : "";
  absl::StrAppend(&text, info.accelerator(), " ", info.topology());
  if (slice.twisted()) absl::StrAppend(&text, " twisted");
  return absl::StrCat(text, " (", Plural(slice.total_chip_count(), "chip"), ")");
}

std::string DegreesText(const v1::AxisDegrees& degrees) {
  std::vector<std::string> texts;
  const auto* const type = degrees.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const int degree = degrees.GetReflection()->GetInt32(degrees, type->field(i));
    if (degree > 1) texts.push_back(absl::StrCat(type->field(i)->name(), " ", degree));
  }
  return texts.empty() ? "1 chip" : absl::StrJoin(texts, " x ");
}

std::string PlanFlag(const v1::Parallelism& plan) {
  std::vector<std::string> texts;
  const auto add = [&texts](const v1::AxisDegrees& degrees, absl::string_view prefix) {
    const auto* const type = v1::AxisDegrees::descriptor();
    int axis = 0;
    for (const absl::string_view name : kShortAxes) {
      const int degree = degrees.GetReflection()->GetInt32(degrees, type->field(axis++));
      if (degree > 1) texts.push_back(absl::StrCat(prefix, name, "=", degree));
    }
  };
  add(plan.ici(), "");
  add(plan.dcn(), "dcn.");
  return texts.empty() ? "dp=1" : absl::StrJoin(texts, ",");
}

std::string MappingText(const google::protobuf::RepeatedPtrField<v1::AxisPlacement>& mapping) {
  std::vector<std::string> texts;
  for (const v1::AxisPlacement& placement : mapping) {
    std::vector<std::string> pieces;
    for (const v1::AxisAssignment& piece : placement.pieces()) pieces.push_back(PieceText(piece));
    std::string text = absl::StrCat(ChoiceName(placement.axis()), " on ");
    if (!pieces.empty()) absl::StrAppend(&text, absl::StrJoin(pieces, " + "), placement.closes_ring() ? " (ring)" : "");
    if (placement.dcn_degree() > 1)
      absl::StrAppend(&text, pieces.empty() ? "" : " and ", "DCN x", placement.dcn_degree());
    texts.push_back(text);
  }
  return absl::StrJoin(texts, "; ");
}

std::string MemoryText(int64_t used_bytes, int64_t capacity_bytes) {
  const auto used = static_cast<double>(used_bytes);
  const auto capacity = static_cast<double>(capacity_bytes);
  std::string text = absl::StrCat(Bytes(used), " of ", Bytes(capacity), " per chip");
  if (capacity > 0) absl::StrAppend(&text, " (", Percent(used / capacity), ")");
  if (used > capacity) absl::StrAppend(&text, ", ", Bytes(used - capacity), " too much");
  return text;
}

void PrintShortfall(const v1::Shortfall& shortfall, Report& report) { report.Row("missing", shortfall.sentence()); }

void PrintFix(const v1::Fix& fix, const Flags& flags, Report& report) {
  std::string text = fix.sentence();
  if (!fix.changes().empty()) absl::StrAppend(&text, " [", ChangesText(fix.changes(), flags), "]");
  report.Row("fix", text);
}

std::string PriceText(const v1::Price& price) {
  return absl::StrCat(price.provider(), " ", price.region(), ", ",
                      absl::StrReplaceAll(ChoiceName(price.price_model()), {{"-", " "}}), ", ", price.as_of());
}

void PrintAdvice(const google::protobuf::RepeatedPtrField<v1::Advice>& advice, const Flags& flags, Report& report) {
  if (advice.empty()) return;
  report.Section("Worth trying");
  for (const v1::Advice& item : advice) {
    std::vector<std::string> effects;
    if (item.has_expected_seconds()) effects.push_back(absl::StrCat("then ", Seconds(item.expected_seconds())));
    if (item.has_time_change_ratio()) effects.push_back(absl::StrCat("time ", SignedPercent(item.time_change_ratio())));
    if (item.has_cost_change_ratio()) effects.push_back(absl::StrCat("cost ", SignedPercent(item.cost_change_ratio())));
    if (item.has_memory_change_bytes()) {
      effects.push_back(
          absl::StrCat("memory ", item.memory_change_bytes() < 0 ? "" : "+", Bytes(item.memory_change_bytes())));
    }
    std::string text = item.sentence();
    if (!effects.empty()) absl::StrAppend(&text, " (", absl::StrJoin(effects, ", "), ")");
    if (!item.changes().empty()) absl::StrAppend(&text, " [", ChangesText(item.changes(), flags), "]");
    report.Item(text);
  }
}

void PrintAssumptions(const google::protobuf::RepeatedPtrField<v1::Assumption>& assumptions, const Flags& flags,
                      Report& report) {
  if (assumptions.empty() && flags.notes().empty()) return;
  report.Section("Assumed");
  for (const std::string& note : flags.notes()) report.Item(note);
  for (const v1::Assumption& assumption : assumptions) {
    const std::string flag = FlagOrField(assumption.field(), flags);
    report.Item(flag.empty() ? assumption.sentence() : absl::StrCat(assumption.sentence(), " [", flag, "]"));
  }
}

void PrintWarnings(const google::protobuf::RepeatedPtrField<v1::Warning>& warnings, const Flags& flags,
                   Report& report) {
  if (warnings.empty()) return;
  report.Section("Warnings");
  for (const v1::Warning& warning : warnings) {
    const std::string flag = FlagOrField(warning.field(), flags);
    report.Item(flag.empty() ? warning.sentence() : absl::StrCat(warning.sentence(), " [", flag, "]"));
  }
}

void PrintVersions(const std::string& engine_version, const std::string& catalog_version, Report& report) {
  report.EmptyLine();
  report.Sentence(absl::StrCat("engine ", engine_version, ", catalog ", catalog_version), Tone::kFaint);
}

}  // namespace sliceplan::cli
