// One log line and one count per call of gRPC, whatever its fate: also for calls that no handler of ours sees (health
// checks, reflection, requests that cannot be read). gRPC's server interceptors are experimental.
#ifndef SLICEPLAN_SERVER_RPC_CALL_LOG_H_
#define SLICEPLAN_SERVER_RPC_CALL_LOG_H_

#include <memory>

#include "grpcpp/support/server_interceptor.h"
#include "server/rpc/json_log.h"
#include "server/rpc/metrics/call_metrics.h"

namespace sliceplan::rpc {

// Writes what call_record.h says. Both must outlive the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallLog(const JsonLog* log,
                                                                                   const CallMetrics* metrics);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CALL_LOG_H_
