#include "server/rpc/violations.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace sliceplan::rpc {
namespace {

// A request of 4 MiB can hold a million wrong values: beyond this many only the count would grow.
constexpr size_t kMaxCollected = 1000;

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

void Violations::Add(const FieldPath& parent, const hardware::Violation& violation) {
  if (errors_.size() == kMaxCollected) return;
  errors_.push_back({Join(parent.ToString(), violation.field), violation.description,
                     violation.reason.empty() ? "INVALID_FIELD" : violation.reason});
}

Result Violations::ToResult() const {
  if (errors_.size() == 1 && !unknown_type_.empty()) {
    return NotFound(unknown_type_, unknown_name_, errors_[0].description, errors_[0].reason, errors_[0].field);
  }
  return InvalidArgument(errors_);
}

}  // namespace sliceplan::rpc
