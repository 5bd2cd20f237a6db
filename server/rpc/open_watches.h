// The open health watches, which a server that ends must end itself: each would otherwise hold its shutdown until the
// grace is over, because gRPC counts it as a running call that never finishes.
#ifndef SLICEPLAN_SERVER_RPC_OPEN_WATCHES_H_
#define SLICEPLAN_SERVER_RPC_OPEN_WATCHES_H_

#include <memory>
#include <mutex>

#include "absl/container/flat_hash_set.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_interceptor.h"

namespace sliceplan::rpc {

class OpenWatches {
 public:
  // Tells of every health watch of the server that is built with it. `this` must outlive that server.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeInterceptorFactory();

  // Ends the open watches and every one that begins from now on; their callers see CANCELLED.
  void EndAll();

 private:
  class Entry;
  class Factory;

  std::mutex mutex_;
  bool ended_ = false;
  absl::flat_hash_set<grpc::ServerContextBase*> open_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_OPEN_WATCHES_H_
