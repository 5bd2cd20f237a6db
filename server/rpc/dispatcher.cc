#include "server/rpc/dispatcher.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/rpc/errors.h"
#include "server/rpc/request_id.h"

namespace sliceplan::rpc {
namespace {

// gRFC A6: how long a client with a retry policy waits before it tries again.
constexpr char kPushbackKey[] = "grpc-retry-pushback-ms";

grpc::Status ToGrpc(const Result& result) {
  if (result.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(result.status().code()), result.status().message(),
                      result.status().details_size() == 0 ? std::string() : result.status().SerializeAsString());
}

}  // namespace

// One call that waits for a worker.
class CallTask : public PoolTask {
 public:
  CallTask(const Dispatcher& dispatcher, const Method& method, CallContext call, grpc::CallbackServerContext* context,
           const google::protobuf::Message& request, google::protobuf::Message* response,
           grpc::ServerUnaryReactor* reactor)
      : dispatcher_(dispatcher),
        method_(method),
        call_(std::move(call)),
        context_(context),
        request_(request),
        response_(response),
        reactor_(reactor) {}

  absl::Time deadline() const override { return call_.deadline; }
  bool cancelled() const override { return context_->IsCancelled(); }
  void Run() override { dispatcher_.RunHere(method_, call_, request_, response_, reactor_); }
  void Drop(DropReason reason) override { dispatcher_.Finish(ResultOf(reason), method_, call_, reactor_); }

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
  const CallContext call_;
  grpc::CallbackServerContext* const context_;
  const google::protobuf::Message& request_;
  google::protobuf::Message* const response_;
  grpc::ServerUnaryReactor* const reactor_;
};

CallContext Dispatcher::ContextOf(grpc::CallbackServerContext* context) const {
  CallContext call;
  const absl::Time now = absl::Now();
  // A caller without a deadline shows as the end of time, from which nothing may be subtracted.
  const auto deadline = context->deadline();
  call.deadline = deadline == std::chrono::system_clock::time_point::max()
                      ? now + default_deadline_
                      : std::min(absl::FromChrono(deadline), now + max_deadline_);
  call.caller_gone = [context] { return context->IsCancelled(); };
  const auto& metadata = context->client_metadata();
  const auto id = metadata.find(kRequestIdKey);
  call.request_id = RequestIdFrom(id == metadata.end() ? absl::string_view()
                                                       : absl::string_view(id->second.data(), id->second.size()));
  return call;
}

grpc::ServerUnaryReactor* Dispatcher::Answer(const Method& method, grpc::CallbackServerContext* context,
                                             const google::protobuf::Message* request,
                                             google::protobuf::Message* response) const {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  CallContext call = ContextOf(context);
  context->AddTrailingMetadata(kRequestIdKey, call.request_id);
  if (open_calls_.closing()) {
    Finish(Draining(), method, call, reactor);
    return reactor;
  }
  if (method.effort(*request) == Effort::kShort) {
    RunHere(method, call, *request, response, reactor);
    return reactor;
  }
  std::unique_ptr<PoolTask> task =
      std::make_unique<CallTask>(*this, method, call, context, *request, response, reactor);
  switch (pool_.Submit(task)) {
    case WorkerPool::Admission::kAccepted: break;
    case WorkerPool::Admission::kFull: {
      const absl::Duration delay = pool_.retry_delay();
      context->AddTrailingMetadata(kPushbackKey, absl::StrCat(absl::ToInt64Milliseconds(delay)));
      Finish(Overloaded(delay), method, call, reactor);
      break;
    }
    case WorkerPool::Admission::kStopping: Finish(Draining(), method, call, reactor); break;
  }
  return reactor;
}

void Dispatcher::RunHere(const Method& method, const CallContext& call, const google::protobuf::Message& request,
                         google::protobuf::Message* response, grpc::ServerUnaryReactor* reactor) const {
  Finish(method.handle(request, response, call), method, call, reactor);
}

void Dispatcher::Finish(const Result& result, const Method& method, const CallContext& call,
                        grpc::ServerUnaryReactor* reactor) const {
  if (!result.log_text().empty()) {
    LogLine line = log_.Line(Severity::kError, "a handler failed");
    line.Text("method", method.FullName()).Text("request_id", call.request_id).Text("cause", result.log_text());
    log_.Write(std::move(line));
  }
  reactor->Finish(ToGrpc(result));
}

}  // namespace sliceplan::rpc
