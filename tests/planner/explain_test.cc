#include "server/planner/explain.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/small_models.h"

namespace sliceplan::planner {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TrainingEstimate BookEstimate() {
  TrainingEstimate estimate;
  estimate.parallelism.ici[LogicalAxis::kFsdp] = 512;
  estimate.parallelism.ici[LogicalAxis::kContext] = 8;
  estimate.parallelism.dcn[LogicalAxis::kData] = 2;
  estimate.thresholds.tokens_per_chip = 512;
  estimate.thresholds.data_tokens_per_chip = 850;
  estimate.thresholds.fsdp_tokens_per_chip = 850;
  estimate.thresholds.fsdp_tensor_tokens_per_chip = 113;
  estimate.bottleneck = {StepResource::kIci, 1, StepResource::kMatrixUnit, 0.6, ""};
  return estimate;
}

TEST(ExplainTest, TooFewTokensBindTheInterconnect) {
  TrainingJob job;
  job.slice = Torus({16, 16, 16}, 2);
  EXPECT_EQ(ExplainBottleneck(job, BookEstimate()),
            "Interconnect-bound: 512 tokens per chip where FSDP alone needs 850 on three axes; ICI is busy 100% of the "
            "ideal step, the matrix unit 60%.");
}

TEST(ExplainTest, TensorBesideFsdpIsComputeBound) {
  TrainingJob job;
  job.slice = Torus({16, 16, 16}, 2);
  TrainingEstimate estimate = BookEstimate();
  estimate.parallelism.ici[LogicalAxis::kContext] = 2;
  estimate.parallelism.ici[LogicalAxis::kTensor] = 4;
  estimate.thresholds.fsdp_tokens_per_chip = 319;
  estimate.bottleneck = {StepResource::kMatrixUnit, 0.97, StepResource::kIci, 0.58, ""};
  EXPECT_EQ(ExplainBottleneck(job, estimate),
            "Compute-bound: the matrix unit is busy 97% of the ideal step, ICI 58%; 512 tokens per chip where FSDP "
            "beside tensor 4 needs 319, 113 at the best split.");
}

TEST(ExplainTest, OtherResourcesAreNamed) {
  TrainingJob job;
  TrainingEstimate estimate;
  for (int resource = 0; resource <= static_cast<int>(StepResource::kHost); ++resource) {
    estimate.bottleneck.resource = static_cast<StepResource>(resource);
    estimate.bottleneck.share_ratio = 0.5;
    const std::string sentence = ExplainBottleneck(job, estimate);
    EXPECT_THAT(sentence, AllOf(HasSubstr("ound"), HasSubstr(" 50% of the ideal step.")));
    EXPECT_FALSE(ResourceWords(estimate.bottleneck.resource).empty());
  }
  estimate.bottleneck.share_ratio = 0;
  EXPECT_EQ(ExplainBottleneck(job, estimate), "");
}

TEST(ExplainTest, ShortfallsSayHowMuchAndOfWhat) {
  const transformer::ModelOperations model = Operations(SmallModel());
  TrainingJob job;
  job.model = &model;
  job.slice = Torus({16, 20, 28});
  TrainingEstimate estimate;
  EXPECT_EQ(DescribeShortfall(job, estimate), "");

  estimate.outcome = Outcome::kOutOfMemory;
  MemoryUse& memory = estimate.memory;
  memory.used_bytes = 112'000'000'000;
  memory.capacity_bytes = 95'000'000'000;
  memory.headroom_bytes = -17'000'000'000;
  memory.optimizer_bytes = 60'000'000'000;
  memory.activations_bytes = 30'000'000'000;
  memory.parameters_bytes = 20'000'000'000;
  memory.logits_bytes = 2'000'000'000;
  EXPECT_EQ(DescribeShortfall(job, estimate),
            "Each chip needs 104 GiB in a layer's backward pass and has 88.5 GiB: 15.8 GiB too little. Largest: "
            "optimizer state "
            "55.9 GiB, saved activations 27.9 GiB, parameters 18.6 GiB.");
  memory.stage = 3;
  memory.worst_moment = MemoryMoment::kLoss;
  estimate.stage_memory.resize(4);
  EXPECT_THAT(DescribeShortfall(job, estimate),
              StartsWith("Each chip of stage 3 needs 104 GiB while the loss is computed"));

  estimate.outcome = Outcome::kMissesDeadline;
  job.deadline_seconds = 40 * 86400.0;
  estimate.shortfall_amount = 4 * 86400.0;
  EXPECT_EQ(DescribeShortfall(job, estimate),
            "Training takes 44 days, 4 days longer than the deadline of 40 days allows.");

  estimate.outcome = Outcome::kOverBudget;
  job.budget_usd = 1e6;
  estimate.shortfall_amount = 2.5e5;
  EXPECT_EQ(DescribeShortfall(job, estimate),
            "Training costs $1.25 million, $250,000 more than the budget of $1 million.");

  estimate.outcome = Outcome::kNoLegalPlan;
  EXPECT_THAT(
      DescribeShortfall(job, estimate),
      AllOf(HasSubstr("No split of 8,960 chips"), HasSubstr("512 sequences of 8,192 tokens"), HasSubstr("80 layers")));
}

}  // namespace
}  // namespace sliceplan::planner
