// Fields of the tables that the tool writes.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_CSV_TEXT_H_
#define SLICEPLAN_CLIENT_CALIBRATE_CSV_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sliceplan::calibrate {

// In quotes when a reader of RFC 4180 needs them.
std::string CsvField(absl::string_view text);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_CSV_TEXT_H_
