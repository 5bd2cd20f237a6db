// Whether a load runs as asked, what it lacks, and the smallest change that helps.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_OUTCOME_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_OUTCOME_H_

#include <vector>

#include "server/planner/serving/batch_point.h"
#include "server/planner/serving/pool_system.h"
#include "server/planner/serving/serving_estimate.h"

namespace sliceplan::planner {

void SetNoLegalPlan(const ServingPool& pool, ServingEstimate& estimate);

// `batch_size` sequences do not fit beside the weights of `plan`.
void SetOutOfMemory(const ServingJob& job, const ReplicaPlan& plan, int64_t batch_size, MappingCache& mappings,
                    ServingEstimate& estimate);

// Requests arrive faster than `saturation` per second.
void SetUnstable(const ServingJob& job, double saturation, ServingEstimate& estimate);

// Compares the latencies of the estimate with the targets; `floor`: a request alone;
// `queueing_share`: of the mean TTFT. Leaves earlier outcomes.
void JudgeTargets(const ServingJob& job, int64_t max_batch_size, const BatchPoint& floor, double queueing_share,
                  ServingEstimate& estimate);

// Raises every target of `slo` that the estimate misses to what it takes, with room for the digits, and returns the
// fields, the one that is missed by most first.
std::vector<FieldChange> RelaxTargets(const ServingEstimate& estimate, ServingSlo& slo);

bool MeetsTargets(const SystemResult& result, const ServingSlo& slo);

// The replicas that the load needs, and more of them as the fix of what it lacks.
void SuggestReplicas(const ServingJob& job, int64_t replica_count, ServingEstimate& estimate);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_OUTCOME_H_
