// Requests from and replies to proto3 JSON, with errors that a person can act on.
#ifndef SLICEPLAN_SERVER_RPC_JSON_H_
#define SLICEPLAN_SERVER_RPC_JSON_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "server/rpc/result.h"

namespace sliceplan::rpc {

// Largest text that is read: the limit of a gRPC message.
inline constexpr size_t kMaxJsonBytes = 4 << 20;

// Fills `message` (which must be empty). INVALID_ARGUMENT lists every unknown field with near names, every enum name
// that does not exist with the legal ones, and every value of the wrong type.
Result ParseJson(absl::string_view text, google::protobuf::Message* message);

// lowerCamel names, fields at their default included but for `optional` ones, one line.
std::string PrintJson(const google::protobuf::Message& message);
// The same over several lines, for people.
std::string PrintPrettyJson(const google::protobuf::Message& message);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_JSON_H_
