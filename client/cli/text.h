// Numbers for people: as many digits as help, with the unit that fits.
#ifndef SLICEPLAN_CLIENT_CLI_TEXT_H_
#define SLICEPLAN_CLIENT_CLI_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace sliceplan::cli {

// "3,576,279".
std::string Grouped(int64_t value);
// Three digits at least, no exponent: "2.53", "105", "8192", "0.00123".
std::string Significant(double value);
// "1.66M", "15.0T", "6.30e24", "512": powers of 1000.
std::string Short(double value);
// "2.53 s", "312 us", "45.2 min", "17.5 h", "105 days".
std::string Seconds(double seconds);
// "61.2 GiB", "64.0 MiB", "512 B"; negative ones too.
std::string Bytes(double bytes);
// "$86.5M", "$4.20", "$0.0123".
std::string Dollars(double usd);
// "43.1%".
std::string Percent(double ratio);
// Short with a unit and without a gap inside it: "459 TFLOP/s", "90.0 GB/s".
std::string WithUnit(double value, absl::string_view unit);
// "1 chip", "2 chips".
std::string Plural(int64_t count, absl::string_view noun);

// Breaks at spaces; words longer than `width` stay whole. At least one line.
std::vector<std::string> Wrap(absl::string_view text, size_t width);

// The names of `known` that are nearest to `name`, at most three, nearest first; none that has little in common.
std::vector<std::string> NearNames(absl::string_view name, const std::vector<std::string>& known);

// "; did you mean a or b?", or, when nothing is near, "; known are a, b, c".
std::string Suggestion(absl::string_view name, const std::vector<std::string>& known);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_TEXT_H_
