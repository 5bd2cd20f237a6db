#include "server/catalog/problems.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/hardware/price_table.h"

namespace sliceplan::catalog {
namespace {

// A status message travels in logs: a file of the wrong kind must not fill them.
constexpr size_t kMaxLines = 100;

}  // namespace

void Problems::Add(absl::string_view file, absl::string_view record, absl::string_view field, absl::string_view what) {
  std::string line(file);
  for (absl::string_view part : {record, field}) {
    if (!part.empty()) absl::StrAppend(&line, ": ", part);
  }
  absl::StrAppend(&line, ": ", what);
  lines_.push_back(std::move(line));
}

absl::Status Problems::ToStatus() const {
  if (lines_.empty()) return absl::OkStatus();
  std::vector<std::string> lines = lines_;
  std::stable_sort(lines.begin(), lines.end(), [](const std::string& a, const std::string& b) {
    return a.substr(0, a.find(':')) < b.substr(0, b.find(':'));
  });
  std::string message = absl::StrCat("the catalog has ", lines.size(), lines.size() == 1 ? " problem:" : " problems:");
  for (size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) absl::StrAppend(&message, "\n", lines[i]);
  if (lines.size() > kMaxLines) absl::StrAppend(&message, "\nand ", lines.size() - kMaxLines, " more");
  return absl::InvalidArgumentError(message);
}

void RecordProblems::RequireDate(absl::string_view field, absl::string_view date) {
  if (date.empty()) {
    Add(field, "is required");
  } else if (!hardware::IsPriceDate(date)) {
    Add(field, absl::StrCat("\"", date, "\" is not a date like 2026-08-22 or 2026-08"));
  }
}

}  // namespace sliceplan::catalog
