// The best slice, plan and replicas for a load.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

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

// At a rate with targets every plan of every slice is given more replicas one by one until an estimate meets the
// targets; the search, which bounds most of that away, has the same answer.
TEST(ServingSearchTest, FindsTheFewestReplicasThatCountingOneByOneFinds) {
  const ServedFixture served = Served();
  for (const double rate : {3.0, 7.0}) {
    for (const Objective objective : {Objective::kMinCost, Objective::kMinChips}) {
      ServingQuestion question = Question(served);
      question.workload.load = ServingLoadKind::kRate;
      question.workload.requests_per_second = rate;
      question.slo.ttft.p95_seconds = 1.5;
      question.slo.tpot.p95_seconds = 0.04;
      question.objective = objective;
      question.proposal_count = 1;
      question.candidates[1].usd_per_chip_hour = 2;
      question.candidates.pop_back();
      MappingCache mappings;
      const ServingSearchAnswer answer = ProposeServing(question, mappings, nullptr);
      double best = 1e300;
      for (const ServingCandidate& candidate : question.candidates) {
        ServingJob job = BookJob(served, 2048, 32);
        job.workload = question.workload;
        job.slo = question.slo;
        job.pools[0].slice = candidate.slice;
        job.pools[0].usd_per_chip_hour = candidate.usd_per_chip_hour;
        for (const Parallelism& plan : ServingPlansOf(job, job.pools[0])) {
          job.pools[0].parallelism = plan;
          for (job.pools[0].replica_count = 1; job.pools[0].replica_count <= 8; ++job.pools[0].replica_count) {
            const double chips = static_cast<double>(job.pools[0].slice.TotalChips()) * job.pools[0].replica_count;
            const double key = objective == Objective::kMinCost ? chips * *candidate.usd_per_chip_hour : chips;
            if (key >= best) break;
            if (Estimate(job).outcome != ServingOutcome::kFeasible) continue;
            best = key;
            break;
          }
        }
      }
      ASSERT_EQ(answer.proposals.empty(), best == 1e300) << rate;
      if (answer.proposals.empty()) continue;
      const ServingEstimate& found = answer.proposals[0].estimate;
      const double key =
          objective == Objective::kMinCost ? found.cost->usd_per_hour : static_cast<double>(found.chip_count);
      // A pair of pools may do better than any slice alone.
      if (answer.proposals[0].candidates.size() == 1) {
        EXPECT_NEAR(key, best, 1e-9 * best) << rate;
      } else {
        EXPECT_LE(key, best) << rate;
      }
    }
  }
}

// An estimate without a plan and a search over the one slice answer the same question with the same plan.
TEST(ServingSearchTest, AnEstimateWithoutAPlanTakesThePlanThatASearchProposes) {
  struct Load {
    ServingLoadKind kind;
    double amount;
    std::optional<double> tpot;
  };
  const Load loads[] = {{ServingLoadKind::kLargestBatch, 0, std::nullopt}, {ServingLoadKind::kLargestBatch, 0, 0.04},
                        {ServingLoadKind::kBatch, 1, std::nullopt},        {ServingLoadKind::kBatch, 64, std::nullopt},
                        {ServingLoadKind::kConcurrency, 40, std::nullopt}, {ServingLoadKind::kRate, 1, std::nullopt},
                        {ServingLoadKind::kRate, 7, std::nullopt},         {ServingLoadKind::kRate, 4, 0.05}};
  const roofline::ServingEfficiency runtime;
  const ServedFixture models[] = {Served(), Served({32, 4096, 32, 8, 128, 14336, 128256}),
                                  Served({32, 4096, 32, 8, 128, 14336, 32000, 0, 8, 2})};
  for (const ServedFixture& served : models) {
    for (const int32_t x : {2, 4}) {
      for (const EstimationMode mode : {EstimationMode::kRoofline, EstimationMode::kCalibrated}) {
        for (const Load& load : loads) {
          ServingQuestion question = Question(served);
          question.candidates = {question.candidates[0]};
          question.candidates[0].slice = ServingSlice(x, 4);
          question.candidates[0].efficiency = &runtime;
          question.mode = mode;
          question.workload.load = load.kind;
          question.workload.batch_size = question.workload.concurrency =
              static_cast<int32_t>(std::max(1.0, load.amount));
          question.workload.requests_per_second = load.amount;
          question.slo.tpot.p95_seconds = load.tpot;
          question.objective = Objective::kMinCost;
          question.proposal_count = 2;
          MappingCache mappings;
          const ServingSearchAnswer answer = ProposeServing(question, mappings, nullptr);
          const ServingProposal* alone = nullptr;
          for (const ServingProposal& proposal : answer.proposals) {
            if (alone == nullptr && proposal.candidates.size() == 1) alone = &proposal;
          }
          if (alone == nullptr) continue;
          ServingJob job = BookJob(served, 2048, 32);
          job.mode = mode;
          job.workload = question.workload;
          job.slo = question.slo;
          job.pools[0].slice = question.candidates[0].slice;
          job.pools[0].efficiency = &runtime;
          job.pools[0].parallelism.reset();
          job.pools[0].replica_count = alone->estimate.pools[0].replica_count;
          const ServingEstimate estimate = Estimate(job);
          for (const LogicalAxis axis : kLogicalAxes) {
            EXPECT_EQ(estimate.pools[0].parallelism.Degree(axis), alone->estimate.pools[0].parallelism.Degree(axis))
                << LogicalAxisName(axis) << " of load " << static_cast<int>(load.kind) << " " << load.amount << " on "
                << x << "x4, mode " << static_cast<int>(mode);
          }
          EXPECT_EQ(estimate.outcome, ServingOutcome::kFeasible);
        }
      }
    }
  }
}

