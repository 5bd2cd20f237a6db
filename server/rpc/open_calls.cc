#include "server/rpc/open_calls.h"

#include <sys/socket.h>

#include <chrono>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "grpcpp/server_context.h"
#include "server/rpc/tcp_sockets.h"

namespace sliceplan::rpc {
namespace {

namespace experimental = grpc::experimental;

// How often connections are looked for that came or fell idle unnoticed.
constexpr std::chrono::milliseconds kPeriod(20);

// "ipv4:127.0.0.1:40000"; 0 when it ends otherwise.
int PortOfPeer(const std::string& peer) {
  int port = 0;
  const size_t colon = peer.rfind(':');
  return colon != std::string::npos && absl::SimpleAtoi(absl::string_view(peer).substr(colon + 1), &port) ? port : 0;
}

}  // namespace

// Lives as long as the call does, until its status has been written.
class OpenCalls::Entry : public experimental::Interceptor {
 public:
  Entry(OpenCalls* calls, int port) : calls_(*calls), port_(port) {
    const std::lock_guard lock(calls_.mutex_);
    ++calls_.open_[port_];
  }
  ~Entry() override {
    {
      const std::lock_guard lock(calls_.mutex_);
      const auto found = calls_.open_.find(port_);
      if (--found->second == 0) calls_.open_.erase(found);
      if (!calls_.closing_) return;
    }
    calls_.ended_.notify_all();
  }
  void Intercept(experimental::InterceptorBatchMethods* methods) override { methods->Proceed(); }

 private:
  OpenCalls& calls_;
  const int port_;
};

class OpenCalls::Factory : public experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(OpenCalls* calls) : calls_(calls) {}
  experimental::Interceptor* CreateServerInterceptor(experimental::ServerRpcInfo* info) override {
    // What is refused holds nothing up. nullptr: gRPC goes on without this one.
    if (calls_->closing() || !absl::StartsWith(info->method(), "/sliceplan.")) return nullptr;
    return new Entry(calls_, PortOfPeer(info->server_context()->peer()));
  }

 private:
  OpenCalls* const calls_;
};

std::unique_ptr<experimental::ServerInterceptorFactoryInterface> OpenCalls::MakeInterceptorFactory() {
  return std::make_unique<Factory>(this);
}

void OpenCalls::Close(int port, absl::Duration grace) {
  const absl::Time end = absl::Now() + grace;
  std::unique_lock lock(mutex_);
  closing_ = true;
  while (true) {
    const bool overdue = absl::Now() >= end;
    for (const TcpSocket& socket : TcpSocketsOf(port)) {
      if (!socket.peer_port.has_value()) {
        shutdown(socket.fd, SHUT_RDWR);  // the listener
      } else if (overdue || !open_.contains(*socket.peer_port)) {
        // What has been written still arrives before the end; what has not is never answered.
        shutdown(socket.fd, SHUT_WR);
      }
    }
    if (open_.empty() || overdue) return;
    ended_.wait_for(lock, kPeriod);
  }
}

}  // namespace sliceplan::rpc
