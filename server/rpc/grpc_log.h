// What gRPC itself has to say goes through our log: standard error holds one JSON object per line and nothing else.
#ifndef SLICEPLAN_SERVER_RPC_GRPC_LOG_H_
#define SLICEPLAN_SERVER_RPC_GRPC_LOG_H_

#include "server/rpc/json_log.h"

namespace sliceplan::rpc {

// `log` must outlive every use of gRPC in the process. nullptr drops what gRPC says.
void SendGrpcLogTo(const JsonLog* log);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_GRPC_LOG_H_
