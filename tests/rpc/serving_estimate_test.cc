// The reply of EstimateServing, from an answer of the engine written by hand.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/sliceplan/v1/serving.pb.h"
#include "server/rpc/convert/serving_enums.h"
#include "server/rpc/convert/serving_estimate.h"
#include "server/rpc/convert/serving_job.h"
#include "tests/rpc/testing.h"

namespace sliceplan::rpc {
namespace {

using ::testing::IsEmpty;

constexpr char kPlan[] = R"pb(
  model { preset: "llama-3-8b" }
  slice { accelerator: "tpu-v5e" topology: "2x4" }
  parallelism {
    ici { tensor: 4 }
    allow_idle_chips: true
  }
)pb";

planner::ServingEstimate Answer() {
  planner::ServingEstimate answer;
  answer.max_batch_size = 43;
  answer.max_context_tokens = 131072;
  answer.critical_batch_size = 240;
  answer.tensor_degree_limit = 26.5;
  answer.memory.weights_bytes = 9;
  answer.memory.used_bytes = 13;
  answer.memory.kv_pool_tokens = 120;
  answer.prefill.time.expected_seconds = 0.12;
  answer.prefill.mfu_ratio = 0.4;
  answer.prefill.bound = planner::StepResource::kMatrixUnit;
  answer.decode.time = {0.01, 0.02, 0.015, 0.014, 0.016};
  answer.decode.kv_seconds = 0.004;
  answer.decode.bound = planner::StepResource::kHbm;
  answer.decode.parts = {{transformer::Component::kFeedForward, planner::StepResource::kHbm, std::nullopt, 0.01},
                         {transformer::Component::kOther, planner::StepResource::kHost, std::nullopt, 0},
                         {transformer::Component::kAttentionProjections, planner::StepResource::kIci,
                          planner::LogicalAxis::kTensor, 0.005}};
  answer.tpot = planner::Latency{0.015, 0.015, 0.018, 0.02};
  answer.throughput.output_tokens_per_second = 2866;
  answer.throughput.goodput_requests_per_second = 3;
  answer.cost = planner::ServingCost{9.6, 1.2, 0.3, 0, 2.2};
  answer.frontier.resize(2);
  answer.frontier[1].batch_size = 43;
  answer.frontier[1].usd_per_million_output_tokens = 2.2;
  answer.best_point = answer.frontier[1];
  answer.kv_bytes_per_token = 131072;
  answer.batch_size = 43;
  answer.chip_count = 8;
  answer.pools.resize(1);
  answer.pools[0].parallelism.ici[planner::LogicalAxis::kTensor] = 4;
  answer.pools[0].busy_ratio = 0.7;
  answer.load.weights = hardware::DataType::kInt8;
  answer.load.prefill_chunk_tokens = 512;
  answer.load.hbm_utilization_ratio = 0.9;
  planner::Advice advice;
  advice.code = "INT8_KV";
  advice.sentence = "int8 KV raises the batch from 43 to 86 and cuts cost 38%.";
  advice.cost_ratio = 0.62;
  advice.step_time_ratio = 1.1;
  advice.changes = {{"workload.precision.kv_cache", "DATA_TYPE_INT8"}};
  answer.advice = {advice};
  answer.assumptions = {"throughput: in a steady state", "pools[0].parallelism: the best of 12 ways",
                        "Weights are read once: per step"};
  answer.warnings = {"prompts are long"};
  return answer;
}

v1::ServingEstimate Reply(const char* request_text, const planner::ServingEstimate& answer) {
  const auto request = FromText<v1::EstimateServingRequest>(request_text);
  Engine& engine = TestEngine();
  ServingQuestion question;
  Violations violations;
  v1::ServingEstimate reply;
  ToServingJob(request, *engine.catalogs.Snapshot(), engine.models, engine.profiles, FieldPath(), question,
               reply.mutable_cost()->mutable_prices(), violations);
  EXPECT_TRUE(violations.empty());
  ToProto(question, answer, &reply);
  return reply;
}

TEST(ServingEstimateTest, EveryPartIsThere) {
  const v1::ServingEstimate reply = Reply(kPlan, Answer());
  EXPECT_EQ(reply.outcome(), v1::OUTCOME_FEASIBLE);
  EXPECT_FALSE(reply.has_shortfall());
  EXPECT_EQ(reply.max_batch_size(), 43);
  EXPECT_EQ(reply.max_context_tokens(), 131072);
  EXPECT_EQ(reply.critical_batch_size(), 240);
  EXPECT_EQ(reply.tensor_degree_limit(), 26.5);
  EXPECT_EQ(reply.memory().weights_bytes(), 9);
  EXPECT_EQ(reply.memory().kv_pool_tokens(), 120);
  EXPECT_EQ(reply.prefill().time().expected_seconds(), 0.12);
  EXPECT_EQ(reply.prefill().bound(), v1::RESOURCE_MATRIX_UNIT);
  EXPECT_EQ(reply.prefill().mfu_ratio(), 0.4);
  EXPECT_EQ(reply.decode().step_time().p95_seconds(), 0.016);
  EXPECT_EQ(reply.decode().kv_seconds(), 0.004);
  EXPECT_EQ(reply.decode().bound(), v1::RESOURCE_HBM);
  EXPECT_EQ(reply.tpot().p95_seconds(), 0.018);
  EXPECT_FALSE(reply.has_ttft());
  EXPECT_EQ(reply.throughput().output_tokens_per_second(), 2866);
  EXPECT_EQ(reply.throughput().goodput_requests_per_second(), 3);
  EXPECT_EQ(reply.frontier_size(), 2);
  EXPECT_FALSE(reply.frontier(0).has_usd_per_million_output_tokens());
  EXPECT_EQ(reply.best_point().batch_size(), 43);
  EXPECT_FALSE(reply.has_disaggregation());
  EXPECT_FALSE(reply.has_replica_count());
  EXPECT_EQ(reply.kv_bytes_per_token(), 131072);
  EXPECT_EQ(reply.chip_count(), 8);
  EXPECT_EQ(reply.estimation_mode(), v1::ESTIMATION_MODE_CALIBRATED);
  EXPECT_EQ(reply.calibration_profile(), "jax-serving-tpu");
  EXPECT_FALSE(reply.calibration_version().empty());
}

TEST(ServingEstimateTest, BreakdownsAddUpAndNameTheirPhase) {
  const v1::ServingEstimate reply = Reply(kPlan, Answer());
  ASSERT_EQ(reply.decode().breakdown_size(), 2);  // the part without time is left out
  double seconds = 0;
  for (const v1::BreakdownEntry& entry : reply.decode().breakdown()) {
    EXPECT_EQ(entry.phase(), v1::PHASE_DECODE);
    seconds += entry.seconds();
  }
  EXPECT_DOUBLE_EQ(seconds, reply.decode().step_time().expected_seconds());
  EXPECT_EQ(reply.decode().breakdown(1).axis(), v1::PARALLELISM_AXIS_TENSOR);
}

TEST(ServingEstimateTest, PoolsSayWhatIsIdle) {
  const v1::ServingEstimate reply = Reply(kPlan, Answer());
  ASSERT_EQ(reply.pools_size(), 1);
  EXPECT_EQ(reply.pools(0).role(), v1::POOL_ROLE_BOTH);
  EXPECT_EQ(reply.pools(0).slice().total_chip_count(), 8);
  EXPECT_EQ(reply.pools(0).parallelism().ici().tensor(), 4);
  EXPECT_TRUE(reply.pools(0).parallelism().allow_idle_chips());
  EXPECT_EQ(reply.pools(0).idle_chip_count(), 4);
  EXPECT_EQ(reply.pools(0).busy_ratio(), 0.7);
}

TEST(ServingEstimateTest, MoneyNamesItsPriceAndSplit) {
  const v1::ServingEstimate reply = Reply(kPlan, Answer());
  EXPECT_EQ(reply.cost().usd_per_hour(), 9.6);
  EXPECT_EQ(reply.cost().usd_per_chip_hour(), 1.2);
  EXPECT_EQ(reply.cost().usd_per_million_output_tokens(), 2.2);
  EXPECT_EQ(reply.cost().split().kind(), v1::COST_SPLIT_KIND_TIME);
  EXPECT_EQ(reply.cost().split().cached_to_input_price_ratio(), 0);
  ASSERT_EQ(reply.cost().prices_size(), 1);
  EXPECT_EQ(reply.cost().prices(0).row().accelerator(), "tpu-v5e");
}

TEST(ServingEstimateTest, TheLoadHasEveryFieldFilledIn) {
  const v1::ServingWorkload load = Reply(kPlan, Answer()).workload();
  EXPECT_EQ(load.prompt_tokens(), 1024);
  EXPECT_EQ(load.output_tokens(), 256);
  EXPECT_EQ(load.batch_size(), 43);
  EXPECT_EQ(load.precision().weights(), v1::DATA_TYPE_INT8);
  EXPECT_EQ(load.precision().kv_cache(), v1::DATA_TYPE_BF16);
  EXPECT_EQ(load.precision().compute(), v1::DATA_TYPE_BF16);
  EXPECT_EQ(load.arrival_burstiness(), 1);
  EXPECT_EQ(load.prefix_cache_hit_ratio(), 0);
  EXPECT_EQ(load.prefill_chunk_tokens(), 512);
  EXPECT_EQ(load.kv_block_tokens(), 16);
  EXPECT_EQ(load.hbm_utilization_ratio(), 0.9);
  EXPECT_EQ(load.kv_cache_split(), v1::KV_CACHE_SPLIT_BATCH);
  EXPECT_EQ(load.windowed_kv_policy(), v1::WINDOWED_KV_POLICY_FREE);
  EXPECT_FALSE(load.has_max_batch_size());
}

TEST(ServingEstimateTest, GivenDistributionsAreEchoed) {
  const std::string text = std::string(kPlan) + R"(workload {
    prompt_distribution { moments { mean_tokens: 2000 } } output_tokens: 7 requests_per_second: 3 })";
  const v1::ServingWorkload load = Reply(text.c_str(), Answer()).workload();
  EXPECT_EQ(load.prompt_distribution().moments().mean_tokens(), 2000);
  EXPECT_EQ(load.output_tokens(), 7);
  EXPECT_EQ(load.requests_per_second(), 3);
}

