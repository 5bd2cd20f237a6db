// One log line per call, whatever its fate: also for calls that no handler of ours sees (health checks, reflection,
// requests that cannot be read). gRPC's server interceptors are experimental; only call_log.* knows them.
#ifndef SLICEPLAN_SERVER_RPC_CALL_LOG_H_
#define SLICEPLAN_SERVER_RPC_CALL_LOG_H_

#include <memory>

#include "grpcpp/support/server_interceptor.h"
#include "server/rpc/json_log.h"

namespace sliceplan::rpc {

// Fields: method, code, latency_s, deadline_s (if the caller set one), peer, request_id, trace_id (of a W3C
// `traceparent`, if there is one), error (the message, if the call failed). Severity by code; health checks and
// reflection are DEBUG. `log` must outlive the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallLog(const JsonLog* log);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CALL_LOG_H_
