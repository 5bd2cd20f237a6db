#include "server/planner/smallest_fix.h"
#include "absl/strings/str_cat.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/small_models.h"

namespace sliceplan::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A job on 64 chips and what became of it.
struct Asked {
  transformer::ModelOperations model = Operations(SmallModel());
  TrainingJob job;
  TrainingEstimate estimate;

  explicit Asked(Outcome outcome) {
    job.model = &model;
    job.slice = Torus({4, 4, 4});
    job.slice.accelerator.pcie_bytes_per_second = 3.2e10;
    job.workload.global_batch_size = 64;
    job.workload.remat_policy = RematPolicy::kNone;
    job.workload.gradient_accumulation = 1;
    Parallelism plan;
    plan.ici[LogicalAxis::kData] = 8;
    plan.ici[LogicalAxis::kTensor] = 8;
    job.parallelism = plan;
    estimate.outcome = outcome;
    estimate.parallelism = plan;
    estimate.microbatch_size = 8;
    estimate.tokens_per_step = 64 * 8192.0;
  }
};

struct FixCase {
  const char* name;
  // What is feasible, and how long its step takes.
  std::function<bool(const TrainingJob&)> feasible;
  const char* code;
  std::vector<std::string> fields;
  const char* says;
};

std::optional<Trial> TrialOf(bool feasible, double seconds = 1) {
  return Trial{feasible ? Outcome::kFeasible : Outcome::kOutOfMemory, seconds, 0};
}

const FixCase kMemoryCases[] = {
    {"policy",
     [](const TrainingJob& job) { return job.workload.remat_policy == RematPolicy::kFull; },
     "RECOMPUTE_MORE",
     {"workload.remat_policy=REMAT_POLICY_FULL"},
     "recompute policy full"},
    {"accumulation",
     [](const TrainingJob& job) { return *job.workload.gradient_accumulation >= 4; },
     "ACCUMULATE_GRADIENTS",
     {"workload.gradient_accumulation=4"},
     "over 4 steps"},
    {"logits",
     [](const TrainingJob& job) { return job.workload.logits_chunk_count >= 8; },
     "CHUNK_LOGITS",
     {"workload.logits_chunk_count=8"},
     "8 chunks"},
    {"zero",
     [](const TrainingJob& job) { return job.parallelism->data_zero_stage == ZeroStage::k2; },
     "SHARD_OVER_DATA",
     {"parallelism.data_zero_stage=ZERO_STAGE_2"},
     "ZeRO stage 2"},
    {"offload",
     [](const TrainingJob& job) { return job.workload.optimizer_offload; },
     "OFFLOAD_OPTIMIZER",
     {"workload.optimizer_offload=true"},
     "host memory"},
    {"two_at_once",
     [](const TrainingJob& job) {
       return job.workload.remat_policy == RematPolicy::kFull && *job.workload.gradient_accumulation == 8;
     },
     "SEVERAL_CHANGES",
     {"workload.remat_policy=REMAT_POLICY_FULL", "workload.gradient_accumulation=8"},
     " and "},
    {"formats",
     [](const TrainingJob& job) { return job.workload.precision.gradients == hardware::DataType::kBf16; },
     "NARROWER_GRADIENTS",
     {"workload.precision.gradients=DATA_TYPE_BF16"},
     "gradients in bf16"},
    {"fsdp",
     [](const TrainingJob& job) {
       return job.parallelism && job.parallelism->ici[LogicalAxis::kFsdp] == 8 &&
              job.workload.remat_policy == RematPolicy::kNone;
     },
     "FSDP_FOR_DATA",
     {"parallelism.ici.data=1", "parallelism.ici.fsdp=8"},
     "fsdp 8 in place of data 8"},
    {"open_plan",
     [](const TrainingJob& job) { return !job.parallelism; },
     "LEAVE_PLAN_OPEN",
     {"parallelism=null"},
     "left to the search"},
    {"slices",
     [](const TrainingJob& job) { return job.slice.slice_count == 4 && job.parallelism; },
     "MORE_SLICES",
     {"slice.slice_count=4", "parallelism.dcn.fsdp=4"},
     "4 slices"},
};

