// The nearest change that makes a load carry and meet its targets, found by estimating again.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_FIX_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_FIX_H_

#include <optional>

#include "absl/functional/function_ref.h"
#include "server/planner/serving/serving_estimate.h"
#include "server/planner/serving/serving_job.h"

namespace sliceplan::planner {

// Empty: the job cannot be estimated, or was cancelled.
using TryServing = absl::FunctionRef<std::optional<ServingEstimate>(const ServingJob&)>;

// `estimate` is the job's own, unstable or behind its targets. In this order: replicas of the pools that lack them,
// where the request has pools; fewer users, a lower rate or a smaller batch; targets relaxed. What is returned was
// tried and is feasible. Empty: none of these is.
std::optional<Fix> ServingFix(const ServingJob& job, const ServingEstimate& estimate, TryServing try_job);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_FIX_H_
