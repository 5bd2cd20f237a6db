// What is wrong with a JSON request. protobuf's parser stops at the first problem and does not say which names would be
// right; this walks the whole text beside the message type. It only explains: what is accepted is decided by protobuf.
#ifndef SLICEPLAN_SERVER_RPC_JSON_DIAGNOSIS_H_
#define SLICEPLAN_SERVER_RPC_JSON_DIAGNOSIS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "server/rpc/errors.h"

namespace sliceplan::rpc {

// A sentence with line and column when `text` is not one JSON value (RFC 8259); empty when it is. Nesting beyond
// kMaxJsonDepth is a problem too.
std::string JsonSyntaxProblem(absl::string_view text);
inline constexpr int kMaxJsonDepth = 64;

// `text` must be JSON. Empty when nothing was found.
std::vector<FieldError> DiagnoseJson(absl::string_view text, const google::protobuf::Descriptor& type);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_JSON_DIAGNOSIS_H_
