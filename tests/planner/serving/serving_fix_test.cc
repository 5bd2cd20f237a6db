// Fixes of loads that are not served in time: whatever is quoted, when asked for, is feasible.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/planner/serving/serving_fixture.h"

namespace sliceplan::planner {
namespace {

// 8B.
ServedFixture Small() {
  DenseShape shape;
  shape.layers = 32;
  shape.hidden_dim = 4096;
  shape.query_heads = 32;
  shape.ffn_dim = 14336;
  return Served(shape);
}

enum class Pools { kSlice, kOne, kTwo, kApart };

struct FixCase {
  const char* name;
  Pools pools;
  ServingLoadKind load;
  double amount;            // of the load: users, requests a second or sequences
  double ttft_p95_seconds;  // 0: no target
  double tpot_mean_seconds;
  const char* code;
  bool leave_plan_open = false;
};

ServingJob JobOf(const ServedFixture& served, const FixCase& test) {
  ServingJob job = BookJob(served, 1024, 1);
  job.pools[0].slice = ServingSlice(1, 1);
  job.pools[0].parallelism = TensorOnly(1);
  job.workload.output = TokenLengths::Constant(64);
  job.pools_given = test.pools != Pools::kSlice;
  if (test.pools == Pools::kTwo || test.pools == Pools::kApart) job.pools.push_back(job.pools[0]);
  if (test.pools == Pools::kApart) {
    job.pools[0].role = PoolRole::kPrefill;
    job.pools[1].role = PoolRole::kDecode;
  }
  for (ServingPool& pool : job.pools) {
    if (test.leave_plan_open) pool.parallelism.reset();
  }
  job.workload.load = test.load;
  job.workload.requests_per_second = test.amount;
  job.workload.concurrency = static_cast<int32_t>(test.amount);
  job.workload.batch_size = static_cast<int32_t>(test.amount);
  if (test.ttft_p95_seconds > 0) job.slo.ttft.p95_seconds = test.ttft_p95_seconds;
  if (test.tpot_mean_seconds > 0) job.slo.tpot.mean_seconds = test.tpot_mean_seconds;
  return job;
}

// False: no such field.
bool Apply(const FieldChange& change, ServingJob& job) {
  for (size_t i = 0; i < job.pools.size(); ++i) {
    if (!job.pools_given || change.field != absl::StrCat("pools[", i, "].replica_count")) continue;
    job.pools[i].replica_count = std::stoi(change.value);
    return true;
  }
  if (change.field == "workload.requests_per_second") {
    job.workload.requests_per_second = std::stod(change.value);
  } else if (change.field == "workload.concurrency") {
    job.workload.concurrency = std::stoi(change.value);
  } else if (change.field == "workload.batch_size") {
    job.workload.batch_size = std::stoi(change.value);
  } else if (change.field == "slo.ttft.p95_seconds") {
    job.slo.ttft.p95_seconds = std::stod(change.value);
  } else if (change.field == "slo.tpot.mean_seconds") {
    job.slo.tpot.mean_seconds = std::stod(change.value);
  } else {
    return false;
  }
  return true;
}

class ServingFixTableTest : public testing::TestWithParam<FixCase> {};

TEST_P(ServingFixTableTest, WhatIsQuotedIsFeasible) {
  const FixCase& test = GetParam();
  const ServedFixture served = Small();
  ServingJob job = JobOf(served, test);
  MappingCache mappings;
  const ServingEstimate missed = EstimateServingWithFix(job, mappings).estimate;
  ASSERT_NE(missed.outcome, ServingOutcome::kFeasible);
  ASSERT_TRUE(missed.smallest_fix);
  EXPECT_EQ(missed.smallest_fix->code, test.code) << missed.smallest_fix->sentence;
  ASSERT_FALSE(missed.smallest_fix->changes.empty());
  for (const FieldChange& change : missed.smallest_fix->changes) {
    EXPECT_TRUE(Apply(change, job)) << change.field << " = " << change.value;
  }
  const ServingEstimate fixed = Estimate(job);
  EXPECT_EQ(fixed.outcome, ServingOutcome::kFeasible) << missed.smallest_fix->sentence;
  ASSERT_TRUE(missed.smallest_fix->expected_seconds);
  EXPECT_NEAR(*missed.smallest_fix->expected_seconds, fixed.tpot->mean_seconds, 1e-9);
  // One replica, user or sequence nearer to what was asked is not enough.
  if (test.load != ServingLoadKind::kRate && absl::StartsWith(missed.smallest_fix->changes[0].field, "workload.")) {
    ++job.workload.concurrency;
    ++job.workload.batch_size;
    EXPECT_NE(Estimate(job).outcome, ServingOutcome::kFeasible);
  }
  if (missed.smallest_fix->code != "MORE_REPLICAS") return;
  for (const FieldChange& change : missed.smallest_fix->changes) {
    ServingJob fewer = job;
    ASSERT_TRUE(Apply({change.field, absl::StrCat(std::stoi(change.value) - 1)}, fewer));
    EXPECT_NE(Estimate(fewer).outcome, ServingOutcome::kFeasible) << change.field;
  }
}

// Time that runs out leaves the estimate as it is; a caller that leaves needs none.
TEST(ServingFixTest, EnoughAndCancelled) {
  const ServedFixture served = Small();
  const ServingJob job = JobOf(served, {"", Pools::kOne, ServingLoadKind::kRate, 60, 0.5, 0, ""});
  MappingCache mappings;
  const ServingEstimate whole = Estimate(job);
  const ServingAnswer cut = EstimateServingWithFix(job, mappings, nullptr, [] { return true; });
  EXPECT_FALSE(cut.cancelled);
  EXPECT_EQ(cut.estimate.outcome, whole.outcome);
  EXPECT_FALSE(cut.estimate.smallest_fix);
  int polls_of_estimate = 0;
  EstimateServing(job, mappings, [&] { return ++polls_of_estimate < 0; });
  int polls = 0;
  EXPECT_TRUE(EstimateServingWithFix(job, mappings, [&] { return ++polls > polls_of_estimate; }).cancelled);
}

// A prompt of 1,023 tokens takes 8.03e9 x 2 x 1023 / 1.97e14 = 0.083 s alone, a step 8.03e9 / 8.2e11 = 9.8 ms.
INSTANTIATE_TEST_SUITE_P(
    Table, ServingFixTableTest,
    testing::Values(FixCase{"SliceUnstable", Pools::kSlice, ServingLoadKind::kRate, 60, 0, 0, "LOWER_RATE"},
                    FixCase{"SliceLate", Pools::kSlice, ServingLoadKind::kRate, 8, 0.2, 0, "LOWER_RATE"},
                    FixCase{"SliceOpenPlan", Pools::kSlice, ServingLoadKind::kRate, 60, 0.2, 0, "LOWER_RATE", true},
                    FixCase{"OneUnstable", Pools::kOne, ServingLoadKind::kRate, 60, 0.5, 0, "MORE_REPLICAS"},
                    FixCase{"TwoUnstable", Pools::kTwo, ServingLoadKind::kRate, 60, 0.5, 0, "MORE_REPLICAS"},
                    FixCase{"ApartUnstable", Pools::kApart, ServingLoadKind::kRate, 60, 0, 0, "MORE_REPLICAS"},
                    FixCase{"ApartLate", Pools::kApart, ServingLoadKind::kRate, 11, 0.3, 0, "MORE_REPLICAS"},
                    FixCase{"ApartOpenPlan", Pools::kApart, ServingLoadKind::kRate, 30, 0.3, 0, "MORE_REPLICAS", true},
                    FixCase{"ApartFloor", Pools::kApart, ServingLoadKind::kRate, 5, 0.01, 0.001, "RELAX_TARGET"},
                    FixCase{"UsersOfASlice", Pools::kSlice, ServingLoadKind::kConcurrency, 48, 0, 0.02, "FEWER_USERS"},
                    FixCase{"UsersOfAPool", Pools::kOne, ServingLoadKind::kConcurrency, 48, 0, 0.02, "MORE_REPLICAS"},
                    FixCase{"UsersApart", Pools::kApart, ServingLoadKind::kConcurrency, 48, 1, 0, "MORE_REPLICAS"},
                    FixCase{"UsersFloor", Pools::kSlice, ServingLoadKind::kConcurrency, 8, 0.01, 0.001, "RELAX_TARGET"},
                    FixCase{"Batch", Pools::kSlice, ServingLoadKind::kBatch, 64, 0, 0.011, "SMALLER_BATCH"}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace sliceplan::planner
