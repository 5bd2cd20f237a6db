// The calls that the server has accepted, by connection, and an end for each connection that loses none of them.
//
// gRPC tells its clients of a shutdown and answers calls that cross with the news CANCELLED: their callers cannot know
// that they may be made again. So before gRPC's own shutdown new calls are refused as UNAVAILABLE, and a connection is
// closed once the calls that were accepted on it have ended: whatever still crosses is UNAVAILABLE too.
#ifndef SLICEPLAN_SERVER_RPC_OPEN_CALLS_H_
#define SLICEPLAN_SERVER_RPC_OPEN_CALLS_H_

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "grpcpp/support/server_interceptor.h"

namespace sliceplan::rpc {

class OpenCalls {
 public:
  // Counts every call of the services of this package. `this` must outlive the server that it is built into.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeInterceptorFactory();

  // Whether new calls are to be refused.
  bool closing() const { return closing_.load(); }

  // From now on new calls are to be refused. Closes the listener of `port` and its connections, each when its last
  // accepted call has ended; after `grace` those that are left. Returns when all are closed.
  void Close(int port, absl::Duration grace);

 private:
  class Entry;
  class Factory;

  std::mutex mutex_;
  std::condition_variable ended_;
  std::atomic<bool> closing_ = false;
  absl::flat_hash_map<int, int> open_;  // calls by the caller's port; equal ports of two callers only wait for both
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_OPEN_CALLS_H_
