// A training workload: contract to engine with every default filled in, and back.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_WORKLOAD_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_WORKLOAD_H_

#include <cstdint>

#include "proto/sliceplan/v1/training.pb.h"
#include "server/planner/training_job.h"
#include "server/rpc/convert/assumptions.h"
#include "server/rpc/field_path.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

// What defaults depend on.
struct WorkloadSetting {
  int64_t max_position_count = 0;  // of the model; 0: no limit stated
  bool is_tpu = true;              // formats of parameters
};

// Ranges are the engine's (planner/workload_check.h): out of range, a value is passed on for it to report.
planner::TrainingWorkload ToWorkload(const v1::TrainingWorkload& proto, const WorkloadSetting& setting,
                                     const FieldPath& path, Violations& violations, Assumptions& assumptions);

// The sequence length that a request without one means.
int32_t DefaultSequenceLength(int64_t max_position_count);

void ToProto(const planner::TrainingWorkload& workload, v1::TrainingWorkload* proto);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_WORKLOAD_H_
