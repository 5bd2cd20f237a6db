#include "server/roofline/sharded_matmul.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/roofline/chips.h"

namespace sliceplan::roofline {
namespace {

using hardware::Slice;
using hardware::Violation;
using testing::ElementsAre;
using testing::IsEmpty;

using Entries = std::vector<DimensionSharding>;

const std::vector<MeshAxis>& Axes() {
  static const std::vector<MeshAxis> axes = {{"X", 4, {}}, {"Y", 8, {}}};
  return axes;
}

ShardedMatmulAnalysis Analyze(const ShardedMatmul& op) {
  const Slice slice = TorusOf({4, 8}, true);
  std::vector<Violation> violations;
  const SliceNetwork network(slice, PlaceMesh(slice, Axes(), violations));
  absl::StatusOr<ShardedMatmulAnalysis> analysis =
      AnalyzeShardedMatmul(op, Axes(), network, slice.accelerator, "matmul", violations);
  EXPECT_TRUE(analysis.ok()) << analysis.status();
  return *std::move(analysis);
}

std::vector<std::string> Words(const MatmulPlan& plan) {
  std::vector<std::string> words;
  for (const InsertedCollective& collective : plan.collectives) {
    static const char* const kKinds[] = {"AG", "RS", "AR", "A2A", "CP"};
    static const char* const kOperands[] = {"lhs", "rhs", "out"};
    std::string text = std::string(kKinds[static_cast<size_t>(collective.kind)]) + " " +
                       kOperands[static_cast<size_t>(collective.operand)] + " ";
    for (const int axis : collective.axes) text += Axes()[static_cast<size_t>(axis)].name;
    words.push_back(text);
  }
  return words;
}

struct Case {
  const char* name;
  int64_t m, k, n;
  Entries lhs, rhs;
  std::optional<Entries> output;
  int matmul_case;
  std::vector<std::string> collectives;
  int64_t local_m, local_k, local_n;
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"unsharded", 1024, 1024, 1024, {}, {}, std::nullopt, 0, {}, 1024, 1024, 1024},
      {"case_1_data_parallel", 1024, 1024, 1024, {{"m", {"X"}}}, {}, std::nullopt, 1, {}, 256, 1024, 1024},
      {"case_1_both",
       1024,
       1024,
       1024,
       {{"m", {"X"}}},
       {{"n", {"Y"}}},
       {{{"m", {"X"}}, {"n", {"Y"}}}},
       1,
       {},
       256,
       1024,
       128},
      {"case_1_output_cut_for_free", 1024, 1024, 1024, {}, {}, {{{"n", {"Y"}}}}, 0, {}, 1024, 1024, 128},
      {"case_1_output_whole", 1024, 512, 1024, {{"m", {"X"}}}, {}, Entries{}, 1, {"AG lhs X"}, 1024, 512, 1024},
      {"case_1_long_contraction", 1024, 8192, 1024, {{"m", {"X"}}}, {}, Entries{}, 1, {"AG out X"}, 256, 8192, 1024},
      {"case_2_gather_lhs", 1024, 1024, 8192, {{"k", {"X"}}}, {}, Entries{}, 2, {"AG lhs X"}, 1024, 1024, 8192},
      {"case_2_fsdp",
       4096,
       1024,
       1024,
       {{"m", {"X"}}},
       {{"k", {"X"}}},
       {{{"m", {"X"}}}},
       2,
       {"AG rhs X"},
       1024,
       1024,
       1024},
      {"case_2_reduce_is_cheaper", 128, 8192, 128, {{"k", {"X"}}}, {}, Entries{}, 2, {"AR out X"}, 128, 2048, 128},
      {"case_3_all_reduce",
       1024,
       8192,
       1024,
       {{"k", {"X"}}},
       {{"k", {"X"}}},
       Entries{},
       3,
       {"AR out X"},
       1024,
       2048,
       1024},
      {"case_3_reduce_scatter",
       1024,
       8192,
       1024,
       {{"k", {"X"}}},
       {{"k", {"X"}}},
       {{{"n", {"X"}}}},
       3,
       {"RS out X"},
       1024,
       2048,
       1024},
      {"case_3_two_axes",
       1024,
       8192,
       1024,
       {{"m", {"X"}}, {"k", {"Y"}}},
       {{"k", {"Y"}}},
       {{{"m", {"X"}}}},
       3,
       {"AR out Y"},
       256,
       1024,
       1024},
      {"case_4", 1024, 1024, 4096, {{"m", {"X"}}}, {{"n", {"X"}}}, {{{"n", {"X"}}}}, 4, {"AG lhs X"}, 1024, 1024, 1024},
      {"case_4_other_way",
       4096,
       1024,
       1024,
       {{"m", {"X"}}},
       {{"n", {"X"}}},
       {{{"m", {"X"}}}},
       4,
       {"AG rhs X"},
       1024,
       1024,
       1024},
      {"tensor_block_in",
       1024,
       1024,
       4096,
       {{"k", {"Y"}}},
       {{"n", {"Y"}}},
       {{{"n", {"Y"}}}},
       2,
       {"AG lhs Y"},
       1024,
       1024,
       512},
      {"two_axes_gathered_together",
       1024,
       1024,
       8192,
       {{"k", {"X", "Y"}}},
       {},
       Entries{},
       2,
       {"AG lhs XY"},
       1024,
       1024,
       8192},
  };
  return cases;
}

