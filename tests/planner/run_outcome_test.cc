// What a run comes to: failures, limits, host memory, parts of an assumed step, and changes that a request can apply.
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/planner/optimizer_state.h"
#include "server/planner/orthogonalisation.h"
#include "server/planner/plan_fields.h"
#include "server/planner/workload_check.h"
#include "tests/planner/training_fixture.h"

namespace sliceplan::planner {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RunOutcomeTest : public testing::Test {
 protected:
  TrainingJob Job(const Degrees& degrees = {.fsdp = 512, .tensor = 8}) const {
    TrainingJob job;
    job.model = &model_;
    job.slice = TorusSlice({16, 16, 16});
    job.mode = EstimationMode::kCalibrated;
    job.profile = &profile_;
    job.workload.sequence_length = 4096;
    job.workload.global_batch_size = 1024;
    job.workload.total_tokens = 1'000'000'000'000;
    job.usd_per_chip_hour = 4.2;
    job.parallelism = PlanOf(degrees);
    return job;
  }

  const transformer::ModelOperations model_ = Operations({});
  const roofline::EfficiencyProfile profile_ = TestProfile();
};

TEST_F(RunOutcomeTest, AJobThatNeverFinishesMeetsNoLimitAndHasNoTotal) {
  TrainingJob job = Job();
  job.reliability.preemptions_per_hour = 1000;
  const TrainingEstimate open = Estimated(job);
  EXPECT_FALSE(open.goodput.finishes);
  EXPECT_EQ(open.outcome, Outcome::kFeasible);
  EXPECT_THAT(open.warnings, Contains(HasSubstr("leave no time to train")));
  EXPECT_FALSE(open.goodput.wall_seconds || open.chip_hours || open.cost->total_usd ||
               open.cost->usd_per_million_tokens || open.energy->total_kilowatt_hours);

  job.deadline_seconds = 1e9;
  const TrainingEstimate late = Estimated(job);
  EXPECT_EQ(late.outcome, Outcome::kMissesDeadline);
  EXPECT_TRUE(std::isfinite(late.shortfall_amount));
  EXPECT_THAT(late.shortfall, HasSubstr("never finishes"));
  EXPECT_FALSE(late.smallest_fix.has_value());

  job.deadline_seconds.reset();
  job.budget_usd = 1e12;
  EXPECT_EQ(Estimated(job).outcome, Outcome::kOverBudget);
}

TEST_F(RunOutcomeTest, TokensCostWhatFailuresCost) {
  TrainingJob job = Job();
  const TrainingEstimate calm = Estimated(job);
  job.reliability.preemptions_per_hour = 1;
  const TrainingEstimate stormy = Estimated(job);
  EXPECT_LT(stormy.goodput.ratio, 0.9);
  EXPECT_NEAR(*stormy.cost->usd_per_million_tokens * stormy.goodput.ratio / *calm.cost->usd_per_million_tokens, 1,
              1e-12);
  // Whole steps: the total has one step more at most.
  EXPECT_NEAR(*stormy.cost->usd_per_million_tokens * 1e6 / *stormy.cost->total_usd, 1, 1e-4);
}

TEST_F(RunOutcomeTest, AskedCheckpointIntervalsAreUsed) {
  TrainingJob job = Job();
  job.reliability.preemptions_per_hour = 0.2;
  job.reliability.checkpoint_interval_seconds = 7200;
  const TrainingEstimate estimate = Estimated(job);
  EXPECT_EQ(estimate.goodput.checkpoint_interval_seconds, 7200);
  EXPECT_NE(estimate.goodput.optimal_checkpoint_interval_seconds, 7200);
}

TEST_F(RunOutcomeTest, AnAssumedStepHasPartsAndNoBottleneckOfItsOwn) {
  TrainingJob job = Job();
  job.assumed_mfu_ratio = 0.4;
  const TrainingEstimate estimate = Estimated(job);
  double sum = 0;
  for (const BreakdownEntry& entry : estimate.breakdown) sum += entry.seconds;
  EXPECT_NEAR(sum / estimate.step_time.expected_seconds, 1, 1e-12);
  EXPECT_THAT(estimate.bottleneck.sentence, HasSubstr("assumed, 40% of the peak"));
}

TEST_F(RunOutcomeTest, HostTimeIsNoPipeline) {
  const TrainingEstimate estimate = Estimated(Job());
  for (const BreakdownEntry& entry : estimate.breakdown) EXPECT_NE(entry.phase, Phase::kSchedule);
}

TEST_F(RunOutcomeTest, WhatLeavesTheChipIsOnTheHost) {
  TrainingJob job = Job();
  const TrainingEstimate kept = Estimated(job);
  EXPECT_EQ(kept.memory.host_bytes, 0);
  job.workload.optimizer_offload = true;
  const TrainingEstimate offloaded = Estimated(job);
  EXPECT_EQ(offloaded.memory.host_bytes, kept.memory.optimizer_bytes);
  job.workload.optimizer_offload = false;
  job.workload.activation_offload = true;
  EXPECT_GT(Estimated(job).memory.host_bytes, 0);
}

TEST_F(RunOutcomeTest, TheHostsMemoryLimits) {
  TrainingJob job = Job();
  job.workload.optimizer_offload = true;
  job.slice.chips_per_host = 4;
  const int64_t needed = Estimated(job).memory.host_bytes;
  job.slice.host_memory_bytes = 4 * needed;
  EXPECT_EQ(Estimated(job).outcome, Outcome::kFeasible);
  job.slice.host_memory_bytes = 4 * needed - 400;
  const TrainingEstimate short_of_it = Estimated(job);
  EXPECT_EQ(short_of_it.outcome, Outcome::kOutOfMemory);
  EXPECT_EQ(short_of_it.shortfall_amount, 100);
  EXPECT_THAT(short_of_it.shortfall, HasSubstr("host's memory"));
  ASSERT_TRUE(short_of_it.smallest_fix.has_value());
  EXPECT_EQ(short_of_it.smallest_fix->code, "NO_OFFLOAD");
}

TEST_F(RunOutcomeTest, MuonKeepsAdamsMomentsOfTablesAndOrthogonalises) {
  transformer::ModelOperations model = model_;
  model.embedding_parameter_count = int64_t{8192} * 128256;
  TrainingJob job = Job();
  job.model = &model;
  job.workload.optimizer = Optimizer::kSgd;
  const TrainingEstimate sgd = Estimated(job);
  job.workload.optimizer = Optimizer::kMuon;
  const TrainingEstimate muon = Estimated(job);
  // One more fp32 moment of the table, over all 4,096 chips.
  EXPECT_NEAR(static_cast<double>(muon.memory.optimizer_bytes - sgd.memory.optimizer_bytes), 4 * 8192.0 * 128256 / 4096,
              2);
  EXPECT_GT(muon.step_time.expected_seconds, sgd.step_time.expected_seconds);
}

TEST(OrthogonalisationTest, FiveIterationsOfThreeProducts) {
  transformer::LayerOperations layer;
  transformer::WeightMatmul matmul;
  matmul.k = 100;
  matmul.n = 300;
  layer.matmuls.push_back(matmul);
  // X X^T and B X: 2 m^2 n each, A A: 2 m^3.
  EXPECT_DOUBLE_EQ(OrthogonalisationFlops(layer).dense, 5 * (4 * 100.0 * 100 * 300 + 2 * 1e6));
  layer.matmuls[0].expert_count = 8;
  EXPECT_DOUBLE_EQ(OrthogonalisationFlops(layer).dense, 0);
  EXPECT_DOUBLE_EQ(OrthogonalisationFlops(layer).expert, 8 * 5 * (4 * 100.0 * 100 * 300 + 2 * 1e6));
}

TEST_F(RunOutcomeTest, Fp32AtTheRateOfBf16IsSaid) {
  TrainingJob job = Job();
  job.workload.precision.compute = hardware::DataType::kFp32;
  const auto warnings = [&](double rate) {
    job.slice.accelerator.fp32_flops_per_second = rate;
    std::vector<hardware::Violation> violations;
    std::vector<std::string> said;
    CheckWorkload(job, violations, said);
    return said;
  };
  EXPECT_THAT(warnings(4.59e14), ElementsAre(HasSubstr("one bf16 pass")));
  EXPECT_THAT(warnings(6.7e13), IsEmpty());
}

TEST_F(RunOutcomeTest, FieldsOfACustomChipAreNamedAsSuch) {
  TrainingJob job = Job();
  job.slice.accelerator.bf16_flops_per_second.reset();
  MappingCache mappings;
  for (const char* id : {"", "tpu-test"}) {
    job.slice.accelerator_id = id;
    const TrainingAnswer answer = EstimateTraining(job, mappings);
    ASSERT_EQ(answer.violations.size(), 1u);
    EXPECT_EQ(answer.violations[0].field,
              *id == 0 ? "slice.custom.bf16_flops_per_second" : "slice.override.bf16_flops_per_second");
  }
}

std::vector<std::string> Words(const std::vector<FieldChange>& changes) {
  std::vector<std::string> words;
  for (const FieldChange& change : changes) words.push_back(change.field + "=" + change.value);
  return words;
}

TEST(CompletePlanTest, ChangesCarryTheWholePlan) {
  Parallelism plan = PlanOf({.fsdp = 64, .tensor = 8, .pipeline = 4, .dcn_data = 2});
  plan.microbatch_count = 16;
  std::vector<FieldChange> changes = {{"parallelism.ici.tensor", "4"}, {"parallelism.ici.context", "2"}};
  CompletePlan(plan, changes);
  EXPECT_THAT(Words(changes),
              ElementsAre("parallelism.ici.fsdp=64", "parallelism.ici.tensor=4", "parallelism.ici.pipeline=4",
                          "parallelism.dcn.data=2", "parallelism.schedule=PIPELINE_SCHEDULE_ONE_F_ONE_B",
                          "parallelism.microbatch_count=16", "parallelism.ici.context=2"));
  std::vector<FieldChange> other = {{"workload.remat_policy", "REMAT_POLICY_FULL"}};
  CompletePlan(plan, other);
  EXPECT_EQ(other.size(), 1u);
}

// Without a plan of its own a job has plan changes that fill the slice.
TEST_F(RunOutcomeTest, AdviceToAJobWithoutAPlanFillsTheSlice) {
  TrainingJob job = Job();
  job.parallelism.reset();
  job.slice = TorusSlice({4, 4, 4});
  job.workload.global_batch_size = 64;
  const TrainingEstimate estimate = Estimated(job);
  for (const Advice& advice : estimate.advice) {
    int64_t chips = 1;
    bool changes_plan = false;
    for (const FieldChange& change : advice.changes) {
      if (change.field.rfind("parallelism.", 0) != 0) continue;
      changes_plan = true;
      if (change.field.rfind("parallelism.ici.", 0) == 0) chips *= std::stoll(change.value);
    }
    EXPECT_EQ(changes_plan ? chips : 64, 64) << advice.sentence;
  }
}

}  // namespace
}  // namespace sliceplan::planner
