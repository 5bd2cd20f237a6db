// Which pages of browsers may read the replies of the HTTP port.
#ifndef SLICEPLAN_SERVER_RPC_HTTP_HTTP_CORS_H_
#define SLICEPLAN_SERVER_RPC_HTTP_HTTP_CORS_H_

#include <string>
#include <utility>
#include <vector>

#include "server/rpc/http/http_reply.h"
#include "server/rpc/http/http_request.h"

namespace sliceplan::rpc {

class HttpCors {
 public:
  // Origins as browsers send them, "https://dashboard.example"; "*" stands for all. Empty: off.
  explicit HttpCors(std::vector<std::string> origins) : origins_(std::move(origins)) {}

  bool on() const { return !origins_.empty(); }
  void AddHeaders(const HttpRequest& request, HttpReply& reply) const;

 private:
  const std::vector<std::string> origins_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_HTTP_HTTP_CORS_H_
