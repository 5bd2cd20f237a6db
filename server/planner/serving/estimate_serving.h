// One serving estimate: memory, times of prefill and decode, latencies under the load, throughput and cost. Chapter 7
// of "How To Scale Your Model"; docs/serving.md.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_ESTIMATE_SERVING_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_ESTIMATE_SERVING_H_

#include <functional>

#include "server/planner/mapping.h"
#include "server/planner/serving/replica_count.h"
#include "server/planner/serving/serving_estimate.h"
#include "server/planner/serving/serving_job.h"

namespace sliceplan::planner {

// `cancelled` is polled by replays and searches. `trials`: replays of this job's plan, given, that are known already.
ServingAnswer EstimateServing(const ServingJob& job, MappingCache& mappings,
                              const std::function<bool()>& cancelled = nullptr, ReplicaTrials* trials = nullptr);

// The same, and for a load that is unstable or behind its targets the nearest change that was found to help
// (serving_fix.h): it takes some tens of estimates. `enough` is polled meanwhile; once true, the answer has no fix.
ServingAnswer EstimateServingWithFix(const ServingJob& job, MappingCache& mappings,
                                     const std::function<bool()>& cancelled = nullptr,
                                     const std::function<bool()>& enough = nullptr);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_ESTIMATE_SERVING_H_
