// Loads on replicas: what several data ranks, many replicas and little memory do to rates, targets and fixes.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

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

// Four data ranks are four replicas of one chip: they read prompts and sustain rates side by side.
TEST(ServingLoadTest, DataRanksWorkSideBySide) {
  const ServedFixture served = Small();
  ServingJob one = SmallJob(served, 1, TensorOnly(1));
  ServingJob four = SmallJob(served, 4, DataOnly(4));
  four.workload.batch_size = 4;
  EXPECT_NEAR(Estimate(four).ttft->mean_seconds, Estimate(one).ttft->mean_seconds, 1e-9);
  one.workload.load = ServingLoadKind::kRate;
  one.workload.requests_per_second = 0.1;
  four.workload.load = ServingLoadKind::kRate;
  four.workload.requests_per_second = 0.1;
  const double alone = Estimate(one).throughput.saturation_requests_per_second;
  EXPECT_NEAR(Estimate(four).throughput.saturation_requests_per_second, 4 * alone, 0.1 * 4 * alone);
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
