// A unary call of gRPC's callback API as the dispatcher sees it.
#ifndef SLICEPLAN_SERVER_RPC_GRPC_CALL_H_
#define SLICEPLAN_SERVER_RPC_GRPC_CALL_H_

#include "google/protobuf/message.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/dispatcher.h"
#include "server/rpc/method_table.h"

namespace sliceplan::rpc {

// Hands the call to the dispatcher. The messages must live until gRPC has seen the end of the call.
grpc::ServerUnaryReactor* AnswerOverGrpc(const Dispatcher& dispatcher, const Method& method,
                                         grpc::CallbackServerContext* context, const google::protobuf::Message* request,
                                         google::protobuf::Message* response);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_GRPC_CALL_H_
