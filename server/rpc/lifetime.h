// The life of a server process: it serves until a signal, then leaves without failing a call.
//
// SIGTERM, SIGINT: health says NOT_SERVING; after `drain_delay`, in which load balancers notice, the listener closes
// and running calls get `grace` to end. A second one ends the process at once. SIGHUP: reads the catalog again.
#ifndef SLICEPLAN_SERVER_RPC_LIFETIME_H_
#define SLICEPLAN_SERVER_RPC_LIFETIME_H_

#include <functional>

#include "absl/time/time.h"
#include "server/rpc/json_log.h"
#include "server/rpc/server.h"

namespace sliceplan::rpc {

struct LifetimeOptions {
  absl::Duration drain_delay = absl::Seconds(5);
  absl::Duration grace = absl::Seconds(20);
};

// Call in main before any thread exists: threads inherit the mask, so that only ServeUntilSignalled sees the signals.
void BlockSignals();

enum class Ending {
  kDrained,    // every call has ended
  kImmediate,  // a second signal came: the process must end now, without destroying the server
};

// Requires BlockSignals. `reload` runs on SIGHUP, on this thread.
Ending ServeUntilSignalled(Server& server, const LifetimeOptions& options, const std::function<void()>& reload,
                           const JsonLog& log);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_LIFETIME_H_
