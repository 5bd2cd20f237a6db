// Errors of calls that are refused before a handler sees them, besides those of errors.h.
#ifndef SLICEPLAN_SERVER_RPC_ADMISSION_ERRORS_H_
#define SLICEPLAN_SERVER_RPC_ADMISSION_ERRORS_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/rpc/result.h"

namespace sliceplan::rpc {

// RESOURCE_EXHAUSTED: RetryInfo, ErrorInfo. The server is full and this client has more waiting than its part.
Result OverShare(absl::Duration retry_delay);
// RESOURCE_EXHAUSTED: RetryInfo, ErrorInfo. The token `client` calls more often than it may.
Result RateLimited(absl::string_view client, absl::Duration retry_delay);
// UNAUTHENTICATED: ErrorInfo. No token was sent, or one that is not known.
Result Unauthenticated(bool missing);
// PERMISSION_DENIED: ErrorInfo. The token `client` may not call the method.
Result PermissionDenied(absl::string_view client, absl::string_view method);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_ADMISSION_ERRORS_H_
