#include "server/rpc/http/http_reply.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/rpc/http/connect_protocol.h"
#include "server/rpc/incoming_call.h"

namespace sliceplan::rpc {
namespace {

// For people: clients read the number.
absl::string_view Reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 415: return "Unsupported Media Type";
    case 429: return "Too Many Requests";
    case 499: return "Client Closed Request";
    case 503: return "Service Unavailable";
    default: return status < 500 ? "Error" : "Server Error";
  }
}

// The header ends at the first control character.
absl::string_view OneLine(absl::string_view value) {
  const auto* const end = std::find_if(value.begin(), value.end(),
                                       [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  return value.substr(0, static_cast<size_t>(end - value.begin()));
}

}  // namespace

HttpReply TextReply(int status, std::string text) {
  HttpReply reply;
  reply.status = status;
  reply.content_type = "text/plain; charset=utf-8";
  reply.body = std::move(text);
  return reply;
}

HttpReply ErrorReply(const google::rpc::Status& status, std::optional<absl::Duration> pushback) {
  HttpReply reply;
  reply.status = HttpStatusOf(static_cast<absl::StatusCode>(status.code()));
  reply.content_type = kJsonType;
  reply.body = ErrorJson(status);
  if (pushback.has_value()) {
    const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(*pushback, absl::Seconds(1)));
    reply.headers.emplace_back("retry-after", absl::StrCat(seconds));
    reply.headers.emplace_back(kPushbackKey, absl::StrCat(absl::ToInt64Milliseconds(*pushback)));
  }
  return reply;
}

std::string Serialize(const HttpReply& reply, bool head, bool keep_alive) {
  std::string text = absl::StrCat("HTTP/1.1 ", reply.status, " ", Reason(reply.status), "\r\n");
  if (!reply.content_type.empty()) absl::StrAppend(&text, "content-type: ", reply.content_type, "\r\n");
  if (reply.status != 204) absl::StrAppend(&text, "content-length: ", reply.body.size(), "\r\n");
  for (const auto& [name, value] : reply.headers) absl::StrAppend(&text, name, ": ", OneLine(value), "\r\n");
  absl::StrAppend(&text, "x-content-type-options: nosniff\r\nconnection: ", keep_alive ? "keep-alive" : "close",
                  "\r\n\r\n");
  if (!head) text += reply.body;
  return text;
}

}  // namespace sliceplan::rpc
