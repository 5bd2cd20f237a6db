#include "server/rpc/malformed_requests.h"

#include <chrono>

#include "absl/strings/match.h"
#include "grpcpp/server_context.h"
#include "server/rpc/errors.h"

namespace sliceplan::rpc {
namespace {

namespace experimental = grpc::experimental;

class MalformedRequests : public experimental::Interceptor {
 public:
  explicit MalformedRequests(experimental::ServerRpcInfo* info) : info_(*info) {}

  void Intercept(experimental::InterceptorBatchMethods* methods) override {
    using Point = experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(Point::POST_RECV_MESSAGE)) was_read_ = methods->GetRecvMessage() != nullptr;
    if (!was_read_ && methods->QueryInterceptionHookPoint(Point::PRE_SEND_STATUS) && IsOfGrpc(*methods)) {
      const Result result = InvalidArgument(
          {{"", "The request cannot be read: its bytes are no message of this method, or text in it is not UTF-8.",
            "MALFORMED_REQUEST"}});
      methods->ModifySendStatus(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, result.status().message(),
                                             result.status().SerializeAsString()));
    }
    methods->Proceed();
  }

 private:
  // A call that ended before its request came has no request either.
  bool IsOfGrpc(experimental::InterceptorBatchMethods& methods) const {
    const grpc::Status status = methods.GetSendStatus();
    const grpc::ServerContextBase& context = *info_.server_context();
    return status.error_code() == grpc::StatusCode::UNIMPLEMENTED && status.error_message().empty() &&
           context.deadline() > std::chrono::system_clock::now() && !context.IsCancelled();
  }

  experimental::ServerRpcInfo& info_;
  bool was_read_ = true;
};

class Factory : public experimental::ServerInterceptorFactoryInterface {
 public:
  experimental::Interceptor* CreateServerInterceptor(experimental::ServerRpcInfo* info) override {
    // nullptr: gRPC goes on without this one.
    return absl::StartsWith(info->method(), "/sliceplan.") ? new MalformedRequests(info) : nullptr;
  }
};

}  // namespace

std::unique_ptr<experimental::ServerInterceptorFactoryInterface> MakeMalformedRequests() {
  return std::make_unique<Factory>();
}

}  // namespace sliceplan::rpc
