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

FitPlan PlanOf(const Predictor& predictor, double spread) {
  FitPlan plan;
  plan.profiles = {kSyntheticProfile};
  plan.leave_outs = {LeaveOut::kSource};
  catalog::v1::CalibrationProfile record = predictor.Profile(kSyntheticProfile);
  for (const auto& [name, value] : kOtherMachine) {
    plan.names.push_back({"", name});
    plan.holders.push_back({0});
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
  const FittedPlan fitted = FitProfiles(*predictor, PlanOf(*predictor, /*spread=*/100), AnswerAll(*predictor, cases));
  EXPECT_EQ(fitted.figures, cases.size());
  EXPECT_EQ(fitted.profiles[0].sources.size(), 2U);
  for (size_t c = 0; c < fitted.plan.names.size(); ++c) {
    const std::string& name = fitted.plan.names[c].constant;
    EXPECT_NEAR(fitted.all().constants[c] / kOtherMachine.at(name), 1, 0.01) << name;
    for (const calibration::Fold& fold : fitted.fits[0].folds)
      EXPECT_NEAR(fold.fit.constants[c] / kOtherMachine.at(name), 1, 0.01) << name << " without " << fold.group;
  }
  for (const double residual : fitted.fits[0].left_out) EXPECT_NEAR(residual, 0, 0.01);
}

TEST(FitProfile, ALoneRunMovesConstantsAPartOfTheWay) {
  const std::unique_ptr<Predictor> predictor = BuiltInPredictor();
  std::vector<Case> cases = MeasuredOnTheOtherMachine(*predictor);
  cases.resize(1);
  const std::vector<AnsweredCase> before = AnswerAll(*predictor, cases);
  const FittedPlan fitted = FitProfiles(*predictor, PlanOf(*predictor, /*spread=*/0.1), before);
  const double error_before = std::log(before[0].answer.predictions[0].expected / cases[0].measured[0].value);
  const double error_after = fitted.all().residuals[0];
  EXPECT_LT(std::abs(error_after), std::abs(error_before));
  // The run has no experts: nothing moves their constant.
  for (size_t c = 0; c < fitted.plan.names.size(); ++c) {
    if (fitted.plan.names[c].constant != "expert_inverse_ratio") continue;
    EXPECT_NEAR(fitted.all().constants[c], fitted.plan.constants[c].start, 1e-3);
    EXPECT_FALSE(fitted.Moves(c));
  }
  EXPECT_TRUE(fitted.fits[0].folds.empty());
}

TEST(FitProfile, IntervalsAreThoseOfTheFiguresThatHaveThem) {
  const std::unique_ptr<Predictor> predictor = BuiltInPredictor();
  const std::vector<Case> cases = MeasuredOnTheOtherMachine(*predictor);
  const FittedPlan fitted = FitProfiles(*predictor, PlanOf(*predictor, 100), AnswerAll(*predictor, cases));
  std::map<std::string, size_t> figures;
  for (const FittedInterval& interval : fitted.profiles[0].intervals) figures[interval.name] = interval.figures;
  // Three of each ten runs have experts.
  EXPECT_THAT(figures, ::testing::ElementsAre(::testing::Pair("dense", 14U), ::testing::Pair("expert", 6U)));
}

TEST(FitProfile, CasesThatAreNotScoredAreNotFitted) {
  const std::unique_ptr<Predictor> predictor = BuiltInPredictor();
  std::vector<Case> cases = MeasuredOnTheOtherMachine(*predictor);
  for (Case& made : cases) made.standing = Standing::kInconsistent;
  EXPECT_EQ(FitProfiles(*predictor, PlanOf(*predictor, 1), AnswerAll(*predictor, cases)).figures, 0U);
}

TEST(ProfileText, LoadsAsAnOverlayAndPredictsAsFitted) {
  const std::unique_ptr<Predictor> predictor = BuiltInPredictor();
  const std::vector<Case> cases = MeasuredOnTheOtherMachine(*predictor);
  const FittedPlan fitted = FitProfiles(*predictor, PlanOf(*predictor, 100), AnswerAll(*predictor, cases));
  const catalog::v1::CalibrationProfile record =
      FittedRecord(predictor->Profile(kSyntheticProfile), fitted, 0, {"2031-02-03", ""});
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

TEST(ProfileText, AConstantThatNoFigureDependsOnKeepsItsSource) {
  const std::unique_ptr<Predictor> predictor = BuiltInPredictor();
  std::vector<Case> cases = MeasuredOnTheOtherMachine(*predictor);
  cases.resize(1);  // without experts
  const FittedPlan fitted = FitProfiles(*predictor, PlanOf(*predictor, 0.1), AnswerAll(*predictor, cases));
  catalog::v1::CalibrationProfile before = predictor->Profile(kSyntheticProfile);
  catalog::v1::CalibrationProfile after = FittedRecord(before, fitted, 0, {"2031-02-03", ""});
  const auto text = [](catalog::v1::CalibrationProfile& record, const char* name) {
    return FindConstant(record, {"", name})->DebugString();
  };
  EXPECT_EQ(text(after, "expert_inverse_ratio"), text(before, "expert_inverse_ratio"));
  EXPECT_NE(text(after, "matmul_inverse_ratio"), text(before, "matmul_inverse_ratio"));
}

TEST(ProfileText, FewFiguresLeaveTheIntervalAsItIs) {
  const std::unique_ptr<Predictor> predictor = BuiltInPredictor();
  const std::vector<Case> cases = MeasuredOnTheOtherMachine(*predictor);
  const FittedPlan fitted = FitProfiles(*predictor, PlanOf(*predictor, 100), AnswerAll(*predictor, cases));
  catalog::v1::CalibrationProfile before = predictor->Profile(kSyntheticProfile);
  catalog::v1::CalibrationProfile after = FittedRecord(before, fitted, 0, {"2031-02-03", "mine"});
  EXPECT_EQ(after.version(), "mine");
  EXPECT_EQ(FindConstant(after, {"", "dense_low_ratio"})->value(),
            FindConstant(before, {"", "dense_low_ratio"})->value());
}

// Two profiles that share what the machine is and differ in what one of them does, measured on another machine.
TEST(FitProfiles, SharedConstantsOfTwoProfilesAreOne) {
  constexpr char kOther[] = "megatron-gpu";
  const std::unique_ptr<Predictor> predictor = BuiltInPredictor();
  std::vector<Case> cases = SyntheticCases();
  for (size_t i = 0; i < cases.size(); i += 2)
    std::get<v1::EstimateTrainingRequest>(cases[i].question).set_calibration_profile(kOther);
  FitPlan plan;
  plan.profiles = {kSyntheticProfile, kOther};
  plan.leave_outs = {LeaveOut::kSource, LeaveOut::kModel};
  plan.names = {{"", "elementwise_hbm_ratio"}, {"", "matmul_inverse_ratio"}, {"", "matmul_inverse_ratio"}};
  plan.holders = {{0, 1}, {0}, {1}};
  for (const char* name : {"shared", "first", "second"}) {
    const bool is_share = std::string(name) == "shared";
    plan.constants.push_back({.name = name,
                              .start = is_share ? 0.6 : 1.1,
                              .prior = is_share ? 0.6 : 1.1,
                              .spread = 100,
                              .lower = is_share ? 0.1 : 1.0,
                              .upper = is_share ? 1.0 : 4.0});
  }
  const double kTruth[] = {0.45, 1.2, 1.4};
  const catalog::v1::CalibrationProfile kept[] = {predictor->Profile(kSyntheticProfile), predictor->Profile(kOther)};
  for (size_t i = 0; i < 2; ++i)
    predictor->Try(WithConstants(kept[i], {plan.names[0], plan.names[1 + i]}, {kTruth[0], kTruth[1 + i]}));
  MeasureWith(*predictor, cases);
  for (const auto& record : kept) predictor->Try(record);

  const FittedPlan fitted = FitProfiles(*predictor, plan, AnswerAll(*predictor, cases));
  EXPECT_EQ(fitted.figures, cases.size());
  EXPECT_EQ(fitted.profiles[0].figures, cases.size() / 2);
  ASSERT_EQ(fitted.fits.size(), 2U);
  EXPECT_EQ(fitted.fits[0].folds.size(), 2U);  // sources
  EXPECT_EQ(fitted.fits[1].folds.size(), 5U);  // models
  for (size_t c = 0; c < plan.names.size(); ++c)
    EXPECT_NEAR(fitted.all().constants[c] / kTruth[c], 1, 0.01) << plan.constants[c].name;
  EXPECT_EQ(predictor->Profile(kOther).DebugString(), kept[1].DebugString());

  // Folds of each profile and way, with its own constants; what is left out follows.
  const std::vector<ProfileFolds> folds = FoldsOf(fitted);
  ASSERT_EQ(folds.size(), 4U);
  EXPECT_EQ(folds[3].profile, kOther);
  EXPECT_EQ(folds[3].leave_out, LeaveOut::kModel);
  EXPECT_EQ(folds[3].names, (std::vector<ConstantName>{plan.names[0], plan.names[2]}));
  const auto left_out = AnswerLeftOut(*predictor, AnswerAll(*predictor, cases), folds);
  ASSERT_EQ(left_out.size(), 2U);
  EXPECT_EQ(left_out[0][0].left_out, "source");
  EXPECT_EQ(left_out[1][1].left_out, "model");
  for (const AnsweredCase& answer : left_out[1])
    EXPECT_NEAR(answer.answer.predictions.at(0).expected / answer.asked->measured[0].value, 1, 0.01);
}

TEST(Folds, WhatTheCatalogWouldRefuseIsRefused) {
  const std::unique_ptr<Predictor> predictor = BuiltInPredictor();
  constexpr char kHeader[] = "profile,leave_out,left_out,family,constant,value\n";
  const std::pair<const char*, const char*> kLines[] = {
      {"maxtext-tpu,source,A,,elementwise_hbm_ratio,1.5\n", "at most 1"},
      {"maxtext-tpu,source,A,,matmul_inverse_ratio,0.5\n", "at least 1"},
      {"maxtext-tpu,source,A,,attention_ratio,-1\n", "above 0"},
      {"maxtext-tpu,source,A,,no_such,1\n", "not in the profile"},
      {"maxtext-tpu,day,A,,attention_ratio,0.5\n", "makes no sense"},
  };
  for (const auto& [line, message] : kLines) {
    const absl::StatusOr<Table> table = Table::Parse(absl::StrCat(kHeader, line));
    const auto read = ToFolds(*table, predictor->catalog().calibration_profiles());
    ASSERT_FALSE(read.ok()) << line;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(message));
  }
}

TEST(Folds, AreReadAsTheyWereWritten) {
  const std::unique_ptr<Predictor> predictor = BuiltInPredictor();
  const std::vector<Case> cases = MeasuredOnTheOtherMachine(*predictor);
  const std::vector<AnsweredCase> answered = AnswerAll(*predictor, cases);
  const std::vector<ProfileFolds> all = FoldsOf(FitProfiles(*predictor, PlanOf(*predictor, 100), answered));
  ASSERT_EQ(all.size(), 1U);
  const ProfileFolds& folds = all[0];
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
  const std::vector<std::vector<AnsweredCase>> left_out = AnswerLeftOut(*predictor, answered, *read);
  ASSERT_EQ(left_out.size(), 1U);
  for (const AnsweredCase& answer : left_out[0]) {
    EXPECT_NEAR(answer.answer.predictions.at(0).expected / answer.asked->measured[0].value, 1, 0.01);
    EXPECT_EQ(answer.left_out, "source");
  }
  EXPECT_EQ(predictor->Predict(cases[0]).predictions[0].expected, before);
}

}  // namespace
}  // namespace sliceplan::calibrate
