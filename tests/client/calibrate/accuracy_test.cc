#include "client/calibrate/accuracy.h"

#include "client/calibrate/table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sliceplan::calibrate {
namespace {

using ::testing::HasSubstr;

// Two sources; the first is off by +10% and -20%, the second, not scored, by +50%.
class AccuracyTest : public ::testing::Test {
 protected:
  AccuracyTest() {
    for (const double measured : {10, 20, 30}) {
      Case made;
      made.id = absl::StrCat("R-", measured);
      made.source = measured < 30 ? "A" : "B, \"b\"";
      made.accelerator = "chip";
      made.groups = {"all"};
      made.standing = measured < 30 ? Standing::kScored : Standing::kInconsistent;
      cases_.push_back(made);
    }
    const double kPredicted[] = {11, 16, 45};
    for (size_t i = 0; i < cases_.size(); ++i) {
      const double measured = 10.0 * static_cast<double>(i + 1);
      answered_.push_back({&cases_[i], {}, ""});
      answered_[i].answer.predictions = {
          {Metric::kStepSeconds, measured, kPredicted[i], 0.95 * kPredicted[i], 1.05 * kPredicted[i]}};
    }
  }

  std::vector<Case> cases_;
  std::vector<AnsweredCase> answered_;
};

TEST_F(AccuracyTest, CsvHasALinePerGroupAndSource) {
  const absl::StatusOr<Table> table = Table::Parse(AccuracyCsv(answered_, {}));
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->rows().size(), 3U);
  const Row& group = table->rows()[0];
  EXPECT_EQ(group.Text("kind"), "group");
  EXPECT_EQ(group.Text("name"), "all");
  EXPECT_EQ(group.Count("rows"), 2);
  EXPECT_EQ(group.Number("mean_percent"), 15);
  EXPECT_EQ(group.Number("bias_percent"), -5);
  EXPECT_EQ(group.Number("worst_percent"), 20);
  EXPECT_EQ(group.Number("coverage_percent"), 0);
  EXPECT_EQ(group.Number("half_width_percent"), 5);
  EXPECT_EQ(group.Text("left_out_rows"), "");
  EXPECT_EQ(table->rows()[1].Text("name"), "A");
  EXPECT_EQ(table->rows()[2].Text("name"), "B, \"b\"");
  EXPECT_EQ(table->rows()[2].Text("standing"), "inconsistent");
}

TEST_F(AccuracyTest, LeftOutErrorsStandBesideTheOthers) {
  std::vector<AnsweredCase> left_out = answered_;
  left_out[0].answer.predictions[0].expected = 13;
  left_out[1].answer.predictions.clear();
  left_out[0].left_out = "source";
  const absl::StatusOr<Table> table = Table::Parse(AccuracyCsv(answered_, {left_out}));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->rows()[0].Text("left_out"), "source");
  EXPECT_EQ(table->rows()[0].Number("mean_percent"), 15);
  EXPECT_EQ(table->rows()[0].Count("left_out_rows"), 1);
  EXPECT_EQ(table->rows()[0].Number("left_out_mean_percent"), 30);
}

TEST_F(AccuracyTest, AFurtherWayOfLeavingOutHasALineOfItsOwn) {
  std::vector<AnsweredCase> second = answered_;
  for (AnsweredCase& one : second) one.answer.predictions.clear();
  second[1] = answered_[1];
  second[1].left_out = "accelerator";
  const absl::StatusOr<Table> table = Table::Parse(AccuracyCsv(answered_, {answered_, second}));
  ASSERT_TRUE(table.ok()) << table.status();
  // The group and source A have a second line.
  ASSERT_EQ(table->rows().size(), 5U);
  EXPECT_EQ(table->rows()[1].Text("name"), "all");
  EXPECT_EQ(table->rows()[1].Text("rows"), "");
  EXPECT_EQ(table->rows()[1].Text("left_out"), "accelerator");
  EXPECT_EQ(table->rows()[1].Number("left_out_mean_percent"), 20);
}

TEST_F(AccuracyTest, RanksWithinSweepsOfThree) {
  for (Case& made : cases_) {
    made.source = "A";
    made.standing = Standing::kScored;
    made.sweep = "one";
  }
  EXPECT_EQ(Table::Parse(AccuracyCsv(answered_, {}))->rows()[0].Number("rank_correlation"), 1);
  answered_[0].answer.predictions[0].expected = 20;  // between the two others
  // Ranks 1, 0, 2 against 0, 1, 2.
  EXPECT_EQ(Table::Parse(AccuracyCsv(answered_, {}))->rows()[0].Number("rank_correlation"), 0.5);
}

TEST_F(AccuracyTest, TableForReaders) {
  const std::string table = ErrorTable(answered_);
  EXPECT_THAT(table, HasSubstr("group all step_seconds"));
  EXPECT_THAT(table, HasSubstr("source B, \"b\" chip step_seconds (inconsistent)"));
}

TEST_F(AccuracyTest, FiguresAreATable) {
  const absl::StatusOr<Table> table = Table::Parse(FiguresCsv(answered_));
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->rows().size(), 3U);
  EXPECT_EQ(table->rows()[1].Text("id"), "R-20");
  EXPECT_EQ(table->rows()[1].Number("error_percent"), -20);
  EXPECT_EQ(table->rows()[2].Text("source"), "B, \"b\"");
}

TEST_F(AccuracyTest, ReasonsAreCounted) {
  answered_[0].answer.failure = "does not fit";
  const std::string text = NotPredicted({{"X-1", "X", "no batch"}, {"X-2", "X", "no batch"}}, answered_);
  EXPECT_THAT(text, HasSubstr("2 x X: no batch (X-1)"));
  EXPECT_THAT(text, HasSubstr("1 x A: does not fit (R-10)"));
}

}  // namespace
}  // namespace sliceplan::calibrate
