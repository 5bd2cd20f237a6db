// The client of Sliceplan: one method per RPC, and all that a scheduler includes.
//
//   sliceplan::ClientOptions options;
//   options.target = "dns:///sliceplan-headless:8080";
//   options.security = sliceplan::TransportSecurity::kPlaintext;
//   absl::StatusOr<sliceplan::Client> client = sliceplan::Client::Create(options);
//   if (!client.ok()) return client.status();
//
//   sliceplan::v1::EstimateTrainingRequest request;
//   request.mutable_model()->set_preset("llama-3-70b");
//   request.mutable_slice()->set_accelerator_type("v5p-2048");
//   absl::StatusOr<sliceplan::v1::EstimateTrainingResponse> reply = client->EstimateTraining(request);
//   if (!reply.ok()) {
//     for (const sliceplan::FieldViolation& v : sliceplan::FieldViolations(reply.status())) { ... }  // error_details.h
//   }
//
// A job that does not fit is not an error: `reply->estimate().outcome()` says so. Statuses carry the code and message
// of the service, and its google.rpc details as payloads.
#ifndef SLICEPLAN_CLIENT_SLICEPLAN_CLIENT_H_
#define SLICEPLAN_CLIENT_SLICEPLAN_CLIENT_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "client/sliceplan/connection.h"
#include "client/sliceplan/error_details.h"
#include "client/sliceplan/options.h"
#include "proto/sliceplan/v1/catalog.pb.h"
#include "proto/sliceplan/v1/collective.pb.h"
#include "proto/sliceplan/v1/measurement.pb.h"
#include "proto/sliceplan/v1/model_description.pb.h"
#include "proto/sliceplan/v1/operation.pb.h"
#include "proto/sliceplan/v1/serving.pb.h"
#include "proto/sliceplan/v1/sharding.pb.h"
#include "proto/sliceplan/v1/training.pb.h"

namespace sliceplan {

// How an asynchronous call ends. Runs once, on a thread of gRPC, which it must not block; it may start further calls.
template <typename Response>
using Callback = std::function<void(absl::StatusOr<Response>)>;

// Safe for use by several threads. Copies are cheap and share one connection, which ends with the last of them: that
// cancels what is pending and waits for the callbacks (in the background, where a callback held the last copy).
class Client {
 public:
  // Connects when the first call needs it. INVALID_ARGUMENT for options out of range, NOT_FOUND for certificates that
  // cannot be read.
  static absl::StatusOr<Client> Create(const ClientOptions& options);
  // For tests and wrappers: see connection.h.
  explicit Client(std::shared_ptr<Connection> connection);

  // ---- PlannerService ----

  // Time, memory and cost of training on given slices.
  absl::StatusOr<v1::EstimateTrainingResponse> EstimateTraining(const v1::EstimateTrainingRequest& request,
                                                                const CallOptions& options = {}) const;
  PendingCall EstimateTrainingAsync(const v1::EstimateTrainingRequest& request,
                                    Callback<v1::EstimateTrainingResponse> done, const CallOptions& options = {}) const;

  // Latency, throughput, memory and cost of serving on given slices.
  absl::StatusOr<v1::EstimateServingResponse> EstimateServing(const v1::EstimateServingRequest& request,
                                                              const CallOptions& options = {}) const;
  PendingCall EstimateServingAsync(const v1::EstimateServingRequest& request,
                                   Callback<v1::EstimateServingResponse> done, const CallOptions& options = {}) const;

  // The best slices and ways to spread a job.
  absl::StatusOr<v1::ProposeShardingResponse> ProposeSharding(const v1::ProposeShardingRequest& request,
                                                              const CallOptions& options = {}) const;
  PendingCall ProposeShardingAsync(const v1::ProposeShardingRequest& request,
                                   Callback<v1::ProposeShardingResponse> done, const CallOptions& options = {}) const;

  // ---- AnalysisService ----

  // Parameters, FLOPs and cache bytes of a model.
  absl::StatusOr<v1::DescribeModelResponse> DescribeModel(const v1::DescribeModelRequest& request,
                                                          const CallOptions& options = {}) const;
  PendingCall DescribeModelAsync(const v1::DescribeModelRequest& request, Callback<v1::DescribeModelResponse> done,
                                 const CallOptions& options = {}) const;

  // One matmul, attention or elementwise operation on the roofline of a chip or a mesh.
  absl::StatusOr<v1::AnalyzeOperationResponse> AnalyzeOperation(const v1::AnalyzeOperationRequest& request,
                                                                const CallOptions& options = {}) const;
  PendingCall AnalyzeOperationAsync(const v1::AnalyzeOperationRequest& request,
                                    Callback<v1::AnalyzeOperationResponse> done, const CallOptions& options = {}) const;

  // The time of one collective over axes of a slice.
  absl::StatusOr<v1::AnalyzeCollectiveResponse> AnalyzeCollective(const v1::AnalyzeCollectiveRequest& request,
                                                                  const CallOptions& options = {}) const;
  PendingCall AnalyzeCollectiveAsync(const v1::AnalyzeCollectiveRequest& request,
                                     Callback<v1::AnalyzeCollectiveResponse> done,
                                     const CallOptions& options = {}) const;

  // How far a measured run is from what it should be, and why.
  absl::StatusOr<v1::CompareMeasurementResponse> CompareMeasurement(const v1::CompareMeasurementRequest& request,
                                                                    const CallOptions& options = {}) const;
  PendingCall CompareMeasurementAsync(const v1::CompareMeasurementRequest& request,
                                      Callback<v1::CompareMeasurementResponse> done,
                                      const CallOptions& options = {}) const;

  // ---- CatalogService: one page a call ----

  // Chips with every constant and its source.
  absl::StatusOr<v1::ListAcceleratorsResponse> ListAccelerators(const v1::ListAcceleratorsRequest& request,
                                                                const CallOptions& options = {}) const;
  PendingCall ListAcceleratorsAsync(const v1::ListAcceleratorsRequest& request,
                                    Callback<v1::ListAcceleratorsResponse> done, const CallOptions& options = {}) const;

  // Slices and GPU machines with their names in clouds and schedulers.
  absl::StatusOr<v1::ListSlicesResponse> ListSlices(const v1::ListSlicesRequest& request,
                                                    const CallOptions& options = {}) const;
  PendingCall ListSlicesAsync(const v1::ListSlicesRequest& request, Callback<v1::ListSlicesResponse> done,
                              const CallOptions& options = {}) const;

  // Prices with date and source.
  absl::StatusOr<v1::ListPricesResponse> ListPrices(const v1::ListPricesRequest& request,
                                                    const CallOptions& options = {}) const;
  PendingCall ListPricesAsync(const v1::ListPricesRequest& request, Callback<v1::ListPricesResponse> done,
                              const CallOptions& options = {}) const;

  // Model presets.
  absl::StatusOr<v1::ListModelsResponse> ListModels(const v1::ListModelsRequest& request,
                                                    const CallOptions& options = {}) const;
  PendingCall ListModelsAsync(const v1::ListModelsRequest& request, Callback<v1::ListModelsResponse> done,
                              const CallOptions& options = {}) const;

 private:
  template <typename Response, typename Request>
  absl::StatusOr<Response> Call(const char* method, const Request& request, const CallOptions& options) const;
  template <typename Response, typename Request>
  PendingCall Start(const char* method, const Request& request, Callback<Response> done,
                    const CallOptions& options) const;

  std::shared_ptr<Connection> connection_;
};

}  // namespace sliceplan

#endif  // SLICEPLAN_CLIENT_SLICEPLAN_CLIENT_H_
