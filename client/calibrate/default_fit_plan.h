// The plan of `sliceplan-calibrate fit` without --plan: fit_plan.csv, built into the tool.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_DEFAULT_FIT_PLAN_H_
#define SLICEPLAN_CLIENT_CALIBRATE_DEFAULT_FIT_PLAN_H_

#include "absl/strings/string_view.h"

namespace sliceplan::calibrate {

absl::string_view DefaultFitPlan();

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_DEFAULT_FIT_PLAN_H_