TEST(ShardedMatmulTest, FourCases) {
  for (const Case& row : Cases()) {
    SCOPED_TRACE(row.name);
    ShardedMatmul op;
    op.m = row.m;
    op.k = row.k;
    op.n = row.n;
    op.lhs_sharding = row.lhs;
    op.rhs_sharding = row.rhs;
    op.output_sharding = row.output;
    const ShardedMatmulAnalysis analysis = Analyze(op);
    EXPECT_EQ(analysis.matmul_case, row.matmul_case);
    EXPECT_EQ(Words(analysis.plan), row.collectives);
    EXPECT_EQ(analysis.plan.local.m, row.local_m);
    EXPECT_EQ(analysis.plan.local.k, row.local_k);
    EXPECT_EQ(analysis.plan.local.n, row.local_n);
    EXPECT_EQ(analysis.needs_output_sharding, row.matmul_case >= 2);
    EXPECT_FALSE(analysis.plan.sentence.empty());
  }
}

TEST(ShardedMatmulTest, BytesAreThoseOfOneGroup) {
  ShardedMatmul op;
  op.m = 1024;
  op.k = 8192;
  op.n = 2048;
  op.lhs_sharding = {{"m", {"X"}}, {"k", {"Y"}}};
  op.rhs_sharding = {{"k", {"Y"}}};
  op.output_sharding = {{{"m", {"X"}}, {"n", {"Y"}}}};
  const MatmulPlan plan = Analyze(op).plan;
  ASSERT_THAT(Words(plan), ElementsAre("RS out Y"));
  EXPECT_DOUBLE_EQ(plan.collectives[0].bytes, 2.0 * 1024 * 2048 / 4);  // already split over X
  // A ring of 8: 7/8 of the array over both directions of the axis.
  EXPECT_DOUBLE_EQ(plan.network_seconds, plan.collectives[0].bytes * 7 / 8 / (2 * 50e9));
  EXPECT_DOUBLE_EQ(plan.seconds.ici, plan.network_seconds);
  EXPECT_DOUBLE_EQ(plan.seconds.matrix_unit, 2.0 * 1024 * 8192 * 2048 / 32 / 200e12);
}

TEST(ShardedMatmulTest, BatchDimensionsSplitBothOperands) {
  ShardedMatmul op;
  op.batch_dims = {16, 3};
  op.m = op.k = op.n = 512;
  op.lhs_sharding = {{"b0", {"X"}}};
  op.rhs_sharding = {{"b0", {"X"}}};
  ShardedMatmulAnalysis analysis = Analyze(op);
  EXPECT_EQ(analysis.matmul_case, 1);
  EXPECT_THAT(analysis.plan.local_batch_dims, ElementsAre(4, 3));
  EXPECT_EQ(analysis.plan.local.batch, 12);
  EXPECT_THAT(analysis.plan.collectives, IsEmpty());
  op.rhs_sharding = {};  // a whole copy is cut for free
  EXPECT_THAT(Analyze(op).plan.collectives, IsEmpty());
  op.rhs_sharding = {{"b1", {}}, {"n", {"X"}}};
  EXPECT_EQ(Analyze(op).matmul_case, 4);
}

// Gathering sends less here, yet every chip then repeats the whole matmul: the alternative is faster and says so.
TEST(ShardedMatmulTest, AlternativesAreSortedBySpeed) {
  ShardedMatmul op;
  op.m = op.k = op.n = 8192;
  op.lhs_sharding = {{"k", {"X"}}};
  op.output_sharding.emplace();
  const ShardedMatmulAnalysis analysis = Analyze(op);
  EXPECT_THAT(Words(analysis.plan), ElementsAre("AG lhs X"));
  ASSERT_FALSE(analysis.alternatives.empty());
  EXPECT_THAT(Words(analysis.alternatives.front()), ElementsAre("AR out X"));
  EXPECT_LT(analysis.alternatives.front().bound.lower_seconds, analysis.plan.bound.lower_seconds);
  EXPECT_GT(analysis.alternatives.front().network_seconds, analysis.plan.network_seconds);
  EXPECT_EQ(analysis.plan.sentence, "all-gather lhs over X, then multiply");
  EXPECT_EQ(analysis.alternatives.front().sentence, "multiply, then all-reduce output over X");
}

