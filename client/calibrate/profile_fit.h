// The constants of profiles fitted to measured cases, through the service's own handlers.
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

// What one profile of a fit was fitted on.
struct FittedProfile {
  std::string name;
  size_t figures = 0;             // 0: nothing was measured, the profile stays as it is
  std::set<std::string> sources;  // of them
  std::set<std::string> accelerators;
  std::vector<FittedInterval> intervals;  // over the folds of all ways of leaving out
};

struct FittedPlan {
  FitPlan plan;
  size_t figures = 0;                   // of all profiles
  std::vector<FittedProfile> profiles;  // in the order of the plan
  // One per way of leaving out, in the order of the plan; `all` and `moves` are the same in each.
  std::vector<calibration::CrossValidation> fits;

  const calibration::Fit& all() const { return fits.front().all; }
  // Whether any figure depends on the constant: the others say nothing about measurements.
  bool Moves(size_t constant) const { return fits.front().moves[constant]; }
};

// Fits the plan's constants to the cases of `answered` that are scored and whose answer came from a profile of the
// plan: every figure but memory, which these constants do not move, and what follows from other figures. Leaves the
// predictor with the profiles that it had. Constants have four digits. Without figures nothing but `plan` is set.
FittedPlan FitProfiles(Predictor& predictor, const FitPlan& plan, const std::vector<AnsweredCase>& answered,
                       const calibration::FitOptions& options = {});

// As the folds table has them: for each profile with figures, each way of leaving out that has folds.
std::vector<ProfileFolds> FoldsOf(const FittedPlan& fitted);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_PROFILE_FIT_H_
