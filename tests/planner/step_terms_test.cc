// Single terms of the step time and of memory, each against its formula.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/planner/plan_laws.h"
#include "server/planner/remat.h"
#include "server/planner/step_load.h"
#include "tests/planner/training_fixture.h"

namespace sliceplan::planner {
namespace {

using hardware::DataType;
using transformer::Component;

constexpr double kHbm = 3.35e12;  // of BookSwitchedChip

// One node behind a switch, no latency: every term is proportional to its bytes.
class StepTermsTest : public testing::Test {
 protected:
  TrainingJob Job(const Degrees& degrees, int32_t chips = 8) {
    TrainingJob job;
    job.model = &model_;
    job.slice = SwitchedSlice(chips);
    job.profile = &profile_;
    job.workload.sequence_length = 4096;
    job.workload.global_batch_size = 64;
    job.workload.remat_policy = RematPolicy::kNone;
    job.parallelism = PlanOf(degrees);
    return job;
  }

  static double Seconds(const TrainingEstimate& estimate, const std::function<bool(const BreakdownEntry&)>& wanted) {
    double seconds = 0;
    for (const BreakdownEntry& entry : estimate.breakdown) seconds += wanted(entry) ? entry.seconds : 0;
    return seconds;
  }
  static double OfAxis(const TrainingEstimate& estimate, LogicalAxis axis) {
    return Seconds(estimate, [axis](const BreakdownEntry& entry) {
      return entry.axis == axis && entry.resource != StepResource::kHbm;
    });
  }

