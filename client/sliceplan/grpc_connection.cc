#include "client/sliceplan/grpc_connection.h"

#include <thread>
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

namespace {

constexpr char kAuthorizationKey[] = "authorization";

// Credentials of the caller's own are taken to encrypt.
bool MaySendTokens(const ClientOptions& options) {
  return options.bearer_token_over_plaintext || options.credentials != nullptr ||
         options.security == TransportSecurity::kTls;
}

// Whether this thread runs a callback now.
thread_local bool in_callback = false;

}  // namespace

class GrpcConnection::AsyncCall {
 public:
  AsyncCall(const google::protobuf::Message& request, std::function<void(absl::Status)> done)
      : context_(std::make_unique<grpc::ClientContext>()), request_(request.New()), done_(std::move(done)) {
    request_->CopyFrom(request);
  }

  grpc::ClientContext& context() { return *context_; }
  const google::protobuf::Message& request() const { return *request_; }

  void Cancel() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }

  // Runs the callback, then lets go of it and of the context.
  void End(absl::Status status) {
    const bool nested = std::exchange(in_callback, true);
    done_(std::move(status));
    done_ = nullptr;
    in_callback = nested;
    // The context holds the channel, which must not end on this thread: see ~GrpcConnection.
    const std::lock_guard<std::mutex> lock(mutex_);
    context_ = nullptr;
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<grpc::ClientContext> context_;  // null after the end
  const std::unique_ptr<google::protobuf::Message> request_;
  std::function<void(absl::Status)> done_;
};

std::shared_ptr<GrpcConnection> GrpcConnection::Make(std::shared_ptr<grpc::Channel> channel,
                                                     const ClientOptions& options,
                                                     std::unique_ptr<TokenSource> tokens) {
  const auto destroy = [](const GrpcConnection* connection) {
    if (in_callback) {
      // The destructor would wait for the callback that it is called from.
      std::thread([connection] { delete connection; }).detach();
    } else {
      delete connection;
    }
  };
  return std::shared_ptr<GrpcConnection>(new GrpcConnection(std::move(channel), options, std::move(tokens)), destroy);
}

GrpcConnection::GrpcConnection(std::shared_ptr<grpc::Channel> channel, const ClientOptions& options,
                               std::unique_ptr<TokenSource> tokens)
    : deadlines_(options.deadlines),
      wait_for_ready_(options.wait_for_ready),
      may_send_tokens_(MaySendTokens(options)),
      tokens_(std::move(tokens)),
      stub_(std::move(channel)) {}

GrpcConnection::~GrpcConnection() {
  // The end of the last channel joins gRPC's threads, so it must not come on one of them. It comes here, after the
  // calls.
  std::unique_lock<std::mutex> lock(mutex_);
  for (const auto& call : pending_) call->Cancel();
  all_ended_.wait(lock, [this] { return pending_.empty(); });
}

absl::Status GrpcConnection::Prepare(const std::string& method, const CallOptions& options,
                                     grpc::ClientContext& context) const {
  if (options.bearer_token.has_value()) {
    if (!may_send_tokens_) {
      return absl::InvalidArgumentError("CallOptions: a token over plaintext needs bearer_token_over_plaintext");
    }
    if (absl::Status status = CheckToken(*options.bearer_token); !status.ok()) return status;
  }
  const absl::Duration timeout = options.timeout.has_value() ? *options.timeout : DefaultTimeout(method, deadlines_);
  if (timeout != absl::InfiniteDuration()) context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  context.set_wait_for_ready(options.wait_for_ready.value_or(wait_for_ready_));
  for (const auto& [name, value] : options.metadata) context.AddMetadata(name, value);
  const std::string token = options.bearer_token.has_value() ? *options.bearer_token
                            : tokens_ != nullptr             ? tokens_->Token()
                                                             : std::string();
  if (!token.empty()) context.AddMetadata(kAuthorizationKey, absl::StrCat("Bearer ", token));
  return absl::OkStatus();
}

absl::Status GrpcConnection::Call(const std::string& method, const google::protobuf::Message& request,
                                  const CallOptions& options, google::protobuf::Message* response) {
  grpc::ClientContext context;
  if (absl::Status status = Prepare(method, options, context); !status.ok()) return status;
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
  auto call = std::make_shared<AsyncCall>(request, std::move(done));
  if (absl::Status status = Prepare(method, options, call->context()); !status.ok()) {
    call->End(std::move(status));
    return PendingCall();
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_.insert(call);
  }
  stub_.UnaryCall(&call->context(), absl::StrCat("/", method), grpc::StubOptions(), &call->request(), response,
                  [this, call](const grpc::Status& status) {
                    call->End(FromGrpcStatus(status));
                    const std::lock_guard<std::mutex> lock(mutex_);
                    pending_.erase(call);
                    if (pending_.empty()) all_ended_.notify_all();
                  });
  return PendingCall([weak = std::weak_ptr<AsyncCall>(call)] {
    if (const std::shared_ptr<AsyncCall> alive = weak.lock()) alive->Cancel();
  });
}

}  // namespace sliceplan
