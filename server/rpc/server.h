// The server: listeners of gRPC and HTTP, limits, health, reflection, worker pool, and an end without failed calls.
#ifndef SLICEPLAN_SERVER_RPC_SERVER_H_
#define SLICEPLAN_SERVER_RPC_SERVER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/server.h"
#include "server/rpc/dispatcher.h"
#include "server/rpc/file_watch.h"
#include "server/rpc/http/http_server.h"
#include "server/rpc/json_log.h"
#include "server/rpc/method_table.h"
#include "server/rpc/metrics/server_metrics.h"
#include "server/rpc/open_calls.h"
#include "server/rpc/open_watches.h"
#include "server/rpc/request_log.h"
#include "server/rpc/server_options.h"
#include "server/rpc/token_authority.h"
#include "server/rpc/worker_pool.h"

namespace sliceplan::rpc {

class Server {
 public:
  // Listens and serves. `methods` and `log` must outlive the server. INVALID_ARGUMENT for options that make no sense or
  // are unsafe; UNAVAILABLE when the port is taken.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options, const MethodTable* methods,
                                                       const JsonLog* log);
  // Shuts down without grace.
  ~Server();

  int port() const { return port_; }
  // Of HTTP; -1 when there is none.
  int http_port() const { return http_ == nullptr ? -1 : http_->port(); }
  ServerMetrics& metrics() { return metrics_; }

  // Says NOT_SERVING to health checks of every service, and 503 on /readyz; serves on, so that callers can go elsewhere
  // first.
  void BeginDrain();
  // Closes the listener, ends health watches, refuses new calls, lets running calls end for at most `grace`, cancels
  // the rest, and returns when all have ended. Callers see answers or UNAVAILABLE, nothing in between.
  void Shutdown(absl::Duration grace);

  // Reads the token file again, if there is one; when it is wrong the old tokens stay. Logs what happened. From any
  // thread; happens by itself when the file changes.
  void ReloadTokens();

  const WorkerPool& pool() const { return pool_; }

 private:
  Server(const ServerOptions& options, const MethodTable* methods, const JsonLog* log,
         std::unique_ptr<TokenAuthority> tokens, std::unique_ptr<RequestLog> request_log);

  absl::Status Listen(const ServerOptions& options, const MethodTable& methods);
  void WatchFiles(const ServerOptions& options);

  const JsonLog& log_;
  ServerMetrics metrics_;
  const std::unique_ptr<TokenAuthority> tokens_;   // null: everybody may call
  const std::unique_ptr<RequestLog> request_log_;  // may be null
  WorkerPool pool_;
  OpenCalls open_calls_;
  UnreadReplies unread_replies_;
  Dispatcher dispatcher_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  OpenWatches open_watches_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::unique_ptr<FileWatch>> file_watches_;
  std::unique_ptr<HttpServer> http_;
  int port_ = 0;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_SERVER_H_