  const SmallModel small_ = {.layers = 8, .hidden_dim = 4096, .ffn_dim = 16384, .vocab_size = 32768};
  const transformer::ModelOperations model_ = Operations(small_);
  const double layer_parameters_ = 4096.0 * (8192 + 2 * 1024 + 8192) + 3 * 4096.0 * 16384;
  roofline::EfficiencyProfile profile_ = TestProfile();
};

TEST_F(StepTermsTest, AccumulationIsAnOperandOfTheMatmulOrAPassOfItsOwn) {
  struct Case {
    bool fused;
    double passes;  // through HBM at its full rate
  };
  profile_.accumulation_bytes_per_parameter = 8;
  for (const Case& c : {Case{false, 1 / 0.6}, Case{true, 0.5}}) {  // elementwise_hbm_ratio, matmul_operand_bytes_ratio
    profile_.fused_gradient_accumulation = c.fused;
    for (const int rounds : {1, 4}) {
      TrainingJob job = Job({.fsdp = 8});
      job.workload.gradient_accumulation = rounds;
      const double seconds = Seconds(Estimated(job), [](const BreakdownEntry& entry) {
        return entry.phase == Phase::kGradientReduction && entry.resource == StepResource::kHbm;
      });
      const double parameters = 8 * layer_parameters_ / 8;  // no tables in this model
      const double expected = rounds > 1 ? rounds * 8 * parameters * c.passes / kHbm : 0;
      EXPECT_NEAR(seconds, expected, 1e-9 * expected) << c.fused << " " << rounds;
    }
  }
}

TEST_F(StepTermsTest, TheUpdateNeedsNoSecondCopyOfTheGradients) {
  TrainingJob job = Job({.data = 8});
  job.workload.global_batch_size = 8;
  job.workload.sequence_length = 128;
  const MemoryUse memory = Estimated(job).memory;
  const int64_t state = memory.parameters_bytes + memory.gradients_bytes + memory.optimizer_bytes;
  EXPECT_EQ(memory.worst_moment, MemoryMoment::kLayerBackward);
  EXPECT_NEAR(static_cast<double>(memory.used_bytes),
              static_cast<double>(state + memory.activations_bytes + memory.gathered_weights_bytes +
                                  memory.workspace_bytes + memory.buffers_bytes),
              8);
  EXPECT_LT(memory.used_bytes, state + memory.gradients_bytes);
}

TEST_F(StepTermsTest, AFusedBackwardKernelIsFiveProductsForTwo) {
  struct Case {
    AttentionKernel kernel;
    double forwards;  // that the backward pass costs
  };
  profile_.attention_backward_forwards = 7 / 2.0;
  for (const Case& c : {Case{AttentionKernel::kFlash, 7 / 2.0}, Case{AttentionKernel::kFlashFusedBackward, 5 / 2.0}}) {
    TrainingJob job = Job({.fsdp = 8});
    job.workload.attention_kernel = c.kernel;
    const TrainingEstimate estimate = Estimated(job);
    const auto seconds = [&](Phase phase) {
      return Seconds(estimate, [phase](const BreakdownEntry& entry) {
        return entry.phase == phase && entry.component == Component::kAttentionScores &&
               entry.resource == StepResource::kMatrixUnit;
      });
    };
    EXPECT_NEAR(seconds(Phase::kBackward) / seconds(Phase::kForward), c.forwards, 1e-9);
  }
}

TEST_F(StepTermsTest, LogitsTakeTheProfilesBytes) {
  for (const double bytes : {4.0, 12.0}) {
    for (const int chunks : {1, 8}) {
      profile_.logits_memory_bytes_per_element = bytes;
      TrainingJob job = Job({.fsdp = 8});
      job.workload.logits_chunk_count = chunks;
      EXPECT_EQ(static_cast<double>(Estimated(job).memory.logits_bytes), bytes * 8 * 4096 * 32768 / chunks);
    }
  }
}

TEST_F(StepTermsTest, WeightGradientsTravelInTheirOwnFormat) {
  profile_.fsdp_hideable_compute_ratio = 0;  // all of it shows
  const auto seconds = [&](DataType type) {
    TrainingJob job = Job({.fsdp = 8});
    job.workload.precision.gradient_reduction = type;
    return OfAxis(Estimated(job), LogicalAxis::kFsdp);
  };
  // Two gathers of 2 bytes and a scatter of the gradient's.
  EXPECT_NEAR(seconds(DataType::kFp32) / seconds(DataType::kBf16), (2 * 2 + 4) / (2 * 2 + 2.0), 1e-9);
}

TEST_F(StepTermsTest, RecomputeReducesAgainWhatItRunsAgain) {
  struct Case {
    RematPolicy policy;
    int passes;  // of the residual stream, per layer
  };
  profile_.tensor_exposed_ratio = 1;
  // Two branches, each gathered and scattered forward and backward. Again: the gathers; the scatter of every output
  // projection that runs again (never of the down projection when dead code is dropped).
  const Case kCases[] = {{RematPolicy::kNone, 8},
                         {RematPolicy::kMinimalFlash, 8 + 2},
                         {RematPolicy::kFull, 8 + 2 + 1},
                         {RematPolicy::kBlock, 8 + 2 + 2}};
  TrainingJob job = Job({.tensor = 8});
  const double once = OfAxis(Estimated(job), LogicalAxis::kTensor) / 8;
  for (const Case& c : kCases) {
    job.workload.remat_policy = c.policy;
    EXPECT_NEAR(OfAxis(Estimated(job), LogicalAxis::kTensor) / once, c.passes, 1e-9) << RematPolicyName(c.policy);
  }
}

TEST_F(StepTermsTest, TheBubbleIsTheTimeOfTheOtherStages) {
  struct Case {
    std::vector<int32_t> layers;
    PipelineSchedule schedule;
    int32_t chunks;
    double others;  // layers of all stages but the slowest, over chunks
    double slowest;
  };
  const Case kCases[] = {
      {{2, 2, 2, 2}, PipelineSchedule::kOneFOneB, 1, 2 + 2 + 2, 2},
      {{1, 5, 1, 1}, PipelineSchedule::kOneFOneB, 1, 1 + 1 + 1, 5},
      {{1, 1, 5, 1}, PipelineSchedule::kInterleaved1F1B, 2, 2 / 2.0, 6},  // stages of 1 + 5 and 1 + 1
  };
  SmallModel headless = small_;
  headless.vocab_size = 0;
  const transformer::ModelOperations model = Operations(headless);
  for (const EstimationMode mode : {EstimationMode::kRoofline, EstimationMode::kCalibrated}) {
    for (const Case& c : kCases) {
      const int32_t stages = static_cast<int32_t>(c.layers.size()) / c.chunks;
      TrainingJob job = Job({.fsdp = 8 / stages, .pipeline = stages});
      job.model = &model;
      job.mode = mode;
      job.parallelism->schedule = c.schedule;
      job.parallelism->virtual_stage_count = c.chunks;
      job.parallelism->layers_per_stage = c.layers;
      job.parallelism->microbatch_count = 16;
      const TrainingEstimate estimate = Estimated(job);
      const double bubble = c.others / c.slowest;
      // The embedding lookup of the first stage is the difference.
      EXPECT_NEAR(*estimate.thresholds.pipeline_bubble_ratio, bubble / (16 + bubble), 1e-3);
    }
  }
}

TEST_F(StepTermsTest, ZeroOneBringsBackParametersInPlaceOfGradients) {
  struct Case {
    ZeroStage stage;
    DataType reduction;
    DataType parameters;
    double bytes;  // scattered and gathered
  };
  const Case kCases[] = {
      {ZeroStage::k0, DataType::kFp32, DataType::kBf16, 4 + 4},
      {ZeroStage::k0, DataType::kBf16, DataType::kFp32, 2 + 2},
      {ZeroStage::k1, DataType::kFp32, DataType::kBf16, 4 + 2},
      {ZeroStage::k2, DataType::kBf16, DataType::kFp32, 2 + 4},
  };
  profile_.data_exposed_ratio = 1;
  double once = 0;
  for (const Case& c : kCases) {
    TrainingJob job = Job({.data = 8});
    job.parallelism->data_zero_stage = c.stage;
    job.workload.precision.gradient_reduction = c.reduction;
    job.workload.precision.parameters = c.parameters;
    const double seconds = OfAxis(Estimated(job), LogicalAxis::kData);
    if (once == 0) once = seconds / c.bytes;
    EXPECT_NEAR(seconds / once, c.bytes, 1e-9);
  }
}

TEST_F(StepTermsTest, GradientsHideBehindTheExpectedBackwardPass) {
  profile_.data_exposed_ratio = 0;
  const auto exposed = [&](double inverse_ratio) {
    profile_.matmul_inverse_ratio = inverse_ratio;
    TrainingJob job = Job({.data = 8});
    job.workload.global_batch_size = 8;
    job.workload.sequence_length = 64;
    return OfAxis(Estimated(job), LogicalAxis::kData);
  };
  const double fast = exposed(1);
  EXPECT_GT(fast, 0);
  // A slower chip hides more: by two thirds of what its matmuls take longer (the head is not behind the layers).
  const double matmuls = 6 * 8 * layer_parameters_ * 64 / 9.9e14;
  EXPECT_NEAR(fast - exposed(2), 2.0 / 3 * matmuls, 1e-9);
  EXPECT_EQ(exposed(1000), 0);
}

TEST_F(StepTermsTest, LowPrecisionOperandsBoundByTheirBytes) {
  struct Case {
    DataType compute;
    double ratio;  // bytes of a lower bound over those of 16-bit operands
  };
  // Two of three matmuls read an array, the third writes it in 16 bits.
  for (const Case& c : {Case{DataType::kBf16, 1}, Case{DataType::kFp8, (2 * 1 + 2) / (3 * 2.0)},
                        Case{DataType::kInt8, (2 * 1 + 2) / (3 * 2.0)}, Case{DataType::kFp32, 1}}) {
    TrainingJob job = Job({.fsdp = 8});
    job.workload.precision.compute = c.compute;
    StepPlan plan;
    plan.parallelism = *job.parallelism;
    plan.remat = PlanRemat(RematPolicy::kBlock, job.workload, false);
    StepLoad load;
    CountStep(job, plan, load);
    for (const GroupLoad& group : load.layers[0].groups) {
      EXPECT_NEAR(group.least_operand_bytes, c.ratio * group.operand_bytes, 1e-9 * group.operand_bytes);
      EXPECT_NEAR(group.recompute_least_operand_bytes, c.ratio * group.recompute_operand_bytes,
                  1e-9 * group.operand_bytes);
    }
  }
}

struct ShardingCase {
  const char* name;
  Degrees degrees;
  ZeroStage stage;
  bool expert_axis_shards;
  // Chips that share a dense weight and an expert weight, and copies of each.
  int64_t dense_shards;
  int64_t expert_shards;
  int64_t dense_replicas;
  int64_t expert_replicas;
};

const ShardingCase kShardings[] = {
    {"fsdp", {.data = 2, .fsdp = 4, .context = 3, .expert = 5}, ZeroStage::k0, false, 4 * 3, 4 * 3, 2 * 5, 2},
    {"context_alone", {.data = 2, .context = 3, .expert = 5}, ZeroStage::k0, false, 1, 1, 2 * 3 * 5, 2 * 3},
    {"zero_3_over_context_alone", {.context = 3}, ZeroStage::k3, false, 3, 3, 1, 1},
    {"zero_3", {.data = 2, .context = 3, .expert = 5}, ZeroStage::k3, false, 2 * 3, 2 * 3, 5, 1},
    {"expert_axis", {.data = 2, .fsdp = 4, .context = 3, .expert = 5}, ZeroStage::k0, true, 4 * 3 * 5, 4 * 3, 2, 2},
    {"expert_axis_alone", {.data = 2, .expert = 5}, ZeroStage::k0, true, 5, 1, 2, 2},
    {"expert_axis_zero_1", {.data = 2, .fsdp = 4, .expert = 5}, ZeroStage::k1, true, 4 * 5, 4, 2, 2},
};

class ShardingTest : public testing::TestWithParam<ShardingCase> {};

TEST_P(ShardingTest, EveryChipIsAShardOrACopy) {
  const ShardingCase& c = GetParam();
  Parallelism parallelism = PlanOf(c.degrees);
  parallelism.data_zero_stage = c.stage;
  const WeightSharding sharding = ShardingOf(parallelism, c.expert_axis_shards);
  EXPECT_EQ(sharding.dense_shard_count, c.dense_shards);
  EXPECT_EQ(sharding.shard_count, c.expert_shards);
  EXPECT_EQ(sharding.dense_replica_count, c.dense_replicas);
  EXPECT_EQ(sharding.expert_replica_count, c.expert_replicas);
  const bool shards_optimizer = c.stage >= ZeroStage::k1;
  EXPECT_EQ(sharding.optimizer_shard_count, c.dense_shards * (shards_optimizer ? c.dense_replicas : 1));
  EXPECT_EQ(sharding.expert_optimizer_shard_count, c.expert_shards * (shards_optimizer ? c.expert_replicas : 1));
  const int64_t chips = parallelism.ici.Product();
  EXPECT_EQ(sharding.dense_shard_count * sharding.dense_replica_count, chips);
  EXPECT_EQ(sharding.shard_count * sharding.expert_replica_count * c.degrees.expert, chips);
}

INSTANTIATE_TEST_SUITE_P(Plans, ShardingTest, testing::ValuesIn(kShardings),
                         [](const auto& info) { return std::string(info.param.name); });

// Mixture of experts over fsdp 2 x expert 4: what the expert axis does with attention's weights.
TEST_F(StepTermsTest, TheExpertAxisShardsDenseWeightsWhereTheRuntimeSaysSo) {
  SmallModel small = small_;
  small.experts = 8;
  small.experts_per_token = 2;
  const transformer::ModelOperations model = Operations(small);
  const double dense = 8 * 4096.0 * (8192 + 2 * 1024 + 8192);
  const double expert = 8 * 8 * 3 * 4096.0 * 16384;
  profile_.data_exposed_ratio = 1;
  for (const bool shards : {false, true}) {
    profile_.expert_axis_shards_dense_weights = shards;
    TrainingJob job = Job({.fsdp = 2, .expert = 4});
    job.model = &model;
    const TrainingEstimate estimate = Estimated(job);
    EXPECT_NEAR(static_cast<double>(estimate.memory.parameters_bytes),
                4 * (dense / (shards ? 2 * 4 : 2) + expert / (2 * 4)), 1);
    // Copies of dense weights have gradients to reduce; shards have none.
    EXPECT_EQ(OfAxis(estimate, LogicalAxis::kData) > 0, !shards);
  }
}

}  // namespace
}  // namespace sliceplan::planner
