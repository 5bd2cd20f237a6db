#include "server/planner/saved_activations.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/planner/step_load.h"
#include "tests/planner/small_models.h"

namespace sliceplan::planner {
namespace {

const RematPolicy kAllPolicies[] = {RematPolicy::kNone,
                                    RematPolicy::kFull,
                                    RematPolicy::kBlock,
                                    RematPolicy::kSaveMatmulOutputs,
                                    RematPolicy::kSaveAttention,
                                    RematPolicy::kMinimal,
                                    RematPolicy::kMinimalFlash,
                                    RematPolicy::kSaveQkvProj,
                                    RematPolicy::kSaveDotExceptMlp,
                                    RematPolicy::kSaveDotExceptMlpWi,
                                    RematPolicy::kSaveDotWithContextExceptMlp};

TrainingJob JobOf(const transformer::ModelOperations& model) {
  TrainingJob job;
  job.model = &model;
  job.mode = EstimationMode::kRoofline;
  job.slice = Torus({4, 4, 4});
  job.workload.sequence_length = 4096;
  job.workload.global_batch_size = 64;
  return job;
}

StepLoad Count(const TrainingJob& job, RematPolicy policy, int32_t tensor, bool sequence_parallel) {
  StepPlan plan;
  plan.parallelism.ici[LogicalAxis::kTensor] = tensor;
  plan.parallelism.ici[LogicalAxis::kFsdp] = 64 / tensor;
  plan.parallelism.sequence_parallel = sequence_parallel;
  plan.remat_policy = policy;
  plan.remat = PlanRemat(policy, job.workload, false);
  plan.microbatch_size = tensor;
  StepLoad load;
  CountStep(job, plan, load);
  return load;
}

double RecomputeFlops(const LayerLoad& layer) {
  double flops = layer.recomputes_attention ? layer.attention_flops : 0;
  for (const GroupLoad& group : layer.groups) flops += group.recompute_flops;
  return flops;
}

// The estimate's own counts are exact; the advice only scales by ratios, which must be those of the counts.
TEST(SavedActivationsTest, RatiosBetweenPoliciesAreThoseOfTheCounts) {
  SmallModel dense;
  SmallModel mixture;
  mixture.experts = 16;
  mixture.experts_per_token = 2;
  mixture.ffn_dim = 2048;
  for (const SmallModel& small : {dense, mixture}) {
    const transformer::ModelOperations model = Operations(small);
    const TrainingJob job = JobOf(model);
    for (const int32_t tensor : {1, 8}) {
      for (const bool sequence_parallel : {false, true}) {
        const StepLoad full = Count(job, RematPolicy::kFull, tensor, sequence_parallel);
        const KeptPerToken kept_full =
            KeptBy(job, PlanRemat(RematPolicy::kFull, job.workload, false), tensor, sequence_parallel);
        for (const RematPolicy policy : kAllPolicies) {
          SCOPED_TRACE(RematPolicyField(policy) + " tensor " + std::to_string(tensor));
          const StepLoad load = Count(job, policy, tensor, sequence_parallel);
          const KeptPerToken kept = KeptBy(job, PlanRemat(policy, job.workload, false), tensor, sequence_parallel);
          const double counted = load.layers[0].saved_bytes / full.layers[0].saved_bytes;
          EXPECT_NEAR(kept.elements / kept_full.elements / counted, 1, 0.02);
          EXPECT_NEAR(kept.recompute_flops / kept_full.recompute_flops,
                      RecomputeFlops(load.layers[0]) / RecomputeFlops(full.layers[0]), 1e-9);
        }
      }
    }
  }
}

TrainingEstimate EstimateWith(RematPolicy policy, int64_t activations_bytes, int64_t headroom_bytes) {
  TrainingEstimate estimate;
  estimate.parallelism.ici[LogicalAxis::kFsdp] = 64;
  estimate.remat_policy = policy;
  estimate.memory.activations_bytes = activations_bytes;
  estimate.memory.headroom_bytes = headroom_bytes;
  return estimate;
}

TEST(SavedActivationsTest, TheLeastRecomputeThatFitsIsTaken) {
  const transformer::ModelOperations model = Operations(SmallModel());
  const TrainingJob job = JobOf(model);
  const int64_t input_bytes = 1'000'000'000;  // what policy full keeps: one width of 8192
  KeepingMore more = CheapestPolicyWithin(job, EstimateWith(RematPolicy::kFull, input_bytes, 1'000'000'000'000));
  EXPECT_TRUE(more.found);
  EXPECT_EQ(more.policy, RematPolicy::kNone);
  EXPECT_EQ(more.recompute_ratio, 0);

  // Query, keys, values: 8192 + 2 x 1024 more for each 8192.
  more = CheapestPolicyWithin(job, EstimateWith(RematPolicy::kFull, input_bytes, 1'300'000'000));
  EXPECT_EQ(more.policy, RematPolicy::kSaveQkvProj);
  EXPECT_NEAR(more.added_bytes, 1.25e9, 1);

  EXPECT_FALSE(CheapestPolicyWithin(job, EstimateWith(RematPolicy::kFull, input_bytes, 1'000'000)).found);
  EXPECT_FALSE(CheapestPolicyWithin(job, EstimateWith(RematPolicy::kNone, input_bytes, input_bytes)).found);
}

}  // namespace
}  // namespace sliceplan::planner