TEST(ServingEstimateTest, AdviceAndNotesKeepTheirFields) {
  const v1::ServingEstimate reply = Reply(kPlan, Answer());
  ASSERT_EQ(reply.advice_size(), 1);
  EXPECT_DOUBLE_EQ(reply.advice(0).cost_change_ratio(), 0.62 - 1);
  EXPECT_DOUBLE_EQ(reply.advice(0).expected_seconds(), 0.015 * 1.1);
  EXPECT_FALSE(reply.advice(0).has_memory_change_bytes());
  const v1::Assumption& of_result = reply.assumptions(reply.assumptions_size() - 3);
  EXPECT_EQ(of_result.field(), "");
  EXPECT_EQ(of_result.sentence(), "In a steady state.");
  const v1::Assumption& with_field = reply.assumptions(reply.assumptions_size() - 2);
  EXPECT_EQ(with_field.field(), "pools[0].parallelism");
  EXPECT_EQ(with_field.sentence(), "The best of 12 ways.");
  const v1::Assumption& without = reply.assumptions(reply.assumptions_size() - 1);
  EXPECT_EQ(without.field(), "");
  EXPECT_EQ(without.sentence(), "Weights are read once: per step.");
  EXPECT_EQ(reply.warnings(0).sentence(), "Prompts are long.");
}

