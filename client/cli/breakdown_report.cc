#include "client/cli/breakdown_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/choices.h"
#include "client/cli/estimate_text.h"
#include "client/cli/text.h"

namespace sliceplan::cli {
namespace {

// Lines that are shown one by one.
constexpr size_t kRows = 12;

struct Line {
  std::string part;
  std::string resource;
  double seconds = 0;
  double hidden_seconds = 0;
};

// Work that serving does not tell apart by part of the model.
std::string ServingPartText(v1::Resource resource) {
  switch (resource) {
    case v1::RESOURCE_HBM: return "weights";
    case v1::RESOURCE_MATRIX_UNIT: return "matmuls with weights";
    case v1::RESOURCE_HOST: return "launches and host";
    case v1::RESOURCE_PIPELINE_BUBBLE: return "waiting";
    default: return "other";
  }
}

// What a line is spent on.
std::string PartText(const v1::BreakdownEntry& entry) {
  const bool part_of_model = entry.component() != v1::COMPONENT_UNSPECIFIED && entry.component() != v1::COMPONENT_OTHER;
  if (part_of_model) return ComponentText(entry.component());
  if (entry.axis() != v1::PARALLELISM_AXIS_UNSPECIFIED) return "communication";
  const bool serves = entry.phase() == v1::PHASE_PREFILL || entry.phase() == v1::PHASE_DECODE;
  if (serves) return ServingPartText(entry.resource());
  return absl::StrReplaceAll(ChoiceName(entry.phase()), {{"-", " "}});
}

std::vector<Line> MergedLines(const Breakdown& breakdown) {
  std::map<std::tuple<std::string, v1::Resource, v1::ParallelismAxis>, Line> merged;
  for (const v1::BreakdownEntry& entry : breakdown) {
    Line& line = merged[{PartText(entry), entry.resource(), entry.axis()}];
    line.part = PartText(entry);
    line.resource = ResourceText(entry.resource());
    if (entry.axis() != v1::PARALLELISM_AXIS_UNSPECIFIED) {
      absl::StrAppend(&line.resource, ", ", ChoiceName(entry.axis()));
    }
    line.seconds += entry.seconds();
    line.hidden_seconds += entry.hidden_seconds();
  }
  std::vector<Line> lines;
  for (const auto& [key, line] : merged) lines.push_back(line);
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return std::tie(a.seconds, a.hidden_seconds) > std::tie(b.seconds, b.hidden_seconds);
  });
  if (lines.size() > kRows + 1) {
    Line rest = {absl::StrCat(lines.size() - kRows, " smaller lines"), "", 0, 0};
    for (size_t i = kRows; i < lines.size(); ++i) {
      rest.seconds += lines[i].seconds;
      rest.hidden_seconds += lines[i].hidden_seconds;
    }
    lines.resize(kRows);
    lines.push_back(rest);
  }
  return lines;
}

}  // namespace

double TotalSeconds(const Breakdown& breakdown) {
  double total = 0;
  for (const v1::BreakdownEntry& entry : breakdown) total += entry.seconds();
  return total;
}

std::string PhasesText(const Breakdown& breakdown) {
  const double total = TotalSeconds(breakdown);
  std::map<v1::Phase, double> seconds;
  for (const v1::BreakdownEntry& entry : breakdown) seconds[entry.phase()] += entry.seconds();
  std::vector<std::string> texts;
  for (const auto& [phase, part] : seconds) {
    const std::string name = phase == v1::PHASE_UNSPECIFIED ? "other" : ChoiceName(phase);
    texts.push_back(absl::StrCat(absl::StrReplaceAll(name, {{"-", " "}}), " ", Percent(part / total)));
  }
  return absl::StrJoin(texts, ", ");
}

void PrintBreakdown(const Breakdown& breakdown, Report& report) {
  const double total = TotalSeconds(breakdown);
  if (!(total > 0)) return;
  const std::vector<Line> lines = MergedLines(breakdown);
  const bool any_hidden =
      std::any_of(lines.begin(), lines.end(), [](const Line& line) { return line.hidden_seconds > 0; });
  std::vector<Column> columns = {{"part", false}, {"resource", false}, {"time", true}, {"share", true}};
  if (any_hidden) columns.push_back({"hidden", true});
  columns.push_back({"", false});
  std::vector<std::vector<std::string>> rows;
  for (const Line& line : lines) {
    std::vector<std::string> row = {line.part, line.resource, Seconds(line.seconds), Percent(line.seconds / total)};
    if (any_hidden) row.push_back(line.hidden_seconds > 0 ? Seconds(line.hidden_seconds) : "");
    row.push_back(Report::Bar(line.seconds / total));
    rows.push_back(std::move(row));
  }
  report.Table(columns, rows);
}

void PrintMemoryClasses(const std::vector<MemoryClass>& classes, int64_t used_bytes, int64_t capacity_bytes,
                        std::vector<std::vector<std::string>> more_rows, Report& report) {
  const auto capacity = static_cast<double>(capacity_bytes);
  std::vector<std::vector<std::string>> rows;
  for (const MemoryClass& part : classes) {
    const auto bytes = static_cast<double>(part.bytes);
    if (part.bytes != 0) rows.push_back({part.name, Bytes(bytes), Report::Bar(capacity > 0 ? bytes / capacity : 0)});
  }
  const double headroom = capacity - static_cast<double>(used_bytes);
  rows.push_back(
      {"used", Bytes(static_cast<double>(used_bytes)),
       absl::StrCat("of ", Bytes(capacity), ", ", Bytes(std::abs(headroom)), headroom < 0 ? " too much" : " free")});
  for (std::vector<std::string>& row : more_rows) rows.push_back(std::move(row));
  report.Table({{"", false}, {"", true}, {"", false}}, rows);
}

}  // namespace sliceplan::cli
