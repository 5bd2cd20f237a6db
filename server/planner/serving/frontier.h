// Latency against throughput of fixed batches.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_FRONTIER_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_FRONTIER_H_

#include <optional>
#include <vector>

#include "server/planner/serving/replica_plan.h"
#include "server/planner/serving/serving_estimate.h"

namespace sliceplan::planner {

// Adds batches 1, 2, 4, ... and `max_batch_size` of one plan.
void AddBatches(const ServingJob& job, const ReplicaPlan& plan, int64_t max_batch_size,
                std::vector<ServingPoint>& points);

// The points that no other beats in both time per token and throughput per chip, by ascending time.
std::vector<ServingPoint> ParetoOf(std::vector<ServingPoint> points);

// The point with the most throughput that meets every target on ttft and tpot; empty when none does.
std::optional<ServingPoint> BestPoint(const ServingJob& job, const std::vector<ServingPoint>& points);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_FRONTIER_H_
