// What follows from a replayed load: means as measured runs have them, several pools together, replicas that are
// needed.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_LOAD_RESULT_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_LOAD_RESULT_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "server/planner/serving/batch_point.h"
#include "server/planner/serving/pool_system.h"

namespace sliceplan::planner {

// Without targets, replicas are counted so that none is busier than this: above it waits grow fast.
inline constexpr double kTargetUtilization = 0.8;

// Means as measured runs have them; the replay gives the spread around them. `reads_elsewhere`: other replicas read the
// prompts. CALIBRATED mode.
void Calibrate(const ServingJob& job, const PlannedPool& pool, bool reads_elsewhere, double share,
               SystemResult& result);

// Adds the result of a pool that takes `share` of the load. Latencies are averaged by their share, which is exact for
// means and near for percentiles of alike pools.
void AddWeighted(const SystemResult& result, double share, SystemResult& all);

// Replicas that carry the rate: with targets by replay, without by kTargetUtilization. Empty: no number does, or
// `was_cancelled`. `floor`: a request alone.
std::optional<int64_t> ReplicasFor(const ServingJob& job, const PlannedPool& pool, const BatchPoint& floor,
                                   const std::function<bool()>& cancelled, bool& was_cancelled);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_LOAD_RESULT_H_
