// What of a reply must be the same whenever the same request meets the same engine and catalog, in 64 digits.
#ifndef SLICEPLAN_SERVER_RPC_REPLY_DIGEST_H_
#define SLICEPLAN_SERVER_RPC_REPLY_DIGEST_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "proto/google/rpc/status.pb.h"

namespace sliceplan::rpc {

// The reply without the time that it took: all fields in the order of their numbers, maps by key.
std::string DeterministicBytes(const google::protobuf::Message& reply);
// An error with its details, in the order of their types.
std::string DeterministicBytes(const google::rpc::Status& error);

// Whether calls that end so end so again: not when the server was full, the caller left or time ran out.
bool IsRepeatable(absl::StatusCode code);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_REPLY_DIGEST_H_
