// How a job is spread over chips: contract to engine, and back.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_PARALLELISM_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_PARALLELISM_H_

#include <optional>
#include <vector>

#include "proto/sliceplan/v1/parallelism.pb.h"
#include "server/planner/parallelism.h"
#include "server/planner/training_estimate.h"
#include "server/rpc/field_path.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

// Degrees, schedule and mapping; nullopt when `ici` is absent: the engine then chooses. Legality is the engine's
// (planner/legality.h, planner/mapping.h); here only what its structs cannot hold is refused. `slice_count`: of the
// job, for the default of `dcn`.
std::optional<planner::Parallelism> ToParallelism(const v1::Parallelism& proto, int32_t slice_count,
                                                  const FieldPath& path, Violations& violations);

void ToProto(const planner::Parallelism& parallelism, v1::Parallelism* proto);
void ToProto(const planner::AxisPlacement& placement, const planner::Parallelism& parallelism,
             const hardware::Slice& slice, v1::AxisPlacement* proto);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_PARALLELISM_H_
