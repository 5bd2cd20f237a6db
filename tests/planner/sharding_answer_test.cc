// One question to the search, in all its parts.
#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/planner/sharding_search.h"
#include "tests/planner/training_fixture.h"

namespace sliceplan::planner {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class OneSliceTest : public ::testing::Test {
 protected:
  OneSliceTest() {
    model_ = Operations(SmallModel{});  // as large as Llama 3 70B
    question_.model = &model_;
    Add(TorusSlice({8, 8, 8}), 4);
  }

  void Add(hardware::Slice slice, double usd_per_chip_hour) {
    SearchCandidate candidate;
    candidate.slice = std::move(slice);
    candidate.workload.sequence_length = 4096;
    candidate.workload.global_batch_size = 512;
    candidate.workload.total_tokens = 1'000'000'000'000;
    candidate.profile = &profile_;
    candidate.usd_per_chip_hour = usd_per_chip_hour;
    question_.candidates.push_back(std::move(candidate));
  }

  ShardingAnswer Ask() { return ProposeSharding(question_, mappings_, nullptr); }

  transformer::ModelOperations model_;
  const roofline::EfficiencyProfile profile_ = TestProfile();
  MappingCache mappings_;
  ShardingQuestion question_;
};

TEST_F(OneSliceTest, ProposalsAreSingleEstimates) {
  const ShardingAnswer answer = Ask();
  ASSERT_THAT(answer.proposals, SizeIs(5));
  for (const Proposal& proposal : answer.proposals) {
    TrainingJob job = JobOf(question_, proposal.candidate);
    job.parallelism = proposal.estimate.parallelism;
    const TrainingEstimate again = Estimated(job);
    EXPECT_DOUBLE_EQ(again.step_time.expected_seconds, proposal.estimate.step_time.expected_seconds);
    EXPECT_EQ(again.memory.used_bytes, proposal.estimate.memory.used_bytes);
    EXPECT_EQ(again.remat_policy, proposal.estimate.remat_policy);
  }
  TrainingJob free = JobOf(question_, 0);
  EXPECT_DOUBLE_EQ(Estimated(free).step_time.expected_seconds,
                   answer.proposals.front().estimate.step_time.expected_seconds);
}

// 70B parameters with Adam's state in fp32 do not fit eight chips; without the state they do.
TEST_F(OneSliceTest, WhatFitsNowhereMayRunFromTheHost) {
  question_.candidates.clear();
  hardware::Slice slice = TorusSlice({2, 2, 2});
  slice.accelerator.hbm_bytes = 100'000'000'000;
  slice.chips_per_host = 4;
  slice.host_memory_bytes = 1'000'000'000'000;
  Add(slice, 4);
  question_.candidates[0].workload.precision.parameters = hardware::DataType::kBf16;
  question_.candidates[0].workload.precision.gradients = hardware::DataType::kBf16;
  EXPECT_THAT(Ask().proposals, IsEmpty());
  AddOffloadVariants(question_);
  const ShardingAnswer answer = Ask();
  ASSERT_THAT(answer.proposals, testing::Not(IsEmpty()));
  for (const Proposal& proposal : answer.proposals) {
    EXPECT_TRUE(question_.candidates[proposal.candidate].workload.optimizer_offload);
    EXPECT_EQ(proposal.estimate.outcome, Outcome::kFeasible);
    EXPECT_GT(proposal.estimate.memory.host_bytes, 0);
    EXPECT_LE(proposal.estimate.memory.host_bytes, proposal.estimate.memory.host_capacity_bytes);
  }
  // A variant stands for its slice.
  ASSERT_THAT(answer.frontier, SizeIs(1));
  EXPECT_EQ(answer.frontier[0].candidate, answer.proposals[0].candidate);
  for (const NearMiss& miss : answer.near_misses) {
    for (const Proposal& proposal : answer.proposals) {
      EXPECT_FALSE(miss.plan.parallelism.ici == proposal.estimate.parallelism.ici);
    }
  }
}

TEST_F(OneSliceTest, AHostThatIsTooSmallIsNearlyEnough) {
  question_.candidates[0].slice.chips_per_host = 4;
  question_.candidates[0].slice.host_memory_bytes = 4 * 100'000'000;
  question_.candidates[0].workload.optimizer_offload = true;
  const ShardingAnswer answer = Ask();
  EXPECT_THAT(answer.proposals, IsEmpty());
  ASSERT_THAT(answer.near_misses, testing::Not(IsEmpty()));
  EXPECT_TRUE(answer.near_misses[0].on_host);
  EXPECT_GT(answer.near_misses[0].shortfall_amount, 0);
  EXPECT_THAT(answer.near_misses[0].shortfall, HasSubstr("host's memory"));
}

// Where everything fits, nothing is moved: ties go to plans without.
TEST_F(OneSliceTest, NothingIsOffloadedForNothing) {
  question_.candidates[0].workload.remat_policy = RematPolicy::kFull;
  question_.candidates[0].slice.chips_per_host = 4;
  question_.candidates[0].slice.host_memory_bytes = 1'000'000'000'000;
  const ShardingAnswer plain = Ask();
  AddOffloadVariants(question_);
  const ShardingAnswer answer = Ask();
  ASSERT_THAT(answer.proposals, SizeIs(plain.proposals.size()));
  for (size_t i = 0; i < plain.proposals.size(); ++i) {
    EXPECT_EQ(answer.proposals[i].candidate, 0u);
    EXPECT_EQ(answer.proposals[i].estimate.parallelism.ici, plain.proposals[i].estimate.parallelism.ici);
  }
}

TEST_F(OneSliceTest, TheSameQuestionHasTheSameAnswer) {
  const ShardingAnswer first = Ask();
  const ShardingAnswer warm = Ask();
  MappingCache other;
  const ShardingAnswer cold = ProposeSharding(question_, other, nullptr);
  for (const ShardingAnswer* answer : {&warm, &cold}) {
    EXPECT_EQ(answer->considered_count, first.considered_count);
    EXPECT_EQ(answer->evaluated_count, first.evaluated_count);
    EXPECT_EQ(answer->pruned, first.pruned);
    ASSERT_EQ(answer->proposals.size(), first.proposals.size());
    for (size_t i = 0; i < first.proposals.size(); ++i) {
      EXPECT_EQ(answer->proposals[i].estimate.parallelism.ici, first.proposals[i].estimate.parallelism.ici) << i;
    }
  }
}

TEST_F(OneSliceTest, ConstraintsHold) {
  question_.constraints.fixed_ici[LogicalAxis::kTensor] = 8;
  question_.constraints.forbidden[static_cast<size_t>(LogicalAxis::kPipeline)] = true;
  question_.constraints.forbidden[static_cast<size_t>(LogicalAxis::kContext)] = true;
  question_.constraints.hbm_headroom_ratio = 0.5;
  const ShardingAnswer answer = Ask();
  ASSERT_FALSE(answer.proposals.empty());
  for (const Proposal& proposal : answer.proposals) {
    const Parallelism& plan = proposal.estimate.parallelism;
    EXPECT_EQ(plan.ici[LogicalAxis::kTensor], 8);
    EXPECT_EQ(plan.Degree(LogicalAxis::kPipeline), 1);
    EXPECT_EQ(plan.Degree(LogicalAxis::kContext), 1);
    const MemoryUse& memory = proposal.estimate.memory;
    EXPECT_GE(static_cast<double>(memory.headroom_bytes), 0.5 * static_cast<double>(memory.capacity_bytes));
  }
}

TEST_F(OneSliceTest, ImpossibleConstraintsLeaveNothing) {
  question_.constraints.fixed_ici[LogicalAxis::kTensor] = 7;
  const ShardingAnswer answer = Ask();
  EXPECT_THAT(answer.proposals, IsEmpty());
  EXPECT_EQ(answer.considered_count, 0);
  EXPECT_TRUE(answer.exhaustive);
}

TEST_F(OneSliceTest, TooSmallASliceIsANearMiss) {
  question_.candidates.clear();
  Add(TorusSlice({2, 2, 2}), 4);
  const ShardingAnswer answer = Ask();
  EXPECT_THAT(answer.proposals, IsEmpty());
  EXPECT_EQ(answer.pruned[static_cast<size_t>(PruneReason::kOutOfMemory)], answer.considered_count);
  ASSERT_FALSE(answer.near_misses.empty());
  const NearMiss& nearest = answer.near_misses.front();
  EXPECT_EQ(nearest.plan.outcome, Outcome::kOutOfMemory);
  EXPECT_GT(nearest.shortfall_amount, 0);
  EXPECT_THAT(nearest.shortfall, HasSubstr("too little"));
  for (const NearMiss& miss : answer.near_misses) EXPECT_GE(miss.shortfall_amount, nearest.shortfall_amount);
}

TEST_F(OneSliceTest, AMissedDeadlineIsANearMiss) {
  question_.constraints.deadline_seconds = 3600;
  const ShardingAnswer answer = Ask();
  EXPECT_THAT(answer.proposals, IsEmpty());
  question_.proposal_count = 1;
  const auto miss = std::find_if(answer.near_misses.begin(), answer.near_misses.end(),
                                 [](const NearMiss& near) { return near.plan.outcome == Outcome::kMissesDeadline; });
  ASSERT_NE(miss, answer.near_misses.end());
  ASSERT_TRUE(miss->plan.end_seconds.has_value());
  EXPECT_DOUBLE_EQ(miss->shortfall_amount, *miss->plan.end_seconds - 3600);
  // The fastest plan there is misses it by least.
  question_.constraints.deadline_seconds.reset();
  EXPECT_DOUBLE_EQ(miss->plan.expected_seconds, Ask().proposals.front().estimate.step_time.expected_seconds);
}

TEST_F(OneSliceTest, ABudgetWithoutAPriceCannotBeMet) {
  question_.constraints.budget_usd = 1e9;
  question_.candidates.front().usd_per_chip_hour.reset();
  const ShardingAnswer answer = Ask();
  EXPECT_THAT(answer.proposals, IsEmpty());
  EXPECT_EQ(answer.pruned[static_cast<size_t>(PruneReason::kNoPrice)], 1);
}

TEST_F(OneSliceTest, TheFrontierTradesTimeForMoney) {
  question_.candidates.clear();
  Add(TorusSlice({4, 4, 8}), 4);
  Add(TorusSlice({8, 8, 8}), 4);
  Add(TorusSlice({8, 8, 8}), 5);    // as fast and dearer: never on it
  Add(TorusSlice({8, 8, 16}), 40);  // faster and dearer
  const ShardingAnswer answer = Ask();
  ASSERT_GE(answer.frontier.size(), 2u);
  for (size_t i = 1; i < answer.frontier.size(); ++i) {
    EXPECT_GT(answer.frontier[i].expected_seconds, answer.frontier[i - 1].expected_seconds);
    EXPECT_LT(*answer.frontier[i].total_usd, *answer.frontier[i - 1].total_usd);
  }
  EXPECT_EQ(answer.frontier.front().candidate, 3u);
  for (const PlanSummary& plan : answer.frontier) EXPECT_NE(plan.candidate, 2u);
}

TEST_F(OneSliceTest, AnswersWithWhatItHasWhenTimeIsUp) {
  int calls = 0;
  const ShardingAnswer cut = ProposeSharding(
      question_, mappings_, [&] { return ++calls > 30 ? SearchSignal::kAnswerNow : SearchSignal::kGoOn; });
  const ShardingAnswer whole = Ask();
  EXPECT_FALSE(cut.exhaustive);
  EXPECT_GT(cut.optimality_gap_ratio, 0);
  EXPECT_LE(cut.optimality_gap_ratio, 1);
  ASSERT_FALSE(whole.proposals.empty());
  if (!cut.proposals.empty()) {
    const double best = whole.proposals.front().estimate.step_time.expected_seconds;
    const double found = cut.proposals.front().estimate.step_time.expected_seconds;
    EXPECT_GE(best, found * (1 - cut.optimality_gap_ratio) * (1 - 1e-12));
  }
}

TEST_F(OneSliceTest, StopsWhenTheCallerLeaves) {
  const ShardingAnswer answer = ProposeSharding(question_, mappings_, [] { return SearchSignal::kCancel; });
  EXPECT_TRUE(answer.cancelled);
  EXPECT_THAT(answer.proposals, IsEmpty());
}

// At most one plan is evaluated between two questions whether to go on.
TEST_F(OneSliceTest, AsksBetweenAnyTwoPiecesOfWork) {
  int64_t evaluated = 0;
  int polls = 0;
  for (int most = 1;; ++most) {
    int calls = 0;
    const ShardingAnswer cut = ProposeSharding(
        question_, mappings_, [&] { return ++calls >= most ? SearchSignal::kAnswerNow : SearchSignal::kGoOn; });
    if (calls < most) break;
    EXPECT_EQ(calls, most) << "work after the call to stop";
    EXPECT_LE(cut.evaluated_count, evaluated + 1);
    EXPECT_GE(cut.evaluated_count, evaluated);
    evaluated = cut.evaluated_count;
    polls = most;
  }
  EXPECT_GT(polls, 50);
  EXPECT_EQ(evaluated, Ask().evaluated_count);
}

TEST_F(OneSliceTest, TheBooksOptimaStandBesideTheFirst) {
  const ShardingAnswer answer = Ask();
  ASSERT_FALSE(answer.closed_forms.empty());
  const ClosedFormOptimum& split = answer.closed_forms.front();
  // X_opt = sqrt((B / F) x (M_X / M_Y) x n), chapter 5, with M_X = 2, M_Y = 1 on three axes.
  const double tokens = 512.0 * 4096;
  const double expected = std::sqrt(tokens / 28672 * 2 * 512);
  EXPECT_DOUBLE_EQ(split.degrees[static_cast<size_t>(LogicalAxis::kFsdp)], expected);
  EXPECT_DOUBLE_EQ(split.degrees[static_cast<size_t>(LogicalAxis::kTensor)], 512 / expected);
}

// The book's FSDP x tensor split (chapter 5) beside the search's, among plans of these two axes by their rooflines.
class BooksSplitTest : public OneSliceTest {
 protected:
  BooksSplitTest() {
    question_.mode = EstimationMode::kRoofline;
    for (LogicalAxis axis : {LogicalAxis::kData, LogicalAxis::kContext, LogicalAxis::kPipeline}) {
      question_.constraints.forbidden[static_cast<size_t>(axis)] = true;
    }
  }
  void SetBatch(int32_t sequence_length, int64_t batch) {
    question_.candidates.front().workload.sequence_length = sequence_length;
    question_.candidates.front().workload.global_batch_size = batch;
  }
  void SlowLinksDown(double times) {
    *question_.candidates.front().slice.accelerator.ici_link_bytes_per_second /= times;
  }
  static double FormulaTensor(const ShardingAnswer& answer) {
    return answer.closed_forms.front().degrees[static_cast<size_t>(LogicalAxis::kTensor)];
  }
  static int32_t TensorOf(const ShardingAnswer& answer, size_t i = 0) {
    return answer.proposals[i].estimate.parallelism.ici[LogicalAxis::kTensor];
  }
  static double SecondsOf(const ShardingAnswer& answer, size_t i = 0) {
    return answer.proposals[i].estimate.step_time.expected_seconds;
  }
};

// Tensor parallelism on one whole ring, FSDP on the two others: what the formula takes for granted.
TEST_F(BooksSplitTest, IsFoundWhereItFillsWholeAxes) {
  SetBatch(1024, 128);
  const ShardingAnswer answer = Ask();
  ASSERT_FALSE(answer.proposals.empty());
  EXPECT_NEAR(FormulaTensor(answer), 8, 1);
  EXPECT_EQ(TensorOf(answer), 8);
}

// Tensor degrees of 2 and 4 leave a ring in parts that are lines, and FSDP alone has the links of all three axes, where
// the formula gives it two: the fewest axes win by more than a little.
TEST_F(BooksSplitTest, IsLeftWhereItWouldCutARing) {
  SlowLinksDown(8);
  const ShardingAnswer answer = Ask();
  ASSERT_GE(answer.proposals.size(), 2u);
  EXPECT_NEAR(FormulaTensor(answer), 2, 0.5);
  EXPECT_EQ(TensorOf(answer), 1);
  EXPECT_EQ(TensorOf(answer, 1), 2);
  EXPECT_GT(SecondsOf(answer, 1), 1.1 * SecondsOf(answer));
}

// With fast links compute hides the traffic of several splits, which then take equally long: the simplest comes first.
TEST_F(BooksSplitTest, DoesNotMatterWhereComputeHidesTheTraffic) {
  const ShardingAnswer answer = Ask();
  ASSERT_GE(answer.proposals.size(), 2u);
  EXPECT_NEAR(FormulaTensor(answer), 2, 0.5);
  EXPECT_EQ(TensorOf(answer), 1);
  EXPECT_EQ(TensorOf(answer, 1), 2);
  EXPECT_NEAR(SecondsOf(answer, 1), SecondsOf(answer), 1e-3 * SecondsOf(answer));
}

TEST_F(OneSliceTest, IdleChipsMakeOddSlicesUsable) {
  question_.candidates.clear();
  Add(TorusSlice({5, 7}), 4);
  question_.candidates.front().slice.accelerator.hbm_bytes = 400'000'000'000;
  question_.constraints.forbidden[static_cast<size_t>(LogicalAxis::kPipeline)] = true;
  EXPECT_THAT(Ask().proposals, IsEmpty());
  question_.constraints.allow_idle_chips = true;
  const ShardingAnswer answer = Ask();
  ASSERT_FALSE(answer.proposals.empty());
  EXPECT_GT(answer.proposals.front().estimate.idle_chip_count, 0);
}

}  // namespace
}  // namespace sliceplan::planner
