#include "server/rpc/admission_errors.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/google/rpc/error_details.pb.h"
#include "server/rpc/errors.h"
#include "server/rpc/text.h"

namespace sliceplan::rpc {
namespace {

constexpr size_t kMaxNameBytes = 128;

google::rpc::Status StatusOf(absl::StatusCode code, absl::string_view message) {
  google::rpc::Status status;
  status.set_code(static_cast<int32_t>(code));
  status.set_message(Printable(message, kMaxMessageBytes));
  return status;
}

// At most one entry of metadata, so that the same error has the same bytes.
void AddErrorInfo(google::rpc::Status& status, absl::string_view reason, absl::string_view key = "",
                  absl::string_view value = "") {
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain(std::string(kErrorDomain));
  if (!key.empty()) (*info.mutable_metadata())[std::string(key)] = Printable(value, kMaxNameBytes);
  status.add_details()->PackFrom(info);
}

// `sentence` without the time to come back, which is added. Times are rounded up: who comes back earlier fails again.
Result Exhausted(absl::string_view sentence, absl::string_view reason, absl::string_view client,
                 absl::Duration retry_delay) {
  const int64_t milliseconds = absl::ToInt64Milliseconds(absl::Ceil(retry_delay, absl::Milliseconds(1)));
  google::rpc::Status status =
      StatusOf(absl::StatusCode::kResourceExhausted, absl::StrCat(sentence, "; try again in ", milliseconds, " ms."));
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(milliseconds / 1000);
  retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(milliseconds % 1000 * 1'000'000));
  status.add_details()->PackFrom(retry);
  AddErrorInfo(status, reason, client.empty() ? "" : "client", client);
  return Result(std::move(status));
}

}  // namespace

Result OverShare(absl::Duration retry_delay) {
  return Exhausted("The server has more work than it can answer in time, most of it for this client",
                   "CLIENT_OVER_SHARE", "", retry_delay);
}

Result RateLimited(absl::string_view client, absl::Duration retry_delay) {
  return Exhausted(absl::StrCat("The token ", Quoted(client), " calls more often than it may"), "RATE_LIMITED", client,
                   retry_delay);
}

Result Unauthenticated(bool missing) {
  google::rpc::Status status =
      StatusOf(absl::StatusCode::kUnauthenticated,
               missing ? "This server wants a token: send 'authorization: Bearer TOKEN'."
                       : "The token is not known to this server, or 'authorization' is not 'Bearer TOKEN'.");
  AddErrorInfo(status, missing ? "TOKEN_MISSING" : "TOKEN_UNKNOWN");
  return Result(std::move(status));
}

Result PermissionDenied(absl::string_view client, absl::string_view method) {
  google::rpc::Status status =
      StatusOf(absl::StatusCode::kPermissionDenied,
               absl::StrCat("The token ", Quoted(client), " may not call ", Printable(method, kMaxNameBytes), "."));
  AddErrorInfo(status, "METHOD_NOT_ALLOWED", "client", client);
  return Result(std::move(status));
}

}  // namespace sliceplan::rpc
