// What holds for every replay, over random systems and loads.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/planner/serving/random.h"
#include "server/planner/serving/replay.h"
#include "tests/planner/serving_fixture.h"

namespace sliceplan::planner {
namespace {

struct Instance {
  std::string name;
  ServingSystem system;
  RequestMix mix;
  Load load;
};

// Systems of all kinds, loaded between a tenth of and about twice what they can carry.
std::vector<Instance> Instances(const StepTimer& timer, int count) {
  std::vector<Instance> instances;
  for (int i = 0; i < count; ++i) {
    Random random(99, static_cast<uint64_t>(i));
    const auto pick = [&random](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random.Uniform() * static_cast<double>(high - low + 1));
    };
    Instance instance;
    instance.system = OneReplica(timer, kPolicies[i % 3]);
    EngineLimits& limits = instance.system.main.limits;
    limits.max_batch_size = pick(1, 100);
    limits.step_token_budget = pick(1, 4) * pick(8, 600);
    limits.kv_block_tokens = pick(1, 64);
    if (i % 4 != 0) limits.kv_capacity_tokens = pick(4000, 40000);
    instance.system.router = i % 2 == 0 ? Router::kLeastLoaded : Router::kRoundRobin;
    instance.system.main.replica_count = pick(1, 4);
    if (i % 5 == 0) {
      instance.system.prefill = instance.system.main;
      instance.system.prefill->replica_count = pick(1, 3);
      instance.system.transfer_seconds_per_prompt = 0.01 * random.Uniform();
      instance.system.transfer_seconds_per_token = 1e-5 * random.Uniform();
    }
    instance.mix = i % 3 == 0 ? ConstantMix(300, 40) : VariedMix(300, 60);
    if (i % 6 == 1) instance.mix.prefix_cache_hit_ratio = random.Uniform();
    if (i % 7 == 2) {
      instance.mix.draft_tokens = pick(1, 5);
      instance.mix.acceptance_ratio = random.Uniform();
    }
    instance.load.requests_per_second = 0.5 + 20 * random.Uniform();
    instance.load.arrival_burstiness = i % 4 == 1 ? 3 : i % 4 == 2 ? 0 : 1;
    if (i % 3 == 1) {
      instance.load.kind = LoadKind::kClosedLoop;
      instance.load.users = pick(1, 200);
    } else if (i % 9 == 3) {
      instance.load.kind = LoadKind::kResidentBatch;
      instance.load.users = pick(1, 100);
    }
    instance.name = absl::StrCat("instance ", i);
    instances.push_back(instance);
  }
  return instances;
}

void ExpectOrdered(const LatencySummary& summary) {
  EXPECT_TRUE(std::isfinite(summary.mean_seconds));
  EXPECT_GE(summary.mean_seconds, 0);
  EXPECT_LE(summary.p50_seconds, summary.p95_seconds);
  EXPECT_LE(summary.p95_seconds, summary.p99_seconds);
  EXPECT_TRUE(std::isfinite(summary.p99_seconds));
}

void ExpectSound(const Instance& instance, const ReplayResult& result) {
  for (const LatencySummary& summary :
       {result.ttft, result.tpot, result.end_to_end, result.normalized_time_per_output_token, result.inter_token}) {
    ExpectOrdered(summary);
  }
  const EngineLimits& limits = instance.system.main.limits;
  EXPECT_LE(result.max_batch_size, limits.max_batch_size);
  EXPECT_LE(result.peak_kv_blocks, limits.kv_capacity_tokens / limits.kv_block_tokens);
  if (limits.policy == BatchPolicy::kChunkedPrefill) {
    EXPECT_LE(result.largest_prompt_step_tokens, std::max(limits.step_token_budget, 1 + instance.mix.draft_tokens));
  }
  EXPECT_GE(result.queueing_share_of_ttft, 0);
  EXPECT_LE(result.queueing_share_of_ttft, 1);
  EXPECT_LE(result.busy_ratio, 1);
  EXPECT_LE(result.goodput_requests_per_second, result.requests_per_second);
  EXPECT_TRUE(std::isfinite(result.requests_per_second));
}

TEST(ReplayLawsTest, EverybodyIsServedAndEveryTokenCounted) {
  const LinearTimer timer = PlausibleTimer();
  for (const Instance& instance : Instances(timer, 120)) {
    SCOPED_TRACE(instance.name);
    ReplayOptions options;
    options.request_count = 600;
    options.include_startup = true;
    const ReplayResult result = Replay(instance.system, instance.mix, instance.load, options);
    ExpectSound(instance, result);
    EXPECT_TRUE(result.is_complete);
    EXPECT_EQ(result.measured_requests + result.unservable_requests, 600);
    if (instance.load.kind == LoadKind::kResidentBatch) continue;
    EXPECT_EQ(result.finished_requests, result.measured_requests);
    // Little: the time-average of those in the system is what they spent there.
    const double finished = static_cast<double>(result.finished_requests);
    const double spent = result.end_to_end.mean_seconds * finished;
    EXPECT_NEAR(result.mean_requests_in_system * result.simulated_seconds / spent, 1, 1e-9);
    // The gaps between tokens add up to the time from the first to the last.
    const double gaps = static_cast<double>(result.written_tokens) - finished;
    const double decoding = (result.end_to_end.mean_seconds - result.ttft.mean_seconds) * finished;
    if (instance.mix.draft_tokens == 0) {
      EXPECT_NEAR(result.inter_token.mean_seconds * gaps / decoding, 1, 1e-9);
    }
    if (result.preemptions == 0 && instance.mix.prefix_cache_hit_ratio == 0 && result.unservable_requests == 0) {
      EXPECT_NEAR(result.input_tokens_per_second / result.requests_per_second,
                  static_cast<double>(result.computed_prompt_tokens) / finished, 1e-6);
    }
  }
}

TEST(ReplayLawsTest, MeasuredPartIsSoundToo) {
  const LinearTimer timer = PlausibleTimer();
  for (const Instance& instance : Instances(timer, 60)) {
    SCOPED_TRACE(instance.name);
    ReplayOptions options;
    options.request_count = 500;
    options.limits = {1.0, 0.05, 10.0};
    const ReplayResult result = Replay(instance.system, instance.mix, instance.load, options);
    ExpectSound(instance, result);
    EXPECT_EQ(result.measured_requests + result.unservable_requests >= 500, true);
  }
}

TEST(ReplayLawsTest, SameSeedSameResult) {
  const LinearTimer timer = PlausibleTimer();
  for (const Instance& instance : Instances(timer, 20)) {
    SCOPED_TRACE(instance.name);
    ReplayOptions options;
    options.request_count = 300;
    const ReplayResult first = Replay(instance.system, instance.mix, instance.load, options);
    const ReplayResult second = Replay(instance.system, instance.mix, instance.load, options);
    EXPECT_EQ(first.ttft.p99_seconds, second.ttft.p99_seconds);
    EXPECT_EQ(first.tpot.mean_seconds, second.tpot.mean_seconds);
    EXPECT_EQ(first.inter_token.p95_seconds, second.inter_token.p95_seconds);
    EXPECT_EQ(first.events, second.events);
    EXPECT_EQ(first.simulated_seconds, second.simulated_seconds);
    options.seed = 2;
    const ReplayResult other = Replay(instance.system, VariedMix(300, 60), instance.load, options);
    EXPECT_NE(first.simulated_seconds, other.simulated_seconds);
  }
}

// The same requests at a higher rate: each arrives earlier, and the system never works faster for it.
TEST(ReplayLawsTest, MoreRateIsNeverLessLatency) {
  const LinearTimer timer = PlausibleTimer();
  for (Instance& instance : Instances(timer, 90)) {
    SCOPED_TRACE(instance.name);
    // A static batch that just missed a request can make it wait longer at a lower rate.
    if (instance.system.main.limits.policy == BatchPolicy::kStatic) continue;
    instance.load.kind = LoadKind::kOpenLoop;
    ReplayOptions options;
    options.request_count = 1500;
    options.include_startup = true;
    double ttft = 0;
    double end_to_end = 0;
    for (const double rate : {0.25, 1.0, 4.0, 16.0, 1e9}) {
      instance.load.requests_per_second = rate;
      const ReplayResult result = Replay(instance.system, instance.mix, instance.load, options);
      EXPECT_GE(result.ttft.mean_seconds, 0.97 * ttft) << rate;
      EXPECT_GE(result.end_to_end.mean_seconds, 0.99 * end_to_end) << rate;
      ttft = result.ttft.mean_seconds;
      end_to_end = result.end_to_end.mean_seconds;
    }
  }
}

TEST(ReplayLawsTest, AFasterEngineIsNeverSlower) {
  const LinearTimer timer = PlausibleTimer();
  LinearTimer faster = timer;
  faster.step /= 2;
  faster.per_prompt_token /= 2;
  for (Instance& instance : Instances(timer, 40)) {
    SCOPED_TRACE(instance.name);
    ReplayOptions options;
    options.request_count = 1000;
    options.include_startup = true;
    const double slow = Replay(instance.system, instance.mix, instance.load, options).end_to_end.mean_seconds;
    instance.system.main.timer = &faster;
    if (instance.system.prefill) instance.system.prefill->timer = &faster;
    EXPECT_LE(Replay(instance.system, instance.mix, instance.load, options).end_to_end.mean_seconds, 1.001 * slow);
  }
}

TEST(ReplayLawsTest, LittleCachePreemptsAndStillServesAll) {
  const LinearTimer timer = PlausibleTimer();
  for (const BatchPolicy policy : {BatchPolicy::kWholePrefill, BatchPolicy::kChunkedPrefill}) {
    for (const int64_t draft_tokens : {0, 3}) {
      SCOPED_TRACE(draft_tokens);
      ServingSystem system = OneReplica(timer, policy);
      // One request takes 80 of 100 blocks at its end, 4 at its start: everybody gets in and grows.
      system.main.limits.kv_capacity_tokens = 1600;
      system.main.limits.admission_reserve_ratio = 0;
      RequestMix mix = ConstantMix(50, 1200);
      mix.draft_tokens = draft_tokens;
      mix.acceptance_ratio = 0.7;
      Load load;
      load.requests_per_second = 1e3;
      ReplayOptions options;
      options.request_count = 100;
      options.include_startup = true;
      const ReplayResult result = Replay(system, mix, load, options);
      EXPECT_EQ(result.measured_requests, 100);
      EXPECT_GT(result.preemptions, 100);
      EXPECT_EQ(result.written_tokens, 100 * 1200);
      EXPECT_LE(result.peak_kv_blocks, 100);
      EXPECT_GT(result.computed_prompt_tokens, 100 * 50);
    }
  }
}

TEST(ReplayLawsTest, WhatNeverFitsIsReported) {
  const LinearTimer timer = PlausibleTimer();
  const TokenBin bins[] = {{100, 3}, {5000, 1}};
  for (const BatchPolicy policy : kPolicies) {
    for (const LoadKind kind : {LoadKind::kOpenLoop, LoadKind::kClosedLoop, LoadKind::kResidentBatch}) {
      ServingSystem system = OneReplica(timer, policy);
      system.main.limits.kv_capacity_tokens = 4096;
      RequestMix mix = ConstantMix(100, 20);
      mix.prompt = TokenLengths::Histogram(bins);
      Load load;
      load.kind = kind;
      load.users = 10;
      ReplayOptions options;
      options.request_count = 400;
      const ReplayResult result = Replay(system, mix, load, options);
      EXPECT_GT(result.unservable_requests, 50);
      EXPECT_GT(result.measured_requests, 200);
      // Nobody fits.
      mix.prompt = TokenLengths::Constant(5000);
      const ReplayResult none = Replay(system, mix, load, options);
      EXPECT_EQ(none.finished_requests, 0);
      EXPECT_GE(none.unservable_requests, 400);
      EXPECT_EQ(none.requests_per_second, 0);
    }
  }
}

struct ExtremeCase {
  const char* name;
  double prompt;
  double output;
  double rate;
  int64_t max_batch_size;
  int64_t budget;
  int64_t kv_tokens;
  int64_t block;
  double cached;
};

TEST(ReplayLawsTest, ExtremesStayFinite) {
  constexpr int64_t kMuch = int64_t{1} << 53;
  const ExtremeCase cases[] = {
      {"one_token", 1, 1, 1, 1, 1, 1, 1, 0},
      {"flood", 1000, 100, 1e9, 256, 2048, kMuch, 16, 0},
      {"trickle", 1000, 100, 1e-9, 256, 2048, kMuch, 16, 0},
      {"all_cached", 1000, 100, 5, 256, 2048, kMuch, 16, 1},
      {"huge_batch", 10, 10, 1e9, 1 << 20, 1 << 30, kMuch, 16, 0},
      {"tiny_cache", 3, 2, 50, 256, 2048, 4, 1, 0},
      {"one_block", 1000, 24, 5, 256, 2048, 1024, 1024, 0},
      {"large_blocks", 1000, 100, 5, 256, 2048, 1 << 20, 65536, 0},
      {"long_output", 10, 1 << 30, 1e-6, 256, 2048, kMuch, 16, 0},
      {"long_prompt", 1 << 24, 10, 1e-6, 256, 64, kMuch, 16, 0},
      {"smallest_budget", 50, 10, 1, 256, 1, kMuch, 16, 0},
  };
  const LinearTimer timer = PlausibleTimer();
  for (const ExtremeCase& test : cases) {
    for (const BatchPolicy policy : kPolicies) {
      for (const double burstiness : {0.0, 1.0, 1000.0}) {
        SCOPED_TRACE(test.name);
        Instance instance;
        instance.system = OneReplica(timer, policy);
        EngineLimits& limits = instance.system.main.limits;
        limits.max_batch_size = test.max_batch_size;
        limits.step_token_budget = test.budget;
        limits.kv_capacity_tokens = test.kv_tokens;
        limits.kv_block_tokens = test.block;
        instance.mix = ConstantMix(test.prompt, test.output);
        instance.mix.prefix_cache_hit_ratio = test.cached;
        instance.load.requests_per_second = test.rate;
        instance.load.arrival_burstiness = burstiness;
        ReplayOptions options;
        options.request_count = 100;
        const ReplayResult result = Replay(instance.system, instance.mix, instance.load, options);
        ExpectSound(instance, result);
        EXPECT_EQ(result.measured_requests, 100);
      }
    }
  }
}

TEST(ReplayLawsTest, RareRequestsKeepTheirPrecision) {
  const LinearTimer timer = PlausibleTimer();
  Load load;
  load.requests_per_second = 1e-9;
  ReplayOptions options;
  options.request_count = 100;
  const ReplayResult result =
      Replay(OneReplica(timer, BatchPolicy::kWholePrefill), ConstantMix(1000, 10), load, options);
  EXPECT_DOUBLE_EQ(result.ttft.p99_seconds, timer.step + timer.per_prompt_token * 1000);
}

TEST(ReplayLawsTest, StopsWhenTheCallerHasGone) {
  const LinearTimer timer = PlausibleTimer();
  const ServingSystem system = OneReplica(timer, BatchPolicy::kChunkedPrefill);
  int asked = 0;
  const ReplayResult result = Replay(system, VariedMix(1000, 200), Load(), {}, [&asked] { return ++asked > 3; });
  EXPECT_FALSE(result.is_complete);
  EXPECT_EQ(asked, 4);
  EXPECT_LT(result.finished_requests, 10'000);
  ReplayOptions options;
  options.max_events = 10'000;
  const ReplayResult cut = Replay(system, VariedMix(1000, 200), Load(), options);
  EXPECT_FALSE(cut.is_complete);
  EXPECT_LT(cut.events, 40'000);
}

TEST(ReplayLawsTest, GoodputCountsThoseWithinAllLimits) {
  const LinearTimer timer = PlausibleTimer();
  const ServingSystem system = OneReplica(timer, BatchPolicy::kWholePrefill);
  Load load;
  load.requests_per_second = 5;
  ReplayOptions options;
  options.request_count = 2000;
  const ReplayResult all = Replay(system, VariedMix(1000, 200), load, options);
  EXPECT_EQ(all.goodput_requests_per_second, all.requests_per_second);
  options.limits.ttft_seconds = all.ttft.p50_seconds;
  const ReplayResult half = Replay(system, VariedMix(1000, 200), load, options);
  EXPECT_NEAR(half.goodput_requests_per_second / half.requests_per_second, 0.5, 1e-3);
  options.limits.end_to_end_seconds = 0;
  EXPECT_EQ(Replay(system, VariedMix(1000, 200), load, options).goodput_requests_per_second, 0);
}

}  // namespace
}  // namespace sliceplan::planner
