// 90% intervals of a load's means: how far published means of such loads were from their estimates.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_MEAN_INTERVALS_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_MEAN_INTERVALS_H_

#include "server/planner/serving/serving_estimate.h"
#include "server/roofline/serving_efficiency.h"

namespace sliceplan::planner {

// Fills in the intervals of the latencies that are there and of the throughput, from that of the decode step and the
// ratios of first tokens; what the runtime has no ratios for stays without. Ends are added up as if the errors of the
// first token and of those after it always agreed, which they nearly do: the same matmuls are in both.
// `place_wait_seconds` of the mean TTFT is time for which others hold the places: it is uncertain as their service is.
void AddMeanIntervals(const roofline::ServingEfficiency& runtime, ServingLoadKind load, double place_wait_seconds,
                      ServingEstimate& estimate);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_MEAN_INTERVALS_H_
