// The files that the tool reads and writes.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_INPUTS_H_
#define SLICEPLAN_CLIENT_CALIBRATE_INPUTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/calibrate/case.h"
#include "client/calibrate/table.h"

namespace sliceplan::calibrate {

// Errors begin with the file's name.
absl::StatusOr<Table> ReadTable(const std::string& file);
absl::Status WriteText(const std::string& file, const std::string& text);

struct MeasuredFiles {
  std::vector<std::string> training;
  std::vector<std::string> serving;
  std::vector<std::string> end_to_end;
};

// The rows of all files. INVALID_ARGUMENT also when two rows have one id.
absl::StatusOr<CaseTable> ReadCases(const MeasuredFiles& files);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_INPUTS_H_
