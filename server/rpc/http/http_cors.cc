#include "server/rpc/http/http_cors.h"

#include <algorithm>

#include "absl/strings/string_view.h"

namespace sliceplan::rpc {
namespace {

constexpr char kAllowedRequestHeaders[] =
    "authorization, connect-protocol-version, connect-timeout-ms, content-type, traceparent, x-request-id";
constexpr char kExposedHeaders[] = "grpc-retry-pushback-ms, retry-after, x-request-id";
constexpr char kPreflightSeconds[] = "7200";

}  // namespace

void HttpCors::AddHeaders(const HttpRequest& request, HttpReply& reply) const {
  if (!on()) return;
  reply.headers.emplace_back("vary", "origin");
  const absl::string_view origin = request.Header("origin");
  const bool allowed = std::any_of(origins_.begin(), origins_.end(),
                                   [&](const std::string& one) { return one == "*" || one == origin; });
  if (origin.empty() || !allowed) return;
  reply.headers.emplace_back("access-control-allow-origin", std::string(origin));
  reply.headers.emplace_back("access-control-expose-headers", kExposedHeaders);
  if (request.method != "OPTIONS") return;
  reply.headers.emplace_back("access-control-allow-methods", "GET, POST");
  reply.headers.emplace_back("access-control-allow-headers", kAllowedRequestHeaders);
  reply.headers.emplace_back("access-control-max-age", kPreflightSeconds);
}

}  // namespace sliceplan::rpc
