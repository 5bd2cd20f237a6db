#include "client/sliceplan/client.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "client/sliceplan/methods.h"

namespace sliceplan {

absl::StatusOr<Client> Client::Create(const ClientOptions& options) {
  absl::StatusOr<std::shared_ptr<Connection>> connection = MakeConnection(options);
  if (!connection.ok()) return connection.status();
  return Client(*std::move(connection));
}

Client::Client(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

template <typename Response, typename Request>
absl::StatusOr<Response> Client::Call(const char* method, const Request& request, const CallOptions& options) const {
  Response response;
  if (absl::Status status = connection_->Call(method, request, options, &response); !status.ok()) return status;
  return response;
}

template <typename Response, typename Request>
PendingCall Client::Start(const char* method, const Request& request, Callback<Response> done,
                          const CallOptions& options) const {
  auto response = std::make_shared<Response>();
  Response* const filled = response.get();
  return connection_->Start(method, request, options, filled,
                            [response = std::move(response), done = std::move(done)](absl::Status status) {
                              if (status.ok()) {
                                done(std::move(*response));
                              } else {
                                done(std::move(status));
                              }
                            });
}

// Both forms of one RPC.
#define SLICEPLAN_DEFINE_RPC(Name, method)                                                                      \
  absl::StatusOr<v1::Name##Response> Client::Name(const v1::Name##Request& request, const CallOptions& options) \
      const {                                                                                                   \
    return Call<v1::Name##Response>(method, request, options);                                                  \
  }                                                                                                             \
  PendingCall Client::Name##Async(const v1::Name##Request& request, Callback<v1::Name##Response> done,          \
                                  const CallOptions& options) const {                                           \
    return Start<v1::Name##Response>(method, request, std::move(done), options);                                \
  }

SLICEPLAN_DEFINE_RPC(EstimateTraining, kEstimateTraining)
SLICEPLAN_DEFINE_RPC(EstimateServing, kEstimateServing)
SLICEPLAN_DEFINE_RPC(ProposeSharding, kProposeSharding)
SLICEPLAN_DEFINE_RPC(DescribeModel, kDescribeModel)
SLICEPLAN_DEFINE_RPC(AnalyzeOperation, kAnalyzeOperation)
SLICEPLAN_DEFINE_RPC(AnalyzeCollective, kAnalyzeCollective)
SLICEPLAN_DEFINE_RPC(CompareMeasurement, kCompareMeasurement)
SLICEPLAN_DEFINE_RPC(ListAccelerators, kListAccelerators)
SLICEPLAN_DEFINE_RPC(ListSlices, kListSlices)
SLICEPLAN_DEFINE_RPC(ListPrices, kListPrices)
SLICEPLAN_DEFINE_RPC(ListModels, kListModels)

#undef SLICEPLAN_DEFINE_RPC

}  // namespace sliceplan
