// A reply of HTTP/1.1 as it is written.
#ifndef SLICEPLAN_SERVER_RPC_HTTP_HTTP_REPLY_H_
#define SLICEPLAN_SERVER_RPC_HTTP_HTTP_REPLY_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/google/rpc/status.pb.h"
#include "server/rpc/http/http_call.h"

namespace sliceplan::rpc {

struct HttpReply {
  int status = 200;
  std::string content_type;  // empty: no body
  std::string body;
  HttpHeaders headers;
  // The body was not read: what follows on the connection is no request.
  bool must_close = false;
};

HttpReply TextReply(int status, std::string text);
// An error of an RPC. `pushback`: when a refused caller may come back, as `retry-after` in whole seconds and exactly as
// gRPC says it.
HttpReply ErrorReply(const google::rpc::Status& status, std::optional<absl::Duration> pushback = std::nullopt);

// The whole message. `head`: without the body.
std::string Serialize(const HttpReply& reply, bool head, bool keep_alive);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_HTTP_HTTP_REPLY_H_
