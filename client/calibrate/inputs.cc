#include "client/calibrate/inputs.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "client/calibrate/cases.h"

namespace sliceplan::calibrate {
namespace {

absl::Status Add(const std::vector<std::string>& files, CaseTable (*read)(const Table&), CaseTable& all) {
  for (const std::string& file : files) {
    const absl::StatusOr<Table> table = ReadTable(file);
    if (!table.ok()) return table.status();
    CaseTable cases = read(*table);
    std::move(cases.cases.begin(), cases.cases.end(), std::back_inserter(all.cases));
    std::move(cases.unmapped.begin(), cases.unmapped.end(), std::back_inserter(all.unmapped));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Table> ReadTable(const std::string& file) {
  std::ifstream stream(file);
  const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (!stream.good()) return absl::NotFoundError(absl::StrCat(file, ": cannot be read"));
  absl::StatusOr<Table> table = Table::Parse(text);
  if (!table.ok()) return absl::InvalidArgumentError(absl::StrCat(file, ": ", table.status().message()));
  return table;
}

absl::Status WriteText(const std::string& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text;
  stream.close();
  return stream.good() ? absl::OkStatus() : absl::UnavailableError(absl::StrCat(file, ": cannot be written"));
}

absl::StatusOr<CaseTable> ReadCases(const MeasuredFiles& files) {
  CaseTable all;
  if (absl::Status status = Add(files.training, TrainingCases, all); !status.ok()) return status;
  if (absl::Status status = Add(files.serving, ServingCases, all); !status.ok()) return status;
  if (absl::Status status = Add(files.end_to_end, EndToEndCases, all); !status.ok()) return status;
  absl::flat_hash_set<absl::string_view> ids;
  for (const Case& asked : all.cases) {
    if (!ids.insert(asked.id).second)
      return absl::InvalidArgumentError(absl::StrCat("Two rows have the id ", asked.id, "."));
  }
  return all;
}

}  // namespace sliceplan::calibrate