// Without a price a slice comes last; where the objective asks for one, not at all.
// More slices to choose from are never worse: what a subset finds, the whole finds or betters. Most of these answers
// are pools apart.
TEST(ServingSearchTest, NoSubsetOfTheSlicesBeatsAllOfThem) {
  const ServedFixture served = Served();
  std::mt19937 random(1);
  for (const double rate : {20.0, 100.0}) {
    for (const double ttft_seconds : {0.3, 0.7}) {
      ServingQuestion question = Question(served);
      question.workload.load = ServingLoadKind::kRate;
      question.workload.requests_per_second = rate;
      question.slo.ttft.p95_seconds = ttft_seconds;
      question.slo.tpot.p95_seconds = 0.03;
      question.objective = Objective::kMinCost;
      question.proposal_count = 1;
      // Chips of the same make that read faster, or write faster, at a price.
      const std::vector<ServingCandidate> plain = question.candidates;
      for (const double speed : {0.5, 2.0, 4.0}) {
        for (ServingCandidate candidate : plain) {
          *candidate.slice.accelerator.bf16_flops_per_second *= speed;
          *candidate.slice.accelerator.int8_ops_per_second *= speed;
          *candidate.slice.accelerator.hbm_bytes_per_second *= 2 / speed;
          candidate.usd_per_chip_hour = 0.8 + 0.1 * static_cast<double>(random() % 20);
          question.candidates.push_back(candidate);
        }
      }
      MappingCache mappings;
      const auto best = [&mappings](const ServingQuestion& asked) {
        const ServingSearchAnswer answer = ProposeServing(asked, mappings, nullptr);
        return answer.proposals.empty() ? 1e300 : answer.proposals[0].estimate.cost->usd_per_hour;
      };
      const double all = best(question);
      for (int i = 0; i < 6; ++i) {
        ServingQuestion subset = question;
        std::shuffle(subset.candidates.begin(), subset.candidates.end(), random);
        subset.candidates.resize(1 + random() % 3);
        EXPECT_LE(all, best(subset) * (1 + 1e-9)) << rate << " " << ttft_seconds << " " << i;
      }
    }
  }
}

TEST(ServingSearchTest, SlicesWithoutAPriceComeLast) {
  const ServedFixture served = Served();
  ServingQuestion question = Question(served);
  question.workload.load = ServingLoadKind::kLargestBatch;
  question.objective = Objective::kMinCost;
  question.candidates[3].usd_per_chip_hour.reset();
  question.proposal_count = 100;
  MappingCache mappings;
  for (const ServingProposal& proposal : ProposeServing(question, mappings, nullptr).proposals) {
    EXPECT_NE(proposal.candidates[0], 3u);
  }
  question.requires_price = false;
  const ServingSearchAnswer answer = ProposeServing(question, mappings, nullptr);
  bool was_unpriced = false;
  for (const ServingProposal& proposal : answer.proposals) {
    const bool is_unpriced = proposal.candidates[0] == 3;
    EXPECT_TRUE(is_unpriced || !was_unpriced);
    was_unpriced |= is_unpriced;
  }
  EXPECT_TRUE(was_unpriced);
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
  EXPECT_EQ(answer.near_misses.size(), 1u);  // one for a slice and reason
  EXPECT_TRUE(answer.exhaustive);
}

TEST(ServingSearchTest, NamesTheSmallestSliceThatHoldsTheModel) {
  const ServedFixture served = Served();
  ServingJob job = BookJob(served, 2048, 1);
  job.workload.precision.weights = hardware::DataType::kFp32;  // 282 GB: on 16 GB a chip more than 17
  job.workload.precision.kv_cache = hardware::DataType::kInt8;
  job.pools[0].slice = ServingSlice(2, 2);
  job.pools[0].parallelism = TensorOnly(4);
  job.pools[0].larger_slices = [] {
    std::vector<hardware::Slice> slices = {ServingSlice(2, 4), ServingSlice(4, 4), ServingSlice(4, 8),
                                           ServingSlice(8, 8)};
    slices[2].topology = "4x8";
    return slices;
  };
  const ServingEstimate estimate = Estimate(job);
  ASSERT_TRUE(estimate.smallest_fix.has_value());
  EXPECT_EQ(estimate.smallest_fix->code, "MORE_CHIPS");
  ASSERT_EQ(estimate.smallest_fix->changes.size(), 1u);
  EXPECT_EQ(estimate.smallest_fix->changes[0].field, "slice.topology");
  EXPECT_EQ(estimate.smallest_fix->changes[0].value, "4x8");
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
