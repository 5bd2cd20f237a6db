// A fitted profile as a catalog file: what it is, what it was fitted on, how sure it is.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_PROFILE_TEXT_H_
#define SLICEPLAN_CLIENT_CALIBRATE_PROFILE_TEXT_H_

#include <string>
#include <vector>

#include "client/calibrate/profile_fit.h"
#include "proto/sliceplan/catalog/v1/catalog.pb.h"

namespace sliceplan::calibrate {

struct Provenance {
  std::string as_of;    // "2026-11-30"
  std::string version;  // empty: the next of the month of `as_of`, "2026-11.3"
};

// `record`, the plan's `profile`-th, with the fitted constants, each with what it was fitted on and its range over the
// folds, and the intervals that enough figures support. The other constants stay as they are, and so do those that no
// figure depends on.
catalog::v1::CalibrationProfile FittedRecord(const catalog::v1::CalibrationProfile& record, const FittedPlan& fitted,
                                             size_t profile, const Provenance& provenance);

// The text of a file of --catalog_dir.
std::string ProfileText(const std::vector<catalog::v1::CalibrationProfile>& records);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_PROFILE_TEXT_H_
