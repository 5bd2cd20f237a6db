#include "server/rpc/result.h"

#include <utility>

namespace sliceplan::rpc {

Result::Result(google::rpc::Status status, std::string log_text)
    : error_(std::make_unique<Error>(Error{std::move(status), std::move(log_text)})) {}

absl::StatusCode Result::code() const {
  return ok() ? absl::StatusCode::kOk : static_cast<absl::StatusCode>(error_->status.code());
}

const std::string& Result::log_text() const {
  static const std::string* const kEmpty = new std::string();
  return ok() ? *kEmpty : error_->log_text;
}

}  // namespace sliceplan::rpc
