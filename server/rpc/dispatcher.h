// From a call to its handler and back, whatever carries it: deadline and request id, which thread, admission, status.
#ifndef SLICEPLAN_SERVER_RPC_DISPATCHER_H_
#define SLICEPLAN_SERVER_RPC_DISPATCHER_H_

#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "server/rpc/incoming_call.h"
#include "server/rpc/json_log.h"
#include "server/rpc/method_table.h"
#include "server/rpc/metrics/server_metrics.h"
#include "server/rpc/open_calls.h"
#include "server/rpc/request_log.h"
#include "server/rpc/server_options.h"
#include "server/rpc/token_authority.h"
#include "server/rpc/unread_replies.h"
#include "server/rpc/worker_pool.h"

namespace sliceplan::rpc {

class Dispatcher {
 public:
  // All must outlive the dispatcher. `tokens` and `request_log` may be null: everybody may call, nothing is noted.
  Dispatcher(const ServerOptions& options, const JsonLog* log, const ServerMetrics* metrics, TokenAuthority* tokens,
             RequestLog* request_log, WorkerPool* pool, const OpenCalls* open_calls, UnreadReplies* unread_replies)
      : default_deadline_(options.default_deadline),
        max_deadline_(options.max_deadline),
        log_(*log),
        metrics_(*metrics),
        tokens_(tokens),
        request_log_(request_log),
        pool_(*pool),
        open_calls_(*open_calls),
        unread_replies_(*unread_replies) {}

  // Answers on this thread when the method calls the request short, else on the pool; ends the call in every case.
  // UNAVAILABLE while connections are being closed; callers without a token that may do this are refused, and those
  // that do not read the replies they have.
  void Answer(const Method& method, std::unique_ptr<IncomingCall> call) const;

 private:
  friend class CallTask;

  CallContext ContextOf(const IncomingCall& call) const;
  // Whether the caller may go on; ends the call when not. Sets the client of `context`.
  bool Admit(const Method& method, CallContext& context, IncomingCall& call) const;
  // Runs the handler and ends the call.
  void RunHere(const Method& method, const CallContext& context, IncomingCall& call) const;
  // Ends a call that is not worked on.
  void Refuse(ShedReason reason, const Result& result, std::optional<absl::Duration> pushback, const Method& method,
              const CallContext& context, IncomingCall& call) const;
  // Every call that came in ends here, once.
  void Finish(const Result& result, std::optional<absl::Duration> pushback, const Method& method,
              const CallContext& context, IncomingCall& call) const;

  const absl::Duration default_deadline_;
  const absl::Duration max_deadline_;
  const JsonLog& log_;
  const ServerMetrics& metrics_;
  TokenAuthority* const tokens_;
  RequestLog* const request_log_;
  WorkerPool& pool_;
  const OpenCalls& open_calls_;
  UnreadReplies& unread_replies_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_DISPATCHER_H_
