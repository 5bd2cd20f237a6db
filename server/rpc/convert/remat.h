// What the backward pass finds saved: contract to engine, and back.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_REMAT_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_REMAT_H_

#include "proto/sliceplan/v1/training.pb.h"
#include "server/planner/training_job.h"
#include "server/rpc/field_path.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

// `remat_policy`, `custom_remat` and `checkpoints_per_layer`.
void SetRemat(const v1::TrainingWorkload& proto, const FieldPath& path, Violations& violations,
              planner::TrainingWorkload& workload);

void ToProto(const planner::CustomRemat& remat, v1::CustomRemat* proto);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_REMAT_H_
