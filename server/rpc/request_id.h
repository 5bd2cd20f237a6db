// Names a call, in logs, in trailers and in INTERNAL errors.
#ifndef SLICEPLAN_SERVER_RPC_REQUEST_ID_H_
#define SLICEPLAN_SERVER_RPC_REQUEST_ID_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sliceplan::rpc {

// Metadata key, both ways.
inline constexpr char kRequestIdKey[] = "x-request-id";

// The caller's own id when it is usable (1 to 64 characters of letters, digits, '-', '_', '.', ':'), else a new random
// one.
std::string RequestIdFrom(absl::string_view callers_id);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_REQUEST_ID_H_
