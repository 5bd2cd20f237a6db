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
  void Run() override {
    dispatcher_.metrics_.Dequeued(absl::Now() - start_);
    dispatcher_.RunHere(method_, context_, *call_);
  }
  void Drop(DropReason reason) override {
    dispatcher_.metrics_.Dequeued(absl::Now() - start_);
    switch (reason) {
      case DropReason::kExpired: return Refuse(ShedReason::kExpired, DeadlineExceeded());
      case DropReason::kCancelled: return Refuse(ShedReason::kCancelled, Cancelled());
      case DropReason::kStopping: return Refuse(ShedReason::kDraining, Draining());
    }
  }
  // Ends a call that is not worked on.
  void Refuse(ShedReason reason, const Result& result, std::optional<absl::Duration> pushback = std::nullopt) {
    dispatcher_.Refuse(reason, result, pushback, method_, context_, *call_);
  }

 private:
  const Dispatcher& dispatcher_;
  const Method& method_;
  const CallContext context_;
  const std::unique_ptr<IncomingCall> call_;
  const absl::Time start_ = absl::Now();
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
    Refuse(ShedReason::kDraining, Draining(), std::nullopt, method, context, *call);
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
      task.Refuse(ShedReason::kQueueFull, Overloaded(delay), delay);
      break;
    }
    case WorkerPool::Admission::kStopping: task.Refuse(ShedReason::kDraining, Draining()); break;
  }
}

void Dispatcher::RunHere(const Method& method, const CallContext& context, IncomingCall& call) const {
  const Result result = method.handle(call.request(), call.response(), context);
  metrics_.Answered(result, *call.response(), context);
  Finish(result, std::nullopt, method, context, call);
}

void Dispatcher::Refuse(ShedReason reason, const Result& result, std::optional<absl::Duration> pushback,
                        const Method& method, const CallContext& context, IncomingCall& call) const {
  metrics_.Shed(reason);
  Finish(result, pushback, method, context, call);
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
