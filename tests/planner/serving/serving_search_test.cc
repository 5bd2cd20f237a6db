// The best slice, plan and replicas for a load.
#include <gtest/gtest.h>

#include <algorithm>

#include "server/planner/serving/plan_choice.h"
#include "server/planner/serving/serving_search.h"
#include "tests/planner/serving/serving_fixture.h"

namespace sliceplan::planner {
namespace {

ServingQuestion Question(const ServedFixture& served) {
  ServingQuestion question;
  question.model = served.Model();
  const ServingJob job = BookJob(served, 2048, 32);
  question.workload = job.workload;
  question.workload.output = TokenLengths::Constant(128);
  question.mode = EstimationMode::kRoofline;
  for (const int32_t x : {2, 4}) {
    for (const int32_t y : {4, 8}) {
      ServingCandidate candidate;
      candidate.slice = ServingSlice(x, y);
      candidate.usd_per_chip_hour = 1.2;
      question.candidates.push_back(candidate);
    }
  }
  return question;
}

// What the search says is best, every legal plan of every slice estimated one by one says too.
TEST(ServingSearchTest, FindsWhatTryingEverythingFinds) {
  const ServedFixture served = Served();
  for (const Objective objective : {Objective::kMinStepTime, Objective::kMinCost, Objective::kMaxThroughputPerChip}) {
    ServingQuestion question = Question(served);
    question.workload.load = ServingLoadKind::kBatch;
    question.workload.batch_size = 32;
    question.objective = objective;
    MappingCache mappings;
    const ServingSearchAnswer answer = ProposeServing(question, mappings, nullptr);
    ASSERT_FALSE(answer.proposals.empty());
    double best = 1e300;
    for (const ServingCandidate& candidate : question.candidates) {
      ServingJob job = BookJob(served, 2048, 32);
      job.workload = question.workload;
      job.pools[0].slice = candidate.slice;
      for (const Parallelism& plan : ServingPlansOf(job, job.pools[0])) {
        job.pools[0].parallelism = plan;
        const ServingEstimate estimate = Estimate(job);
        if (estimate.outcome != ServingOutcome::kFeasible) continue;
        const double tokens = estimate.throughput.output_tokens_per_second;
        const double chips = static_cast<double>(estimate.chip_count);
        best = std::min(best, objective == Objective::kMinStepTime ? estimate.tpot->mean_seconds : chips / tokens);
      }
    }
    const ServingEstimate& found = answer.proposals[0].estimate;
    const double value = objective == Objective::kMinStepTime
                             ? found.tpot->mean_seconds
                             : static_cast<double>(found.chip_count) / found.throughput.output_tokens_per_second;
    EXPECT_NEAR(value, best, 1e-9 * best);
    int64_t left_out = 0;
    for (const int64_t count : answer.pruned) left_out += count;
    EXPECT_EQ(answer.considered_count, answer.evaluated_count + left_out);
  }
}

TEST(ServingSearchTest, ReplicasOfEveryProposalCarryTheRateAndTheTargets) {
  const ServedFixture served = Served();
  ServingQuestion question = Question(served);
  question.workload.load = ServingLoadKind::kRate;
  question.workload.requests_per_second = 40;
  question.slo.ttft.p95_seconds = 2;
  question.slo.tpot.p95_seconds = 0.05;
  question.objective = Objective::kMinCost;
  MappingCache mappings;
  const ServingSearchAnswer answer = ProposeServing(question, mappings, nullptr);
  ASSERT_FALSE(answer.proposals.empty());
  double last = 0;
  for (const ServingProposal& proposal : answer.proposals) {
    EXPECT_EQ(proposal.estimate.outcome, ServingOutcome::kFeasible);
    EXPECT_LE(proposal.estimate.ttft->p95_seconds, 2);
    EXPECT_LE(proposal.estimate.tpot->p95_seconds, 0.05);
    EXPECT_GE(proposal.estimate.cost->usd_per_hour, last);
    last = proposal.estimate.cost->usd_per_hour;
  }
}

TEST(ServingSearchTest, WhatDoesNotFitIsANearMiss) {
  const ServedFixture served = Served();
  ServingQuestion question = Question(served);
  question.workload.load = ServingLoadKind::kBatch;
  question.workload.batch_size = 1;
  question.workload.precision.weights = hardware::DataType::kFp32;  // 282 GB on at most 512 GB: 8 and 16 chips fail
  question.candidates.resize(1);
  MappingCache mappings;
  const ServingSearchAnswer answer = ProposeServing(question, mappings, nullptr);
  EXPECT_TRUE(answer.proposals.empty());
  ASSERT_FALSE(answer.near_misses.empty());
  EXPECT_EQ(answer.near_misses[0].shortfall.limit, "hbm_bytes");
}

TEST(ServingSearchTest, StopsWhenTold) {
  const ServedFixture served = Served();
  const ServingQuestion question = Question(served);
  MappingCache mappings;
  int polls = 0;
  EXPECT_TRUE(ProposeServing(question, mappings, [&] {
                return ++polls > 3 ? SearchSignal::kCancel : SearchSignal::kGoOn;
              }).cancelled);
  polls = 0;
  EXPECT_FALSE(ProposeServing(question, mappings, [&] {
                 return ++polls > 3 ? SearchSignal::kAnswerNow : SearchSignal::kGoOn;
               }).exhaustive);
}

}  // namespace
}  // namespace sliceplan::planner
