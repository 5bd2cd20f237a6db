#include "server/rpc/errors.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/google/rpc/error_details.pb.h"
#include "server/rpc/text.h"

namespace sliceplan::rpc {
namespace {

constexpr size_t kMaxFieldBytes = 160;
constexpr size_t kMaxDescriptionBytes = 400;
constexpr size_t kMaxMetadataValueBytes = 200;
constexpr size_t kMaxNameBytes = 128;

// Packs with a fixed order of map entries: the same error has the same bytes.
void AddDetail(google::rpc::Status& status, const google::protobuf::Message& detail) {
  google::protobuf::Any& any = *status.add_details();
  any.set_type_url(absl::StrCat("type.googleapis.com/", detail.GetDescriptor()->full_name()));
  google::protobuf::io::StringOutputStream stream(any.mutable_value());
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  detail.SerializeToCodedStream(&coded);
}

void AddErrorInfo(google::rpc::Status& status, absl::string_view reason, const ErrorMetadata& metadata = {}) {
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain(std::string(kErrorDomain));
  for (const auto& [key, value] : metadata) (*info.mutable_metadata())[key] = Printable(value, kMaxMetadataValueBytes);
  AddDetail(status, info);
}

// `sentence` without the time to come back, which is added. Times are rounded up: who comes back earlier fails again.
Result Exhausted(absl::string_view sentence, absl::string_view reason, absl::Duration retry_delay,
                 ErrorMetadata metadata = {}) {
  const int64_t milliseconds = absl::ToInt64Milliseconds(absl::Ceil(retry_delay, absl::Milliseconds(1)));
  google::rpc::Status status =
      BareStatus(absl::StatusCode::kResourceExhausted, absl::StrCat(sentence, "; try again in ", milliseconds, " ms."));
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(milliseconds / 1000);
  retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(milliseconds % 1000 * 1'000'000));
  AddDetail(status, retry);
  metadata.emplace_back("retry_delay_ms", absl::StrCat(milliseconds));
  AddErrorInfo(status, reason, metadata);
  return Result(std::move(status));
}

// "slice.topology: ...", or the sentence alone when the request as a whole is meant.
std::string Line(const FieldError& error) {
  return error.field.empty() ? error.description : absl::StrCat(error.field, ": ", error.description);
}

std::string MessageOf(const std::vector<FieldError>& errors) {
  if (errors.size() == 1) return Line(errors[0]);
  std::string message = absl::StrCat(errors.size(), " problems. ");
  for (size_t i = 0; i < errors.size() && message.size() <= kMaxMessageBytes; ++i) {
    absl::StrAppend(&message, i == 0 ? "" : " | ", Line(errors[i]));
  }
  return message;
}

}  // namespace

google::rpc::Status BareStatus(absl::StatusCode code, absl::string_view message) {
  google::rpc::Status status;
  status.set_code(static_cast<int32_t>(code));
  status.set_message(Printable(message, kMaxMessageBytes));
  return status;
}

Result InvalidArgument(const std::vector<FieldError>& errors) {
  google::rpc::Status status = BareStatus(absl::StatusCode::kInvalidArgument, MessageOf(errors));
  google::rpc::BadRequest bad_request;
  // Leaves room for the ErrorInfo with its counts and reasons, which is below this size.
  constexpr size_t kErrorInfoBytes = 512;
  size_t free_bytes = kMaxStatusBytes - kErrorInfoBytes - status.ByteSizeLong();
  for (const FieldError& error : errors) {
    if (static_cast<size_t>(bad_request.field_violations_size()) == kMaxViolations) break;
    google::rpc::BadRequest::FieldViolation violation;
    violation.set_field(Printable(error.field, kMaxFieldBytes));
    violation.set_description(Printable(error.description, kMaxDescriptionBytes));
    constexpr size_t kFramingBytes = 8;
    const size_t needed_bytes = violation.ByteSizeLong() + kFramingBytes;
    if (needed_bytes > free_bytes) break;
    free_bytes -= needed_bytes;
    *bad_request.add_field_violations() = std::move(violation);
  }
  const bool one_reason = std::all_of(errors.begin(), errors.end(),
                                      [&](const FieldError& error) { return error.reason == errors[0].reason; });
  ErrorMetadata metadata = {{"violation_count", absl::StrCat(errors.size())}};
  if (!one_reason) {
    std::set<std::string> reasons;
    for (const FieldError& error : errors) reasons.insert(error.reason);
    metadata.emplace_back("reasons", absl::StrJoin(reasons, ","));
  }
  if (static_cast<size_t>(bad_request.field_violations_size()) < errors.size()) {
    metadata.emplace_back("listed_violation_count", absl::StrCat(bad_request.field_violations_size()));
  }
  AddDetail(status, bad_request);
  AddErrorInfo(status, one_reason ? absl::string_view(errors[0].reason) : "INVALID_REQUEST", metadata);
  return Result(std::move(status));
}

