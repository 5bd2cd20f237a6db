// The mean field against the replay.
#include "server/planner/serving/saturation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "server/planner/serving/replay.h"
#include "tests/planner/serving_fixture.h"

namespace sliceplan::planner {
namespace {

struct SystemCase {
  const char* name;
  BatchPolicy policy;
  bool has_prefill_replicas;
  int64_t kv_tokens;
  int64_t budget;
  double prompt;
  double output;
  ServingLimit limit;
  double saturation_tolerance;
  double mean_tolerance;  // of batch and TPOT below saturation
};

constexpr int64_t kMuch = 1 << 30;
const SystemCase kSystems[] = {
    {"static", BatchPolicy::kStatic, false, kMuch, 2048, 1000, 200, ServingLimit::kBatchSize, 0.03, 0.1},
    {"static_little_cache", BatchPolicy::kStatic, false, 60000, 2048, 1000, 200, ServingLimit::kKvCache, 0.05, 0.1},
    {"whole", BatchPolicy::kWholePrefill, false, kMuch, 2048, 1000, 200, ServingLimit::kBatchSize, 0.03, 0.1},
    {"whole_little_cache", BatchPolicy::kWholePrefill, false, 40000, 2048, 1000, 200, ServingLimit::kKvCache, 0.05,
     0.1},
    {"whole_short_outputs", BatchPolicy::kWholePrefill, false, kMuch, 4096, 1000, 20, ServingLimit::kBatchSize, 0.06,
     0.25},
    {"chunked", BatchPolicy::kChunkedPrefill, false, kMuch, 2048, 1000, 200, ServingLimit::kBatchSize, 0.03, 0.1},
    {"chunked_little_cache", BatchPolicy::kChunkedPrefill, false, 40000, 2048, 1000, 200, ServingLimit::kKvCache, 0.06,
     0.1},
    {"chunked_small_budget", BatchPolicy::kChunkedPrefill, false, kMuch, 256, 1000, 200, ServingLimit::kPrefill, 0.05,
     0.1},
    {"prefill_apart", BatchPolicy::kChunkedPrefill, true, kMuch, 2048, 1000, 200, ServingLimit::kPrefill, 0.04, 0.1},
    {"decode_bound", BatchPolicy::kChunkedPrefill, true, kMuch, 2048, 300, 400, ServingLimit::kBatchSize, 0.04, 0.1},
};

ServingSystem SystemOf(const SystemCase& test, const StepTimer& timer) {
  ServingSystem system = OneReplica(timer, test.policy);
  system.main.limits.max_batch_size = 64;
  system.main.limits.kv_capacity_tokens = test.kv_tokens;
  system.main.limits.step_token_budget = test.budget;
  if (test.has_prefill_replicas) {
    system.prefill = system.main;
    system.transfer_seconds_per_prompt = 0.01;
  }
  return system;
}

TEST(SaturationTest, IsWhereTheReplayFillsUp) {
  const LinearTimer timer = PlausibleTimer();
  for (const SystemCase& test : kSystems) {
    SCOPED_TRACE(test.name);
    const ServingSystem system = SystemOf(test, timer);
    const RequestMix mix = VariedMix(test.prompt, test.output);
    const Saturation saturation = SaturationOf(system, mix);
    EXPECT_EQ(saturation.limit, test.limit);
    ReplayOptions options;
    options.request_count = 4000;
    Load load;
    load.requests_per_second = 1e6;
    const ReplayResult flooded = Replay(system, mix, load, options);
    EXPECT_NEAR(saturation.requests_per_second / flooded.requests_per_second, 1, test.saturation_tolerance);
    EXPECT_TRUE(flooded.is_unstable);
    load.requests_per_second = 0.85 * saturation.requests_per_second;
    EXPECT_FALSE(Replay(system, mix, load, options).is_unstable);
    load.requests_per_second = 1.3 * saturation.requests_per_second;
    EXPECT_TRUE(Replay(system, mix, load, options).is_unstable);
    const MeanField above = OpenLoopMeanField(system, mix, load.requests_per_second, 1);
    EXPECT_FALSE(above.is_stable);
    EXPECT_EQ(above.ttft_seconds, std::numeric_limits<double>::infinity());
  }
}

TEST(SaturationTest, BelowItTheMeanFieldIsTheReplaysMean) {
  const LinearTimer timer = PlausibleTimer();
  for (const SystemCase& test : kSystems) {
    if (test.policy == BatchPolicy::kStatic) continue;
    const ServingSystem system = SystemOf(test, timer);
    const RequestMix mix = VariedMix(test.prompt, test.output);
    const double saturated = SaturationOf(system, mix).requests_per_second;
    for (const double share : {0.1, 0.4, 0.7}) {
      SCOPED_TRACE(testing::Message() << test.name << " at " << share);
      Load load;
      load.requests_per_second = share * saturated;
      ReplayOptions options;
      options.request_count = 6000;
      const ReplayResult replay = Replay(system, mix, load, options);
      const MeanField field = OpenLoopMeanField(system, mix, load.requests_per_second, 1);
      EXPECT_TRUE(field.is_stable);
      EXPECT_NEAR(field.batch_size / replay.mean_batch_size, 1, test.mean_tolerance);
      EXPECT_NEAR(field.tpot_seconds / replay.tpot.mean_seconds, 1, test.mean_tolerance);
      EXPECT_LT(field.ttft_seconds, 2.5 * replay.ttft.mean_seconds);
      EXPECT_GT(field.ttft_seconds, 0.4 * replay.ttft.mean_seconds);
    }
  }
}

TEST(SaturationTest, ClosedLoops) {
  const LinearTimer timer = PlausibleTimer();
  for (const SystemCase& test : kSystems) {
    if (test.policy == BatchPolicy::kStatic || test.has_prefill_replicas) continue;
    const ServingSystem system = SystemOf(test, timer);
    const RequestMix mix = VariedMix(test.prompt, test.output);
    for (const int64_t users : {1, 8, 200}) {
      SCOPED_TRACE(testing::Message() << test.name << " with " << users);
      Load load;
      load.kind = LoadKind::kClosedLoop;
      load.users = users;
      ReplayOptions options;
      options.request_count = 4000;
      const ReplayResult replay = Replay(system, mix, load, options);
      const MeanField field = ClosedLoopMeanField(system, mix, users);
      EXPECT_NEAR(field.requests_per_second / replay.requests_per_second, 1, 0.08);
      EXPECT_NEAR(field.end_to_end_seconds / replay.end_to_end.mean_seconds, 1, 0.1);
      EXPECT_NEAR(field.tpot_seconds / replay.tpot.mean_seconds, 1, 0.15);
      EXPECT_LE(field.batch_size, 64);
    }
  }
}

// One user: the isolated latency, whatever the policy.
TEST(SaturationTest, OneUserIsAlone) {
  const LinearTimer timer = PlausibleTimer();
  for (const BatchPolicy policy : kPolicies) {
    const MeanField field = ClosedLoopMeanField(OneReplica(timer, policy), ConstantMix(1000, 201), 1);
    const double prefill = timer.step + timer.per_prompt_token * 1000;
    const double step = timer.step + timer.per_decode + timer.per_decode_context * (1000 + 100 + 1);
    EXPECT_NEAR(field.ttft_seconds, prefill, 1e-6);
    EXPECT_NEAR(field.tpot_seconds, step, 1e-6);
    EXPECT_NEAR(field.requests_per_second, 1 / (prefill + 200 * step), 1e-6);
    EXPECT_NEAR(field.batch_size, 1, 1e-9);
  }
}

TEST(SaturationTest, ReplicasAddUp) {
  const LinearTimer timer = PlausibleTimer();
  ServingSystem system = OneReplica(timer, BatchPolicy::kChunkedPrefill);
  const RequestMix mix = VariedMix(1000, 200);
  const double one = SaturationOf(system, mix).requests_per_second;
  system.main.replica_count = 7;
  EXPECT_NEAR(SaturationOf(system, mix).requests_per_second / one, 7, 1e-9);
}

TEST(SaturationTest, GrowsWithEveryResource) {
  const LinearTimer timer = PlausibleTimer();
  for (const BatchPolicy policy : kPolicies) {
    double before = 0;
    for (const int64_t batch : {1, 2, 4, 16, 64, 256}) {
      ServingSystem system = OneReplica(timer, policy);
      system.main.limits.max_batch_size = batch;
      const double rate = SaturationOf(system, VariedMix(1000, 200)).requests_per_second;
      EXPECT_GE(rate, before) << batch;
      before = rate;
    }
    before = 0;
    for (const int64_t tokens : {2000, 4000, 16000, 64000, 256000}) {
      ServingSystem system = OneReplica(timer, policy);
      system.main.limits.kv_capacity_tokens = tokens;
      const double rate = SaturationOf(system, VariedMix(1000, 200)).requests_per_second;
      EXPECT_GE(rate, before) << tokens;
      before = rate;
    }
  }
}

TEST(SaturationTest, StaysFiniteAtExtremes) {
  const LinearTimer timer = PlausibleTimer();
  for (const BatchPolicy policy : kPolicies) {
    for (const double prompt : {1.0, 1e9}) {
      for (const double output : {1.0, 1e9}) {
        for (const int64_t capacity : {int64_t{1}, int64_t{1} << 53}) {
          for (const bool has_prefill : {false, true}) {
            SCOPED_TRACE(testing::Message() << prompt << " " << output << " " << capacity << " " << has_prefill);
            ServingSystem system = OneReplica(timer, policy);
            system.main.limits.kv_capacity_tokens = capacity;
            system.main.limits.kv_block_tokens = 1;
            system.main.limits.max_batch_size = 1 << 20;
            if (has_prefill) system.prefill = system.main;
            RequestMix mix = ConstantMix(prompt, output);
            mix.prefix_cache_hit_ratio = 1;
            const Saturation saturation = SaturationOf(system, mix);
            EXPECT_TRUE(std::isfinite(saturation.requests_per_second));
            EXPECT_GE(saturation.requests_per_second, 0);
            EXPECT_EQ(saturation.requests_per_second == 0, capacity == 1 && (prompt > 1 || output > 1));
            if (saturation.requests_per_second == 0) continue;
            for (const double share : {0.0, 1e-9, 0.5, 0.999, 1.0, 1e9}) {
              const MeanField open = OpenLoopMeanField(system, mix, share * saturation.requests_per_second, 1000);
              EXPECT_EQ(open.is_stable, share < 1);
              EXPECT_TRUE(std::isfinite(open.tpot_seconds));
              EXPECT_FALSE(std::isnan(open.ttft_seconds));
            }
            for (const int64_t users : {int64_t{1}, int64_t{1} << 20}) {
              const MeanField closed = ClosedLoopMeanField(system, mix, users);
              EXPECT_TRUE(std::isfinite(closed.ttft_seconds));
              EXPECT_GT(closed.requests_per_second, 0);
              EXPECT_GE(closed.queueing_seconds, 0);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace sliceplan::planner