TEST(ServingEstimateTest, WhatIsLackingIsSaid) {
  planner::ServingEstimate answer = Answer();
  answer.outcome = planner::ServingOutcome::kMissesSlo;
  answer.shortfall = planner::ServingShortfall{"slo.tpot.p95_seconds", 0.05, 0.04, 0.01, 0.02, "10 ms too slow"};
  answer.smallest_fix = planner::Fix{"SMALLER_BATCH", "A batch of 24.", {{"workload.batch_size", "24"}}, 0.039};
  const v1::ServingEstimate reply = Reply(kPlan, answer);
  EXPECT_EQ(reply.outcome(), v1::OUTCOME_MISSES_SLO);
  EXPECT_EQ(reply.shortfall().limit(), "slo.tpot.p95_seconds");
  EXPECT_EQ(reply.shortfall().needed(), 0.05);
  EXPECT_EQ(reply.shortfall().floor(), 0.02);
  EXPECT_EQ(reply.shortfall().sentence(), "10 ms too slow.");
  EXPECT_EQ(reply.smallest_fix().changes(0).value(), "24");
}

TEST(ServingEstimateTest, WithoutAPlanThereAreNoTimes) {
  planner::ServingEstimate answer;
  answer.outcome = planner::ServingOutcome::kNoLegalPlan;
  answer.shortfall = planner::ServingShortfall{"legal_plan", 1, 0, 1, std::nullopt, "no way to spread it"};
  answer.chip_count = 8;
  const v1::ServingEstimate reply = Reply(kPlan, answer);
  EXPECT_EQ(reply.outcome(), v1::OUTCOME_NO_LEGAL_PLAN);
  EXPECT_FALSE(reply.has_decode());
  EXPECT_FALSE(reply.has_memory());
  ASSERT_EQ(reply.pools_size(), 1);
  EXPECT_FALSE(reply.pools(0).has_parallelism());
  EXPECT_THAT(reply.frontier(), IsEmpty());
  EXPECT_FALSE(reply.workload().has_batch_size());
}

TEST(ServingEstimateTest, RooflineHasNoProfile) {
  const std::string text = std::string(kPlan) + "estimation_mode: ESTIMATION_MODE_ROOFLINE";
  const v1::ServingEstimate reply = Reply(text.c_str(), Answer());
  EXPECT_EQ(reply.estimation_mode(), v1::ESTIMATION_MODE_ROOFLINE);
  EXPECT_EQ(reply.calibration_profile(), "");
}

TEST(ServingEnumsTest, TablesAreWhole) {
  for (const planner::ServingOutcome outcome :
       {planner::ServingOutcome::kFeasible, planner::ServingOutcome::kNoLegalPlan,
        planner::ServingOutcome::kOutOfMemory, planner::ServingOutcome::kUnstable,
        planner::ServingOutcome::kMissesSlo}) {
    EXPECT_NE(ToProto(kServingOutcomes, outcome), v1::OUTCOME_UNSPECIFIED);
  }
  EXPECT_EQ(std::size(kPoolRoles) + 1, static_cast<size_t>(v1::PoolRole_descriptor()->value_count()));
  EXPECT_EQ(std::size(kKvCacheSplits) + 1, static_cast<size_t>(v1::KvCacheSplit_descriptor()->value_count()));
  EXPECT_EQ(std::size(kWindowedKvPolicies) + 1, static_cast<size_t>(v1::WindowedKvPolicy_descriptor()->value_count()));
}

}  // namespace
}  // namespace sliceplan::rpc
