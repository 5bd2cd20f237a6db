// How a replica runs with a batch of a given size, without queues: together, as a given batch runs (everybody starts at
// once, nobody joins), or resident, as every other load has it (who ends is replaced; each prompt delays the others).
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_BATCH_POINT_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_BATCH_POINT_H_

#include <cstdint>

#include "server/planner/serving/replica_plan.h"
#include "server/planner/serving/serving_job.h"

namespace sliceplan::planner {

struct BatchPoint {
  int64_t batch_size = 0;
  double ttft_seconds = 0;  // of all prompts, or of one; 0 where another pool reads them
  double tpot_seconds = 0;
  double end_to_end_seconds = 0;
  double output_tokens_per_second = 0;  // of one replica
  double requests_per_second = 0;
  double prefill_share = 0;  // of the replica's time
};

// In CALIBRATED mode prompts and output share the replica's time. In ROOFLINE mode throughput is that of decode alone,
// as the book counts it (chapter 7: B / T_step), and prompts delay nobody. 1 <= batch_size <= 2^20.
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
