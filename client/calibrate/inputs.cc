#include "client/calibrate/inputs.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/calibrate/cases.h"
#include "client/calibrate/checked_words.h"

namespace sliceplan::calibrate {
namespace {

using ReadTableCases = CaseTable (*)(const Table&, const catalog::Catalog&);

// Adds the rows of the files, and every cell that makes no sense.
absl::Status Add(const std::vector<std::string>& files, TableKind kind, ReadTableCases read,
                 const catalog::Catalog& catalog, CaseTable& all, std::vector<std::string>& faults) {
  for (const std::string& file : files) {
    const absl::StatusOr<Table> table = ReadTable(file);
    if (!table.ok()) return table.status();
    const std::vector<std::string> found = FaultsOf(*table, kind, file, catalog);
    faults.insert(faults.end(), found.begin(), found.end());
    if (!found.empty()) continue;
    CaseTable cases = read(*table, catalog);
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

absl::Status CheckWritable(const std::string& file) {
  if (file.empty()) return absl::OkStatus();
  const std::filesystem::path path(file);
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory, ignored))
    return absl::NotFoundError(absl::StrCat(file, ": there is no directory ", directory.string()));
  if (std::filesystem::is_directory(path, ignored))
    return absl::InvalidArgumentError(absl::StrCat(file, ": is a directory"));
  return absl::OkStatus();
}

absl::StatusOr<CaseTable> ReadCases(const MeasuredFiles& files, const catalog::Catalog& catalog) {
  CaseTable all;
  std::vector<std::string> faults;
  const auto add = [&](const std::vector<std::string>& named, TableKind kind, ReadTableCases read) {
    return Add(named, kind, read, catalog, all, faults);
  };
  if (absl::Status status = add(files.training, TableKind::kTraining, TrainingCases); !status.ok()) return status;
  if (absl::Status status = add(files.serving, TableKind::kServing, ServingCases); !status.ok()) return status;
  if (absl::Status status = add(files.end_to_end, TableKind::kEndToEnd, EndToEndCases); !status.ok()) return status;
  if (!faults.empty()) return absl::InvalidArgumentError(absl::StrJoin(faults, "\n"));
  absl::flat_hash_set<absl::string_view> ids;
  for (const Case& asked : all.cases) {
    if (!ids.insert(asked.id).second)
      return absl::InvalidArgumentError(absl::StrCat("Two rows have the id ", asked.id, "."));
  }
  return all;
}

}  // namespace sliceplan::calibrate