std::vector<std::string> Fields(const Fix& fix) {
  std::vector<std::string> fields;
  for (const FieldChange& change : fix.changes) fields.push_back(change.field + "=" + change.value);
  return fields;
}

TEST(SmallestFixTest, EachKindOfChangeIsFoundWhenOnlyItHelps) {
  for (const FixCase& test : kMemoryCases) {
    SCOPED_TRACE(test.name);
    const Asked asked(Outcome::kOutOfMemory);
    const std::optional<Fix> fix = SmallestFix(
        asked.job, asked.estimate, [&](const TrainingJob& job) { return TrialOf(test.feasible(job), 2.5); });
    ASSERT_TRUE(fix.has_value());
    EXPECT_EQ(fix->code, test.code);
    EXPECT_EQ(Fields(*fix), test.fields);
    EXPECT_THAT(fix->sentence, HasSubstr(test.says));
    EXPECT_THAT(fix->sentence, HasSubstr("2.5 s a step"));
    EXPECT_EQ(fix->expected_seconds, 2.5);
  }
}

TEST(SmallestFixTest, OfSingleChangesTheFastestWins) {
  const Asked asked(Outcome::kOutOfMemory);
  const std::optional<Fix> fix = SmallestFix(asked.job, asked.estimate, [](const TrainingJob& job) {
    if (job.workload.remat_policy == RematPolicy::kFull) return TrialOf(true, 3);
    if (job.workload.remat_policy == RematPolicy::kMinimal) return TrialOf(true, 1.5);
    if (job.workload.optimizer_offload) return TrialOf(true, 2);
    return TrialOf(false);
  });
  ASSERT_TRUE(fix.has_value());
  EXPECT_THAT(Fields(*fix), ElementsAre("workload.remat_policy=REMAT_POLICY_MINIMAL"));
}

TEST(SmallestFixTest, ASingleChangeWinsOverAFasterLargeOne) {
  const Asked asked(Outcome::kOutOfMemory);
  const std::optional<Fix> fix = SmallestFix(asked.job, asked.estimate, [](const TrainingJob& job) {
    if (job.slice.slice_count > 1) return TrialOf(true, 0.1);
    return TrialOf(job.workload.optimizer_offload, 2);
  });
  ASSERT_TRUE(fix.has_value());
  EXPECT_EQ(fix->code, "OFFLOAD_OPTIMIZER");
}

// Where the search joins the slices, the least number that does: neither the power of two above it nor one beside it
// that fits the job worse.
TEST(SmallestFixTest, TheFewestSlicesThatDo) {
  struct {
    int32_t least;
    int32_t not_legal;  // though enough
    int32_t found;
  } const kRows[] = {{2, 0, 2}, {5, 0, 5}, {5, 5, 6}, {9, 0, 9}, {16, 0, 16}, {60, 0, 60}};
  for (const auto& row : kRows) {
    Asked asked(Outcome::kOutOfMemory);
    asked.job.parallelism.reset();
    const std::optional<Fix> fix = SmallestFix(asked.job, asked.estimate, [&row](const TrainingJob& job) {
      return TrialOf(!job.parallelism && job.slice.slice_count >= row.least && job.slice.slice_count != row.not_legal,
                     1.0 / job.slice.slice_count);
    });
    ASSERT_TRUE(fix.has_value()) << row.least;
    EXPECT_EQ(fix->code, "MORE_SLICES");
    EXPECT_THAT(Fields(*fix), ::testing::Contains(absl::StrCat("slice.slice_count=", row.found)));
  }
}

TEST(SmallestFixTest, WhatTheJobLeavesOpenIsNotChanged) {
  Asked asked(Outcome::kOutOfMemory);
  asked.job.workload.remat_policy.reset();
  asked.job.workload.gradient_accumulation.reset();
  asked.job.parallelism.reset();
  const auto untouched = [](const TrainingJob& job) {
    EXPECT_FALSE(job.workload.remat_policy.has_value());
    EXPECT_FALSE(job.workload.gradient_accumulation.has_value());
    return TrialOf(false);
  };
  EXPECT_FALSE(SmallestFix(asked.job, asked.estimate, untouched).has_value());
}

