// A call over HTTP as the dispatcher sees it, and the thread that waits for its end.
#ifndef SLICEPLAN_SERVER_RPC_HTTP_HTTP_CALL_H_
#define SLICEPLAN_SERVER_RPC_HTTP_HTTP_CALL_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/arena.h"
#include "google/protobuf/message.h"
#include "proto/google/rpc/status.pb.h"
#include "server/rpc/http/http_connections.h"
#include "server/rpc/incoming_call.h"
#include "server/rpc/method_table.h"

namespace sliceplan::rpc {

// Names in lower case.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// Shared by the thread of the connection and the call, either of which may end first.
struct HttpExchange {
  HttpExchange(const Method& method, std::shared_ptr<const HttpConnection> client, HttpHeaders request_headers)
      : request(method.request_prototype->New(&arena)),
        response(method.response_prototype->New(&arena)),
        connection(std::move(client)),
        headers(std::move(request_headers)) {}

  google::protobuf::Arena arena;
  google::protobuf::Message* const request;
  google::protobuf::Message* const response;
  const std::shared_ptr<const HttpConnection> connection;
  const HttpHeaders headers;
  std::string peer;
  absl::Time deadline = absl::InfiniteFuture();

  // The first value of a header; empty when there is none.
  absl::string_view Header(absl::string_view name) const;

  // Waits for the end of the call. False: the time came first, and nobody waits for the answer any more.
  bool Wait(absl::Time until);

  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  bool abandoned = false;
  // Once ended: code OK, or the error.
  google::rpc::Status status;
  std::optional<absl::Duration> pushback;
  HttpHeaders reply_headers;
};

class HttpCall final : public IncomingCall {
 public:
  explicit HttpCall(std::shared_ptr<HttpExchange> exchange) : exchange_(std::move(exchange)) {}

  const google::protobuf::Message& request() const override { return *exchange_->request; }
  google::protobuf::Message* response() override { return exchange_->response; }
  absl::Time deadline() const override { return exchange_->deadline; }
  bool cancelled() const override;
  absl::string_view Metadata(absl::string_view key) const override { return exchange_->Header(key); }
  std::string peer() const override { return exchange_->peer; }
  void AddReplyMetadata(absl::string_view key, absl::string_view value) override;
  // Threads bound the replies that wait on this port, so that the receipt is not needed.
  void Finish(const Result& result, std::optional<absl::Duration> pushback, UnreadReplies::Receipt receipt) override;

 private:
  const std::shared_ptr<HttpExchange> exchange_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_HTTP_HTTP_CALL_H_
