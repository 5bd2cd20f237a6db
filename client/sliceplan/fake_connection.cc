#include "client/sliceplan/fake_connection.h"

#include "absl/strings/str_cat.h"

namespace sliceplan {

void FakeConnection::SetHandler(const std::string& request_type, Handler handler) {
  const std::lock_guard<std::mutex> lock(mutex_);
  handlers_[request_type] = std::move(handler);
}

int FakeConnection::CallCount(const std::string& method) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = call_counts_.find(method);
  return found == call_counts_.end() ? 0 : found->second;
}

CallOptions FakeConnection::LastOptions() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_options_;
}

absl::Status FakeConnection::Call(const std::string& method, const google::protobuf::Message& request,
                                  const CallOptions& options, google::protobuf::Message* response) {
  Handler handler;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++call_counts_[method];
    last_options_ = options;
    const auto found = handlers_.find(request.GetDescriptor()->full_name());
    if (found != handlers_.end()) handler = found->second;
  }
  if (!handler) return absl::UnimplementedError(absl::StrCat("FakeConnection has no answer for ", method));
  return handler(request, response);
}

PendingCall FakeConnection::Start(const std::string& method, const google::protobuf::Message& request,
                                  const CallOptions& options, google::protobuf::Message* response,
                                  std::function<void(absl::Status)> done) {
  done(Call(method, request, options, response));
  return PendingCall();
}

}  // namespace sliceplan
