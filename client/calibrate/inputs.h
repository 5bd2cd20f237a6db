// The files that the tool reads and writes.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_INPUTS_H_
#define SLICEPLAN_CLIENT_CALIBRATE_INPUTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/calibrate/case.h"
#include "client/calibrate/table.h"
#include "server/catalog/catalog.h"

namespace sliceplan::calibrate {

// Errors begin with the file's name.
absl::StatusOr<Table> ReadTable(const std::string& file);
absl::Status WriteText(const std::string& file, const std::string& text);
// Whether the file could be written; writes nothing. OK for an empty name.
absl::Status CheckWritable(const std::string& file);

struct MeasuredFiles {
  std::vector<std::string> training;
  std::vector<std::string> serving;
  std::vector<std::string> end_to_end;
};

// The rows of all files. INVALID_ARGUMENT with every cell that makes no sense (checked_words.h), and when two rows have
// one id.
absl::StatusOr<CaseTable> ReadCases(const MeasuredFiles& files, const catalog::Catalog& catalog);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_INPUTS_H_
