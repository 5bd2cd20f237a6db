// Every error that the service raises, with its code and google.rpc details. docs: server/rpc/README.md has the table.
//
// A status travels in HTTP/2 trailers, which stop at 8 KiB in all; beyond that a client sees RESOURCE_EXHAUSTED instead
// of the error. So messages are cut to kMaxMessageBytes and a whole status to kMaxStatusBytes.
#ifndef SLICEPLAN_SERVER_RPC_ERRORS_H_
#define SLICEPLAN_SERVER_RPC_ERRORS_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/google/rpc/status.pb.h"
#include "server/rpc/result.h"

namespace sliceplan::rpc {

inline constexpr size_t kMaxMessageBytes = 1024;
inline constexpr size_t kMaxStatusBytes = 4096;
inline constexpr size_t kMaxViolations = 20;
// Of ErrorInfo: who defines the reasons.
inline constexpr absl::string_view kErrorDomain = "sliceplan.v1";

struct FieldError {
  std::string field;        // "model.architecture.layer_groups[2].repeat_count"
  std::string description;  // a sentence: what is wrong, what would be right
  std::string reason;       // UPPER_SNAKE, at most 63 characters
};

// Names and values for ErrorInfo.
using ErrorMetadata = std::vector<std::pair<std::string, std::string>>;

// INVALID_ARGUMENT: BadRequest with all errors (as many as fit), ErrorInfo. Requires at least one.
Result InvalidArgument(const std::vector<FieldError>& errors);

// NOT_FOUND: ResourceInfo, ErrorInfo. `type` is "accelerator", "model preset"; `sentence` holds near names.
Result NotFound(absl::string_view type, absl::string_view name, absl::string_view sentence, absl::string_view reason,
                absl::string_view field);

// UNIMPLEMENTED: ErrorInfo. `sentence` says what comes and what to use meanwhile.
Result Unimplemented(absl::string_view method, absl::string_view sentence);

// RESOURCE_EXHAUSTED: RetryInfo, ErrorInfo. The queue of the server is full.
Result Overloaded(absl::Duration retry_delay);
// The same: the server is full and this client has more waiting than its part.
Result OverShare(absl::Duration retry_delay);
// The same: the token `client` calls more often than it may.
Result RateLimited(absl::string_view client, absl::Duration retry_delay);

// The same: replies wait on the connection, and nobody reads them.
Result RepliesUnread(absl::Duration retry_delay);

// UNAUTHENTICATED: ErrorInfo. No token was sent, or one that is not known.
Result Unauthenticated(bool missing);
// PERMISSION_DENIED: ErrorInfo. The token `client` may not call the method.
Result PermissionDenied(absl::string_view client, absl::string_view method);

// Without details: what a transport refuses. The sentence is made printable and cut.
google::rpc::Status BareStatus(absl::StatusCode code, absl::string_view sentence);

// UNAVAILABLE, without details: the server is going away.
Result Draining();
// DEADLINE_EXCEEDED and CANCELLED, without details.
Result DeadlineExceeded();
Result Cancelled();

// INTERNAL: a general sentence with the request's id, ErrorInfo. `log_text` goes to the log only.
Result Internal(absl::string_view request_id, absl::string_view log_text);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_ERRORS_H_
