#include "server/rpc/convert/ranges.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/planner/words.h"

namespace sliceplan::rpc {
namespace {

std::string Shown(double value) { return std::isfinite(value) ? absl::StrCat(value) : "not a finite number"; }

}  // namespace

bool CheckRange(int64_t value, int64_t least, int64_t greatest, const FieldPath& path, Violations& violations) {
  if (value >= least && value <= greatest) return true;
  violations.Add(path,
                 absl::StrCat("must be ", planner::CountWords(least), " to ", planner::CountWords(greatest), "; it is ",
                              planner::CountWords(value), "."),
                 "OUT_OF_RANGE");
  return false;
}

bool CheckRange(double value, double least, double greatest, const FieldPath& path, Violations& violations) {
  if (value >= least && value <= greatest) return true;
  violations.Add(path, absl::StrCat("must be ", least, " to ", greatest, "; it is ", Shown(value), "."),
                 "OUT_OF_RANGE");
  return false;
}

bool CheckPositive(double value, double greatest, const FieldPath& path, Violations& violations) {
  return CheckRange(value, kLeastPositive, greatest, path, violations);
}

bool CheckLength(absl::string_view text, size_t greatest, const FieldPath& path, Violations& violations) {
  if (text.size() <= greatest) return true;
  violations.Add(path, absl::StrCat("is ", text.size(), " bytes long; at most ", greatest, " are read."), "TOO_LONG");
  return false;
}

bool CheckCount(int count, int greatest, const FieldPath& path, Violations& violations) {
  if (count <= greatest) return true;
  violations.Add(path, absl::StrCat("has ", count, " entries; at most ", greatest, " are read."), "TOO_MANY");
  return false;
}

void AddRequired(absl::string_view what, const FieldPath& path, Violations& violations) {
  violations.Add(path, absl::StrCat(what, " is required."), "REQUIRED");
}

}  // namespace sliceplan::rpc
