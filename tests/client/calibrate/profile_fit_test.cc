#include "client/calibrate/profile_fit.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/match.h"
#include "client/calibrate/folds.h"
#include "client/calibrate/profile_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/calibrate/synthetic_cases.h"

namespace sliceplan::calibrate {
namespace {

using ::testing::HasSubstr;

// Constants of the machine that the runs were "measured" on; `spread`: of the priors, which are the catalog's values.
const std::map<std::string, double> kOtherMachine = {{"matmul_inverse_ratio", 1.2},
                                                     {"attention_ratio", 0.5},
                                                     {"elementwise_hbm_ratio", 0.45},
                                                     {"expert_inverse_ratio", 1.6}};

ProfilePlan PlanOf(const Predictor& predictor, double spread) {
  ProfilePlan plan;
  plan.profile = kSyntheticProfile;
  plan.leave_out = LeaveOut::kSource;
  catalog::v1::CalibrationProfile record = predictor.Profile(kSyntheticProfile);
  for (const auto& [name, value] : kOtherMachine) {
    plan.names.push_back({"", name});
    const double start = FindConstant(record, {"", name})->value();
    const bool at_least_one = absl::EndsWith(name, "inverse_ratio");
    plan.constants.push_back({.name = name,
                              .start = start,
                              .prior = start,
                              .spread = spread,
                              .lower = at_least_one ? 1.0 : 0.1,
                              .upper = at_least_one ? 4.0 : 1.0});
  }
  return plan;
}

std::vector<Case> MeasuredOnTheOtherMachine(Predictor& predictor) {
  std::vector<Case> cases = SyntheticCases();
  const catalog::v1::CalibrationProfile kept = predictor.Profile(kSyntheticProfile);
  catalog::v1::CalibrationProfile other = kept;
  for (const auto& [name, value] : kOtherMachine) FindConstant(other, {"", name})->set_value(value);
  predictor.Try(other);
  MeasureWith(predictor, cases);
  predictor.Try(kept);
  return cases;
}

TEST(FitProfile, RecoversTheConstantsOfAnotherMachine) {
  const std::unique_ptr<Predictor> predictor = BuiltInPredictor();
  const std::vector<Case> cases = MeasuredOnTheOtherMachine(*predictor);
  const FittedProfile fitted = FitProfile(*predictor, PlanOf(*predictor, /*spread=*/100), AnswerAll(*predictor, cases));
  EXPECT_EQ(fitted.figures, cases.size());
  EXPECT_EQ(fitted.sources.size(), 2U);
  for (size_t c = 0; c < fitted.plan.names.size(); ++c) {
    const std::string& name = fitted.plan.names[c].constant;
    EXPECT_NEAR(fitted.fits.all.constants[c] / kOtherMachine.at(name), 1, 0.01) << name;
    for (const calibration::Fold& fold : fitted.fits.folds)
      EXPECT_NEAR(fold.fit.constants[c] / kOtherMachine.at(name), 1, 0.01) << name << " without " << fold.group;
  }
  for (const double residual : fitted.fits.left_out) EXPECT_NEAR(residual, 0, 0.01);
}

TEST(FitProfile, ALoneRunMovesConstantsAPartOfTheWay) {
  const std::unique_ptr<Predictor> predictor = BuiltInPredictor();
  std::vector<Case> cases = MeasuredOnTheOtherMachine(*predictor);
  cases.resize(1);
  const std::vector<AnsweredCase> before = AnswerAll(*predictor, cases);
  const FittedProfile fitted = FitProfile(*predictor, PlanOf(*predictor, /*spread=*/0.1), before);
  const double error_before = std::log(before[0].answer.predictions[0].expected / cases[0].measured[0].value);
  const double error_after = fitted.fits.all.residuals[0];
  EXPECT_LT(std::abs(error_after), std::abs(error_before));
  // The run has no experts: nothing moves their constant.
  for (size_t c = 0; c < fitted.plan.names.size(); ++c) {
    if (fitted.plan.names[c].constant != "expert_inverse_ratio") continue;
    EXPECT_NEAR(fitted.fits.all.constants[c], fitted.plan.constants[c].start, 1e-3);
  }
  EXPECT_TRUE(fitted.fits.folds.empty());
}

TEST(FitProfile, IntervalsAreThoseOfTheFiguresThatHaveThem) {
  const std::unique_ptr<Predictor> predictor = BuiltInPredictor();
  const std::vector<Case> cases = MeasuredOnTheOtherMachine(*predictor);
  const FittedProfile fitted = FitProfile(*predictor, PlanOf(*predictor, 100), AnswerAll(*predictor, cases));
  std::map<std::string, size_t> figures;
  for (const FittedInterval& interval : fitted.intervals) figures[interval.name] = interval.figures;
  // Three of each ten runs have experts.
  EXPECT_THAT(figures, ::testing::ElementsAre(::testing::Pair("dense", 14U), ::testing::Pair("expert", 6U)));
}

TEST(FitProfile, CasesThatAreNotScoredAreNotFitted) {
  const std::unique_ptr<Predictor> predictor = BuiltInPredictor();
  std::vector<Case> cases = MeasuredOnTheOtherMachine(*predictor);
  for (Case& made : cases) made.standing = Standing::kInconsistent;
  EXPECT_EQ(FitProfile(*predictor, PlanOf(*predictor, 1), AnswerAll(*predictor, cases)).figures, 0U);
}

TEST(ProfileText, LoadsAsAnOverlayAndPredictsAsFitted) {
  const std::unique_ptr<Predictor> predictor = BuiltInPredictor();
  const std::vector<Case> cases = MeasuredOnTheOtherMachine(*predictor);
  const FittedProfile fitted = FitProfile(*predictor, PlanOf(*predictor, 100), AnswerAll(*predictor, cases));
  const catalog::v1::CalibrationProfile record =
      FittedRecord(predictor->Profile(kSyntheticProfile), fitted, {"2031-02-03", ""});
  EXPECT_EQ(record.version(), "2031-02.1");
  EXPECT_EQ(record.as_of(), "2031-02-03");
  EXPECT_THAT(record.source(), HasSubstr("20 measured figures of 2 sources (three, two)"));

  const std::filesystem::path directory = std::filesystem::path(::testing::TempDir()) / "calibrate_overlay";
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "fitted.textproto") << ProfileText({record});
  absl::StatusOr<std::unique_ptr<Predictor>> overlaid = Predictor::Create(directory.string());
  ASSERT_TRUE(overlaid.ok()) << overlaid.status();
  for (const AnsweredCase& answer : AnswerAll(**overlaid, cases)) {
    ASSERT_EQ(answer.answer.predictions.size(), 1U);
    EXPECT_NEAR(answer.answer.predictions[0].expected / answer.asked->measured[0].value, 1, 0.01);
  }
  std::filesystem::remove_all(directory);
}

TEST(ProfileText, FewFiguresLeaveTheIntervalAsItIs) {
  const std::unique_ptr<Predictor> predictor = BuiltInPredictor();
  const std::vector<Case> cases = MeasuredOnTheOtherMachine(*predictor);
  const FittedProfile fitted = FitProfile(*predictor, PlanOf(*predictor, 100), AnswerAll(*predictor, cases));
  catalog::v1::CalibrationProfile before = predictor->Profile(kSyntheticProfile);
  catalog::v1::CalibrationProfile after = FittedRecord(before, fitted, {"2031-02-03", "mine"});
  EXPECT_EQ(after.version(), "mine");
  EXPECT_EQ(FindConstant(after, {"", "dense_low_ratio"})->value(),
            FindConstant(before, {"", "dense_low_ratio"})->value());
}

TEST(Folds, AreReadAsTheyWereWritten) {
  const std::unique_ptr<Predictor> predictor = BuiltInPredictor();
  const std::vector<Case> cases = MeasuredOnTheOtherMachine(*predictor);
  const std::vector<AnsweredCase> answered = AnswerAll(*predictor, cases);
  const ProfileFolds folds = FoldsOf(FitProfile(*predictor, PlanOf(*predictor, 100), answered));
  const absl::StatusOr<Table> table = Table::Parse(FoldsCsv({folds}));
  ASSERT_TRUE(table.ok()) << table.status();
  const auto read = ToFolds(*table, predictor->catalog().calibration_profiles());
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ((*read)[0].profile, folds.profile);
  EXPECT_EQ((*read)[0].leave_out, folds.leave_out);
  EXPECT_EQ((*read)[0].names, folds.names);
  EXPECT_EQ((*read)[0].values, folds.values);
  // The catalog's constants are wrong for this machine, those of the folds are right; the catalog's stay in place.
  const double before = answered[0].answer.predictions[0].expected;
  for (const AnsweredCase& answer : AnswerLeftOut(*predictor, answered, *read))
    EXPECT_NEAR(answer.answer.predictions.at(0).expected / answer.asked->measured[0].value, 1, 0.01);
  EXPECT_EQ(predictor->Predict(cases[0]).predictions[0].expected, before);
}

}  // namespace
}  // namespace sliceplan::calibrate
