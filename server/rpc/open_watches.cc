#include "server/rpc/open_watches.h"

#include "absl/strings/string_view.h"

namespace sliceplan::rpc {

namespace experimental = grpc::experimental;

// Lives as long as the call does: gRPC deletes a call's interceptors before it lets go of the call.
class OpenWatches::Entry : public experimental::Interceptor {
 public:
  Entry(OpenWatches* watches, grpc::ServerContextBase* call) : watches_(*watches), call_(call) {
    const std::lock_guard lock(watches_.mutex_);
    watches_.open_.insert(call_);
  }
  ~Entry() override {
    const std::lock_guard lock(watches_.mutex_);
    watches_.open_.erase(call_);
  }

  void Intercept(experimental::InterceptorBatchMethods* methods) override {
    // Only once its first answer leaves can a call be cancelled for certain.
    if (methods->QueryInterceptionHookPoint(experimental::InterceptionHookPoints::PRE_SEND_MESSAGE)) {
      const std::lock_guard lock(watches_.mutex_);
      if (watches_.ended_) call_->TryCancel();
    }
    methods->Proceed();
  }

 private:
  OpenWatches& watches_;
  grpc::ServerContextBase* const call_;
};

class OpenWatches::Factory : public experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(OpenWatches* watches) : watches_(watches) {}
  experimental::Interceptor* CreateServerInterceptor(experimental::ServerRpcInfo* info) override {
    constexpr absl::string_view kWatch = "/grpc.health.v1.Health/Watch";
    // nullptr: gRPC goes on without this one.
    return info->method() == kWatch ? new Entry(watches_, info->server_context()) : nullptr;
  }

 private:
  OpenWatches* const watches_;
};

std::unique_ptr<experimental::ServerInterceptorFactoryInterface> OpenWatches::MakeInterceptorFactory() {
  return std::make_unique<Factory>(this);
}

void OpenWatches::EndAll() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  for (grpc::ServerContextBase* const call : open_) call->TryCancel();
}

}  // namespace sliceplan::rpc
