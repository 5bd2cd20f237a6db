// How a replica runs a fixed batch: everybody starts together, nobody joins. Exact, without queues.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_BATCH_POINT_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_BATCH_POINT_H_

#include <cstdint>

#include "server/planner/serving/replica_plan.h"
#include "server/planner/serving/serving_job.h"

namespace sliceplan::planner {

struct BatchPoint {
  int64_t batch_size = 0;
  double ttft_seconds = 0;  // all prompts read together; 0 where another pool reads them
  double tpot_seconds = 0;
  double end_to_end_seconds = 0;
  double output_tokens_per_second = 0;  // of one replica
  double requests_per_second = 0;
};

// In CALIBRATED mode the time of a batch is its prompts' prefill and its decode steps, one after the other. In ROOFLINE
// mode throughput is that of decode alone, as the book counts it (chapter 7: B / T_step). 1 <= batch_size <= 2^20.
BatchPoint PointOf(const ServingJob& job, const ReplicaPlan& plan, int64_t batch_size);

// Mean context of a decode step: prompt + output / 2.
double DecodeContext(const ServingWorkload& workload);
// Longest context that a sequence reaches: prompt + output, whole tokens.
int64_t FullContext(const ServingWorkload& workload);

// Whether a fixed batch meets every limit: all its requests take the same time.
bool Meets(const BatchPoint& point, const ServingSlo& slo);

// The largest batch from 1 to `most` that meets the targets; 0 when none does.
int64_t LargestBatchWithin(const ServingJob& job, const ReplicaPlan& plan, int64_t most);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_BATCH_POINT_H_
