// Loads on replicas: what several data ranks, many replicas and little memory do to rates, targets and fixes.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "server/planner/serving/batch_point.h"
#include "server/planner/serving/pool_system.h"
#include "server/planner/serving/serving_outcome.h"
#include "tests/planner/serving/serving_fixture.h"

namespace sliceplan::planner {
namespace {

// 8B on one chip or data ranks of it.
ServedFixture Small() {
  DenseShape shape;
  shape.layers = 32;
  shape.hidden_dim = 4096;
  shape.query_heads = 32;
  shape.ffn_dim = 14336;
  return Served(shape);
}

ServingJob SmallJob(const ServedFixture& served, int32_t chips, const Parallelism& parallelism) {
  ServingJob job = BookJob(served, 1024, 1);
  job.pools[0].slice = ServingSlice(1, chips);
  job.pools[0].parallelism = parallelism;
  job.workload.output = TokenLengths::Constant(64);
  return job;
}

Parallelism DataOnly(int32_t degree) {
  Parallelism parallelism = TensorOnly(1);
  parallelism.ici[LogicalAxis::kData] = degree;
  return parallelism;
}

// Four data ranks that share nothing are four replicas of one chip, however prompts are read.
TEST(ServingLoadTest, DataRanksWorkSideBySide) {
  const ServedFixture served = Small();
  for (const int chunk : {0, 128, 4096}) {
    ServingJob one = SmallJob(served, 1, TensorOnly(1));
    if (chunk > 0) one.workload.prefill_chunk_tokens = chunk;
    ServingJob four = one;
    four.pools[0].slice = ServingSlice(1, 4);
    four.pools[0].parallelism = DataOnly(4);
    four.workload.batch_size = 4;
    EXPECT_NEAR(Estimate(four).ttft->mean_seconds, Estimate(one).ttft->mean_seconds, 1e-9);
    one.workload.load = ServingLoadKind::kRate;
    one.workload.requests_per_second = 0.1;
    const double alone = Estimate(one).throughput.saturation_requests_per_second;
    one.pools_given = true;
    one.pools[0].replica_count = 4;
    one.workload.requests_per_second = 0.9 * 4 * alone;
    four.workload.load = ServingLoadKind::kRate;
    four.workload.requests_per_second = one.workload.requests_per_second;
    const ServingEstimate replicas = Estimate(one);
    const ServingEstimate ranks = Estimate(four);
    ASSERT_EQ(replicas.outcome, ServingOutcome::kFeasible) << chunk;
    ASSERT_EQ(ranks.outcome, ServingOutcome::kFeasible) << chunk;
    EXPECT_NEAR(ranks.throughput.saturation_requests_per_second, 4 * alone, 1e-6 * alone) << chunk;
    EXPECT_NEAR(ranks.ttft->p95_seconds, replicas.ttft->p95_seconds, 1e-9) << chunk;
    EXPECT_NEAR(ranks.tpot->mean_seconds, replicas.tpot->mean_seconds, 1e-9) << chunk;
    EXPECT_NEAR(ranks.batch_size, 4 * replicas.batch_size, 2) << chunk;
  }
}

// Past a few dozen, replicas share a load no better: a thousand answer as a hundred at a tenth of the rate.
TEST(ServingLoadTest, LargeFleetsAnswerAsPartsOfThem) {
  const ServedFixture served = Small();
  ServingJob job = SmallJob(served, 1, TensorOnly(1));
  job.pools_given = true;
  job.workload.load = ServingLoadKind::kRate;
  job.workload.requests_per_second = 0.1;
  const double alone = Estimate(job).throughput.saturation_requests_per_second;
  const auto with = [&](int32_t replicas) {
    job.pools[0].replica_count = replicas;
    job.workload.requests_per_second = 0.7 * alone * replicas;
    return Estimate(job);
  };
  const ServingEstimate few = with(100);
  const ServingEstimate many = with(1000);
  ASSERT_EQ(few.outcome, ServingOutcome::kFeasible);
  ASSERT_EQ(many.outcome, ServingOutcome::kFeasible);
  EXPECT_NEAR(many.throughput.requests_per_second, 10 * few.throughput.requests_per_second, 1e-6 * alone);
  EXPECT_NEAR(many.ttft->p95_seconds, few.ttft->p95_seconds, 0.05 * few.ttft->p95_seconds);
  EXPECT_NEAR(many.tpot->mean_seconds, few.tpot->mean_seconds, 0.05 * few.tpot->mean_seconds);
  EXPECT_NEAR(many.batch_size, few.batch_size, 1);
}

// A replay that ends when a target is missed for certain says what the whole one says, whatever the target.
TEST(ServingLoadTest, ReplaysThatEndEarlyAgreeWithWholeOnes) {
  const ServedFixture served = Small();
  ServingJob job = SmallJob(served, 1, TensorOnly(1));
  job.workload.load = ServingLoadKind::kRate;
  job.workload.prompt = TokenLengths::LogNormal(512, 1);
  job.workload.requests_per_second = 0.9 * Estimate(job).throughput.saturation_requests_per_second;
  MappingCache mappings;
  const auto plan = ReplicaPlan::Make(job, job.pools[0], *job.pools[0].parallelism, 1, mappings);
  ASSERT_TRUE(plan.ok());
  const int64_t most = (*plan)->memory().MaxBatch(FullContext(job.workload));
  int met = 0;
  int missed = 0;
  for (const int64_t count : {1, 2}) {
    const PlannedPool pool{plan->get(), count, most};
    const SystemResult whole = ReplayLoad(job, pool, nullptr, 1, nullptr);
    for (const double share : {0.5, 0.9, 0.9999, 1.0, 1.0001, 1.1}) {
      const auto set = [share](const Latency& latency, LatencyTargets& targets, int which) {
        if (which == 0) targets.mean_seconds = share * latency.mean_seconds;
        if (which == 1) targets.p50_seconds = share * latency.p50_seconds;
        if (which == 2) targets.p95_seconds = share * latency.p95_seconds;
        if (which == 3) targets.p99_seconds = share * latency.p99_seconds;
      };
      for (int which = 0; which < 4; ++which) {
        for (int kind = 0; kind < 3; ++kind) {
          job.slo = {};
          if (kind == 0) set(whole.ttft, job.slo.ttft, which);
          if (kind == 1) set(whole.tpot, job.slo.tpot, which);
          if (kind == 2) set(whole.end_to_end, job.slo.end_to_end, which);
          const SystemResult early = ReplayLoad(job, pool, nullptr, 1, nullptr, ReplayEnd::kWhenATargetIsMissed);
          EXPECT_EQ(!early.missed && MeetsTargets(early, job.slo), MeetsTargets(whole, job.slo))
              << count << " replicas, share " << share << ", limit " << which << " of " << kind;
          ++(MeetsTargets(whole, job.slo) ? met : missed);
        }
      }
    }
  }
  EXPECT_GT(met, 0);
  EXPECT_GT(missed, 0);
}

// Requests of a fast and a slow pool are one stream: its middle is the fast pool's, which has most of them, its tail
// the slow one's, and its mean theirs by their numbers.
TEST(ServingLoadTest, PercentilesOfTwoPoolsAreThoseOfAllRequests) {
  const ServedFixture served = Small();
  ServingJob fast = SmallJob(served, 4, TensorOnly(4));
  fast.pools_given = true;
  fast.workload.load = ServingLoadKind::kRate;
  ServingJob slow = SmallJob(served, 1, TensorOnly(1));
  slow.workload.load = ServingLoadKind::kRate;
  ServingJob both = fast;
  both.pools[0].replica_count = 2;
  both.pools.push_back(slow.pools[0]);
  const double fast_rate = Estimate(fast).throughput.saturation_requests_per_second;
  const double slow_rate = Estimate(slow).throughput.saturation_requests_per_second;
  both.workload.requests_per_second = 0.2 * (2 * fast_rate + slow_rate);
  fast.pools[0].replica_count = 2;
  fast.workload.requests_per_second = 0.2 * 2 * fast_rate;
  slow.workload.requests_per_second = 0.2 * slow_rate;
  const double slow_share = slow_rate / (2 * fast_rate + slow_rate);
  ASSERT_LT(slow_share, 0.5);
  ASSERT_GT(slow_share, 0.05);
  const ServingEstimate mixed = Estimate(both);
  const Latency fast_tpot = *Estimate(fast).tpot;
  const Latency slow_tpot = *Estimate(slow).tpot;
  ASSERT_LT(fast_tpot.p99_seconds, slow_tpot.p50_seconds);
  EXPECT_LE(mixed.tpot->p50_seconds, 1.01 * fast_tpot.p99_seconds);
  EXPECT_GE(mixed.tpot->p99_seconds, 0.99 * slow_tpot.p50_seconds);
  const double mean = (1 - slow_share) * fast_tpot.mean_seconds + slow_share * slow_tpot.mean_seconds;
  EXPECT_NEAR(mixed.tpot->mean_seconds, mean, 0.03 * mean);
}

// Little's law with fewer users than replicas: the others stand idle.
TEST(ServingLoadTest, OneUserIsServedByOneReplica) {
  const ServedFixture served = Small();
  const roofline::ServingEfficiency runtime;
  ServingJob job = SmallJob(served, 1, TensorOnly(1));
  job.mode = EstimationMode::kCalibrated;
  job.pools[0].efficiency = &runtime;
  job.workload.load = ServingLoadKind::kConcurrency;
  job.workload.concurrency = 1;
  const double one = Estimate(job).throughput.requests_per_second;
  job.pools[0].replica_count = 4;
  const ServingEstimate idle = Estimate(job);
  EXPECT_NEAR(idle.throughput.requests_per_second, one, 1e-9);
  EXPECT_NEAR(idle.throughput.requests_per_second * idle.end_to_end->mean_seconds, 1, 0.02);
}

// Prompts of users that start together are read one after the other: with two prefill replicas a burst of eight waits
// for three halves of a prompt in the mean, half of them in bursts for half of that.
TEST(ServingLoadTest, BurstsOfUsersWaitForTheReplicasThatReadPrompts) {
  const ServedFixture served = Small();
  roofline::ServingEfficiency runtime;
  ServingJob job = SmallJob(served, 1, TensorOnly(1));
  job.mode = EstimationMode::kCalibrated;
  job.pools_given = true;
  job.pools[0].efficiency = &runtime;
  job.pools.push_back(job.pools[0]);
  job.pools[0].role = PoolRole::kPrefill;
  job.pools[0].replica_count = 2;
  job.pools[1].role = PoolRole::kDecode;
  job.workload.output = TokenLengths::Constant(512);
  job.workload.load = ServingLoadKind::kConcurrency;
  job.workload.concurrency = 8;
  const ServingEstimate alone = Estimate(job);
  runtime.burst_share = 0.5;
  runtime.first_token_seconds = 0.125;
  const ServingEstimate burst = Estimate(job);
  const double prompt = alone.prefill.time.expected_seconds;
  ASSERT_TRUE(alone.disaggregation);
  ASSERT_NEAR(alone.ttft->mean_seconds, prompt + alone.disaggregation->kv_transfer_seconds, 0.01 * prompt)
      << "without bursts nobody waits";
  const double added = 0.125 + 0.5 * (8 / 2 - 1) / 2.0 * prompt;
  EXPECT_NEAR(burst.ttft->mean_seconds, alone.ttft->mean_seconds + added, 0.02 * added);
  EXPECT_NEAR(burst.end_to_end->mean_seconds, alone.end_to_end->mean_seconds + added, 0.02 * added);
  EXPECT_NEAR(burst.tpot->mean_seconds, alone.tpot->mean_seconds, 1e-12);
}

// Prompts so long that one alone misses the target: no number of replicas is named.
TEST(ServingLoadTest, ReplicasThatCannotHelpAreNotCounted) {
  const ServedFixture served = Small();
  ServingJob job = SmallJob(served, 1, TensorOnly(1));
  job.workload.load = ServingLoadKind::kRate;
  job.workload.requests_per_second = 0.05;
  job.workload.prompt = TokenLengths::LogNormal(4096, 2);
  job.slo.ttft.p95_seconds = 1.05 * Estimate(job).prefill.time.expected_seconds;
  const ServingEstimate estimate = Estimate(job);
  EXPECT_EQ(estimate.outcome, ServingOutcome::kMissesSlo);
  EXPECT_FALSE(estimate.replica_count);
}

TEST(ServingLoadTest, ARelaxedTargetIsMet) {
  const ServedFixture served = Small();
  ServingJob job = SmallJob(served, 1, TensorOnly(1));
  job.workload.load = ServingLoadKind::kRate;
  job.workload.requests_per_second = 0.5;
  job.slo.ttft.p99_seconds = 1e-4;
  const ServingEstimate missed = Estimate(job);
  ASSERT_TRUE(missed.smallest_fix);
  ASSERT_EQ(missed.smallest_fix->code, "RELAX_TARGET");
  ASSERT_EQ(missed.smallest_fix->changes[0].field, "slo.ttft.p99_seconds");
  job.slo.ttft.p99_seconds = std::stod(missed.smallest_fix->changes[0].value);
  EXPECT_EQ(Estimate(job).outcome, ServingOutcome::kFeasible);
}

// What the engine may take limits, not what the chip has.
TEST(ServingLoadTest, TheShortfallIsOfTheShareThatTheEngineTakes) {
  const ServedFixture served = Small();
  ServingJob job = SmallJob(served, 1, TensorOnly(1));
  job.workload.hbm_utilization_ratio = 0.25;
  const ServingEstimate estimate = Estimate(job);
  ASSERT_EQ(estimate.outcome, ServingOutcome::kOutOfMemory);
  EXPECT_NEAR(estimate.shortfall->available, 0.25 * 16e9, 1);
  EXPECT_NEAR(estimate.shortfall->missing, estimate.shortfall->needed - 0.25 * 16e9, 1);
}

// A lone prompt that is read in chunks takes as long as its chunks.
TEST(ServingLoadTest, ChunksSlowALonePrompt) {
  const ServedFixture served = Small();
  ServingJob job = SmallJob(served, 1, TensorOnly(1));
  job.workload.load = ServingLoadKind::kRate;
  job.workload.requests_per_second = 1e-3;
  const double whole = Estimate(job).ttft->mean_seconds;
  job.workload.prefill_chunk_tokens = 64;
  const ServingEstimate chunked = Estimate(job);
  EXPECT_GT(chunked.ttft->mean_seconds, 1.2 * whole);
  EXPECT_GE(chunked.ttft->mean_seconds, 0.99 * chunked.prefill.time.expected_seconds);
}

// Outputs of one token are prompts alone.
TEST(ServingLoadTest, OutputsOfOneTokenSustainWhatPromptsDo) {
  const ServedFixture served = Small();
  ServingJob job = SmallJob(served, 1, TensorOnly(1));
  job.workload.output = TokenLengths::Constant(1);
  job.workload.load = ServingLoadKind::kRate;
  job.workload.requests_per_second = 0.1;
  const ServingEstimate estimate = Estimate(job);
  EXPECT_LE(estimate.throughput.saturation_requests_per_second, 1.001 / estimate.prefill.time.expected_seconds);
}

}  // namespace
}  // namespace sliceplan::planner
