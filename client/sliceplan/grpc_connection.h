// The connection over gRPC. Internal to the library.
#ifndef SLICEPLAN_CLIENT_SLICEPLAN_GRPC_CONNECTION_H_
#define SLICEPLAN_CLIENT_SLICEPLAN_GRPC_CONNECTION_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "client/sliceplan/connection.h"
#include "client/sliceplan/token_source.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/codegen/proto_utils.h"

namespace sliceplan {

class GrpcConnection final : public Connection {
 public:
  // Ends with the last copy of the pointer, on a thread of its own where that goes away in a callback.
  // `tokens` may be null.
  static std::shared_ptr<GrpcConnection> Make(std::shared_ptr<grpc::Channel> channel, const ClientOptions& options,
                                              std::unique_ptr<TokenSource> tokens);
  // Cancels what is pending and waits for the callbacks.
  ~GrpcConnection() override;

  absl::Status Call(const std::string& method, const google::protobuf::Message& request, const CallOptions& options,
                    google::protobuf::Message* response) override;
  PendingCall Start(const std::string& method, const google::protobuf::Message& request, const CallOptions& options,
                    google::protobuf::Message* response, std::function<void(absl::Status)> done) override;

 private:
  // Typed for any message: what generated stubs do, without compiling a stub per service.
  using Stub = grpc::TemplatedGenericStub<google::protobuf::MessageLite, google::protobuf::MessageLite>;
  class AsyncCall;

  GrpcConnection(std::shared_ptr<grpc::Channel> channel, const ClientOptions& options,
                 std::unique_ptr<TokenSource> tokens);

  // INVALID_ARGUMENT for options that cannot be sent.
  absl::Status Prepare(const std::string& method, const CallOptions& options, grpc::ClientContext& context) const;

  const Deadlines deadlines_;
  const bool wait_for_ready_;
  const bool may_send_tokens_;
  const std::unique_ptr<TokenSource> tokens_;
  Stub stub_;

  std::mutex mutex_;
  std::condition_variable all_ended_;
  absl::flat_hash_set<std::shared_ptr<AsyncCall>> pending_;
};

}  // namespace sliceplan

#endif  // SLICEPLAN_CLIENT_SLICEPLAN_GRPC_CONNECTION_H_
