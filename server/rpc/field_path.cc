#include "server/rpc/field_path.h"

#include "absl/strings/str_cat.h"

namespace sliceplan::rpc {

std::string FieldPath::ToString() const {
  std::string text = parent_ == nullptr ? std::string() : parent_->ToString();
  if (name_.empty()) return text;
  absl::StrAppend(&text, text.empty() ? "" : ".", name_);
  if (index_ >= 0) absl::StrAppend(&text, "[", index_, "]");
  return text;
}

}  // namespace sliceplan::rpc
