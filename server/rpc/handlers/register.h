// All methods of the three services in one table.
#ifndef SLICEPLAN_SERVER_RPC_HANDLERS_REGISTER_H_
#define SLICEPLAN_SERVER_RPC_HANDLERS_REGISTER_H_

#include "server/rpc/handlers/engine.h"
#include "server/rpc/method_table.h"

namespace sliceplan::rpc {

// `engine` must outlive the table.
MethodTable MakeMethodTable(Engine* engine);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_HANDLERS_REGISTER_H_
