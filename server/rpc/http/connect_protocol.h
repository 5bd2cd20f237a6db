// The Connect protocol for unary calls, as text: names and statuses of codes, errors, deadlines, GET requests.
// connectrpc.com/docs/protocol, read on 2026-11-30.
#ifndef SLICEPLAN_SERVER_RPC_HTTP_CONNECT_PROTOCOL_H_
#define SLICEPLAN_SERVER_RPC_HTTP_CONNECT_PROTOCOL_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/google/rpc/status.pb.h"

namespace sliceplan::rpc {

inline constexpr char kJsonType[] = "application/json";
inline constexpr char kProtoType[] = "application/proto";

enum class Encoding { kJson, kProto };

// "application/json", with "; charset=utf-8" or without, or "application/proto"; nullopt for all others.
std::optional<Encoding> EncodingOf(absl::string_view content_type);

// "invalid_argument"; "unknown" for what is no code.
absl::string_view ConnectCode(absl::StatusCode code);
// 400 for INVALID_ARGUMENT and so on.
int HttpStatusOf(absl::StatusCode code);

// {"code":"...","message":"...","details":[{"type","value","debug"}]}: `value` is the message in base64 without
// padding, `debug` the same as JSON for people. Details of types unknown to this program have no `debug`.
std::string ErrorJson(const google::rpc::Status& status);

// Of "connect-timeout-ms": 1 to 10 digits. nullopt for anything else.
std::optional<absl::Duration> ParseConnectTimeout(absl::string_view text);

// A call in a URL: connect=v1&encoding=json&message=...&base64=1&compression=...
struct GetRequest {
  Encoding encoding = Encoding::kJson;
  std::string message;
};
struct GetRefusal {
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  std::string message;
};
// Reads the part of the URL after '?'. False: `*refusal` says why.
bool ParseGetQuery(absl::string_view query, GetRequest* request, GetRefusal* refusal);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_HTTP_CONNECT_PROTOCOL_H_
