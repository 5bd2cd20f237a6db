#include "client/calibrate/csv_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace sliceplan::calibrate {

std::string CsvField(absl::string_view text) {
  if (text.find_first_of("\",\r\n") == absl::string_view::npos && text.substr(0, 1) != "#") return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace sliceplan::calibrate
