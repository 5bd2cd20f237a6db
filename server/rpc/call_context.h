// What a handler knows of the call that it answers, whatever carried it.
#ifndef SLICEPLAN_SERVER_RPC_CALL_CONTEXT_H_
#define SLICEPLAN_SERVER_RPC_CALL_CONTEXT_H_

#include <functional>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace sliceplan::rpc {

struct CallContext {
  // When the answer is no longer wanted.
  absl::Time deadline = absl::InfiniteFuture();
  // Whether the caller went away. Empty: it cannot. Called from the thread of the handler.
  std::function<bool()> caller_gone;
  // Names the call in logs and in INTERNAL errors. May be empty.
  std::string request_id;
  // Who shares the server's time with others: "token:NAME", or where the caller is. May be empty.
  std::string client;
  // Who reads the reply: "ipv4:10.0.0.7:40000". May be empty.
  std::string connection;
  // Set by the handler: its search answered with what it had when time ran out.
  mutable bool search_truncated = false;

  bool Cancelled() const { return caller_gone && caller_gone(); }
  bool Expired() const { return deadline != absl::InfiniteFuture() && absl::Now() >= deadline; }
  // Whether work on the answer should stop.
  bool Stopped() const { return Cancelled() || Expired(); }
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CALL_CONTEXT_H_
