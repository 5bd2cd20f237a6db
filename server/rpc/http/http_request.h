// A request of the HTTP port as civetweb hands it over, and how its body is read.
#ifndef SLICEPLAN_SERVER_RPC_HTTP_HTTP_REQUEST_H_
#define SLICEPLAN_SERVER_RPC_HTTP_HTTP_REQUEST_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/rpc/http/http_call.h"
#include "server/rpc/http/http_connections.h"
#include "server/rpc/result.h"
#include "server/rpc/stopwatch.h"

struct mg_connection;
struct mg_request_info;

namespace sliceplan::rpc {

// Line and headers. Names of headers are in lower case; all views live as long as the connection's request.
struct HttpRequest {
  explicit HttpRequest(mg_connection* civetweb);

  // Empty if it was not sent; the first if it was sent twice.
  absl::string_view Header(absl::string_view name) const;
  bool reads_only() const { return method == "GET" || method == "HEAD"; }

  mg_connection* const civetweb;
  const mg_request_info& info;
  HttpConnection* const connection;
  const absl::string_view method;  // "POST"
  const absl::string_view path;
  const absl::Time start;
  const Stopwatch watch;
  std::string peer;  // "ipv4:127.0.0.1:40000", as gRPC writes it
  HttpHeaders headers;
};

// Bodies up to a size each, and up to a sum of all that are held at a time.
class BodyReader {
 public:
  BodyReader(size_t max_message_bytes, int64_t max_bytes_held)
      : max_message_bytes_(max_message_bytes), max_bytes_held_(max_bytes_held) {}

  // Appends to `*body`, which counts as held until Release, also after an error. RESOURCE_EXHAUSTED: too large, or
  // too much at a time. CANCELLED: the caller left, or sent what is no body.
  Result Read(const HttpRequest& request, std::string* body);
  // Counts a message that came with the request line.
  void Hold(const std::string& body) { bytes_held_ += static_cast<int64_t>(body.size()); }
  void Release(const std::string& body) { bytes_held_ -= static_cast<int64_t>(body.size()); }

 private:
  // Most clients read no reply before they have sent all; what is far too large is cut off.
  void DropUpTo(const HttpRequest& request, size_t bytes) const;

  const size_t max_message_bytes_;
  const int64_t max_bytes_held_;
  std::atomic<int64_t> bytes_held_ = 0;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_HTTP_HTTP_REQUEST_H_
