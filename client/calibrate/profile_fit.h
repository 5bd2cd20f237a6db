// The constants of one profile fitted to measured cases, through the service's own handlers.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_PROFILE_FIT_H_
#define SLICEPLAN_CLIENT_CALIBRATE_PROFILE_FIT_H_

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "client/calibrate/accuracy.h"
#include "client/calibrate/fit_plan.h"
#include "client/calibrate/folds.h"
#include "client/calibrate/predictor.h"
#include "server/calibration/fit.h"

namespace sliceplan::calibrate {

// A pair of constants "<name>_low_ratio", "<name>_high_ratio" and the left-out figures that it is the interval of.
struct FittedInterval {
  std::string name;  // "dense"
  size_t figures = 0;
  calibration::IntervalRatios ratios;  // valid for at least one figure
};

struct FittedProfile {
  ProfilePlan plan;
  size_t figures = 0;             // that were fitted to
  std::set<std::string> sources;  // of them
  std::set<std::string> accelerators;
  calibration::CrossValidation fits;
  std::vector<FittedInterval> intervals;
};

// Fits the plan's constants to the cases of `answered` that are scored and whose answer came from the plan's profile:
// every figure but memory, which these constants do not move. Leaves the predictor with the profile that it had.
// Constants have four digits.
FittedProfile FitProfile(Predictor& predictor, const ProfilePlan& plan, const std::vector<AnsweredCase>& answered);

// As the folds table has them.
ProfileFolds FoldsOf(const FittedProfile& fitted);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_PROFILE_FIT_H_