// The plan chosen moves least among all that are reported; bounds hold; swapping operands mirrors everything.
TEST(ShardedMatmulTest, PropertiesOverRandomShardings) {
  std::mt19937 random(11);
  const auto pick = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  const char* const kDims[] = {"m", "k", "n"};
  for (int i = 0; i < 300; ++i) {
    ShardedMatmul op;
    op.m = 256 << pick(6);
    op.k = 256 << pick(6);
    op.n = 256 << pick(6);
    ShardedMatmul mirrored = op;
    mirrored.m = op.n;
    mirrored.n = op.m;
    Entries output;
    Entries mirrored_output;
    for (const char* axis : {"X", "Y"}) {
      const auto add = [&](Entries& entries, const std::string& dim) {
        const auto found = std::find_if(entries.begin(), entries.end(),
                                        [&](const DimensionSharding& entry) { return entry.dimension == dim; });
        if (found == entries.end()) {
          entries.push_back({dim, {axis}});
        } else {
          found->axes.push_back(axis);
        }
      };
      const auto mirror = [&](const std::string& dim) -> std::string {
        return dim == "m" ? "n" : dim == "n" ? "m" : dim;
      };
      if (const int lhs = pick(3); lhs < 2) {
        add(op.lhs_sharding, kDims[lhs]);
        add(mirrored.rhs_sharding, mirror(kDims[lhs]));
      }
      if (const int rhs = pick(3); rhs > 0) {
        add(op.rhs_sharding, kDims[rhs]);
        add(mirrored.lhs_sharding, mirror(kDims[rhs]));
      }
      if (const int out = pick(3); out != 1) {
        add(output, kDims[out]);
        add(mirrored_output, mirror(kDims[out]));
      }
    }
    op.output_sharding = output;
    mirrored.output_sharding = mirrored_output;
    const ShardedMatmulAnalysis analysis = Analyze(op);
    const ShardedMatmulAnalysis mirror = Analyze(mirrored);
    EXPECT_EQ(analysis.matmul_case, mirror.matmul_case);
    EXPECT_DOUBLE_EQ(analysis.plan.network_seconds, mirror.plan.network_seconds);
    EXPECT_DOUBLE_EQ(analysis.plan.bound.lower_seconds, mirror.plan.bound.lower_seconds);
    EXPECT_EQ(analysis.alternatives.size(), mirror.alternatives.size());
    double previous = 0;
    for (const MatmulPlan& plan : analysis.alternatives) {
      EXPECT_GE(plan.network_seconds, analysis.plan.network_seconds);
      EXPECT_GE(plan.bound.lower_seconds, previous);
      EXPECT_LE(plan.bound.lower_seconds, plan.bound.upper_seconds);
      previous = plan.bound.lower_seconds;
    }
    // Work is never lost: 32 chips together do at least the matmul once.
    EXPECT_GE(MatmulFlops(analysis.plan.local) * 32,
              2.0 * static_cast<double>(op.m) * static_cast<double>(op.k) * static_cast<double>(op.n) * 0.999);
  }
}

TEST(ShardedMatmulTest, BackwardMatmulsContractTheOtherDimensions) {
  ShardedMatmul op;
  op.m = 4096;
  op.k = 1024;
  op.n = 2048;
  op.lhs_sharding = {{"m", {"X"}}};
  op.rhs_sharding = {{"k", {"X"}}, {"n", {"Y"}}};
  op.output_sharding = {{{"m", {"X"}}, {"n", {"Y"}}}};
  EXPECT_THAT(Words(Analyze(op).plan), ElementsAre("AG rhs X"));
  const BackwardMatmuls backward = BackwardOf(op);
  // The gathered weights' gradient is scattered: the transpose of the gather.
  EXPECT_THAT(Words(Analyze(backward.rhs_gradient).plan), ElementsAre("RS out X"));
  EXPECT_EQ(backward.rhs_gradient.m, op.k);
  EXPECT_EQ(backward.rhs_gradient.k, op.m);
  EXPECT_EQ(backward.lhs_gradient.k, op.n);
  const double forward = MatmulFlops(Analyze(op).plan.local);
  EXPECT_DOUBLE_EQ(MatmulFlops(Analyze(backward.rhs_gradient).plan.local), forward);
  EXPECT_DOUBLE_EQ(MatmulFlops(Analyze(backward.lhs_gradient).plan.local), forward);
}

