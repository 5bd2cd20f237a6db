// Constants as fitted without each group of rows: with them the errors on left-out rows can be computed without a fit.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_FOLDS_H_
#define SLICEPLAN_CLIENT_CALIBRATE_FOLDS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/calibrate/accuracy.h"
#include "client/calibrate/case.h"
#include "client/calibrate/fit_plan.h"
#include "client/calibrate/predictor.h"
#include "client/calibrate/table.h"

namespace sliceplan::calibrate {

struct ProfileFolds {
  std::string profile;
  LeaveOut leave_out = LeaveOut::kSource;
  std::vector<ConstantName> names;
  std::map<std::string, std::vector<double>> values;  // by what was left out; in the order of `names`
};

// The table that ToFolds reads: columns profile, leave_out, left_out, family, constant, value.
std::string FoldsCsv(const std::vector<ProfileFolds>& folds);

// One entry per profile and way of leaving out. INVALID_ARGUMENT: a column is missing, an unknown profile or constant,
// a value that is no number or that the catalog would refuse, folds of one entry that set different constants.
absl::StatusOr<std::vector<ProfileFolds>> ToFolds(const Table& table,
                                                  absl::Span<const catalog::v1::CalibrationProfile> profiles);

// `answered` again, each case with the constants fitted without its group (`AnsweredCase::left_out` says what that is),
// once per way of leaving out: first by the first that each profile has in `folds`, then by the second of the profiles
// that have one, and so on. A case whose group is in no fold was not used in the fit: its answer stays. Cases of
// profiles without folds, and those that are not scored, have no predictions.
std::vector<std::vector<AnsweredCase>> AnswerLeftOut(Predictor& predictor, const std::vector<AnsweredCase>& answered,
                                                     const std::vector<ProfileFolds>& folds);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_FOLDS_H_
