// The three services as gRPC knows them. Every method hands its messages to the dispatcher; what it computes is in
// handlers/.
#ifndef SLICEPLAN_SERVER_RPC_SERVICES_H_
#define SLICEPLAN_SERVER_RPC_SERVICES_H_

#include <memory>
#include <vector>

#include "grpcpp/impl/codegen/service_type.h"
#include "server/rpc/dispatcher.h"
#include "server/rpc/method_table.h"

namespace sliceplan::rpc {

// Both arguments must outlive the services; the table must have every method of the three services.
std::vector<std::unique_ptr<grpc::Service>> MakeServices(const MethodTable& methods, const Dispatcher& dispatcher);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_SERVICES_H_
