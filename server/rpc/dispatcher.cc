#include "server/rpc/dispatcher.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "server/rpc/errors.h"
#include "server/rpc/request_id.h"

namespace sliceplan::rpc {

// One call that waits for a worker.
class CallTask : public PoolTask {
 public:
  CallTask(const Dispatcher& dispatcher, const Method& method, CallContext context, std::unique_ptr<IncomingCall> call)
      : dispatcher_(dispatcher), method_(method), context_(std::move(context)), call_(std::move(call)) {}

  absl::Time deadline() const override { return context_.deadline; }
  bool cancelled() const override { return call_->cancelled(); }
  void Run() override { dispatcher_.RunHere(method_, context_, *call_); }
  void Drop(DropReason reason) override { Refuse(ResultOf(reason)); }
  // Ends a call that is not worked on.
  void Refuse(const Result& result, std::optional<absl::Duration> pushback = std::nullopt) {
    dispatcher_.Finish(result, pushback, method_, context_, *call_);
  }

 private:
  static Result ResultOf(DropReason reason) {
    switch (reason) {
      case DropReason::kExpired: return DeadlineExceeded();
      case DropReason::kCancelled: return Cancelled();
      case DropReason::kStopping: break;
    }
    return Draining();
  }

  const Dispatcher& dispatcher_;
  const Method& method_;
  const CallContext context_;
  const std::unique_ptr<IncomingCall> call_;
};

CallContext Dispatcher::ContextOf(const IncomingCall& call) const {
  CallContext context;
  const absl::Time now = absl::Now();
  const absl::Time deadline = call.deadline();
  context.deadline =
      deadline == absl::InfiniteFuture() ? now + default_deadline_ : std::min(deadline, now + max_deadline_);
  context.caller_gone = [&call] { return call.cancelled(); };
  context.request_id = RequestIdFrom(call.Metadata(kRequestIdKey));
  return context;
}

void Dispatcher::Answer(const Method& method, std::unique_ptr<IncomingCall> call) const {
  CallContext context = ContextOf(*call);
  call->AddReplyMetadata(kRequestIdKey, context.request_id);
  if (open_calls_.closing()) {
    Finish(Draining(), std::nullopt, method, context, *call);
    return;
  }
  if (method.effort(call->request()) == Effort::kShort) {
    RunHere(method, context, *call);
    return;
  }
  auto waiting = std::make_unique<CallTask>(*this, method, std::move(context), std::move(call));
  CallTask& task = *waiting;
  std::unique_ptr<PoolTask> submitted = std::move(waiting);
  switch (pool_.Submit(submitted)) {
    case WorkerPool::Admission::kAccepted: break;
    case WorkerPool::Admission::kFull: {
      const absl::Duration delay = pool_.retry_delay();
      task.Refuse(Overloaded(delay), delay);
      break;
    }
    case WorkerPool::Admission::kStopping: task.Refuse(Draining()); break;
  }
}

void Dispatcher::RunHere(const Method& method, const CallContext& context, IncomingCall& call) const {
  Finish(method.handle(call.request(), call.response(), context), std::nullopt, method, context, call);
}

void Dispatcher::Finish(const Result& result, std::optional<absl::Duration> pushback, const Method& method,
                        const CallContext& context, IncomingCall& call) const {
  if (!result.log_text().empty()) {
    LogLine line = log_.Line(Severity::kError, "a handler failed");
    line.Text("method", method.FullName()).Text("request_id", context.request_id).Text("cause", result.log_text());
    log_.Write(std::move(line));
  }
  call.Finish(result, pushback);
}

}  // namespace sliceplan::rpc
