// A training estimate: engine to contract.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_TRAINING_ESTIMATE_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_TRAINING_ESTIMATE_H_

#include "proto/sliceplan/v1/training.pb.h"
#include "server/planner/training_estimate.h"
#include "server/rpc/convert/training_job.h"

namespace sliceplan::rpc {

// Fills `proto`, whose `cost.price` is set already.
void ToProto(const TrainingQuestion& question, const planner::TrainingEstimate& estimate, v1::TrainingEstimate* proto);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_TRAINING_ESTIMATE_H_
