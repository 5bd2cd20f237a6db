// What would pay most, with its price in numbers.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_ADVICE_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_ADVICE_H_

#include "server/planner/mapping.h"
#include "server/planner/serving/replica_plan.h"
#include "server/planner/serving/serving_estimate.h"

namespace sliceplan::planner {

// Adds to estimate.advice: a narrower cache, narrower weights, what one more gigabyte for caches is worth, how far the
// next resource is. Every sentence compares the plan with itself after the change.
void AddServingAdvice(const ServingJob& job, const ReplicaPlan& plan, int64_t max_batch_size, MappingCache& mappings,
                      ServingEstimate& estimate);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_ADVICE_H_
