#include "client/calibrate/regret.h"

#include "client/calibrate/table.h"
#include "gtest/gtest.h"

namespace sliceplan::calibrate {
namespace {

// Runs of jobs: the plan is the number of stages.
class RegretTest : public ::testing::Test {
 protected:
  void Add(const char* id, const char* job, int stages, double measured, double predicted) {
    Case made;
    made.id = id;
    made.source = "A";
    made.groups = {"all-steps"};
    made.job = job;
    v1::EstimateTrainingRequest request;
    request.mutable_parallelism()->mutable_ici()->set_pipeline(stages);
    made.question = request;
    cases_.push_back(made);
    Answer answer;
    answer.predictions = {{Metric::kStepSeconds, measured, predicted, 0, 0}};
    answers_.push_back(answer);
  }

  std::vector<AnsweredCase> Answered() const {
    std::vector<AnsweredCase> answered;
    for (size_t i = 0; i < cases_.size(); ++i) answered.push_back({&cases_[i], answers_[i], ""});
    return answered;
  }

  std::vector<Case> cases_;
  std::vector<Answer> answers_;
};

TEST_F(RegretTest, IsThatOfThePlanThatRanksFirst) {
  Add("A-1", "one", 1, 10, 8);  // first, measured best
  Add("A-2", "one", 2, 12, 9);
  Add("A-3", "two", 1, 10, 9);
  Add("A-4", "two", 2, 11, 8);  // first, 10% worse
  Add("A-5", "alone", 1, 5, 5);
  Add("A-6", "", 1, 1, 9);  // of no job
  Add("A-7", "", 2, 9, 1);
  const absl::StatusOr<Table> table = Table::Parse(RegretCsv(Answered(), {}));
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->rows().size(), 5U);
  const Row& all = table->rows()[0];
  EXPECT_EQ(all.Text("kind"), "group");
  EXPECT_EQ(all.Text("name"), "all");
  EXPECT_EQ(all.Count("jobs"), 2);
  EXPECT_EQ(all.Number("regret_percent"), 5);
  EXPECT_EQ(all.Number("worst_percent"), 10);
  EXPECT_EQ(all.Text("left_out_jobs"), "");
  EXPECT_EQ(table->rows()[1].Text("name"), "all-steps");
  EXPECT_EQ(table->rows()[2].Text("kind"), "source");
  EXPECT_EQ(table->rows()[4].Text("kind"), "job");
  EXPECT_EQ(table->rows()[4].Text("first"), "A-4");
  EXPECT_EQ(table->rows()[4].Text("best"), "A-3");
}

TEST_F(RegretTest, LeftOutPredictionsRankAnew) {
  Add("A-1", "one", 1, 10, 8);
  Add("A-2", "one", 2, 12, 9);
  const std::vector<AnsweredCase> answered = Answered();
  answers_[0].predictions[0].expected = 10;
  const absl::StatusOr<Table> table = Table::Parse(RegretCsv(answered, Answered()));
  EXPECT_EQ(table->rows()[0].Number("regret_percent"), 0);
  EXPECT_EQ(table->rows()[0].Number("left_out_regret_percent"), 20);
}

TEST_F(RegretTest, RepeatsOfAPlanAreOneAndTiesCountByTheirMean) {
  Add("A-1", "one", 1, 10, 8);
  Add("A-2", "one", 1, 12, 8);  // again: 11 in the mean
  Add("A-3", "one", 2, 22, 8);  // not told apart
  const absl::StatusOr<Table> table = Table::Parse(RegretCsv(Answered(), {}));
  EXPECT_EQ(table->rows()[0].Number("regret_percent"), 50);  // (11 + 22) / 2 / 11
}

TEST_F(RegretTest, RunsThatAreNotScoredDoNotCount) {
  Add("A-1", "one", 1, 10, 8);
  Add("A-2", "one", 2, 12, 9);
  cases_[0].standing = Standing::kInconsistent;
  EXPECT_TRUE(Table::Parse(RegretCsv(Answered(), {}))->rows().empty());
}

}  // namespace
}  // namespace sliceplan::calibrate
