// The 90% interval of a step.
#ifndef SLICEPLAN_SERVER_PLANNER_STEP_INTERVAL_H_
#define SLICEPLAN_SERVER_PLANNER_STEP_INTERVAL_H_

#include <algorithm>

#include "server/planner/training_estimate.h"

namespace sliceplan::planner {

// Ends as ratios of measured to expected time, both above 0, else there is none. Nothing runs faster than the lower
// bound.
inline void SetStepInterval(double low_ratio, double high_ratio, StepTime& time) {
  if (!(low_ratio > 0) || !(high_ratio > 0)) return;
  time.p05_seconds =
      std::max(low_ratio * time.expected_seconds, std::min(time.roofline_lower_seconds, time.expected_seconds));
  time.p95_seconds = high_ratio * time.expected_seconds;
}

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_STEP_INTERVAL_H_
