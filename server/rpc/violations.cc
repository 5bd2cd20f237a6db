#include "server/rpc/violations.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace sliceplan::rpc {
namespace {

// A request of 4 MiB can hold a million wrong values: beyond this many only the count would grow.
constexpr size_t kMaxCollected = 1000;

// "UNKNOWN_MACHINE_TYPE" -> "machine type".
std::string TypeOf(absl::string_view reason) {
  std::string type = absl::AsciiStrToLower(absl::StripPrefix(reason, "UNKNOWN_"));
  std::replace(type.begin(), type.end(), '_', ' ');
  return type;
}

std::string WithStop(const std::string& sentence) {
  const bool ends = !sentence.empty() && (sentence.back() == '.' || sentence.back() == '?');
  return ends ? sentence : sentence + ".";
}

std::string Join(const std::string& parent, const std::string& field) {
  if (parent.empty() || field.empty()) return absl::StrCat(parent, field);
  return field[0] == '[' ? absl::StrCat(parent, field) : absl::StrCat(parent, ".", field);
}

}  // namespace

void Violations::Add(const FieldPath& field, std::string description, absl::string_view reason) {
  if (errors_.size() == kMaxCollected) return;
  errors_.push_back({field.ToString(), std::move(description), std::string(reason)});
}

void Violations::AddUnknownName(const FieldPath& field, absl::string_view type, absl::string_view name,
                                std::string description, absl::string_view reason) {
  if (unknown_type_.empty()) {
    unknown_type_ = std::string(type);
    unknown_name_ = std::string(name);
  }
  Add(field, std::move(description), reason);
}

void Violations::Add(const FieldPath& parent, const hardware::Violation& violation, absl::string_view name) {
  if (errors_.size() == kMaxCollected) return;
  if (violation.kind == hardware::Violation::Kind::kNotFound && unknown_type_.empty()) {
    unknown_type_ = TypeOf(violation.reason);
    unknown_name_ = std::string(name);
  }
  errors_.push_back({Join(parent.ToString(), violation.field), WithStop(violation.description),
                     violation.reason.empty() ? "INVALID_FIELD" : violation.reason});
}

void Violations::AddMissing(const FieldPath& parent, const std::vector<hardware::Violation>& found) {
  const size_t known_count = errors_.size();
  for (const hardware::Violation& violation : found) {
    const std::string field = Join(parent.ToString(), violation.field);
    const auto known_end = errors_.begin() + static_cast<std::ptrdiff_t>(known_count);
    const bool is_known =
        std::any_of(errors_.begin(), known_end, [&](const FieldError& error) { return error.field == field; });
    if (!is_known) Add(parent, violation);
  }
}

Result Violations::ToResult() const {
  if (errors_.size() == 1 && !unknown_type_.empty()) {
    return NotFound(unknown_type_, unknown_name_, errors_[0].description, errors_[0].reason, errors_[0].field);
  }
  return InvalidArgument(errors_);
}

}  // namespace sliceplan::rpc
