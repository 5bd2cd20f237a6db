// AnalysisService: the arithmetic under the estimates, one question at a time.
#ifndef SLICEPLAN_SERVER_RPC_HANDLERS_ANALYSIS_HANDLERS_H_
#define SLICEPLAN_SERVER_RPC_HANDLERS_ANALYSIS_HANDLERS_H_

#include "proto/sliceplan/v1/collective.pb.h"
#include "proto/sliceplan/v1/measurement.pb.h"
#include "proto/sliceplan/v1/model_description.pb.h"
#include "proto/sliceplan/v1/operation.pb.h"
#include "server/rpc/call_context.h"
#include "server/rpc/handlers/engine.h"
#include "server/rpc/method_table.h"
#include "server/rpc/result.h"

namespace sliceplan::rpc {

class AnalysisHandlers {
 public:
  // `engine` must outlive the handlers.
  explicit AnalysisHandlers(Engine* engine) : engine_(*engine) {}

  Result DescribeModel(const v1::DescribeModelRequest& request, v1::DescribeModelResponse* response,
                       const CallContext& call);
  Result AnalyzeOperation(const v1::AnalyzeOperationRequest& request, v1::AnalyzeOperationResponse* response,
                          const CallContext& call);
  Result AnalyzeCollective(const v1::AnalyzeCollectiveRequest& request, v1::AnalyzeCollectiveResponse* response,
                           const CallContext& call);
  Result CompareMeasurement(const v1::CompareMeasurementRequest& request, v1::CompareMeasurementResponse* response,
                            const CallContext& call);

  // Short unless a large model must be read first.
  Effort EffortOf(const v1::DescribeModelRequest& request) const;
  // Short on one chip; a mesh has many ways to be laid out and to be communicated over.
  Effort EffortOf(const v1::AnalyzeOperationRequest& request) const;

 private:
  Engine& engine_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_HANDLERS_ANALYSIS_HANDLERS_H_
