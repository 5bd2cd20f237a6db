#include "server/roofline/analyze_operation.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/roofline/chips.h"

namespace sliceplan::roofline {
namespace {

using hardware::DataType;
using hardware::Violation;

OperationQuestion MatmulQuestion(int64_t m, int64_t k, int64_t n) {
  OperationQuestion question;
  question.slice = TorusOf({1}, false);
  ShardedMatmul op;
  op.m = m;
  op.k = k;
  op.n = n;
  question.operation = op;
  return question;
}

OperationAnalysis Analyze(const OperationQuestion& question) {
  std::vector<Violation> violations;
  absl::StatusOr<OperationAnalysis> analysis = AnalyzeOperation(question, violations);
  EXPECT_TRUE(analysis.ok()) << analysis.status();
  EXPECT_TRUE(violations.empty());
  return *std::move(analysis);
}

TEST(AnalyzeOperationTest, OneChipMatmul) {
  const OperationAnalysis analysis = Analyze(MatmulQuestion(512, 4096, 8192));
  const double flops = 2.0 * 512 * 4096 * 8192;
  const double bytes = 2.0 * (512 * 4096 + 4096 * 8192 + 512 * 8192);
  EXPECT_DOUBLE_EQ(analysis.flops, flops);
  EXPECT_DOUBLE_EQ(analysis.hbm_bytes, bytes);
  EXPECT_DOUBLE_EQ(analysis.intensity_flops_per_byte, flops / bytes);
  EXPECT_DOUBLE_EQ(analysis.compute_seconds, flops / 200e12);
  EXPECT_DOUBLE_EQ(analysis.hbm_seconds, bytes / 1e12);
  EXPECT_DOUBLE_EQ(analysis.bound.lower_seconds, flops / 200e12);
  EXPECT_DOUBLE_EQ(analysis.bound.upper_seconds, flops / 200e12 + bytes / 1e12);
  EXPECT_EQ(analysis.bound.binding, Resource::kMatrixUnit);
  EXPECT_DOUBLE_EQ(analysis.expected_seconds, analysis.bound.lower_seconds);
  EXPECT_DOUBLE_EQ(analysis.critical_batch.value(), 200);
  EXPECT_GT(analysis.exact_critical_batch.value(), 200);
  EXPECT_EQ(analysis.padding_ratio, 0);
  EXPECT_EQ(analysis.matmul_case, 0);
  EXPECT_TRUE(analysis.plan->collectives.empty());
  EXPECT_TRUE(analysis.alternatives.empty());
}

TEST(AnalyzeOperationTest, PaddingIsAShareOfTheWork) {
  OperationQuestion question = MatmulQuestion(512, 96, 128);
  question.efficiency.emplace();
  const OperationAnalysis analysis = Analyze(question);
  EXPECT_DOUBLE_EQ(analysis.padding_ratio, 0.25);
  EXPECT_DOUBLE_EQ(analysis.matrix_seconds, analysis.compute_seconds / 0.75);
  question.slice.accelerator.mxu_dim.reset();
  EXPECT_EQ(Analyze(question).padding_ratio, 0);
}

TEST(AnalyzeOperationTest, ExpectationFollowsTheEfficiencies) {
  OperationQuestion question = MatmulQuestion(4096, 4096, 4096);
  question.slice = TorusOf({4}, true);
  question.mesh_axes = {{"X", 4, {}}};
  ShardedMatmul& op = std::get<ShardedMatmul>(question.operation);
  op.lhs_sharding = {{"k", {"X"}}};
  op.rhs_sharding = {{"k", {"X"}}};
  op.output_sharding.emplace();
  const OperationAnalysis ideal = Analyze(question);
  EXPECT_DOUBLE_EQ(ideal.expected_seconds, ideal.bound.lower_seconds);
  question.efficiency = {.compute_ratio = 0.5, .hbm_ratio = 0.8, .network_ratio = 0.25, .launch_seconds = 1e-5};
  const OperationAnalysis real = Analyze(question);
  EXPECT_DOUBLE_EQ(real.expected_seconds, real.matrix_seconds / 0.5 + real.network_seconds / 0.25 + 1e-5);
  EXPECT_DOUBLE_EQ(real.bound.lower_seconds, ideal.bound.lower_seconds);
  EXPECT_EQ(real.bound.binding, Resource::kIci);
  EXPECT_EQ(real.matmul_case, 3);
}

TEST(AnalyzeOperationTest, AttentionIsSpreadOverSequencesAndHeads) {
  OperationQuestion question;
  question.slice = TorusOf({4, 4}, true);
  question.mesh_axes = {{"X", 16, {}}};
  AttentionOp op;
  op.batch_size = 4;
  op.query_length = op.key_length = 2048;
  op.query_head_count = 32;
  op.kv_head_count = 8;
  op.head_dim = 128;
  op.mask = AttentionMask::kCausal;
  question.operation = op;
  const OperationAnalysis analysis = Analyze(question);
  EXPECT_DOUBLE_EQ(analysis.flops, 4.0 * 4 * 2048 * 2048 / 2 * 32 * 128 / 16);
  EXPECT_DOUBLE_EQ(analysis.hbm_bytes, 2.0 * 4 * 2048 * 128 * (2 * 32 + 2 * 8) / 16);
  EXPECT_FALSE(analysis.critical_batch.has_value());
  EXPECT_FALSE(analysis.plan.has_value());
  // Beyond the KV heads their keys are copied: 64 chips, one sequence each 16, 8 KV heads, then 2 of 4 queries.
  question.slice = TorusOf({8, 8}, true);
  question.mesh_axes = {{"X", 64, {}}};
  EXPECT_DOUBLE_EQ(Analyze(question).flops, analysis.flops / 4);
  EXPECT_GT(Analyze(question).hbm_bytes, analysis.hbm_bytes / 4);
}

TEST(AnalyzeOperationTest, ElementwiseWithoutAVectorRateIsBoundByHbm) {
  OperationQuestion question;
  question.slice = TorusOf({4}, true);
  question.slice.accelerator.vector_flops_per_second.reset();
  question.mesh_axes = {{"X", 4, {}}};
  question.operation = Elementwise{.element_count = 4001, .input_count = 2, .flops_per_element = 1e6};
  const OperationAnalysis analysis = Analyze(question);
  EXPECT_DOUBLE_EQ(analysis.hbm_bytes, 1001 * 3 * 2);
  EXPECT_EQ(analysis.bound.binding, Resource::kHbm);
  EXPECT_TRUE(analysis.roofline.empty());
}

TEST(AnalyzeOperationTest, TheCurveHasItsKneeAndTheOperation) {
  const OperationAnalysis analysis = Analyze(MatmulQuestion(16, 4096, 4096));
  double previous = 0;
  bool has_knee = false;
  bool has_operation = false;
  for (const RooflinePoint& point : analysis.roofline) {
    EXPECT_GT(point.intensity_flops_per_byte, previous);
    EXPECT_DOUBLE_EQ(point.flops_per_second, std::min(200e12, point.intensity_flops_per_byte * 1e12));
    has_knee |= point.intensity_flops_per_byte == 200;
    has_operation |= point.intensity_flops_per_byte == analysis.intensity_flops_per_byte;
    previous = point.intensity_flops_per_byte;
  }
  EXPECT_TRUE(has_knee);
  EXPECT_TRUE(has_operation);
}

TEST(AnalyzeOperationTest, AllMistakesAtOnce) {
  OperationQuestion question = MatmulQuestion(0, 100, 64);
  question.slice = TorusOf({4, 4}, false);
  question.mesh_axes = {{"X", 3, {}}, {"Y", 1, {}}};
  std::get<ShardedMatmul>(question.operation).lhs_sharding = {{"k", {"X"}}, {"z", {"Y"}}};
  std::vector<Violation> violations;
  EXPECT_EQ(AnalyzeOperation(question, violations).status().code(), absl::StatusCode::kInvalidArgument);
  std::vector<std::string> fields;
  for (const Violation& violation : violations) fields.push_back(violation.field);
  EXPECT_THAT(fields, testing::ElementsAre("mesh_axes", "matmul.m", "matmul.lhs_sharding[0]",
                                           "matmul.lhs_sharding[1].dimension"));
}

TEST(AnalyzeOperationTest, AttentionAndElementwiseAreChecked) {
  OperationQuestion question;
  question.slice = TorusOf({1}, false);
  AttentionOp op;
  op.query_length = 8;
  op.key_length = 4;
  op.query_head_count = 6;
  op.kv_head_count = 4;
  op.mask = AttentionMask::kCausal;
  question.operation = op;
  std::vector<Violation> violations;
  EXPECT_FALSE(AnalyzeOperation(question, violations).ok());
  EXPECT_EQ(violations.size(), 2U);
  violations.clear();
  op = {};
  op.batch_size = op.query_length = op.key_length = int64_t{1} << 30;
  question.operation = op;
  EXPECT_FALSE(AnalyzeOperation(question, violations).ok());
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(violations[0].reason, "ATTENTION_TOO_LARGE");
  violations.clear();
  question.operation = Elementwise{.element_count = 0, .input_count = -1, .flops_per_element = std::nan("")};
  EXPECT_FALSE(AnalyzeOperation(question, violations).ok());
  EXPECT_EQ(violations.size(), 3U);
  violations.clear();
  question.slice = TorusOf({7}, false);
  question.mesh_axes = {{"X", 7, {}}};
  op = {};
  op.query_head_count = op.kv_head_count = 4;
  question.operation = op;
  EXPECT_FALSE(AnalyzeOperation(question, violations).ok());
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(violations[0].reason, "ATTENTION_NOT_DIVISIBLE");
}

TEST(AnalyzeOperationTest, MissingFiguresAreNotViolations) {
  OperationQuestion question = MatmulQuestion(8, 8, 8);
  question.slice.accelerator.hbm_bytes_per_second.reset();
  std::vector<Violation> violations;
  EXPECT_EQ(AnalyzeOperation(question, violations).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(violations.empty());
}

}  // namespace
}  // namespace sliceplan::roofline
