// The reply of EstimateTraining: against published numbers, and its sums.
#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/sliceplan/v1/training.pb.h"
#include "server/rpc/version.h"
#include "tests/rpc/testing.h"

namespace sliceplan::rpc {
namespace {

using ::testing::HasSubstr;

v1::EstimateTrainingResponse Estimate(const v1::EstimateTrainingRequest& request) {
  v1::EstimateTrainingResponse response;
  const Result result = Call("PlannerService/EstimateTraining", request, &response);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.status().DebugString());
  return response;
}

// "How To Scale Your Model", chapter 6: Llama 3 70B on a full v5p pod at 40% MFU: 6.3e24 FLOPs, 44 days.
TEST(TrainingEstimateTest, BookLlama70b) {
  const auto response = Estimate(FromText<v1::EstimateTrainingRequest>(R"pb(
    model { preset: "llama-3-70b" }
    slice { accelerator: "tpu-v5p" topology: "16x20x28" }
    workload { total_tokens: 15000000000000 sequence_length: 4096 }
    assumed_mfu_ratio: 0.4
  )pb"));
  const v1::TrainingEstimate& estimate = response.estimate();
  constexpr double kSecondsPerDay = 86400;
  EXPECT_NEAR(estimate.total_model_flops(), 6.3e24, 0.05e24 + 0.03 * 6.3e24);
  EXPECT_NEAR(estimate.time_to_train_seconds() / kSecondsPerDay, 44, 1);
  EXPECT_TRUE(estimate.step_time().assumed());
  EXPECT_FALSE(estimate.step_time().has_p05_seconds());
}

constexpr char kPlan[] = R"pb(
  model { preset: "llama-3-70b" }
  slice { accelerator: "tpu-v5p" topology: "16x16x16" slice_count: 2 }
  workload { sequence_length: 4096 global_batch_tokens: 4194304 total_tokens: 15000000000000 }
  parallelism {
    ici { fsdp: 512 context: 2 tensor: 4 }
    dcn { data: 2 }
  }
)pb";

TEST(TrainingEstimateTest, PartsAddUp) {
  const auto response = Estimate(FromText<v1::EstimateTrainingRequest>(kPlan));
  const v1::TrainingEstimate& estimate = response.estimate();
  double breakdown = 0;
  for (const v1::BreakdownEntry& entry : estimate.breakdown()) {
    EXPECT_GE(entry.seconds(), 0);
    EXPECT_NE(entry.resource(), v1::RESOURCE_UNSPECIFIED);
    EXPECT_NE(entry.component(), v1::COMPONENT_UNSPECIFIED);
    EXPECT_NE(entry.phase(), v1::PHASE_UNSPECIFIED);
    breakdown += entry.seconds();
  }
  EXPECT_NEAR(breakdown, estimate.step_time().expected_seconds(), 1e-9 * breakdown);
  for (const v1::TrainingMemory& memory : estimate.stage_memory()) {
    const int64_t classes = memory.parameters_bytes() + memory.gradients_bytes() + memory.optimizer_bytes() +
                            memory.activations_bytes() + memory.logits_bytes() + memory.gathered_weights_bytes() +
                            memory.workspace_bytes() + memory.buffers_bytes() + memory.reserve_bytes();
    EXPECT_EQ(classes - memory.not_coexisting_bytes(), memory.used_bytes());
    EXPECT_EQ(memory.capacity_bytes() - memory.used_bytes(), memory.headroom_bytes());
    EXPECT_EQ(memory.layer_count(), 80);
  }
  const double peak = estimate.flops_convention().peak_flops_per_second_per_chip();
  EXPECT_NEAR(
      estimate.mfu_ratio(),
      estimate.model_flops_per_step() / (estimate.step_time().expected_seconds() * estimate.chip_count() * peak),
      1e-12);
  EXPECT_EQ(estimate.step_count(), std::ceil(15e12 / 4194304));
  EXPECT_NEAR(estimate.chip_hours(), estimate.time_to_train_seconds() / 3600 * 8192, 1e-6 * estimate.chip_hours());
  EXPECT_NEAR(estimate.cost().total_usd(), estimate.chip_hours() * estimate.cost().usd_per_chip_hour(),
              1e-9 * estimate.cost().total_usd());
}

TEST(TrainingEstimateTest, NamesWhatItUsed) {
  const auto response = Estimate(FromText<v1::EstimateTrainingRequest>(kPlan));
  const v1::TrainingEstimate& estimate = response.estimate();
  EXPECT_EQ(estimate.outcome(), v1::OUTCOME_FEASIBLE);
  EXPECT_FALSE(estimate.has_shortfall());
  EXPECT_EQ(estimate.chip_count(), 8192);
  EXPECT_EQ(estimate.slice().total_chip_count(), 8192);
  EXPECT_EQ(estimate.slice().slice().accelerator(), "tpu-v5p");
  EXPECT_EQ(estimate.slice().slice().topology(), "16x16x16");
  EXPECT_EQ(estimate.slice().slice().axis_wraps_size(), 3);
  EXPECT_EQ(estimate.parallelism().ici().fsdp(), 512);
  EXPECT_EQ(estimate.evaluated_plan_count(), 1);
  EXPECT_GT(estimate.mapping_size(), 0);
  EXPECT_EQ(response.engine_version(), std::string(EngineVersion()));
  EXPECT_EQ(response.catalog_version(), TestEngine().catalogs.Snapshot()->version());
  EXPECT_EQ(estimate.cost().price().row().accelerator(), "tpu-v5p");
  for (const v1::Assumption& assumption : estimate.assumptions()) {
    EXPECT_THAT(assumption.sentence(), ::testing::EndsWith(".")) << assumption.sentence();
  }
}

TEST(TrainingEstimateTest, SameQuestionSameBytes) {
  const auto request = FromText<v1::EstimateTrainingRequest>(kPlan);
  const std::string first = Estimate(request).SerializeAsString();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Estimate(request).SerializeAsString(), first);
}

