// From a gRPC call to its handler and back: deadline and request id, which thread, admission, status.
#ifndef SLICEPLAN_SERVER_RPC_DISPATCHER_H_
#define SLICEPLAN_SERVER_RPC_DISPATCHER_H_

#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/json_log.h"
#include "server/rpc/method_table.h"
#include "server/rpc/open_calls.h"
#include "server/rpc/server_options.h"
#include "server/rpc/worker_pool.h"

namespace sliceplan::rpc {

class Dispatcher {
 public:
  // All must outlive the dispatcher.
  Dispatcher(const ServerOptions& options, const JsonLog* log, WorkerPool* pool, const OpenCalls* open_calls)
      : default_deadline_(options.default_deadline),
        max_deadline_(options.max_deadline),
        log_(*log),
        pool_(*pool),
        open_calls_(*open_calls) {}

  // Answers on this thread when the method calls the request short, else on the pool. UNAVAILABLE while connections are
  // being closed.
  grpc::ServerUnaryReactor* Answer(const Method& method, grpc::CallbackServerContext* context,
                                   const google::protobuf::Message* request, google::protobuf::Message* response) const;

 private:
  friend class CallTask;

  CallContext ContextOf(grpc::CallbackServerContext* context) const;
  // Runs the handler and ends the call.
  void RunHere(const Method& method, const CallContext& call, const google::protobuf::Message& request,
               google::protobuf::Message* response, grpc::ServerUnaryReactor* reactor) const;
  void Finish(const Result& result, const Method& method, const CallContext& call,
              grpc::ServerUnaryReactor* reactor) const;

  const absl::Duration default_deadline_;
  const absl::Duration max_deadline_;
  const JsonLog& log_;
  WorkerPool& pool_;
  const OpenCalls& open_calls_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_DISPATCHER_H_
