#include "server/planner/serving/mean_intervals.h"
#include "server/planner/step_interval.h"

#include "gtest/gtest.h"

namespace sliceplan::planner {
namespace {

roofline::ServingEfficiency Runtime() {
  roofline::ServingEfficiency runtime;
  runtime.prefill_low_ratio = 0.8;
  runtime.prefill_high_ratio = 1.5;
  runtime.first_token_low_ratio = 0.5;
  runtime.first_token_high_ratio = 2;
  return runtime;
}

// Reads for 1 s, writes for 9 s; a step is known within 0.9 to 1.2.
ServingEstimate Estimate() {
  ServingEstimate estimate;
  estimate.decode.time.expected_seconds = 0.03;
  estimate.decode.time.p05_seconds = 0.027;
  estimate.decode.time.p95_seconds = 0.036;
  estimate.ttft = Latency{1, 1, 1, 1};
  estimate.tpot = Latency{0.09, 0.09, 0.09, 0.09};
  estimate.end_to_end = Latency{10, 10, 10, 10};
  estimate.normalized_time_per_output_token = Latency{0.1, 0.1, 0.1, 0.1};
  estimate.throughput.output_tokens_per_second = 100;
  return estimate;
}

TEST(StepIntervalTest, NothingIsFasterThanTheLowerBound) {
  StepTime time;
  time.roofline_lower_seconds = 0.08;
  time.expected_seconds = 0.1;
  SetStepInterval(0.9, 1.2, time);
  EXPECT_DOUBLE_EQ(*time.p05_seconds, 0.9 * 0.1);
  EXPECT_DOUBLE_EQ(*time.p95_seconds, 1.2 * 0.1);
  SetStepInterval(0.5, 1.2, time);
  EXPECT_DOUBLE_EQ(*time.p05_seconds, 0.08);
  StepTime without;
  SetStepInterval(0, 1.2, without);
  EXPECT_FALSE(without.p05_seconds.has_value());
}

TEST(MeanIntervalsTest, EndsOfTheFirstTokenAndOfThoseAfterItAddUp) {
  struct {
    ServingLoadKind load;
    double first_low, first_high;  // ratios of the first token
    bool throughput;
  } const kRows[] = {
      {ServingLoadKind::kBatch, 0.8, 1.5, true},
      {ServingLoadKind::kLargestBatch, 0.8, 1.5, true},
      {ServingLoadKind::kConcurrency, 0.5, 2, true},
      {ServingLoadKind::kRate, 0.5, 2, false},
  };
  for (const auto& row : kRows) {
    ServingEstimate estimate = Estimate();
    AddMeanIntervals(Runtime(), row.load, 0, estimate);
    EXPECT_DOUBLE_EQ(*estimate.ttft->mean_p05_seconds, row.first_low);
    EXPECT_DOUBLE_EQ(*estimate.ttft->mean_p95_seconds, row.first_high);
    EXPECT_DOUBLE_EQ(*estimate.tpot->mean_p05_seconds, 0.9 * 0.09);
    EXPECT_DOUBLE_EQ(*estimate.tpot->mean_p95_seconds, 1.2 * 0.09);
    const double low = row.first_low + 0.9 * 9;
    const double high = row.first_high + 1.2 * 9;
    EXPECT_DOUBLE_EQ(*estimate.end_to_end->mean_p05_seconds, low);
    EXPECT_DOUBLE_EQ(*estimate.end_to_end->mean_p95_seconds, high);
    EXPECT_DOUBLE_EQ(*estimate.normalized_time_per_output_token->mean_p95_seconds, 0.1 * high / 10);
    ASSERT_EQ(estimate.throughput.output_tokens_per_second_p05.has_value(), row.throughput);
    if (!row.throughput) continue;
    EXPECT_DOUBLE_EQ(*estimate.throughput.output_tokens_per_second_p05, 100 * 10 / high);
    EXPECT_DOUBLE_EQ(*estimate.throughput.output_tokens_per_second_p95, 100 * 10 / low);
  }
}

// Who waits for a place waits for whole requests before: 0.25 s of reading, 0.75 s of waiting, 9 s of writing.
TEST(MeanIntervalsTest, AWaitForAPlaceIsAsUncertainAsTheRequestsBefore) {
  ServingEstimate estimate = Estimate();
  AddMeanIntervals(Runtime(), ServingLoadKind::kConcurrency, 0.75, estimate);
  const double low = (0.5 * 0.25 + 0.9 * 9) / 9.25;
  const double high = (2 * 0.25 + 1.2 * 9) / 9.25;
  EXPECT_DOUBLE_EQ(*estimate.ttft->mean_p05_seconds, 0.5 * 0.25 + low * 0.75);
  EXPECT_DOUBLE_EQ(*estimate.ttft->mean_p95_seconds, 2 * 0.25 + high * 0.75);
  EXPECT_DOUBLE_EQ(*estimate.end_to_end->mean_p05_seconds, low * 10);
  EXPECT_DOUBLE_EQ(*estimate.end_to_end->mean_p95_seconds, high * 10);
  EXPECT_DOUBLE_EQ(*estimate.throughput.output_tokens_per_second_p05, 100 / high);
  EXPECT_DOUBLE_EQ(*estimate.throughput.output_tokens_per_second_p95, 100 / low);
}

TEST(MeanIntervalsTest, WhatHasNoRatiosHasNoInterval) {
  ServingEstimate estimate = Estimate();
  estimate.decode.time.p05_seconds.reset();
  estimate.decode.time.p95_seconds.reset();
  AddMeanIntervals({}, ServingLoadKind::kConcurrency, 0, estimate);
  EXPECT_FALSE(estimate.ttft->mean_p05_seconds.has_value());
  EXPECT_FALSE(estimate.tpot->mean_p05_seconds.has_value());
  EXPECT_FALSE(estimate.end_to_end->mean_p05_seconds.has_value());
  EXPECT_FALSE(estimate.throughput.output_tokens_per_second_p05.has_value());
}

TEST(MeanIntervalsTest, UnstableLoadsHaveNone) {
  ServingEstimate estimate;
  estimate.decode = Estimate().decode;
  AddMeanIntervals(Runtime(), ServingLoadKind::kRate, 0, estimate);
  EXPECT_FALSE(estimate.ttft.has_value());
  EXPECT_FALSE(estimate.throughput.output_tokens_per_second_p05.has_value());
}

}  // namespace
}  // namespace sliceplan::planner
