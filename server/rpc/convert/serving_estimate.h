// A serving estimate: engine to contract.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_SERVING_ESTIMATE_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_SERVING_ESTIMATE_H_

#include "proto/sliceplan/v1/serving.pb.h"
#include "server/planner/serving/serving_estimate.h"
#include "server/rpc/convert/serving_job.h"

namespace sliceplan::rpc {

// Fills `proto`, whose `cost.prices` are set already.
void ToProto(const ServingQuestion& question, const planner::ServingEstimate& estimate, v1::ServingEstimate* proto);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_SERVING_ESTIMATE_H_
