// The HTTP port: every RPC as Connect unary calls (JSON or protobuf; POST, and GET as nothing has side effects), and
// /metrics, /healthz, /livez, /readyz. civetweb reads and writes; the dispatcher answers, as for gRPC.
#ifndef SLICEPLAN_SERVER_RPC_HTTP_HTTP_SERVER_H_
#define SLICEPLAN_SERVER_RPC_HTTP_HTTP_SERVER_H_

#include <atomic>
#include <memory>
#include <semaphore>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/rpc/dispatcher.h"
#include "server/rpc/http/http_call.h"
#include "server/rpc/http/http_connections.h"
#include "server/rpc/http/http_cors.h"
#include "server/rpc/http/http_reply.h"
#include "server/rpc/http/http_request.h"
#include "server/rpc/json_log.h"
#include "server/rpc/method_table.h"
#include "server/rpc/metrics/server_metrics.h"
#include "server/rpc/server_options.h"

struct mg_connection;
struct mg_context;

namespace sliceplan::rpc {

class HttpServer {
 public:
  // Threads, one for each open connection: what waits for an answer or for a slow client costs only memory.
  static constexpr int kThreadCount = 128;

  // Listens on `options.http_port` of `options.address`. UNAVAILABLE when the port is taken. Without `answers_calls`
  // there are the pages alone. All must outlive the server.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const ServerOptions& options, bool answers_calls,
                                                           const MethodTable* methods, const Dispatcher* dispatcher,
                                                           ServerMetrics* metrics, const JsonLog* log);
  // Stops.
  ~HttpServer();

  int port() const { return port_; }

  // /readyz says 503; all else goes on, and replies ask clients to close their connections.
  void BeginDrain();
  // Closes the listener, lets running calls end for at most `grace`.
  void Drain(absl::Duration grace) { connections_.Drain(grace); }
  // Closes everything. No call may be waiting for a worker.
  void Stop();

 private:
  class Callbacks;
  friend class Callbacks;

  HttpServer(const ServerOptions& options, bool answers_calls, const MethodTable* methods, const Dispatcher* dispatcher,
             ServerMetrics* metrics, const JsonLog* log);
  absl::Status Listen(const ServerOptions& options);

  void Serve(mg_connection* connection);
  HttpReply Answer(const HttpRequest& request);
  HttpReply AnswerPage(const HttpRequest& request) const;
  HttpReply AnswerRpc(const HttpRequest& request, const Method& method);
  // `*status`: how the call ended.
  HttpReply CallMethod(const HttpRequest& request, const Method& method, std::string* request_id,
                       google::rpc::Status* status);
  // Reads the message of the call into the exchange; an error says what is wrong with it.
  Result ReadMessage(const HttpRequest& request, const Method& method, HttpExchange& exchange, bool* json);

  const bool answers_calls_;
  const size_t max_message_bytes_;
  const absl::Duration default_deadline_;
  const absl::Duration max_deadline_;
  const HttpCors cors_;
  BodyReader bodies_;
  const MethodTable& methods_;
  const Dispatcher& dispatcher_;
  ServerMetrics& metrics_;
  const JsonLog& log_;
  HttpConnections connections_{kThreadCount};
  // As many threads parse, answer short requests and print as there are CPUs; the others wait.
  std::counting_semaphore<> computing_;
  std::atomic<bool> draining_ = false;
  mg_context* context_ = nullptr;
  int port_ = 0;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_HTTP_HTTP_SERVER_H_
