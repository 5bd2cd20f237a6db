#include "server/rpc/grpc_call.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/rpc/incoming_call.h"

namespace sliceplan::rpc {
namespace {

grpc::Status ToGrpc(const Result& result) {
  if (result.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(result.status().code()), result.status().message(),
                      result.status().details_size() == 0 ? std::string() : result.status().SerializeAsString());
}

// Ends with the call: gRPC is done with it when the last byte of the reply is gone, or its connection.
class Reactor final : public grpc::ServerUnaryReactor {
 public:
  void Finish(UnreadReplies::Receipt receipt, const grpc::Status& status) {
    receipt_ = std::move(receipt);
    grpc::ServerUnaryReactor::Finish(status);
  }
  void OnDone() override { delete this; }

 private:
  UnreadReplies::Receipt receipt_;
};

class GrpcCall final : public IncomingCall {
 public:
  GrpcCall(grpc::CallbackServerContext* context, const google::protobuf::Message* request,
           google::protobuf::Message* response, Reactor* reactor)
      : context_(*context), request_(*request), response_(response), reactor_(reactor) {}

  const google::protobuf::Message& request() const override { return request_; }
  google::protobuf::Message* response() override { return response_; }

  absl::Time deadline() const override {
    // A caller without a deadline shows as the end of time, from which nothing may be subtracted.
    const auto deadline = context_.deadline();
    return deadline == std::chrono::system_clock::time_point::max() ? absl::InfiniteFuture()
                                                                    : absl::FromChrono(deadline);
  }

  bool cancelled() const override { return context_.IsCancelled(); }

  absl::string_view Metadata(absl::string_view key) const override {
    const auto& metadata = context_.client_metadata();
    const auto found = metadata.find(grpc::string_ref(key.data(), key.size()));
    return found == metadata.end() ? absl::string_view()
                                   : absl::string_view(found->second.data(), found->second.size());
  }

  std::string peer() const override { return context_.peer(); }

  void AddReplyMetadata(absl::string_view key, absl::string_view value) override {
    context_.AddTrailingMetadata(std::string(key), std::string(value));
  }

  void Finish(const Result& result, std::optional<absl::Duration> pushback, UnreadReplies::Receipt receipt) override {
    if (pushback.has_value()) {
      AddReplyMetadata(kPushbackKey, absl::StrCat(absl::ToInt64Milliseconds(*pushback)));
    }
    reactor_->Finish(std::move(receipt), ToGrpc(result));
  }

 private:
  grpc::CallbackServerContext& context_;
  const google::protobuf::Message& request_;
  google::protobuf::Message* const response_;
  Reactor* const reactor_;
};

}  // namespace

grpc::ServerUnaryReactor* AnswerOverGrpc(const Dispatcher& dispatcher, const Method& method,
                                         grpc::CallbackServerContext* context, const google::protobuf::Message* request,
                                         google::protobuf::Message* response) {
  auto* const reactor = new Reactor;
  dispatcher.Answer(method, std::make_unique<GrpcCall>(context, request, response, reactor));
  return reactor;
}

}  // namespace sliceplan::rpc
