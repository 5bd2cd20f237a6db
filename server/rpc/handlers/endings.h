// How a call ends that was stopped from outside.
#ifndef SLICEPLAN_SERVER_RPC_HANDLERS_ENDINGS_H_
#define SLICEPLAN_SERVER_RPC_HANDLERS_ENDINGS_H_

#include "server/rpc/call_context.h"
#include "server/rpc/errors.h"
#include "server/rpc/result.h"

namespace sliceplan::rpc {

// DEADLINE_EXCEEDED when the deadline has passed, else CANCELLED.
inline Result Stopped(const CallContext& call) { return call.Expired() ? DeadlineExceeded() : Cancelled(); }

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_HANDLERS_ENDINGS_H_
