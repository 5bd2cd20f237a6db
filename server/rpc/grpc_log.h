// What gRPC and protobuf themselves have to say goes through our log: standard error holds one JSON object per line and
// nothing else.
#ifndef SLICEPLAN_SERVER_RPC_GRPC_LOG_H_
#define SLICEPLAN_SERVER_RPC_GRPC_LOG_H_

#include "server/rpc/json_log.h"

namespace sliceplan::rpc {

// `log` must outlive every use of gRPC in the process. nullptr drops what they say. When gRPC says that it will accept
// no more connections, the process gets SIGTERM: it drains and ends.
void SendGrpcLogTo(const JsonLog* log);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_GRPC_LOG_H_
