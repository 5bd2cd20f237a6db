// Which constants of which profiles a fit may move, and how far: a table (README.md lists its columns).
#ifndef SLICEPLAN_CLIENT_CALIBRATE_FIT_PLAN_H_
#define SLICEPLAN_CLIENT_CALIBRATE_FIT_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/calibrate/case.h"
#include "client/calibrate/table.h"
#include "proto/sliceplan/catalog/v1/catalog.pb.h"
#include "server/calibration/fit.h"

namespace sliceplan::calibrate {

// What a fold leaves out together.
enum class LeaveOut { kRow, kSource, kModel, kAccelerator, kSourceAndModel };

absl::string_view NameOf(LeaveOut leave_out);
// Absent for a name that is none.
std::optional<LeaveOut> ToLeaveOut(absl::string_view name);
// The fold that leaves `asked` out.
std::string FoldOf(LeaveOut leave_out, const Case& asked);

// A constant of a profile, or of one of its families.
struct ConstantName {
  std::string family;  // empty: the profile's own
  std::string constant;

  friend bool operator==(const ConstantName& a, const ConstantName& b) {
    return a.family == b.family && a.constant == b.constant;
  }
};

// One fit: of a profile, or of several that share constants.
struct FitPlan {
  std::vector<std::string> profiles;
  std::vector<LeaveOut> leave_outs;  // each gives a set of folds; at least one
  std::vector<ConstantName> names;
  std::vector<std::vector<size_t>> holders;          // of each constant: the profiles that have it, by index
  std::vector<calibration::FreeConstant> constants;  // in the order of `names`; `start` is what the catalog says
};

// Profiles that a line names together are fitted together, the others alone; in the order of the table.
// INVALID_ARGUMENT, with the line: no such profile, family or constant; numbers that are missing or make no sense;
// bounds that a profile's own rules refuse; a shared constant whose values differ.
absl::StatusOr<std::vector<FitPlan>> ToFitPlan(const Table& table,
                                               absl::Span<const catalog::v1::CalibrationProfile> profiles);

// The constants of one of the plan's profiles, as indices of `names`.
std::vector<size_t> ConstantsOf(const FitPlan& plan, size_t profile);

// Whether the catalog would load `record`: its constants are known and within their ranges.
absl::Status CheckProfile(const catalog::v1::CalibrationProfile& record);

// The names of a cell that lists them, between blanks.
std::vector<std::string> NamesIn(absl::string_view cell);

// The constant in `record`, nullptr when it is not there.
catalog::v1::Constant* FindConstant(catalog::v1::CalibrationProfile& record, const ConstantName& name);

// `record` with the named constants, which it must have, set to `values`.
catalog::v1::CalibrationProfile WithConstants(catalog::v1::CalibrationProfile record,
                                              const std::vector<ConstantName>& names,
                                              const std::vector<double>& values);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_FIT_PLAN_H_
