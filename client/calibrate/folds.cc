#include "client/calibrate/folds.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/calibrate/csv_text.h"

namespace sliceplan::calibrate {

std::string FoldsCsv(const std::vector<ProfileFolds>& folds) {
  std::string csv = "profile,leave_out,left_out,family,constant,value\n";
  for (const ProfileFolds& profile : folds) {
    for (const auto& [left_out, values] : profile.values) {
      for (size_t i = 0; i < values.size(); ++i) {
        absl::StrAppendFormat(&csv, "%s,%s,%s,%s,%s,%.4g\n", profile.profile, NameOf(profile.leave_out),
                              CsvField(left_out), CsvField(profile.names[i].family), profile.names[i].constant,
                              values[i]);
      }
    }
  }
  return csv;
}

absl::StatusOr<std::vector<ProfileFolds>> ToFolds(const Table& table,
                                                  absl::Span<const catalog::v1::CalibrationProfile> profiles) {
  for (const char* column : {"profile", "leave_out", "left_out", "constant", "value"}) {
    if (!table.Has(column)) return absl::InvalidArgumentError(absl::StrCat("The column ", column, " is missing."));
  }
  std::vector<ProfileFolds> folds;
  for (const Row& row : table.rows()) {
    const std::string profile(row.Text("profile"));
    const ConstantName name = {std::string(row.Text("family")), std::string(row.Text("constant"))};
    const auto refuse = [&](absl::string_view what) {
      return absl::InvalidArgumentError(
          absl::StrCat("Line ", row.line(), ": ", profile, " ", name.constant, ": ", what));
    };
    catalog::v1::CalibrationProfile record;
    for (const auto& known : profiles) {
      if (known.name() == profile) record = known;
    }
    if (record.name().empty()) return refuse("there is no such profile");
    if (FindConstant(record, name) == nullptr) return refuse("is not in the profile");
    const std::optional<LeaveOut> leave_out = ToLeaveOut(row.Text("leave_out"));
    const std::optional<double> value = row.Number("value");
    if (!leave_out || !value) return refuse("leave_out or value makes no sense");
    catalog::v1::Constant* const constant = FindConstant(record, name);
    constant->set_value(*value);
    if (const absl::Status status = CheckProfile(record); !status.ok()) return refuse(status.message());
    auto found = std::find_if(folds.begin(), folds.end(), [&](const auto& known) {
      return known.profile == profile && known.leave_out == *leave_out;
    });
    if (found == folds.end()) found = folds.insert(found, {profile, *leave_out, {}, {}});
    std::vector<double>& values = found->values[std::string(row.Text("left_out"))];
    if (found->values.size() == 1) found->names.push_back(name);
    if (values.size() >= found->names.size() || !(found->names[values.size()] == name)) {
      return refuse("is not the next constant of the profile's first fold");
    }
    values.push_back(*value);
  }
  for (const ProfileFolds& profile : folds) {
    for (const auto& [left_out, values] : profile.values) {
      if (values.size() != profile.names.size())
        return absl::InvalidArgumentError(absl::StrCat(profile.profile, ": constants are missing without ", left_out));
    }
  }
  return folds;
}

namespace {

// Answers the cases of the profile without their groups.
void AnswerWithout(Predictor& predictor, const std::vector<AnsweredCase>& answered, const ProfileFolds& profile,
                   std::vector<AnsweredCase>& result) {
  // What each fold answers: a profile is put in place once per fold, not once per case.
  std::map<std::string, std::vector<size_t>> cases_of_fold;
  for (size_t i = 0; i < answered.size(); ++i) {
    const Case& asked = *answered[i].asked;
    if (answered[i].answer.profile != profile.profile || asked.standing != Standing::kScored) continue;
    const std::string fold = FoldOf(profile.leave_out, asked);
    if (profile.values.count(fold) == 0) {
      result[i].answer = answered[i].answer;
    } else {
      cases_of_fold[fold].push_back(i);
    }
  }
  const catalog::v1::CalibrationProfile kept = predictor.Profile(profile.profile);
  for (const auto& [fold, cases] : cases_of_fold) {
    predictor.Try(WithConstants(kept, profile.names, profile.values.at(fold)));
    std::vector<const Case*> asked;
    for (const size_t i : cases) asked.push_back(answered[i].asked);
    std::vector<Answer> answers = predictor.PredictAll(asked);
    for (size_t c = 0; c < cases.size(); ++c) {
      result[cases[c]].answer = std::move(answers[c]);
      result[cases[c]].left_out = std::string(NameOf(profile.leave_out));
    }
  }
  predictor.Try(kept);
}

}  // namespace

std::vector<std::vector<AnsweredCase>> AnswerLeftOut(Predictor& predictor, const std::vector<AnsweredCase>& answered,
                                                     const std::vector<ProfileFolds>& folds) {
  std::vector<std::vector<AnsweredCase>> results;
  std::map<std::string, size_t> seen;  // ways of leaving out, by profile
  for (const ProfileFolds& profile : folds) {
    const size_t way = seen[profile.profile]++;
    if (way == results.size()) {
      results.emplace_back();
      for (const AnsweredCase& answer : answered) results.back().push_back({answer.asked, {}, ""});
    }
    AnswerWithout(predictor, answered, profile, results[way]);
  }
  return results;
}

}  // namespace sliceplan::calibrate
