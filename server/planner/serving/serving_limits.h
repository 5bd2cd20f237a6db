// What a serving job may ask, and the limits that follow from chips and model alone.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_LIMITS_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_LIMITS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/hardware/violation.h"
#include "server/planner/serving/replica_plan.h"
#include "server/planner/serving/serving_estimate.h"

namespace sliceplan::planner {

// Roles that do not go together and figures of chips that are missing. Fields as in ServingAnswer.
void CheckPools(const ServingJob& job, std::vector<hardware::Violation>& violations);

// A plan that cannot be placed, or a network figure that is not public.
hardware::Violation ViolationOf(const absl::Status& status, const std::string& prefix);

// The load with its defaults filled in, and what was assumed.
void FillLoadUsed(const ServingJob& job, const ReplicaPlan& plan, ServingEstimate& estimate);

// critical_batch_size, tensor_degree_limit (at `batch_size`) and kv_bytes_per_token. After FillLoadUsed.
void FillLimits(const ServingJob& job, const ReplicaPlan& plan, int64_t batch_size, ServingEstimate& estimate);

// Where each axis with a degree above 1 lies.
std::vector<AxisPlacement> PlacementsOf(const ReplicaPlan& plan);

// Batch for which placements are chosen before the load is known.
int64_t NominalBatch(const ServingWorkload& workload);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_LIMITS_H_