Result NotFound(absl::string_view type, absl::string_view name, absl::string_view sentence, absl::string_view reason,
                absl::string_view field) {
  google::rpc::Status status = BareStatus(absl::StatusCode::kNotFound,
                                          field.empty() ? std::string(sentence) : absl::StrCat(field, ": ", sentence));
  google::rpc::ResourceInfo resource;
  resource.set_resource_type(std::string(type));
  resource.set_resource_name(Printable(name, kMaxNameBytes));
  resource.set_description(Printable(sentence, kMaxDescriptionBytes));
  AddDetail(status, resource);
  AddErrorInfo(status, reason, {{"field", std::string(field)}, {"name", std::string(name)}});
  return Result(std::move(status));
}

Result Unimplemented(absl::string_view method, absl::string_view sentence) {
  google::rpc::Status status = BareStatus(absl::StatusCode::kUnimplemented, sentence);
  AddErrorInfo(status, "NOT_IMPLEMENTED_YET", {{"method", std::string(method)}});
  return Result(std::move(status));
}

Result Overloaded(absl::Duration retry_delay) {
  return Exhausted("The server has more work than it can answer in time", "OVERLOADED", retry_delay);
}

Result OverShare(absl::Duration retry_delay) {
  return Exhausted("The server has more work than it can answer in time, most of it for this client",
                   "CLIENT_OVER_SHARE", retry_delay);
}

Result RateLimited(absl::string_view client, absl::Duration retry_delay) {
  return Exhausted(absl::StrCat("The token ", Quoted(client), " calls more often than it may"), "RATE_LIMITED",
                   retry_delay, {{"client", std::string(client)}});
}

Result RepliesUnread(absl::Duration retry_delay) {
  return Exhausted("Replies on this connection wait to be read and fill the server's memory", "REPLIES_UNREAD",
                   retry_delay);
}

Result Unauthenticated(bool missing) {
  google::rpc::Status status =
      BareStatus(absl::StatusCode::kUnauthenticated,
                 missing ? "This server wants a token: send 'authorization: Bearer TOKEN'."
                         : "The token is not known to this server, or 'authorization' is not 'Bearer TOKEN'.");
  AddErrorInfo(status, missing ? "TOKEN_MISSING" : "TOKEN_UNKNOWN");
  return Result(std::move(status));
}

Result PermissionDenied(absl::string_view client, absl::string_view method) {
  google::rpc::Status status =
      BareStatus(absl::StatusCode::kPermissionDenied,
                 absl::StrCat("The token ", Quoted(client), " may not call ", Printable(method, kMaxNameBytes), "."));
  AddErrorInfo(status, "METHOD_NOT_ALLOWED", {{"client", std::string(client)}});
  return Result(std::move(status));
}

Result Draining() {
  return Result(
      BareStatus(absl::StatusCode::kUnavailable, "The server is shutting down; another replica will answer."));
}

Result DeadlineExceeded() {
  return Result(BareStatus(absl::StatusCode::kDeadlineExceeded, "The deadline passed before the answer was ready."));
}

Result Cancelled() { return Result(BareStatus(absl::StatusCode::kCancelled, "The caller cancelled the call.")); }

Result Internal(absl::string_view request_id, absl::string_view log_text) {
  google::rpc::Status status =
      BareStatus(absl::StatusCode::kInternal,
                 absl::StrCat("The server failed on this request. Its log has the cause under the request id ",
                              request_id.empty() ? absl::string_view("(none)") : request_id, "."));
  AddErrorInfo(status, "ENGINE_ERROR", {{"request_id", std::string(request_id)}});
  return Result(std::move(status), std::string(log_text));
}

}  // namespace sliceplan::rpc
