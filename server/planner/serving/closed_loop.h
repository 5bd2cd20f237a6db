// Users in a closed loop, in the mean: a fixed number of sequences is resident, every prompt delays the others' next
// token, and first tokens wait behind other prompts. Calibrated on published runs of benchmark clients
// (docs/serving.md).
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_CLOSED_LOOP_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_CLOSED_LOOP_H_

#include "server/planner/serving/replica_plan.h"
#include "server/planner/serving/serving_job.h"

namespace sliceplan::planner {

struct ClosedLoop {
  double batch_size = 0;  // resident on a replica
  double ttft_seconds = 0;
  double tpot_seconds = 0;
  double place_wait_seconds = 0;   // of ttft_seconds: until one of the resident sequences leaves
  double requests_per_second = 0;  // of one replica
};

// `users` of one replica, at least 1; `max_batch_size` sequences fit. Requires CALIBRATED mode and a pool that reads
// its own prompts.
ClosedLoop ClosedLoopOf(const ServingJob& job, const ReplicaPlan& plan, double users, int64_t max_batch_size);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_CLOSED_LOOP_H_
