// A connection without a server, for tests of code that uses a Client:
//
//   auto fake = std::make_shared<sliceplan::FakeConnection>();
//   fake->Answer<v1::EstimateTrainingRequest, v1::EstimateTrainingResponse>(
//       [](const v1::EstimateTrainingRequest& request) -> absl::StatusOr<v1::EstimateTrainingResponse> { ... });
//   Scheduler scheduler(sliceplan::Client(fake));
#ifndef SLICEPLAN_CLIENT_SLICEPLAN_FAKE_CONNECTION_H_
#define SLICEPLAN_CLIENT_SLICEPLAN_FAKE_CONNECTION_H_

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sliceplan/connection.h"
#include "google/protobuf/message.h"

namespace sliceplan {

// Every RPC has a request type of its own, so that the type says which RPC is answered. RPCs without an answer are
// UNIMPLEMENTED. Asynchronous calls end before they return, on the caller's thread.
class FakeConnection : public Connection {
 public:
  // Replaces an answer given before. `answer` runs for each call, also for several at once.
  template <typename Request, typename Response>
  void Answer(std::function<absl::StatusOr<Response>(const Request&)> answer);

  // Calls of an RPC so far, by its full name.
  int CallCount(const std::string& method) const;
  // Options of the last call of any RPC.
  CallOptions LastOptions() const;

  absl::Status Call(const std::string& method, const google::protobuf::Message& request, const CallOptions& options,
                    google::protobuf::Message* response) override;
  PendingCall Start(const std::string& method, const google::protobuf::Message& request, const CallOptions& options,
                    google::protobuf::Message* response, std::function<void(absl::Status)> done) override;

 private:
  using Handler = std::function<absl::Status(const google::protobuf::Message&, google::protobuf::Message*)>;

  void SetHandler(const std::string& request_type, Handler handler);

  mutable std::mutex mutex_;
  std::map<std::string, Handler> handlers_;
  std::map<std::string, int> call_counts_;
  CallOptions last_options_;
};

// ---- Implementation ----

template <typename Request, typename Response>
void FakeConnection::Answer(std::function<absl::StatusOr<Response>(const Request&)> answer) {
  SetHandler(Request::descriptor()->full_name(),
             [answer = std::move(answer)](const google::protobuf::Message& request,
                                          google::protobuf::Message* response) -> absl::Status {
               absl::StatusOr<Response> answered = answer(static_cast<const Request&>(request));
               if (!answered.ok()) return answered.status();
               static_cast<Response&>(*response) = *std::move(answered);
               return absl::OkStatus();
             });
}

}  // namespace sliceplan

#endif  // SLICEPLAN_CLIENT_SLICEPLAN_FAKE_CONNECTION_H_