TEST(ShardedMatmulTest, CollectivesHaveTransposes) {
  EXPECT_EQ(BackwardOf(CollectiveKind::kAllGather), CollectiveKind::kReduceScatter);
  EXPECT_EQ(BackwardOf(CollectiveKind::kReduceScatter), CollectiveKind::kAllGather);
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
        CollectiveKind::kAllToAll, CollectiveKind::kCollectivePermute}) {
    EXPECT_EQ(BackwardOf(BackwardOf(kind)), kind);
  }
}

TEST(ShardedMatmulTest, EveryMistakeIsReported) {
  ShardedMatmul op;
  op.m = 0;
  op.k = 1030;
  op.n = int64_t{1} << 41;
  op.lhs_sharding = {{"n", {"X"}}, {"k", {"X"}}};
  op.rhs_sharding = {{"k", {"Q"}}};
  op.output_sharding = {{{"m", {"X"}}, {"n", {"X"}}}};
  std::vector<Violation> violations;
  CheckShardedMatmul(op, Axes(), "matmul", violations);
  std::vector<std::string> reasons;
  for (const Violation& violation : violations) reasons.push_back(violation.field + " " + violation.reason);
  EXPECT_THAT(reasons, testing::UnorderedElementsAre("matmul.m MATMUL_DIMENSION_OUT_OF_RANGE",
                                                     "matmul.n MATMUL_DIMENSION_OUT_OF_RANGE",
                                                     "matmul.lhs_sharding[0].dimension UNKNOWN_DIMENSION",
                                                     "matmul.lhs_sharding[1] DIMENSION_NOT_DIVISIBLE",
                                                     "matmul.rhs_sharding[0].axes[0] UNKNOWN_MESH_AXIS",
                                                     "matmul.output_sharding[1].axes[0] MESH_AXIS_REPEATED"));
}

TEST(ShardedMatmulTest, HugeOrMisorderedOperandsAreRefused) {
  std::vector<Violation> violations;
  ShardedMatmul huge;
  huge.m = huge.k = huge.n = int64_t{1} << 40;
  CheckShardedMatmul(huge, Axes(), "matmul", violations);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(violations[0].reason, "MATMUL_TOO_LARGE");
  violations.clear();
  ShardedMatmul misordered;
  misordered.k = 1024;
  misordered.lhs_sharding = {{"k", {"X", "Y"}}};
  misordered.rhs_sharding = {{"k", {"Y", "X"}}};
  CheckShardedMatmul(misordered, Axes(), "matmul", violations);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(violations[0].reason, "MESH_AXES_ORDER_DIFFERS");
}

// More axes than can be weighed in all combinations: still a legal plan, found one axis at a time.
TEST(ShardedMatmulTest, ManyAxes) {
  std::vector<MeshAxis> axes;
  ShardedMatmul op;
  op.m = op.k = op.n = 4096;
  op.output_sharding.emplace();
  op.lhs_sharding = {{"k", {}}, {"m", {}}};
  op.rhs_sharding = {{"n", {}}};
  for (int i = 0; i < 12; ++i) {
    axes.push_back({std::string(1, static_cast<char>('a' + i)), 2, {}});
    op.lhs_sharding[i < 6 ? 0 : 1].axes.push_back(axes.back().name);
    if (i < 6) op.rhs_sharding[0].axes.push_back(axes.back().name);
  }
  const LongRingNetwork network(std::vector<int32_t>(12, 2), 100e9, 1e-6);
  std::vector<Violation> violations;
  const ShardedMatmulAnalysis analysis =
      AnalyzeShardedMatmul(op, axes, network, RoundChip(), "matmul", violations).value();
  EXPECT_EQ(analysis.matmul_case, 2);
  EXPECT_LE(analysis.alternatives.size(), kMaxAlternatives);
  EXPECT_GT(analysis.plan.network_seconds, 0);
}

TEST(ShardedMatmulTest, MissingNetworkIsNamed) {
  hardware::AcceleratorSpec chip = RoundChip();
  chip.ici_link_bytes_per_second.reset();
  const Slice slice = TorusOf({4, 8}, true, chip);
  std::vector<Violation> violations;
  const SliceNetwork network(slice, PlaceMesh(slice, Axes(), violations));
  ShardedMatmul op;
  op.m = op.k = op.n = 1024;
  op.lhs_sharding = {{"k", {"X"}}};
  op.rhs_sharding = {{"k", {"X"}}};
  EXPECT_EQ(AnalyzeShardedMatmul(op, Axes(), network, chip, "matmul", violations).status().code(),
            absl::StatusCode::kFailedPrecondition);
  op.lhs_sharding = {{"m", {"X"}}};  // nothing is sent: nothing is missing
  op.rhs_sharding = {};
  EXPECT_TRUE(AnalyzeShardedMatmul(op, Axes(), network, chip, "matmul", violations).ok());
}

}  // namespace
}  // namespace sliceplan::roofline
