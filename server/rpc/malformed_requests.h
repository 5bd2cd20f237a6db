// What callers are told whose request is no message: gRPC itself answers UNIMPLEMENTED without a word.
#ifndef SLICEPLAN_SERVER_RPC_MALFORMED_REQUESTS_H_
#define SLICEPLAN_SERVER_RPC_MALFORMED_REQUESTS_H_

#include <memory>

#include "grpcpp/support/server_interceptor.h"

namespace sliceplan::rpc {

// Makes INVALID_ARGUMENT of it. Belongs behind whatever logs statuses.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeMalformedRequests();

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_MALFORMED_REQUESTS_H_
