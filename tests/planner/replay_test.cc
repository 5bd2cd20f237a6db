#include "server/planner/serving/replay.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "server/planner/serving/queueing.h"
#include "tests/planner/replay_reference.h"
#include "tests/planner/serving_fixture.h"

namespace sliceplan::planner {
namespace {

Load Users(int64_t users) {
  Load load;
  load.kind = LoadKind::kClosedLoop;
  load.users = users;
  return load;
}

Load Rate(double requests_per_second, double burstiness = 1) {
  Load load;
  load.requests_per_second = requests_per_second;
  load.arrival_burstiness = burstiness;
  return load;
}

ReplayOptions Count(int64_t requests, bool include_startup = false) {
  ReplayOptions options;
  options.request_count = requests;
  options.include_startup = include_startup;
  return options;
}

// Sum of decode steps of a request alone: the j-th sees prompt + j keys.
double DecodeSeconds(const LinearTimer& timer, double prompt, double output) {
  const double steps = output - 1;
  return steps * (timer.step + timer.per_decode + timer.per_decode_context * (prompt + (steps + 1) / 2));
}

TEST(ReplayTest, OneUserHasTheIsolatedLatency) {
  const LinearTimer timer = PlausibleTimer();
  for (const BatchPolicy policy : kPolicies) {
    for (const double output : {1.0, 2.0, 300.0, 20000.0}) {
      SCOPED_TRACE(output);
      const double prompt = 1000;
      const ReplayResult result = Replay(OneReplica(timer, policy), ConstantMix(prompt, output), Users(1), Count(50));
      const double prefill = timer.step + timer.per_prompt_token * prompt;
      const double decode = DecodeSeconds(timer, prompt, output);
      EXPECT_NEAR(result.ttft.mean_seconds, prefill, 1e-9);
      EXPECT_NEAR(result.ttft.p99_seconds, prefill, 1e-9);
      EXPECT_NEAR(result.end_to_end.mean_seconds, prefill + decode, 1e-9 * (prefill + decode));
      EXPECT_NEAR(result.tpot.p50_seconds, output > 1 ? decode / (output - 1) : 0, 1e-9);
      EXPECT_NEAR(result.normalized_time_per_output_token.p50_seconds, (prefill + decode) / output, 1e-9);
      EXPECT_NEAR(result.requests_per_second, 1 / (prefill + decode), 1e-6 / (prefill + decode));
      EXPECT_NEAR(result.mean_batch_size, 1, 1e-9);
      EXPECT_NEAR(result.busy_ratio, 1, 1e-9);
      EXPECT_EQ(result.queueing_share_of_ttft, 0);
    }
  }
}

TEST(ReplayTest, LongPromptsAreReadInChunks) {
  const LinearTimer timer = PlausibleTimer();
  const int64_t budget = 2048;
  for (const int64_t prompt : {5000, 4096, 100001}) {
    SCOPED_TRACE(prompt);
    const ReplayResult result = Replay(OneReplica(timer, BatchPolicy::kChunkedPrefill),
                                       ConstantMix(static_cast<double>(prompt), 2), Users(1), Count(20));
    double seconds = 0;
    for (int64_t read = 0; read < prompt; read += budget) {
      const double chunk = static_cast<double>(std::min(budget, prompt - read));
      seconds +=
          timer.step + timer.per_prompt_token * chunk + timer.per_prompt_context * chunk * static_cast<double>(read);
    }
    EXPECT_NEAR(result.ttft.mean_seconds, seconds, 1e-9 * seconds);
    EXPECT_EQ(result.largest_prompt_step_tokens, 2048);
  }
}

TEST(ReplayTest, CachedPrefixIsNotRead) {
  const LinearTimer timer = PlausibleTimer();
  RequestMix mix = ConstantMix(1000, 2);
  mix.prefix_cache_hit_ratio = 0.75;
  const ReplayResult result = Replay(OneReplica(timer, BatchPolicy::kWholePrefill), mix, Users(1), Count(20));
  EXPECT_NEAR(result.ttft.mean_seconds,
              timer.step + timer.per_prompt_token * 250 + timer.per_prompt_context * 250 * 750, 1e-9);
  // Everything cached: one token is computed all the same.
  mix.prefix_cache_hit_ratio = 1;
  EXPECT_NEAR(Replay(OneReplica(timer, BatchPolicy::kWholePrefill), mix, Users(1), Count(20)).ttft.mean_seconds,
              timer.step + timer.per_prompt_token + timer.per_prompt_context * 999, 1e-9);
}

TEST(ReplayTest, TransferBelongsToTtft) {
  const LinearTimer timer = PlausibleTimer();
  ServingSystem system = OneReplica(timer, BatchPolicy::kChunkedPrefill);
  system.prefill = OneReplica(timer, BatchPolicy::kWholePrefill).main;
  system.transfer_seconds_per_prompt = 0.25;
  system.transfer_seconds_per_token = 1e-3;
  const ReplayResult result = Replay(system, ConstantMix(1000, 100), Users(1), Count(20));
  EXPECT_NEAR(result.ttft.mean_seconds, timer.step + timer.per_prompt_token * 1000 + 0.25 + 1, 1e-9);
  EXPECT_NEAR(result.tpot.mean_seconds, DecodeSeconds(timer, 1000, 100) / 99, 1e-9);
}

TEST(ReplayTest, DraftedTokensThatAreAllAcceptedComeInOneStep) {
  const LinearTimer timer;
  RequestMix mix = ConstantMix(100, 1 + 4 * 50);
  mix.draft_tokens = 3;
  mix.acceptance_ratio = 1;
  const ServingSystem system = OneReplica(timer, BatchPolicy::kChunkedPrefill);
  EXPECT_NEAR(Replay(system, mix, Users(1), Count(20)).end_to_end.mean_seconds, 1 + 50, 1e-9);
  mix.acceptance_ratio = 0;
  EXPECT_NEAR(Replay(system, mix, Users(1), Count(20)).end_to_end.mean_seconds, 1 + 200, 1e-9);
  // 1 + 0.6 + 0.36 + 0.216 tokens a step, and what the last step overshoots.
  mix.acceptance_ratio = 0.6;
  for (const double output : {100.0, 2000.0}) {
    mix.output = TokenLengths::Constant(output);
    EXPECT_NEAR(
        Replay(system, mix, Users(1), Count(4000)).end_to_end.mean_seconds / (1 + mix.MeanDecodeSteps(output - 1)), 1,
        5e-3);
    EXPECT_NEAR(mix.MeanDecodeSteps(output - 1), (output - 1) / 2.176, 1);
  }
}

TEST(ReplayTest, RoundRobinGivesEachUserAReplica) {
  const LinearTimer timer = PlausibleTimer();
  for (const Router router : {Router::kRoundRobin, Router::kLeastLoaded}) {
    ServingSystem system = OneReplica(timer, BatchPolicy::kChunkedPrefill);
    system.main.replica_count = 3;
    system.router = router;
    const ReplayResult result = Replay(system, ConstantMix(500, 50), Users(3), Count(3000));
    const double alone = timer.step + timer.per_prompt_token * 500 + DecodeSeconds(timer, 500, 50);
    EXPECT_NEAR(result.end_to_end.p99_seconds, alone, 1e-9);
    EXPECT_NEAR(result.requests_per_second, 3 / alone, 3e-3 / alone);
    EXPECT_NEAR(result.mean_batch_size, 1, 1e-2);
  }
}

struct ReferenceCase {
  const char* name;
  BatchPolicy policy;
  bool is_varied;
  double rate;
  int64_t max_batch_size;
  int64_t budget;
  int64_t kv_tokens;
  double cached;
};

// Runs of steps are exact where time is linear in context: step by step comes to the same.
TEST(ReplayTest, AgreesWithStepByStep) {
  constexpr int64_t kMuch = 1 << 30;
  const ReferenceCase cases[] = {
      {"whole", BatchPolicy::kWholePrefill, true, 5.137, 64, 2048, kMuch, 0},
      {"whole_few_places", BatchPolicy::kWholePrefill, true, 7.137, 12, 2048, kMuch, 0.3},
      {"whole_little_cache", BatchPolicy::kWholePrefill, true, 6.137, 64, 4096, 16000, 0},
      {"whole_same", BatchPolicy::kWholePrefill, false, 6.137, 64, 4096, 6000, 0},
      {"chunked", BatchPolicy::kChunkedPrefill, true, 5.137, 64, 512, kMuch, 0},
      {"chunked_small", BatchPolicy::kChunkedPrefill, true, 3.137, 20, 48, kMuch, 0.5},
      {"chunked_little_cache", BatchPolicy::kChunkedPrefill, true, 6.137, 64, 512, 12000, 0},
      {"chunked_same", BatchPolicy::kChunkedPrefill, false, 6.137, 64, 512, 6000, 0.1},
  };
  const LinearTimer timer = PlausibleTimer();
  for (const ReferenceCase& test : cases) {
    SCOPED_TRACE(test.name);
    ServingSystem system = OneReplica(timer, test.policy);
    system.main.limits.max_batch_size = test.max_batch_size;
    system.main.limits.step_token_budget = test.budget;
    system.main.limits.kv_capacity_tokens = test.kv_tokens;
    RequestMix mix = test.is_varied ? VariedMix(700, 150) : ConstantMix(700, 150);
    mix.prefix_cache_hit_ratio = test.cached;
    ReferenceReplay reference(system.main, mix, test.rate, 400, 1);
    reference.Run();
    const ReplayResult result = Replay(system, mix, Rate(test.rate, 0), Count(400, true));
    EXPECT_EQ(result.measured_requests, 400);
    EXPECT_EQ(result.engine_steps, reference.steps);
    EXPECT_EQ(result.preemptions, reference.preemptions);
    EXPECT_NEAR(result.ttft.mean_seconds / reference.MeanTtft(), 1, 1e-9);
    EXPECT_NEAR(result.end_to_end.mean_seconds / reference.MeanEndToEnd(), 1, 1e-9);
    if (test.kv_tokens < kMuch) {
      EXPECT_GT(result.preemptions, 0);
    }
  }
}

// One place and steps of a second: a request is served for as many seconds as its output has tokens.
ServingSystem OnePlace(const StepTimer& timer) {
  ServingSystem system = OneReplica(timer, BatchPolicy::kWholePrefill);
  system.main.limits.max_batch_size = 1;
  return system;
}

TEST(ReplayTest, OnePlaceWithSteadyOutputsIsMD1) {
  const LinearTimer timer;
  for (const double utilization : {0.3, 0.7}) {
    SCOPED_TRACE(utilization);
    const double service = 20;
    const double rate = utilization / service;
    const ReplayResult result = Replay(OnePlace(timer), ConstantMix(10, service), Rate(rate), Count(300'000));
    // One step of TTFT is the prompt's.
    const double mean = MG1Waiting(rate, service, 0).mean_seconds;
    EXPECT_NEAR(result.ttft.mean_seconds - 1, mean, 0.02 * mean);
    EXPECT_NEAR(result.queueing_share_of_ttft * result.ttft.mean_seconds, mean, 0.02 * mean);
    EXPECT_NEAR(result.ttft.p50_seconds - 1, MD1WaitPercentile(rate, service, 0.5), 0.03 * mean);
    EXPECT_NEAR(result.ttft.p95_seconds - 1, MD1WaitPercentile(rate, service, 0.95), 0.05 * mean * 4);
    EXPECT_NEAR(result.ttft.p99_seconds - 1, MD1WaitPercentile(rate, service, 0.99), 0.05 * mean * 6);
    EXPECT_NEAR(result.busy_ratio, utilization, 0.01);
    EXPECT_NEAR(result.mean_batch_size, utilization, 0.01);
    EXPECT_FALSE(result.is_unstable);
  }
}

TEST(ReplayTest, OnePlaceWithGeometricOutputsIsMM1) {
  const LinearTimer timer;
  // Geometric is the exponential distribution of whole steps; 1,000 lengths cut off e^-20 of it.
  const double mean_output = 50;
  std::vector<TokenBin> bins;
  for (int64_t n = 1; n <= 1000; ++n) bins.push_back({n, std::pow(1 - 1 / mean_output, static_cast<double>(n - 1))});
  RequestMix mix = ConstantMix(10, 1);
  mix.output = TokenLengths::Histogram(bins);
  const double utilization = 0.6;
  const double rate = utilization / mean_output;
  const ReplayResult result = Replay(OnePlace(timer), mix, Rate(rate), Count(400'000));
  const double exact = MG1Waiting(rate, mix.output.Mean(), mix.output.SquaredVariation()).mean_seconds;
  EXPECT_NEAR(result.ttft.mean_seconds - 1, exact, 0.02 * exact);
  const Waiting waiting = MM1Waiting(rate, mean_output);
  EXPECT_NEAR(exact / waiting.mean_seconds, 1, 0.02);
  EXPECT_NEAR(result.ttft.p95_seconds - 1, waiting.Percentile(0.95), 0.04 * waiting.Percentile(0.95));
  EXPECT_NEAR(result.ttft.p99_seconds - 1, waiting.Percentile(0.99), 0.04 * waiting.Percentile(0.99));
  // P-K for end to end, too: wait + service.
  EXPECT_NEAR(result.end_to_end.mean_seconds, exact + mean_output, 0.02 * (exact + mean_output));
}

TEST(ReplayTest, BurstyArrivalsWaitAsKingmanSays) {
  const LinearTimer timer;
  const double service = 20;
  for (const double burstiness : {0.0, 0.25, 4.0}) {
    SCOPED_TRACE(burstiness);
    const double rate = 0.9 / service;
    const ReplayResult result =
        Replay(OnePlace(timer), ConstantMix(10, service), Rate(rate, burstiness), Count(300'000));
    const double expected = GGcWaiting(rate, burstiness, service, 0, 1).mean_seconds;
    EXPECT_NEAR(result.ttft.mean_seconds - 1, expected, 0.2 * expected + 1e-6);
  }
}

TEST(ReplayTest, AStageThatIsTheBottleneckIsAQueueOfItsOwn) {
  LinearTimer slow;
  slow.step = 2;
  LinearTimer fast;
  fast.step = 1e-4;
  ServingSystem system = OneReplica(fast, BatchPolicy::kChunkedPrefill);
  system.prefill = OneReplica(slow, BatchPolicy::kWholePrefill).main;
  system.prefill->limits.max_batch_size = 1;
  system.transfer_seconds_per_prompt = 0.5;
  const double rate = 0.7 / 2;
  const ReplayResult result = Replay(system, ConstantMix(100, 10), Rate(rate), Count(200'000));
  const double wait = MG1Waiting(rate, 2, 0).mean_seconds;
  EXPECT_NEAR(result.ttft.mean_seconds, wait + 2 + 0.5, 0.03 * wait);
  EXPECT_NEAR(result.prefill_busy_ratio, 0.7, 0.01);
  EXPECT_NEAR(result.tpot.mean_seconds, 1e-4, 1e-5);
  const ReplayResult flooded = Replay(system, ConstantMix(100, 10), Rate(10), Count(2000));
  EXPECT_TRUE(flooded.is_unstable);
  EXPECT_NEAR(flooded.requests_per_second, 0.5, 1e-3);
}

TEST(ReplayTest, AResidentBatchIsSteadyFromTheStart) {
  const LinearTimer timer = PlausibleTimer();
  for (const double users : {8.0, 64.0}) {
    SCOPED_TRACE(users);
    ServingSystem system = OneReplica(timer, BatchPolicy::kWholePrefill);
    Load load = Users(static_cast<int64_t>(users));
    load.kind = LoadKind::kResidentBatch;
    const ReplayResult result = Replay(system, ConstantMix(1000, 201), load, Count(2000));
    // Everybody is somewhere else in its life: contexts are those of the middle, and each life is 200 steps and as many
    // prompts as there are users.
    const double step = timer.step + users * (timer.per_decode + timer.per_decode_context * (1000 + 100.5));
    const double prompt = timer.step + timer.per_prompt_token * 1000;
    EXPECT_NEAR(result.mean_batch_size, users, 1e-3 * users);
    EXPECT_NEAR(result.requests_per_second * (200 * step / users + prompt), 1, 5e-3);
    EXPECT_NEAR(result.tpot.mean_seconds / (step + (users - 1) * prompt / 200), 1, 5e-3);
    EXPECT_NEAR(result.ttft.mean_seconds / prompt, 1, 1e-2);
  }
}

TEST(ReplayTest, StaticBatchesEndWithTheirLongestOutput) {
  LinearTimer timer;
  timer.per_decode = 0.125;
  RequestMix mix = ConstantMix(10, 1);
  const TokenBin bins[] = {{1, 1}, {11, 1}};
  mix.output = TokenLengths::Histogram(bins);
  ServingSystem system = OneReplica(timer, BatchPolicy::kStatic);
  system.main.limits.max_batch_size = 64;
  const ReplayResult result = Replay(system, mix, Users(64), Count(6400, true));
  // Of 64 outputs half are written by the prompt's step, the others pay for those that decode: 10 steps. A place is
  // taken until the end, so that 100 batches are run.
  EXPECT_EQ(result.engine_steps, 100 * 11);
  EXPECT_EQ(result.max_batch_size, 64);
}

}  // namespace
}  // namespace sliceplan::planner
