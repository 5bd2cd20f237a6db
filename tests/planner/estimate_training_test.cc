// The training estimate against the book's own worked run and against properties that hold for every plan.
#include "server/planner/estimate_training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tests/planner/training_fixture.h"

namespace sliceplan::planner {
namespace {

class EstimateTrainingTest : public testing::Test {
 protected:
  // LLaMA-3 70B on two slices of 16 x 16 x 16, 4Mi tokens in sequences of 4,096: the book's applied-training chapter.
  TrainingJob BookJob(const Degrees& degrees, EstimationMode mode = EstimationMode::kRoofline) const {
    TrainingJob job;
    job.model = &model_;
    job.slice = TorusSlice({16, 16, 16}, degrees.dcn_data);
    job.mode = mode;
    job.profile = &profile_;
    job.workload.sequence_length = 4096;
    job.workload.global_batch_size = 512 * degrees.dcn_data;
    job.workload.total_tokens = 15'000'000'000'000;
    job.parallelism = PlanOf(degrees);
    return job;
  }

  const transformer::ModelOperations model_ = Operations({});
  const roofline::EfficiencyProfile profile_ = TestProfile();
};

// 512 tokens a chip, where FSDP on three axes needs 850 and FSDP x tensor 113 (book, chapter 6).
TEST_F(EstimateTrainingTest, WeightTrafficBindsWithoutTensorAndNotWithIt) {
  const TrainingEstimate fsdp = Estimated(BookJob({.fsdp = 512, .context = 8, .dcn_data = 2}));
  EXPECT_EQ(fsdp.bottleneck.resource, StepResource::kIci);
  EXPECT_EQ(fsdp.thresholds.tokens_per_chip, 512);
  EXPECT_NEAR(*fsdp.thresholds.data_tokens_per_chip, 4.59e14 / 1.8e11 / 3, 1e-6);
  EXPECT_LT(fsdp.thresholds.tokens_per_chip, *fsdp.thresholds.data_tokens_per_chip);

  const TrainingEstimate mixed = Estimated(BookJob({.fsdp = 512, .tensor = 4, .context = 2, .dcn_data = 2}));
  EXPECT_EQ(mixed.bottleneck.resource, StepResource::kMatrixUnit);
  const double alpha = 4.59e14 / 1.8e11;
  EXPECT_NEAR(*mixed.thresholds.fsdp_tensor_tokens_per_chip, alpha * alpha / (2 * 28672), 1e-6);
  EXPECT_GT(mixed.thresholds.tokens_per_chip, *mixed.thresholds.fsdp_tensor_tokens_per_chip);
  EXPECT_LT(mixed.step_time.roofline_lower_seconds, fsdp.step_time.roofline_lower_seconds);
}

// Gradients that are accumulated are wider, whoever chooses the accumulation.
TEST_F(EstimateTrainingTest, AccumulatedGradientsHaveTheirOwnFormat) {
  TrainingJob free = BookJob({.fsdp = 8});
  free.slice = TorusSlice({2, 2, 2});
  free.slice.accelerator.hbm_bytes = 400'000'000'000;
  free.workload.remat_policy = RematPolicy::kFull;
  free.workload.precision.parameters = hardware::DataType::kBf16;
  free.workload.precision.gradients = hardware::DataType::kBf16;
  free.workload.precision.accumulated_gradients = hardware::DataType::kFp32;
  const TrainingEstimate chosen = Estimated(free);
  ASSERT_GT(chosen.gradient_accumulation, 1);
  TrainingJob given = free;
  given.workload.gradient_accumulation = chosen.gradient_accumulation;
  given.workload.precision.gradients = hardware::DataType::kFp32;
  given.workload.precision.accumulated_gradients.reset();
  const TrainingEstimate same = Estimated(given);
  EXPECT_EQ(chosen.memory.gradients_bytes, same.memory.gradients_bytes);
  EXPECT_EQ(chosen.memory.used_bytes, same.memory.used_bytes);
  EXPECT_DOUBLE_EQ(chosen.step_time.expected_seconds, same.step_time.expected_seconds);
}

// A batch that only whole rounds of accumulation could hold ends at the contract's limit of them.
TEST_F(EstimateTrainingTest, AccumulationEndsAtItsLimit) {
  TrainingJob job = BookJob({.fsdp = 8});
  job.slice = TorusSlice({2, 2, 2});
  job.workload.global_batch_size = int64_t{1} << 40;
  const TrainingEstimate estimate = Estimated(job);
  EXPECT_EQ(estimate.outcome, Outcome::kOutOfMemory);
  EXPECT_LE(estimate.gradient_accumulation, 1 << 20);
}

TEST_F(EstimateTrainingTest, AssumedMfuGivesTheBooksDays) {
  TrainingJob job = BookJob({.fsdp = 512, .context = 8, .dcn_data = 2});
  job.assumed_mfu_ratio = 0.4;
  const TrainingEstimate estimate = Estimated(job);
  // 6 x parameters x tokens: all weights of the test model and its head (no embedding table, no norms).
  const double parameters = 80 * (8192.0 * (8192 + 2 * 1024 + 8192) + 3 * 8192.0 * 28672);
  const double flops = 6 * parameters * 512 * 2 * 4096;
  EXPECT_TRUE(estimate.step_time.assumed);
  EXPECT_NEAR(estimate.model_flops_per_step / flops, 1, 1e-12);
  EXPECT_NEAR(estimate.step_time.expected_seconds, flops / (8192 * 4.59e14 * 0.4), 1e-9);
  EXPECT_NEAR(estimate.mfu_ratio, 0.4, 1e-12);
}

TEST_F(EstimateTrainingTest, ModelFlopsAreSixPerMatmulParameterAndHalfTheScores) {
  const TrainingEstimate estimate = Estimated(BookJob({.fsdp = 512, .context = 8, .dcn_data = 2}));
  const double parameters = 80 * (8192.0 * (8192 + 2 * 1024 + 8192) + 3 * 8192.0 * 28672) + 8192.0 * 128256;
  const double scores = 6 * 80 * 64 * 128 * 4096.0;
  EXPECT_NEAR(estimate.model_flops_per_step / (estimate.tokens_per_step * (6 * parameters + scores)), 1, 1e-12);
}

// One layer's MLP: 8 BDF backward and 4 BDF forward (gated: 1.5 times that) at peak, when compute binds.
TEST_F(EstimateTrainingTest, ComputeBoundLowerBoundIsFlopsOverPeak) {
  TrainingJob job = BookJob({.fsdp = 64});
  job.slice = TorusSlice({4, 4, 4});
  job.workload.global_batch_size = 512;
  job.workload.remat_policy = RematPolicy::kNone;
  const TrainingEstimate estimate = Estimated(job);
  const double compute_seconds = estimate.model_flops_per_step / (64 * 4.59e14);
  EXPECT_GE(estimate.step_time.roofline_lower_seconds, compute_seconds);
  // Only the embedding lookup and the optimizer's memory traffic come on top.
  EXPECT_LT(estimate.step_time.roofline_lower_seconds, 1.01 * compute_seconds);
}

struct PlanCase {
  const char* name;
  Degrees degrees;
  std::optional<RematPolicy> remat = std::nullopt;
};

const PlanCase kPlans[] = {
    {"fsdp", {.fsdp = 512, .context = 8}},
    {"tensor", {.fsdp = 512, .tensor = 8}},
    {"data", {.data = 4, .fsdp = 128, .tensor = 8}},
    {"pipeline", {.fsdp = 64, .tensor = 8, .pipeline = 8}},
    {"two_slices", {.fsdp = 512, .tensor = 8, .dcn_data = 2}},
    {"full_remat", {.fsdp = 512, .tensor = 8}, RematPolicy::kFull},
};

class EveryPlanTest : public EstimateTrainingTest, public testing::WithParamInterface<PlanCase> {};

TEST_P(EveryPlanTest, PartsSumToTheStepAndBoundsAreInOrder) {
  for (EstimationMode mode : {EstimationMode::kRoofline, EstimationMode::kCalibrated}) {
    TrainingJob job = BookJob(GetParam().degrees, mode);
    job.workload.remat_policy = GetParam().remat;
    const TrainingEstimate estimate = Estimated(job);
    const StepTime& time = estimate.step_time;
    double sum = 0;
    for (const BreakdownEntry& entry : estimate.breakdown) {
      EXPECT_GT(entry.seconds, 0);
      sum += entry.seconds;
    }
    EXPECT_NEAR(sum / time.expected_seconds, 1, 1e-9);
    EXPECT_LE(time.roofline_lower_seconds, time.roofline_upper_seconds);
    EXPECT_GE(time.expected_seconds, time.roofline_lower_seconds);
    if (mode == EstimationMode::kRoofline) {
      EXPECT_EQ(time.expected_seconds, time.roofline_lower_seconds);
      EXPECT_FALSE(time.p05_seconds.has_value());
    } else {
      EXPECT_NEAR(*time.p05_seconds, 0.9 * time.expected_seconds, 1e-12);
      EXPECT_NEAR(*time.p95_seconds, 1.2 * time.expected_seconds, 1e-12);
    }
    EXPECT_GT(estimate.mfu_ratio, 0);
    EXPECT_LE(estimate.mfu_ratio, estimate.hfu_ratio);
    EXPECT_LE(estimate.hfu_ratio, 1);
    EXPECT_EQ(estimate.memory.headroom_bytes, estimate.memory.capacity_bytes - estimate.memory.used_bytes);
  }
}

TEST_P(EveryPlanTest, FasterPartsNeverSlowTheStep) {
  for (EstimationMode mode : {EstimationMode::kRoofline, EstimationMode::kCalibrated}) {
    TrainingJob job = BookJob(GetParam().degrees, mode);
    job.workload.remat_policy = RematPolicy::kFull;
    const double before = Estimated(job).step_time.expected_seconds;
    const auto with = [&](auto&& change) {
      TrainingJob faster = job;
      change(faster.slice.accelerator);
      return Estimated(faster).step_time.expected_seconds;
    };
    using Spec = hardware::AcceleratorSpec;
    EXPECT_LT(with([](Spec& s) {
                *s.bf16_flops_per_second *= 2;
                *s.hbm_bytes_per_second *= 2;
              }),
              before);
    EXPECT_LE(with([](Spec& s) { *s.hbm_bytes_per_second *= 2; }), before);
    EXPECT_LE(with([](Spec& s) { *s.ici_link_bytes_per_second *= 2; }), before);
    EXPECT_LE(with([](Spec& s) { *s.dcn_bytes_per_second *= 2; }), before);
    EXPECT_LE(with([](Spec& s) { s.ici_hop_seconds = *s.ici_hop_seconds / 2; }), before);
  }
}

TEST_P(EveryPlanTest, TheSameQuestionHasTheSameAnswer) {
  const TrainingJob job = BookJob(GetParam().degrees, EstimationMode::kCalibrated);
  MappingCache mappings;
  const TrainingAnswer first = EstimateTraining(job, mappings);
  const TrainingAnswer second = EstimateTraining(job, mappings);
  EXPECT_EQ(first.estimate.step_time.expected_seconds, second.estimate.step_time.expected_seconds);
  EXPECT_EQ(first.estimate.memory.used_bytes, second.estimate.memory.used_bytes);
  EXPECT_EQ(first.estimate.breakdown.size(), second.estimate.breakdown.size());
}

INSTANTIATE_TEST_SUITE_P(Plans, EveryPlanTest, testing::ValuesIn(kPlans),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(EstimateTrainingTest, StateIsTenToSixteenBytesOverTheShards) {
  TrainingJob job = BookJob({.fsdp = 512, .tensor = 8});
  job.workload.precision.parameters = hardware::DataType::kFp32;
  const TrainingEstimate estimate = Estimated(job);
  // 4 bytes of parameters and gradients each, 8 of moments; KV projections of 8 heads split over tensor 8.
  const double parameters =
      80 * (8192.0 * (8192 + 2 * 1024 + 8192) + 3 * 8192.0 * 28672);  // embedding and head tables: 0 in this model
  EXPECT_NEAR(static_cast<double>(estimate.memory.parameters_bytes), 4 * parameters / 4096, 1);
  EXPECT_NEAR(static_cast<double>(estimate.memory.gradients_bytes), 4 * parameters / 4096, 1);
  EXPECT_NEAR(static_cast<double>(estimate.memory.optimizer_bytes), 8 * parameters / 4096, 1);
}

TEST_F(EstimateTrainingTest, MoreRecomputeNeedsLessMemoryAndMoreFlops) {
  int64_t last_bytes = std::numeric_limits<int64_t>::max();
  double last_flops = 0;
  for (RematPolicy policy : {RematPolicy::kNone, RematPolicy::kMinimalFlash, RematPolicy::kMinimal,
                             RematPolicy::kSaveQkvProj, RematPolicy::kFull, RematPolicy::kBlock}) {
    TrainingJob job = BookJob({.fsdp = 512, .tensor = 8});
    job.workload.remat_policy = policy;
    const TrainingEstimate estimate = Estimated(job);
    EXPECT_LE(estimate.memory.activations_bytes, last_bytes);
    EXPECT_GE(estimate.hardware_flops_per_step, last_flops);
    last_bytes = estimate.memory.activations_bytes;
    last_flops = estimate.hardware_flops_per_step;
  }
}

TEST_F(EstimateTrainingTest, BlockRecomputeIsOneMoreForwardPass) {
  TrainingJob job = BookJob({.fsdp = 512, .tensor = 8});
  job.workload.remat_policy = RematPolicy::kBlock;
  const TrainingEstimate estimate = Estimated(job);
  const double head = 6 * 8192.0 * 128256 * estimate.tokens_per_step;
  EXPECT_NEAR(
      estimate.hardware_flops_per_step / (estimate.model_flops_per_step + (estimate.model_flops_per_step - head) / 3),
      1, 1e-9);
  // Layer inputs only: 2 bytes x tokens x D x L over all chips (book, chapter 5).
  EXPECT_NEAR(static_cast<double>(estimate.memory.activations_bytes), 2.0 * 512 * 4096 * 8192 * 80 / 4096, 1);
}

TEST_F(EstimateTrainingTest, OutOfMemorySaysByHowMuch) {
  TrainingJob job = BookJob({.data = 8});
  job.slice = TorusSlice({2, 4});
  job.slice.axes = {{2, false}, {4, false}};
  job.workload.global_batch_size = 8;
  const TrainingEstimate estimate = Estimated(job);
  EXPECT_EQ(estimate.outcome, Outcome::kOutOfMemory);
  EXPECT_EQ(estimate.shortfall_amount,
            static_cast<double>(estimate.memory.used_bytes - estimate.memory.capacity_bytes));
  EXPECT_FALSE(estimate.shortfall.empty());
  ASSERT_TRUE(estimate.smallest_fix.has_value());
}

TEST_F(EstimateTrainingTest, DeadlineAndBudgetAreOutcomes) {
  TrainingJob job = BookJob({.fsdp = 512, .tensor = 8});
  job.usd_per_chip_hour = 4.2;
  const TrainingEstimate free = Estimated(job);
  ASSERT_TRUE(free.time_to_train_seconds && free.cost && free.cost->total_usd);
  EXPECT_NEAR(*free.cost->total_usd, 4.2 * 4096 * *free.time_to_train_seconds / 3600, 1e-3);
  job.deadline_seconds = *free.time_to_train_seconds / 2;
  EXPECT_EQ(Estimated(job).outcome, Outcome::kMissesDeadline);
  job.deadline_seconds.reset();
  job.budget_usd = *free.cost->total_usd / 2;
  EXPECT_EQ(Estimated(job).outcome, Outcome::kOverBudget);
}

TEST_F(EstimateTrainingTest, PipelineBubbleAndUnevenStages) {
  TrainingJob job = BookJob({.fsdp = 64, .tensor = 8, .pipeline = 8});
  job.workload.global_batch_size = 64 * 16;
  const TrainingEstimate estimate = Estimated(job);
  EXPECT_EQ(estimate.microbatch_count, 16);
  // (p - 1) / (m + p - 1) if all stages took as long as the slowest, which has the head.
  EXPECT_LT(*estimate.thresholds.pipeline_bubble_ratio, 7.0 / 23);
  EXPECT_GT(*estimate.thresholds.pipeline_bubble_ratio, 0.8 * 7 / 23);
  ASSERT_EQ(estimate.stage_memory.size(), 8u);
  for (const MemoryUse& stage : estimate.stage_memory) EXPECT_LE(stage.used_bytes, estimate.memory.used_bytes);
  EXPECT_EQ(std::accumulate(estimate.layers_per_stage.begin(), estimate.layers_per_stage.end(), 0), 80);
}

TEST_F(EstimateTrainingTest, TheSearchIsNoWorseThanAnyGivenPlan) {
  for (EstimationMode mode : {EstimationMode::kRoofline, EstimationMode::kCalibrated}) {
    TrainingJob job = BookJob({.fsdp = 512, .tensor = 8}, mode);
    job.parallelism.reset();
    const TrainingEstimate best = Estimated(job);
    EXPECT_EQ(best.outcome, Outcome::kFeasible);
    for (const PlanCase& plan : kPlans) {
      if (plan.degrees.dcn_data > 1) continue;
      const TrainingEstimate given = Estimated(BookJob(plan.degrees, mode));
      if (given.outcome != Outcome::kFeasible) continue;
      EXPECT_LE(best.step_time.expected_seconds, given.step_time.expected_seconds * (1 + 1e-12)) << plan.name;
    }
  }
}

TEST_F(EstimateTrainingTest, ViolationsComeAllAtOnce) {
  TrainingJob job = BookJob({.fsdp = 512, .tensor = 7});
  job.workload.sequence_length = -1;
  job.slice.accelerator.hbm_bytes_per_second.reset();
  MappingCache mappings;
  const TrainingAnswer answer = EstimateTraining(job, mappings);
  std::vector<std::string> fields;
  for (const hardware::Violation& violation : answer.violations) fields.push_back(violation.field);
  EXPECT_GE(fields.size(), 3u) << testing::PrintToString(fields);
}

TEST_F(EstimateTrainingTest, SwitchedSystemsKeepTensorInsideTheDomain) {
  TrainingJob job = BookJob({.fsdp = 64, .tensor = 8});
  job.slice = SwitchedSlice(512);
  const TrainingEstimate estimate = Estimated(job);
  for (const AxisPlacement& placement : estimate.mapping) {
    const bool tensor = placement.axis == LogicalAxis::kTensor;
    EXPECT_EQ(placement.slowest_tier, tensor ? roofline::Tier::kScaleUp : roofline::Tier::kScaleOut);
  }
}

TEST_F(EstimateTrainingTest, CancelledSearchesStop) {
  TrainingJob job = BookJob({.fsdp = 512, .tensor = 8});
  job.parallelism.reset();
  MappingCache mappings;
  int polls = 0;
  const TrainingAnswer answer = EstimateTraining(job, mappings, [&] { return ++polls > 1; });
  EXPECT_TRUE(answer.cancelled);
  EXPECT_EQ(polls, 2);
}

}  // namespace
}  // namespace sliceplan::planner