TEST(TrainingEstimateTest, RooflineExpectsTheLowerBound) {
  auto request = FromText<v1::EstimateTrainingRequest>(kPlan);
  request.set_estimation_mode(v1::ESTIMATION_MODE_ROOFLINE);
  const auto response = Estimate(request);
  const v1::StepTime& time = response.estimate().step_time();
  EXPECT_EQ(time.expected_seconds(), time.roofline_lower_seconds());
  EXPECT_FALSE(time.has_p05_seconds());
  EXPECT_EQ(response.estimate().calibration_profile(), "");
}

TEST(TrainingEstimateTest, WhatDoesNotFitIsAnOutcome) {
  const auto response = Estimate(FromText<v1::EstimateTrainingRequest>(R"pb(
    model { preset: "llama-3-70b" }
    slice { accelerator: "tpu-v5e" topology: "2x4" }
    parallelism { ici { tensor: 8 } }
  )pb"));
  const v1::TrainingEstimate& estimate = response.estimate();
  EXPECT_EQ(estimate.outcome(), v1::OUTCOME_OUT_OF_MEMORY);
  EXPECT_EQ(estimate.shortfall().limit(), "hbm_bytes");
  EXPECT_GT(estimate.shortfall().missing(), 0);
  EXPECT_DOUBLE_EQ(estimate.shortfall().needed(), static_cast<double>(estimate.memory().used_bytes()));
  EXPECT_DOUBLE_EQ(estimate.shortfall().available(), static_cast<double>(estimate.memory().capacity_bytes()));
  EXPECT_FALSE(estimate.shortfall().sentence().empty());
}

TEST(TrainingEstimateTest, LimitsThatAreMissedAreOutcomes) {
  auto late = FromText<v1::EstimateTrainingRequest>(kPlan);
  late.set_job_deadline_seconds(3600);
  const v1::TrainingEstimate missed = Estimate(late).estimate();
  EXPECT_EQ(missed.outcome(), v1::OUTCOME_MISSES_DEADLINE);
  EXPECT_EQ(missed.shortfall().limit(), "job_deadline_seconds");
  EXPECT_EQ(missed.shortfall().available(), 3600);
  EXPECT_DOUBLE_EQ(missed.shortfall().needed(), missed.shortfall().available() + missed.shortfall().missing());

  auto poor = FromText<v1::EstimateTrainingRequest>(kPlan);
  poor.set_budget_usd(100);
  EXPECT_EQ(Estimate(poor).estimate().outcome(), v1::OUTCOME_OVER_BUDGET);
}

TEST(TrainingEstimateTest, GoodputPartsAddUpToOne) {
  auto request = FromText<v1::EstimateTrainingRequest>(kPlan);
  request.mutable_reliability()->set_mean_seconds_between_failures_per_chip(1e9);
  const v1::TrainingEstimate estimate = Estimate(request).estimate();
  ASSERT_TRUE(estimate.has_goodput());
  EXPECT_NEAR(estimate.goodput_ratio() + estimate.goodput().lost_work_ratio() + estimate.goodput().checkpoint_ratio() +
                  estimate.goodput().restart_ratio(),
              1, 1e-9);
  EXPECT_NEAR(estimate.wall_seconds(), estimate.time_to_train_seconds() / estimate.goodput_ratio(),
              1e-6 * estimate.wall_seconds());
}

TEST(TrainingEstimateTest, StopsWhenTheCallerIsGone) {
  auto request = FromText<v1::EstimateTrainingRequest>(kPlan);
  request.clear_parallelism();
  v1::EstimateTrainingResponse response;
  CallContext gone;
  gone.caller_gone = [] { return true; };
  EXPECT_EQ(Call("PlannerService/EstimateTraining", request, &response, gone).code(), absl::StatusCode::kCancelled);
  CallContext late;
  late.deadline = absl::Now() - absl::Seconds(1);
  EXPECT_EQ(Call("PlannerService/EstimateTraining", request, &response, late).code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(TrainingEstimateTest, CustomChipHasNoPriceAndSaysSo) {
  const auto response = Estimate(FromText<v1::EstimateTrainingRequest>(R"pb(
    model { preset: "llama-3-8b" }
    slice {
      custom {
        name: "what-if"
        bf16_flops_per_second: 1e15
        hbm_bytes: 200000000000
        hbm_bytes_per_second: 4e12
        ici_torus_dims: 2
        ici_link_bytes_per_second: 1e11
      }
      topology: "8x8"
    }
    parallelism { ici { fsdp: 64 } }
  )pb"));
  EXPECT_FALSE(response.estimate().cost().has_usd_per_chip_hour());
  EXPECT_THAT(response.estimate().cost().price().sentence(), HasSubstr("no public price"));
  EXPECT_EQ(response.estimate().slice().slice().accelerator(), "what-if");
}

TEST(TrainingEstimateTest, SearchWeighsManyPlans) {
  auto request = FromText<v1::EstimateTrainingRequest>(R"pb(
    model { preset: "llama-3-8b" }
    slice { accelerator: "tpu-v5e" topology: "8x8" }
  )pb");
  const v1::TrainingEstimate best = Estimate(request).estimate();
  EXPECT_GT(best.evaluated_plan_count(), 1);
  // The plan that was found, asked for by name, is no slower: the same code answers both.
  *request.mutable_parallelism()->mutable_ici() = best.parallelism().ici();
  *request.mutable_parallelism()->mutable_dcn() = best.parallelism().dcn();
  EXPECT_NEAR(Estimate(request).estimate().step_time().expected_seconds(), best.step_time().expected_seconds(),
              1e-9 * best.step_time().expected_seconds());
}

}  // namespace
}  // namespace sliceplan::rpc