TEST(SmallestFixTest, NoOffloadOverAnUnknownLink) {
  Asked asked(Outcome::kOutOfMemory);
  asked.job.slice.accelerator.pcie_bytes_per_second.reset();
  const auto refuse_offload = [](const TrainingJob& job) {
    EXPECT_FALSE(job.workload.optimizer_offload || job.workload.activation_offload);
    return TrialOf(false);
  };
  EXPECT_FALSE(SmallestFix(asked.job, asked.estimate, refuse_offload).has_value());
}

TEST(SmallestFixTest, BudgetsBuyFewerTokens) {
  Asked asked(Outcome::kOverBudget);
  asked.job.workload.total_tokens = 10'000'000'000;
  asked.job.budget_usd = 600;
  asked.estimate.shortfall_amount = 400;
  const std::optional<Fix> fix = SmallestFix(asked.job, asked.estimate, [](const TrainingJob& job) {
    return Trial{*job.workload.total_tokens <= 6'000'000'000 ? Outcome::kFeasible : Outcome::kOverBudget, 1, 1000};
  });
  ASSERT_TRUE(fix.has_value());
  EXPECT_EQ(fix->code, "FEWER_TOKENS");
  // Six tenths of the tokens in whole steps.
  const int64_t step = 64 * 8192;
  EXPECT_THAT(Fields(*fix), ElementsAre("workload.total_tokens=" + std::to_string(6'000'000'000 / step * step)));
}

TEST(SmallestFixTest, DeadlinesAskForSlices) {
  Asked asked(Outcome::kMissesDeadline);
  asked.job.workload.total_tokens = 10'000'000'000;
  asked.job.deadline_seconds = 100;
  asked.estimate.shortfall_amount = 200;
  const std::optional<Fix> fix = SmallestFix(asked.job, asked.estimate, [](const TrainingJob& job) {
    return Trial{job.slice.slice_count >= 4 ? Outcome::kFeasible : Outcome::kMissesDeadline, 1, 80};
  });
  ASSERT_TRUE(fix.has_value());
  EXPECT_EQ(fix->code, "MORE_SLICES");
}

TEST(SmallestFixTest, WithoutAPlanABatchOrIdleChipsHelp) {
  Asked asked(Outcome::kNoLegalPlan);
  asked.job.parallelism.reset();
  asked.job.slice = Torus({4, 7});
  const std::optional<Fix> idle =
      SmallestFix(asked.job, asked.estimate, [](const TrainingJob& job) { return TrialOf(job.allow_idle_chips); });
  ASSERT_TRUE(idle.has_value());
  EXPECT_EQ(idle->code, "ALLOW_IDLE_CHIPS");
  const std::optional<Fix> batch = SmallestFix(asked.job, asked.estimate, [](const TrainingJob& job) {
    return TrialOf(job.workload.global_batch_size % 7 == 0);
  });
  ASSERT_TRUE(batch.has_value());
  EXPECT_THAT(Fields(*batch), ElementsAre("workload.global_batch_size=63"));
}

TEST(SmallestFixTest, NothingToFixAndNothingFound) {
  const Asked fine(Outcome::kFeasible);
  const auto never = [](const TrainingJob&) -> std::optional<Trial> { return std::nullopt; };
  EXPECT_FALSE(SmallestFix(fine.job, fine.estimate, never).has_value());
  int trials = 0;
  const Asked hopeless(Outcome::kOutOfMemory);
  const auto count = [&](const TrainingJob&) -> std::optional<Trial> {
    ++trials;
    return std::nullopt;
  };
  EXPECT_FALSE(SmallestFix(hopeless.job, hopeless.estimate, count).has_value());
  EXPECT_GT(trials, 20);
  EXPECT_LT(trials, 100);
}

}  // namespace
}  // namespace sliceplan::planner
