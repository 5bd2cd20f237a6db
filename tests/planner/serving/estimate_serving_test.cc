// Serving estimates against chapters 7 and 8 of "How To Scale Your Model" and against arithmetic written out here.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/planner/serving/serving_fixture.h"

namespace sliceplan::planner {
namespace {

using hardware::DataType;

// Llama 3 70B: matrices of the layers and the output head, and one table more.
constexpr double kLayerWeights = 80.0 * (2 * 8192.0 * 8192 + 2 * 8192.0 * 1024 + 3 * 8192.0 * 28672);
constexpr double kTable = 128256.0 * 8192;
constexpr double kReadWeights = kLayerWeights + kTable;
constexpr double kHbm = 8.2e11;
constexpr double kChips = 16;

struct ParetoCase {
  const char* name;
  double context;
  int32_t batch;
};

class ParetoTest : public testing::TestWithParam<ParetoCase> {};

// Chapter 8: step = B x kv / (n W) + max(2 P B / (n C), P / (n W)); the book rounds P to 70e9, so it is counted here.
TEST_P(ParetoTest, IsTheBooks) {
  const ParetoCase& given = GetParam();
  const ServedFixture served = Served();
  const ServingEstimate estimate = Estimate(BookJob(served, given.context, given.batch));
  const double kv = given.batch * given.context * 163840 / (kChips * kHbm);
  const double weights = kReadWeights / (kChips * kHbm);
  const double compute = 2 * kReadWeights * given.batch / (kChips * 1.97e14);
  EXPECT_NEAR(estimate.decode.kv_seconds, kv, 1e-9);
  EXPECT_NEAR(estimate.decode.weights_seconds, weights, 1e-3 * weights);
  EXPECT_NEAR(estimate.decode.compute_seconds, compute, 1e-3 * compute);
  const double step = estimate.decode.time.roofline_lower_seconds;
  EXPECT_NEAR(step, kv + std::max({weights, compute, estimate.decode.network_seconds}), 1e-3 * step);
  EXPECT_EQ(estimate.decode.time.expected_seconds, step);
  EXPECT_NEAR(estimate.throughput.output_tokens_per_second_per_chip, given.batch / step / kChips, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Chapter8, ParetoTest,
                         testing::Values(ParetoCase{"b1_2k", 2048, 1}, ParetoCase{"b32_2k", 2048, 32},
                                         ParetoCase{"b120_2k", 2048, 120}, ParetoCase{"b1_8k", 8192, 1},
                                         ParetoCase{"b32_8k", 8192, 32}, ParetoCase{"b120_8k", 8192, 120}),
                         [](const auto& info) { return info.param.name; });

// Chapter 8, the largest batch: floor((n x HBM - P) / (kv x S)), with the tables counted.
TEST(EstimateServingTest, LargestBatchIsWhatFitsBesideTheWeights) {
  const ServedFixture served = Served();
  const ServingEstimate estimate = Estimate(BookJob(served, 8191, 1));
  const double norms = 2.0 * (80 * 2 + 1) * 8192;  // copied on every chip
  const double free = kChips * (16e9 - norms) - kLayerWeights - 2 * kTable;
  EXPECT_EQ(estimate.max_batch_size, std::floor(free / (163840.0 * 8192)));
  EXPECT_NEAR(estimate.memory.weights_bytes, (kLayerWeights + 2 * kTable) / kChips + norms, 2);
  EXPECT_EQ(estimate.memory.capacity_bytes, 16'000'000'000);
  EXPECT_NEAR(estimate.max_context_tokens, free / 163840, 1);
}

TEST(EstimateServingTest, CriticalBatchIsTheBooks) {
  const ServedFixture served = Served();
  // Chapter 8: int8 weights and bf16 FLOPs, C x b_w / (2 W) = 120.
  EXPECT_NEAR(*Estimate(BookJob(served, 2048, 1)).critical_batch_size, 1.97e14 / (2 * kHbm), 0.1);
}

// Chapter 7: a batch beyond HBM is named, with what is missing and the largest that fits.
TEST(EstimateServingTest, TooLargeABatchIsAnAnswer) {
  const ServedFixture served = Served();
  const ServingEstimate estimate = Estimate(BookJob(served, 8191, 240));
  EXPECT_EQ(estimate.outcome, ServingOutcome::kOutOfMemory);
  ASSERT_TRUE(estimate.shortfall);
  EXPECT_EQ(estimate.shortfall->limit, "hbm_bytes");
  EXPECT_GT(estimate.shortfall->missing, 0);
  ASSERT_TRUE(estimate.smallest_fix);
  EXPECT_EQ(estimate.smallest_fix->changes[0].value, std::to_string(estimate.max_batch_size));
  // The fix is one.
  ServingJob fixed = BookJob(served, 8191, estimate.max_batch_size);
  EXPECT_EQ(Estimate(fixed).outcome, ServingOutcome::kFeasible);
  ++fixed.workload.batch_size;
  EXPECT_EQ(Estimate(fixed).outcome, ServingOutcome::kOutOfMemory);
}

TEST(EstimateServingTest, MoneyAddsUpToTheBill) {
  const ServedFixture served = Served();
  for (const bool fixed : {false, true}) {
    for (const double hit : {0.0, 0.5}) {
      ServingJob job = BookJob(served, 2048, 32);
      job.workload.output = TokenLengths::Constant(256);
      job.workload.prefix_cache_hit_ratio = hit;
      job.cost_split.fixed_ratio = fixed;
      job.cost_split.cached_to_input_price_ratio = fixed ? 0.1 : 0;
      const ServingEstimate estimate = Estimate(job);
      ASSERT_TRUE(estimate.cost);
      const ServingThroughput& rate = estimate.throughput;
      const double usd = 3600 / 1e6 *
                         (rate.input_tokens_per_second * (1 - hit) * estimate.cost->usd_per_million_input_tokens +
                          rate.input_tokens_per_second * hit * estimate.cost->usd_per_million_cached_input_tokens +
                          rate.output_tokens_per_second * estimate.cost->usd_per_million_output_tokens);
      EXPECT_NEAR(usd, 16 * 1.2, 1e-6);
      if (fixed) {
        EXPECT_NEAR(estimate.cost->usd_per_million_output_tokens, 4 * estimate.cost->usd_per_million_input_tokens,
                    1e-9);
      }
    }
  }
}

TEST(EstimateServingTest, CacheBeyondTheKvHeadsIsCopiedOrSplit) {
  const ServedFixture served = Served();
  ServingJob job = BookJob(served, 8192, 16);
  const ServingEstimate split = Estimate(job);
  job.workload.kv_cache_split = KvCacheSplit::kCopies;
  const ServingEstimate copies = Estimate(job);
  // 8 KV heads over 16 chips: each is on two.
  EXPECT_NEAR(copies.decode.kv_seconds, 2 * split.decode.kv_seconds, 1e-9);
  EXPECT_NEAR(static_cast<double>(copies.memory.kv_cache_bytes), 2.0 * static_cast<double>(split.memory.kv_cache_bytes),
              2);
}

// Layers with a window read and keep the window; an engine that pages all layers alike keeps everything.
TEST(EstimateServingTest, WindowsLimitTheCache) {
  DenseShape shape;
  shape.window = 1024;
  const ServedFixture served = Served(shape);
  ServingJob job = BookJob(served, 8192, 16);
  const ServingEstimate freed = Estimate(job);
  EXPECT_NEAR(freed.decode.kv_seconds, 16 * 1024 * 163840.0 / (kChips * kHbm), 1e-9);
  EXPECT_NEAR(static_cast<double>(freed.memory.kv_cache_bytes), 16 * 1024 * 163840.0 / kChips, 1);
  job.workload.windowed_kv_policy = WindowedKvPolicy::kKeep;
  const ServingEstimate kept = Estimate(job);
  EXPECT_EQ(kept.decode.kv_seconds, freed.decode.kv_seconds);
  EXPECT_NEAR(static_cast<double>(kept.memory.kv_cache_bytes), 16 * 8193 * 163840.0 / kChips, 1);
}

// A batch of b tokens with k of E experts each meets E (1 - (1 - k / E)^b) of them.
TEST(EstimateServingTest, ExpertsThatNobodyVisitsAreNotRead) {
  DenseShape shape;
  shape.layers = 4;
  shape.ffn_dim = 2048;
  shape.experts = 64;
  shape.experts_per_token = 4;
  const ServedFixture served = Served(shape);
  const double one_expert = 3.0 * 8192 * 2048;
  const auto weights = [&](int32_t batch) {
    return Estimate(BookJob(served, 1024, batch)).decode.weights_seconds * kHbm * kChips;
  };
  const auto met = [](double b) { return 64 * (1 - std::pow(1 - 4.0 / 64, b)); };
  EXPECT_NEAR(weights(8) - weights(1), 4 * one_expert * (met(8) - met(1)), 1e-3 * one_expert);
  EXPECT_NEAR(weights(1) - weights(1), 0, 1);
}

TEST(EstimateServingTest, TargetsBelowTheFloorSayTheFloor) {
  const ServedFixture served = Served();
  ServingJob job = BookJob(served, 2048, 8);
  job.slo.tpot.p95_seconds = 1e-3;
  const ServingEstimate estimate = Estimate(job);
  EXPECT_EQ(estimate.outcome, ServingOutcome::kMissesSlo);
  ASSERT_TRUE(estimate.shortfall && estimate.shortfall->floor);
  EXPECT_EQ(estimate.shortfall->limit, "slo.tpot.p95_seconds");
  EXPECT_GE(*estimate.shortfall->floor, kReadWeights / (kChips * kHbm));
  EXPECT_EQ(estimate.smallest_fix->code, "RELAX_TARGET");
}

TEST(EstimateServingTest, LargestBatchMeetsTheTarget) {
  const ServedFixture served = Served();
  ServingJob job = BookJob(served, 2048, 1);
  job.workload.load = ServingLoadKind::kLargestBatch;
  job.slo.tpot.mean_seconds = 0.007;
  const ServingEstimate estimate = Estimate(job);
  EXPECT_EQ(estimate.outcome, ServingOutcome::kFeasible);
  EXPECT_LE(estimate.tpot->mean_seconds, 0.007);
  job.workload.load = ServingLoadKind::kBatch;
  job.workload.batch_size = estimate.batch_size + 1;
  EXPECT_GT(Estimate(job).tpot->mean_seconds, 0.007);
}

TEST(EstimateServingTest, BeyondSaturationTheReplyNamesTheRate) {
  const ServedFixture served = Served();
  ServingJob job = BookJob(served, 2048, 1);
  job.workload.output = TokenLengths::Constant(128);
  job.workload.load = ServingLoadKind::kRate;
  job.workload.requests_per_second = 1e6;
  const ServingEstimate over = Estimate(job);
  EXPECT_EQ(over.outcome, ServingOutcome::kUnstable);
  EXPECT_FALSE(over.ttft);
  const double sustained = over.throughput.saturation_requests_per_second;
  EXPECT_EQ(over.shortfall->available, sustained);
  job.workload.requests_per_second = 0.5 * sustained;
  const ServingEstimate half = Estimate(job);
  EXPECT_EQ(half.outcome, ServingOutcome::kFeasible);
  ASSERT_TRUE(half.ttft);
  EXPECT_LE(half.ttft->p50_seconds, half.ttft->p95_seconds);
  EXPECT_LE(half.ttft->p95_seconds, half.ttft->p99_seconds);
  EXPECT_NEAR(half.throughput.requests_per_second, 0.5 * sustained, 0.05 * sustained);
  EXPECT_GE(half.tpot->mean_seconds,
            half.shortfall ? 0 : 0.999 * Estimate(BookJob(served, 2048, 1)).tpot->mean_seconds);
}

// Near saturation the first token waits; the reply says for what.
TEST(EstimateServingTest, AMissedFirstTokenSaysHowMuchIsQueueing) {
  const ServedFixture served = Served();
  ServingJob job = BookJob(served, 2048, 1);
  job.workload.output = TokenLengths::Constant(128);
  job.workload.load = ServingLoadKind::kRate;
  job.workload.requests_per_second = 1;
  job.workload.requests_per_second = 0.97 * Estimate(job).throughput.saturation_requests_per_second;
  job.slo.ttft.p95_seconds = 1.01 * Estimate(job).prefill.time.expected_seconds;
  const ServingEstimate estimate = Estimate(job);
  ASSERT_EQ(estimate.outcome, ServingOutcome::kMissesSlo);
  EXPECT_NE(estimate.shortfall->sentence.find("of TTFT is queueing"), std::string::npos)
      << estimate.shortfall->sentence;
}

TEST(EstimateServingTest, ReplicasMeetRateAndTargets) {
  const ServedFixture served = Served();
  ServingJob job = BookJob(served, 2048, 1);
  job.workload.output = TokenLengths::Constant(128);
  job.workload.load = ServingLoadKind::kRate;
  job.workload.requests_per_second = 30;
  job.slo.ttft.p95_seconds = 1;
  const ServingEstimate one = Estimate(job);
  ASSERT_TRUE(one.replica_count);
  job.pools[0].replica_count = *one.replica_count;
  EXPECT_EQ(Estimate(job).outcome, ServingOutcome::kFeasible);
  if (*one.replica_count > 1) {
    job.pools[0].replica_count = *one.replica_count - 1;
    EXPECT_NE(Estimate(job).outcome, ServingOutcome::kFeasible);
  }
}

// Chapter 8: prefill servers per generate server, B x T_prefill / (T_step x output).
TEST(EstimateServingTest, DisaggregationBalancesThePools) {
  const ServedFixture served = Served();
  ServingJob job = BookJob(served, 8192, 1);
  job.pools_given = true;
  job.workload.prompt = TokenLengths::Constant(8192);
  job.workload.output = TokenLengths::Constant(512);
  job.workload.load = ServingLoadKind::kBatch;
  job.workload.batch_size = 32;
  job.pools.push_back(job.pools[0]);
  job.pools[0].role = PoolRole::kPrefill;
  job.pools[1].role = PoolRole::kDecode;
  const ServingEstimate estimate = Estimate(job);
  ASSERT_TRUE(estimate.disaggregation);
  // Cache of 8,192 tokens over 16 chips' data-centre links (book case kv_transfer).
  EXPECT_NEAR(estimate.disaggregation->kv_transfer_seconds, 163840.0 * 8192 / (16 * 3.125e9), 1e-6);
  EXPECT_GT(estimate.disaggregation->prefill_per_decode_ratio, 1);
  EXPECT_EQ(estimate.chip_count, 32);
}

TEST(EstimateServingTest, PartsAddUpToTheTimes) {
  const ServedFixture served = Served();
  for (const int32_t batch : {1, 32, 120}) {
    const ServingEstimate estimate = Estimate(BookJob(served, 2048, batch));
    for (const PassTime* pass : {&estimate.prefill, &estimate.decode}) {
      double seconds = 0;
      for (const PassPart& part : pass->parts) seconds += part.seconds;
      EXPECT_NEAR(seconds, pass->time.expected_seconds, 1e-9 * seconds);
      EXPECT_LE(pass->time.roofline_lower_seconds, pass->time.roofline_upper_seconds);
    }
  }
}

// Nothing gets slower from more bandwidth, faster chips or narrower numbers.
TEST(EstimateServingTest, MoreIsNeverSlower) {
  const ServedFixture served = Served();
  for (const int32_t batch : {1, 16, 100}) {
    const ServingJob base = BookJob(served, 4096, batch);
    const ServingEstimate before = Estimate(base);
    const auto check = [&](const char* what, const ServingJob& job) {
      const ServingEstimate after = Estimate(job);
      EXPECT_LE(after.decode.time.expected_seconds, before.decode.time.expected_seconds * (1 + 1e-12)) << what;
      EXPECT_LE(after.prefill.time.expected_seconds, before.prefill.time.expected_seconds * (1 + 1e-12)) << what;
      EXPECT_GE(after.max_batch_size, before.max_batch_size) << what;
    };
    ServingJob job = base;
    job.pools[0].slice.accelerator.hbm_bytes_per_second = 2 * kHbm;
    check("memory bandwidth", job);
    job = base;
    job.pools[0].slice.accelerator.ici_link_bytes_per_second = 9e10;
    check("links", job);
    job = base;
    job.pools[0].slice.accelerator.bf16_flops_per_second = 4e14;
    check("matrix unit", job);
    job = base;
    job.workload.precision.kv_cache = DataType::kInt4;
    check("cache", job);
    job = base;
    job.workload.precision.weights = DataType::kInt4;
    check("weights", job);
  }
}

TEST(EstimateServingTest, WithoutAPlanTheBestIsFound) {
  const ServedFixture served = Served();
  ServingJob job = BookJob(served, 2048, 32);
  const ServingEstimate given = Estimate(job);
  job.pools[0].parallelism.reset();
  const ServingEstimate found = Estimate(job);
  EXPECT_EQ(found.outcome, ServingOutcome::kFeasible);
  EXPECT_LE(found.tpot->mean_seconds, given.tpot->mean_seconds * (1 + 1e-9));
}

// Prompts that other chips read are neither timed nor billed.
TEST(EstimateServingTest, TheBooksDecodeStandsAlone) {
  const ServedFixture served = Served();
  ServingJob job = BookJob(served, 2048, 32);
  job.workload.output = TokenLengths::Constant(512);
  const ServingEstimate estimate = Estimate(job);
  EXPECT_EQ(estimate.throughput.saturation_requests_per_second, estimate.throughput.requests_per_second);
  // Chapter 8: price x n x step / batch.
  EXPECT_NEAR(estimate.cost->usd_per_million_output_tokens,
              1e6 * 1.2 * kChips / 3600 * estimate.decode.time.expected_seconds / 32, 1e-9);
}

TEST(EstimateServingTest, RolesThatDoNotGoTogetherAreRefused) {
  const ServedFixture served = Served();
  ServingJob job = BookJob(served, 2048, 1);
  job.pools_given = true;
  job.pools[0].role = PoolRole::kPrefill;
  MappingCache mappings;
  EXPECT_EQ(EstimateServing(job, mappings).violations.size(), 1u);
  job.pools.push_back(job.pools[0]);
  job.pools[1].role = PoolRole::kBoth;
  EXPECT_FALSE(EstimateServing(job, mappings).violations.empty());
}

}  // namespace
}  // namespace sliceplan::planner
