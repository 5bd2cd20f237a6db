#include "server/rpc/http/http_request.h"

#include <civetweb.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/rpc/errors.h"

namespace sliceplan::rpc {
namespace {

// How a body is read, so that one that never comes costs nothing.
constexpr size_t kReadBytes = 64 << 10;
// A body of up to so many times the limit is read and dropped before it is refused.
constexpr size_t kDroppedPerMessage = 4;

std::string PeerOf(const mg_request_info& info) {
  const absl::string_view address = info.remote_addr;
  return absl::StrContains(address, ":") ? absl::StrCat("ipv6:[", address, "]:", info.remote_port)
                                         : absl::StrCat("ipv4:", address, ":", info.remote_port);
}

Result Exhausted(absl::string_view sentence) {
  return Result(BareStatus(absl::StatusCode::kResourceExhausted, sentence));
}

}  // namespace

HttpRequest::HttpRequest(mg_connection* civetweb_connection)
    : civetweb(civetweb_connection),
      info(*mg_get_request_info(civetweb_connection)),
      connection(static_cast<HttpConnection*>(info.conn_data)),
      method(info.request_method),
      path(info.local_uri),
      start(absl::Now()),
      peer(PeerOf(info)) {
  for (int i = 0; i < info.num_headers; ++i) {
    headers.emplace_back(absl::AsciiStrToLower(info.http_headers[i].name), info.http_headers[i].value);
  }
}

absl::string_view HttpRequest::Header(absl::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

void BodyReader::DropUpTo(const HttpRequest& request, size_t bytes) const {
  std::string dropped(kReadBytes, '\0');
  for (size_t all = 0; all < bytes;) {
    const int count = mg_read(request.civetweb, dropped.data(), dropped.size());
    if (count <= 0) return;
    all += static_cast<size_t>(count);
  }
}

Result BodyReader::Read(const HttpRequest& request, std::string* body) {
  const auto too_large = [this](size_t bytes) {
    return Exhausted(absl::StrCat("Received message larger than max (", bytes, " vs. ", max_message_bytes_, ")"));
  };
  const int64_t length = request.info.content_length;  // negative: in chunks
  if (length > static_cast<int64_t>(max_message_bytes_)) {
    const auto bytes = static_cast<size_t>(length);
    if (bytes <= kDroppedPerMessage * max_message_bytes_) DropUpTo(request, bytes);
    return too_large(bytes);
  }
  if (absl::EqualsIgnoreCase(request.Header("expect"), "100-continue")) {
    constexpr absl::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    mg_write(request.civetweb, kContinue.data(), kContinue.size());
  }
  while (true) {
    const size_t old_size = body->size();
    const size_t wanted = length >= 0 ? std::min(static_cast<size_t>(length) - old_size, kReadBytes) : kReadBytes;
    if (wanted == 0) return Result();
    body->resize(old_size + wanted);
    const int count = mg_read(request.civetweb, body->data() + old_size, wanted);
    const auto read = static_cast<size_t>(std::max(count, 0));
    body->resize(old_size + read);
    const int64_t held = bytes_held_ += static_cast<int64_t>(read);
    if (body->size() > max_message_bytes_) return too_large(body->size());
    if (held > max_bytes_held_) return Exhausted("too many bytes of requests at a time");
    if (count > 0) continue;
    if (count == 0 && length < 0) return Result();  // the last chunk
    // civetweb tells broken chunks from a caller that left no more than this; whoever left reads no answer.
    if (length < 0) {
      return Result(BareStatus(absl::StatusCode::kInvalidArgument, "the body's chunks are malformed or incomplete"));
    }
    return Result(BareStatus(absl::StatusCode::kCancelled, "the caller left before the request was read"));
  }
}

}  // namespace sliceplan::rpc
