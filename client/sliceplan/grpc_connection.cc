#include "client/sliceplan/grpc_connection.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/sliceplan/methods.h"
#include "client/sliceplan/status.h"
#include "google/protobuf/message.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/stub_options.h"

namespace sliceplan {

struct GrpcConnection::AsyncCall {
  grpc::ClientContext context;
  std::unique_ptr<google::protobuf::Message> request;
  std::function<void(absl::Status)> done;
};

GrpcConnection::GrpcConnection(std::shared_ptr<grpc::Channel> channel, const ClientOptions& options)
    : deadlines_(options.deadlines), wait_for_ready_(options.wait_for_ready), stub_(std::move(channel)) {}

GrpcConnection::~GrpcConnection() {
  // The channel must not end on a thread of gRPC: its own end joins those threads. So it ends here, after the calls.
  std::unique_lock<std::mutex> lock(mutex_);
  for (const auto& call : pending_) call->context.TryCancel();
  all_ended_.wait(lock, [this] { return pending_.empty(); });
}

void GrpcConnection::Prepare(const std::string& method, const CallOptions& options,
                             grpc::ClientContext& context) const {
  const absl::Duration timeout = options.timeout.has_value() ? *options.timeout : DefaultTimeout(method, deadlines_);
  if (timeout != absl::InfiniteDuration()) context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  context.set_wait_for_ready(options.wait_for_ready.value_or(wait_for_ready_));
  for (const auto& [name, value] : options.metadata) context.AddMetadata(name, value);
}

absl::Status GrpcConnection::Call(const std::string& method, const google::protobuf::Message& request,
                                  const CallOptions& options, google::protobuf::Message* response) {
  grpc::ClientContext context;
  Prepare(method, options, context);
  // A queue of its own, so that a callback may make a blocking call without holding up the others.
  grpc::CompletionQueue queue;
  const auto call = stub_.PrepareUnaryCall(&context, absl::StrCat("/", method), request, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(response, &status, /*tag=*/nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return FromGrpcStatus(status);
}

PendingCall GrpcConnection::Start(const std::string& method, const google::protobuf::Message& request,
                                  const CallOptions& options, google::protobuf::Message* response,
                                  std::function<void(absl::Status)> done) {
  auto call = std::make_shared<AsyncCall>();
  Prepare(method, options, call->context);
  call->request.reset(request.New());
  call->request->CopyFrom(request);
  call->done = std::move(done);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_.insert(call);
  }
  stub_.UnaryCall(&call->context, absl::StrCat("/", method), grpc::StubOptions(), call->request.get(), response,
                  [this, call](const grpc::Status& status) {
                    call->done(FromGrpcStatus(status));
                    call->done = nullptr;
                    const std::lock_guard<std::mutex> lock(mutex_);
                    pending_.erase(call);
                    if (pending_.empty()) all_ended_.notify_all();
                  });
  return PendingCall([weak = std::weak_ptr<AsyncCall>(call)] {
    if (const std::shared_ptr<AsyncCall> alive = weak.lock()) alive->context.TryCancel();
  });
}

}  // namespace sliceplan
