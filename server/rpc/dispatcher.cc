#include "server/rpc/dispatcher.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/arena.h"
#include "server/rpc/errors.h"
#include "server/rpc/request_id.h"
#include "server/rpc/stopwatch.h"

namespace sliceplan::rpc {

namespace {

constexpr char kAuthorizationKey[] = "authorization";

// A search of the whole catalog takes ten times as long as one of a given slice (README.md, "How fast it is"); what it
// really took is charged afterwards.
constexpr double kWideSearchCost = 8;

WorkClaim ClaimOf(Effort effort, const std::string& client) {
  switch (effort) {
    case Effort::kShort:
    case Effort::kLong: break;
    case Effort::kSearch: return {Lane::kSearch, 1, client};
    case Effort::kWideSearch: return {Lane::kSearch, kWideSearchCost, client};
  }
  return {Lane::kQuick, 1, client};
}

constexpr absl::Duration kUnreadRetryDelay = absl::Seconds(1);

// What a reply that waits takes: the messages, and gRPC's call with the bytes to be sent, some 35 kB in all
// (deploy/drills, slow-readers).
int64_t BytesHeldBy(const google::protobuf::Message& response) {
  constexpr int64_t kCallBytes = 24 << 10;
  const google::protobuf::Arena* const arena = response.GetArena();
  const uint64_t messages = arena != nullptr ? arena->SpaceAllocated() : response.SpaceUsedLong();
  return kCallBytes + static_cast<int64_t>(messages);
}

// "ipv4:10.0.0.7:40000" without its port, so that a client with many connections is one. What has no port stays.
std::string HostOf(const std::string& peer) {
  return absl::StartsWith(peer, "ipv4:") || absl::StartsWith(peer, "ipv6:") ? peer.substr(0, peer.rfind(':')) : peer;
}

Result ResultOf(const Shed& shed) {
  switch (shed.reason) {
    case ShedReason::kQueueFull: return Overloaded(shed.retry_delay);
    case ShedReason::kClientShare: return OverShare(shed.retry_delay);
    case ShedReason::kDraining: return Draining();
    case ShedReason::kExpired: return DeadlineExceeded();
    case ShedReason::kUnread: return RepliesUnread(shed.retry_delay);
    case ShedReason::kCancelled: break;
  }
  return Cancelled();
}

}  // namespace

// One call that waits for a worker.
class CallTask : public PoolTask {
 public:
  CallTask(const Dispatcher& dispatcher, const Method& method, Effort effort, CallContext context,
           std::unique_ptr<IncomingCall> call)
      : PoolTask(ClaimOf(effort, context.client)),
        dispatcher_(dispatcher),
        method_(method),
        context_(std::move(context)),
        call_(std::move(call)) {}

  absl::Time deadline() const override { return context_.deadline; }
  bool cancelled() const override { return call_->cancelled(); }
  void Run() override {
    dispatcher_.metrics_.Dequeued(waiting_.Elapsed());
    dispatcher_.RunHere(method_, context_, *call_);
  }
  void Drop(const Shed& shed) override {
    dispatcher_.metrics_.Dequeued(waiting_.Elapsed());
    Refuse(shed);
  }
  // Ends a call that is not worked on.
  void Refuse(const Shed& shed) {
    const bool may_return = shed.retry_delay > absl::ZeroDuration();
    dispatcher_.Refuse(shed.reason, ResultOf(shed), may_return ? std::optional(shed.retry_delay) : std::nullopt,
                       method_, context_, *call_);
  }

 private:
  const Dispatcher& dispatcher_;
  const Method& method_;
  const CallContext context_;
  const std::unique_ptr<IncomingCall> call_;
  const Stopwatch waiting_;
};

CallContext Dispatcher::ContextOf(const IncomingCall& call) const {
  CallContext context;
  const absl::Time now = absl::Now();
  const absl::Time deadline = call.deadline();
  context.deadline =
      deadline == absl::InfiniteFuture() ? now + default_deadline_ : std::min(deadline, now + max_deadline_);
  context.caller_gone = [&call] { return call.cancelled(); };
  context.request_id = RequestIdFrom(call.Metadata(kRequestIdKey));
  context.connection = call.peer();
  return context;
}

void Dispatcher::Answer(const Method& method, std::unique_ptr<IncomingCall> call) const {
  CallContext context = ContextOf(*call);
  call->AddReplyMetadata(kRequestIdKey, context.request_id);
  if (open_calls_.closing()) {
    Refuse(ShedReason::kDraining, Draining(), std::nullopt, method, context, *call);
    return;
  }
  if (!Admit(method, context, *call)) return;
  if (!unread_replies_.HasRoom(context.connection)) {
    const Shed shed{ShedReason::kUnread, kUnreadRetryDelay};
    Refuse(shed.reason, ResultOf(shed), shed.retry_delay, method, context, *call);
    return;
  }
  const Effort effort = method.effort(call->request());
  if (effort == Effort::kShort) {
    RunHere(method, context, *call);
    return;
  }
  auto waiting = std::make_unique<CallTask>(*this, method, effort, std::move(context), std::move(call));
  CallTask& task = *waiting;
  std::unique_ptr<PoolTask> submitted = std::move(waiting);
  // A task that was refused is still ours.
  if (const std::optional<Shed> shed = pool_.Submit(submitted); shed.has_value()) task.Refuse(*shed);
}

bool Dispatcher::Admit(const Method& method, CallContext& context, IncomingCall& call) const {
  if (tokens_ == nullptr) {
    context.client = HostOf(context.connection);
    return true;
  }
  const Authorization authorization = tokens_->Authorize(call.Metadata(kAuthorizationKey), method.FullName());
  context.client = absl::StrCat("token:", authorization.client);
  if (authorization.result.ok()) return true;
  metrics_.Unauthorized(authorization.result.code());
  Finish(authorization.result, authorization.retry_delay, method, context, call);
  return false;
}

void Dispatcher::RunHere(const Method& method, const CallContext& context, IncomingCall& call) const {
  const Stopwatch watch;
  const Result result = method.handle(call.request(), call.response(), context);
  metrics_.Answered(result, *call.response(), context);
  if (request_log_ != nullptr) {
    request_log_->Add(method, call.request(), result, *call.response(), context, watch.Elapsed());
  }
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
  UnreadReplies::Receipt receipt;
  if (result.ok()) receipt = unread_replies_.Add(context.connection, BytesHeldBy(*call.response()));
  call.Finish(result, pushback, std::move(receipt));
}

}  // namespace sliceplan::rpc
