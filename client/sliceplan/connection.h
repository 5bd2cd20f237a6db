// What carries the calls of a Client. Most users need only client.h; this is the seam for tests (fake_connection.h) and
// for wrappers that log, count or cache every call.
#ifndef SLICEPLAN_CLIENT_SLICEPLAN_CONNECTION_H_
#define SLICEPLAN_CLIENT_SLICEPLAN_CONNECTION_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sliceplan/options.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace grpc {
class Channel;
}  // namespace grpc

namespace sliceplan {

// An asynchronous call that has been started. Copies refer to the same call; letting go of it changes nothing.
class PendingCall {
 public:
  // A call that has ended.
  PendingCall() = default;
  explicit PendingCall(std::function<void()> cancel) : cancel_(std::move(cancel)) {}

  // Asks the call to end with CANCELLED. Does nothing once it has ended. From any thread.
  void Cancel() const {
    if (cancel_) cancel_();
  }

 private:
  std::function<void()> cancel_;
};

// Implementations are safe for use by several threads.
class Connection {
 public:
  virtual ~Connection() = default;

  // One call of `method` ("sliceplan.v1.PlannerService/EstimateTraining"); returns when it has ended. `request` and
  // `response` are of the types of the method; `response` is only filled in when the status is OK.
  virtual absl::Status Call(const std::string& method, const google::protobuf::Message& request,
                            const CallOptions& options, google::protobuf::Message* response) = 0;

  // The same, returning at once. `done` runs exactly once, possibly before Start returns and on any thread, and must
  // not block. `request` may go away when Start returns, `response` must live until `done` runs.
  virtual PendingCall Start(const std::string& method, const google::protobuf::Message& request,
                            const CallOptions& options, google::protobuf::Message* response,
                            std::function<void(absl::Status)> done) = 0;
};

// A connection over gRPC, made when the first call needs it. INVALID_ARGUMENT for options out of range, NOT_FOUND for
// files that cannot be read. Its end cancels the calls that are pending and waits for their callbacks, so it must not
// come from within one.
absl::StatusOr<std::shared_ptr<Connection>> MakeConnection(const ClientOptions& options);

// A connection over a channel of yours. Of `options`, deadlines, tokens and wait_for_ready count; the rest is the
// channel's.
absl::StatusOr<std::shared_ptr<Connection>> MakeConnection(std::shared_ptr<grpc::Channel> channel,
                                                           const ClientOptions& options);

}  // namespace sliceplan

#endif  // SLICEPLAN_CLIENT_SLICEPLAN_CONNECTION_H_
