// Thresholds and closed forms: where one side of a threshold waits for the network and the other does not, and the
// figures of real slices. The book's own numbers are in tests/book.
#include "server/planner/closed_form.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "server/planner/budget.h"
#include "server/planner/serving_closed_form.h"
#include "server/planner/thresholds.h"

namespace sliceplan::planner {
namespace {

using hardware::AcceleratorSpec;
using hardware::FabricKind;
using hardware::Slice;

constexpr double kFlops = 400e12;
constexpr double kLink = 100e9;  // one way
constexpr double kAlpha = 2000;  // kFlops over both directions of a ring
constexpr double kFfn = 32768;

Slice Torus(const std::vector<hardware::TorusAxis>& axes) {
  Slice slice;
  slice.accelerator.bf16_flops_per_second = kFlops;
  slice.accelerator.int8_ops_per_second = 2 * kFlops;
  slice.accelerator.ici_link_bytes_per_second = kLink;
  slice.accelerator.dcn_bytes_per_second = 5e9;
  for (const hardware::TorusAxis& axis : axes) {
    slice.axes.push_back(axis);
    slice.chip_count *= axis.size;
  }
  return slice;
}

Slice Gpus(int32_t count, int32_t domain) {
  Slice slice;
  slice.accelerator.fabric = FabricKind::kSwitched;
  slice.accelerator.bf16_flops_per_second = 1000e12;
  slice.accelerator.scale_up_bytes_per_second = 500e9;  // alpha 2,000 inside
  slice.accelerator.network_bytes_per_second = 50e9;    // 400e9 a domain of 8: alpha 2,500 outside
  slice.accelerator.scale_up_domain_size = domain;
  slice.axes.push_back({count, false});
  slice.chip_count = count;
  slice.domain_size = domain;
  return slice;
}

ThresholdQuestion Dense(double tokens = 1e6) {
  ThresholdQuestion question;
  question.ffn_dim = kFfn;
  question.global_batch_tokens = tokens;
  return question;
}

TEST(StrategyAxesTest, RingsCountOneAndLinesHalf) {
  const StrategyAxes cube = AxesOf(Torus({{16, true}, {16, true}, {16, true}}));
  EXPECT_EQ(cube.all, 3);
  EXPECT_EQ(cube.data, 2);
  EXPECT_EQ(cube.tensor, 1);
  const StrategyAxes mesh = AxesOf(Torus({{4, false}, {8, false}}));
  EXPECT_EQ(mesh.all, 1);
  EXPECT_EQ(mesh.data, 0.5);
  EXPECT_EQ(mesh.tensor, 0.5);
  const StrategyAxes mixed = AxesOf(Torus({{8, false}, {16, true}, {1, true}}));
  EXPECT_EQ(mixed.all, 1.5);
  EXPECT_EQ(mixed.tensor, 1);
  EXPECT_EQ(mixed.data, 0.5);
  const StrategyAxes ring = AxesOf(Torus({{16, true}}));
  EXPECT_EQ(ring.data, ring.all);
  EXPECT_EQ(ring.tensor, ring.all);
  EXPECT_EQ(AxesOf(Torus({{2, true}})).all, 0.5);  // one link each way
}

TEST(ThresholdsTest, Torus) {
  const TrainingThresholds thresholds = ThresholdsOf(Torus({{16, true}, {16, true}, {16, true}}), Dense(4096e3));
  EXPECT_DOUBLE_EQ(thresholds.tokens_per_chip, 1000);
  EXPECT_DOUBLE_EQ(thresholds.data_tokens_per_chip.value(), kAlpha / 3);
  EXPECT_DOUBLE_EQ(thresholds.fsdp_tensor_tokens_per_chip.value(), kAlpha * kAlpha / (2 * kFfn));
  EXPECT_DOUBLE_EQ(thresholds.tensor_degree_limit.value(), kFfn / kAlpha);
  EXPECT_DOUBLE_EQ(thresholds.dcn_tokens_per_slice.value(), kFlops / 5e9);
  EXPECT_DOUBLE_EQ(thresholds.own_split_tokens_per_chip.value(), kAlpha / 3);
}

TEST(ThresholdsTest, TheOwnSplitDividesByItsDegrees) {
  ThresholdQuestion question = Dense();
  question.tensor_degree = 4;
  const Slice slice = Torus({{16, true}, {16, true}, {16, true}});
  TrainingThresholds thresholds = ThresholdsOf(slice, question);
  EXPECT_DOUBLE_EQ(thresholds.own_split_tokens_per_chip.value(), kAlpha / 2 / 4);
  EXPECT_DOUBLE_EQ(thresholds.data_tokens_per_chip.value(), kAlpha / 3);
  question.pipeline_degree = 2;
  thresholds = ThresholdsOf(slice, question);
  EXPECT_DOUBLE_EQ(thresholds.own_split_tokens_per_chip.value(), kAlpha / 2 / 4 / 2);
  EXPECT_DOUBLE_EQ(thresholds.data_tokens_per_chip.value(), kAlpha / 3 / 2);
}

TEST(ThresholdsTest, PrecisionMovesNothingWhenBytesShrinkWithIt) {
  const Slice slice = Torus({{16, true}, {16, true}});
  ThresholdQuestion narrow = Dense();
  narrow.compute = hardware::DataType::kInt8;
  narrow.communicated_bytes_per_element = 1;
  EXPECT_DOUBLE_EQ(ThresholdsOf(slice, narrow).tensor_degree_limit.value(),
                   ThresholdsOf(slice, Dense()).tensor_degree_limit.value());
  narrow.communicated_bytes_per_element = 2;
  EXPECT_DOUBLE_EQ(ThresholdsOf(slice, narrow).data_tokens_per_chip.value(),
                   2 * ThresholdsOf(slice, Dense()).data_tokens_per_chip.value());
}

TEST(ThresholdsTest, ExpertsMultiplyByTheirSparsity) {
  const Slice slice = Torus({{16, true}, {16, true}, {16, true}});
  ThresholdQuestion sparse = Dense();
  sparse.expert_count = 64;
  sparse.experts_per_token = 4;
  const TrainingThresholds dense = ThresholdsOf(slice, Dense());
  const TrainingThresholds experts = ThresholdsOf(slice, sparse);
  EXPECT_DOUBLE_EQ(experts.data_tokens_per_chip.value(), 16 * dense.data_tokens_per_chip.value());
  EXPECT_DOUBLE_EQ(experts.dcn_tokens_per_slice.value(), 16 * dense.dcn_tokens_per_slice.value());
  // Four experts of F work on each gathered token.
  EXPECT_DOUBLE_EQ(experts.tensor_degree_limit.value(), 4 * dense.tensor_degree_limit.value());
}

TEST(ThresholdsTest, SwitchedDomains) {
  const TrainingThresholds node = ThresholdsOf(Gpus(8, 8), Dense());
  EXPECT_DOUBLE_EQ(node.data_tokens_per_chip.value(), 2000);
  EXPECT_DOUBLE_EQ(node.tensor_degree_limit.value(), kFfn / 2000);
  EXPECT_FALSE(node.dcn_tokens_per_slice.has_value());
  const TrainingThresholds many = ThresholdsOf(Gpus(1024, 8), Dense());
  EXPECT_DOUBLE_EQ(many.data_tokens_per_chip.value(), 2500);
  EXPECT_DOUBLE_EQ(ThresholdsOf(Gpus(16, 8), Dense()).data_tokens_per_chip.value(),
                   2000);  // 1,250 outside: the node binds
  ThresholdQuestion deep = Dense();
  deep.tensor_degree = 8;
  EXPECT_DOUBLE_EQ(ThresholdsOf(Gpus(1024, 8), deep).data_tokens_per_chip.value(), 2500);
  deep.pipeline_degree = 8;
  EXPECT_DOUBLE_EQ(ThresholdsOf(Gpus(1024, 8), deep).data_tokens_per_chip.value(), 2500.0 / 8);
  // Two domains of 8 and one model over both: nothing is left to reduce.
  deep.pipeline_degree = 2;
  EXPECT_DOUBLE_EQ(ThresholdsOf(Gpus(16, 8), deep).data_tokens_per_chip.value(), 0);
}

TEST(ThresholdsTest, UnknownFiguresStayUnset) {
  Slice slice = Torus({{16, true}});
  slice.accelerator.ici_link_bytes_per_second.reset();
  slice.accelerator.dcn_bytes_per_second.reset();
  TrainingThresholds thresholds = ThresholdsOf(slice, Dense());
  EXPECT_FALSE(thresholds.data_tokens_per_chip || thresholds.tensor_degree_limit || thresholds.dcn_tokens_per_slice);
  EXPECT_GT(thresholds.tokens_per_chip, 0);
  slice = Torus({{16, true}});
  slice.accelerator.bf16_flops_per_second.reset();
  EXPECT_FALSE(ThresholdsOf(slice, Dense()).data_tokens_per_chip);
  EXPECT_FALSE(ThresholdsOf(Torus({{1, false}}), Dense()).data_tokens_per_chip);
  Slice gpus = Gpus(64, 8);
  gpus.accelerator.network_bytes_per_second.reset();
  EXPECT_FALSE(ThresholdsOf(gpus, Dense()).data_tokens_per_chip);
}

// At each threshold the layer's two times meet.
TEST(ClosedFormTest, ThresholdsAreWhereTimesMeet) {
  constexpr double kAxis = 2 * kLink;
  const MlpLayer data{64 * DataTokensPerChip(kAlpha, 1), 8192, kFfn};
  EXPECT_NEAR(DataParallelBackward(data, 64, kFlops, kAxis).compute_seconds,
              DataParallelBackward(data, 64, kFlops, kAxis).weights_seconds, 1e-12);
  EXPECT_NEAR(FsdpForward(data, 64, kFlops, kAxis).compute_seconds,
              FsdpForward(data, 64, kFlops, kAxis).weights_seconds, 1e-12);
  const MlpLayer any{1e6, 8192, kFfn};
  const LayerTimes tensor = FsdpTensorForward(any, 1, TensorDegreeLimit(kAlpha, 1, kFfn), kFlops, kAxis, kAxis);
  EXPECT_NEAR(tensor.compute_seconds, tensor.activations_seconds, 1e-9);
  EXPECT_EQ(tensor.weights_seconds, 0);
  // Both at once at the best split of the least batch.
  constexpr double kChips = 4096;
  const double tokens = kChips * FsdpTensorTokensPerChip(kAlpha, 2, 1, kFfn);
  const double fsdp = OptimalFsdpDegree(tokens, kFfn, kChips, 2, 1);
  const LayerTimes mixed = FsdpTensorForward({tokens, 8192, kFfn}, fsdp, kChips / fsdp, kFlops, 2 * kAxis, kAxis);
  EXPECT_NEAR(mixed.compute_seconds, mixed.weights_seconds, 1e-9);
  EXPECT_NEAR(mixed.compute_seconds, mixed.activations_seconds, 1e-9);
  EXPECT_NEAR(ComputeOverNetworkAtOptimum(tokens, kFfn, kChips, kAlpha, 2, 1), 1, 1e-9);
  const MlpLayer slices{2 * DcnTokensPerSlice(kFlops, 5e9), 8192, kFfn};
  const LayerTimes dcn = DataParallelBetweenSlicesBackward(slices, 512, 256, kFlops, 5e9);
  EXPECT_NEAR(dcn.compute_seconds, dcn.weights_seconds, 1e-12);
}

TEST(ClosedFormTest, ExpertWidthIsWhereTheAllToAllHides) {
  for (const double experts_per_token : {1.0, 4.0, 16.0}) {
    const double ffn =
        ExpertFfnDimNeeded(/*outer_alpha=*/2500, /*expert_degree=*/64, /*domain_size=*/8, experts_per_token);
    const LayerTimes times = ExpertParallelForward({1e6, 4096, ffn}, experts_per_token, 64, 8, 1000e12, 400e9);
    EXPECT_NEAR(times.compute_seconds / times.activations_seconds, 1, 1e-9);
  }
}

// The optimum is no worse than its neighbours.
TEST(ClosedFormTest, OptimalSplitIsOptimal) {
  const MlpLayer layer{2e6, 8192, kFfn};
  constexpr double kChips = 4096;
  const double best = OptimalFsdpDegree(layer.tokens, layer.ffn_dim, kChips, 2, 1);
  const auto network = [&](double fsdp) {
    const LayerTimes times = FsdpTensorForward(layer, fsdp, kChips / fsdp, kFlops, 4 * kLink, 2 * kLink);
    return std::max(times.weights_seconds, times.activations_seconds);
  };
  for (const double factor : {0.5, 0.9, 1.1, 2.0}) EXPECT_LE(network(best), network(best * factor));
  const Split split = PowerOfTwoSplit(best, 4096);
  EXPECT_EQ(split.Chips(), 4096);
  EXPECT_EQ(PowerOfTwoSplit(1e9, 8960).Chips(), 8192);
  EXPECT_EQ(PowerOfTwoSplit(0.01, 1).Chips(), 1);
}

TEST(BudgetTest, TimeMoneyAndMfuAgree) {
  const double flops = TrainingFlops(70e9, 15e12);
  EXPECT_DOUBLE_EQ(flops, 6.3e24);
  const double seconds = SecondsAtMfu(flops, 8192, kFlops, 0.5);
  EXPECT_NEAR(MfuRatio(flops, seconds, 8192, kFlops), 0.5, 1e-12);
  EXPECT_NEAR(ChipHoursAtMfu(flops, kFlops, 0.5), 8192 * seconds / kSecondsPerHour, 1);
  EXPECT_NEAR(CostUsd(ChipHoursAtMfu(flops, kFlops, 1), 3), flops / FlopsPerUsd(kFlops, 3), 1);
  EXPECT_DOUBLE_EQ(FullRecomputeFlops(1, 1), ForwardFlops(1, 1) + TrainingFlops(1, 1));
}

TEST(BudgetTest, SlicesForMemory) {
  const std::vector<int64_t> sizes = {1, 4, 8, 16};
  EXPECT_EQ(MinimumChips(33, 16), 3);
  EXPECT_EQ(SmallestSliceFor(33, 16, sizes).value(), 4);
  EXPECT_EQ(SmallestSliceFor(16, 16, sizes).value(), 1);
  EXPECT_FALSE(SmallestSliceFor(257, 16, sizes).has_value());
  Slice slice = Torus({{4, false}, {4, false}});
  slice.chips_per_host = 8;
  EXPECT_EQ(TotalsOf(slice).host_count.value(), 2);
  EXPECT_DOUBLE_EQ(TotalsOf(slice).flops_per_second.value(), 16 * kFlops);
  EXPECT_FALSE(TotalsOf(slice).hbm_bytes.has_value());
  EXPECT_EQ(MaximumFsdpDegree(1 << 22, 4096), 1024);
}

DecodeReplica Replica(double batch) {
  DecodeReplica replica;
  replica.active_parameter_count = 10e9;
  replica.weight_bytes = 10e9;
  replica.kv_bytes_per_sequence = 1e9;
  replica.batch_size = batch;
  replica.chip_count = 4;
  replica.flops_per_second = 200e12;
  replica.hbm_bytes_per_second = 1e12;
  replica.hbm_bytes = 16e9;
  return replica;
}

TEST(ServingClosedFormTest, DecodeAddsTheCache) {
  const DecodeStep step = DecodeStepOf(Replica(20));
  EXPECT_DOUBLE_EQ(step.kv_seconds, 20e9 / 4e12);
  EXPECT_DOUBLE_EQ(step.weights_seconds, 10e9 / 4e12);
  EXPECT_DOUBLE_EQ(step.compute_seconds, 2.0 * 20 * 10e9 / 800e12);
  EXPECT_DOUBLE_EQ(step.step_seconds, step.kv_seconds + step.weights_seconds);
  EXPECT_TRUE(step.fits);
  EXPECT_EQ(MaximumBatch(Replica(0)), 54);
  EXPECT_TRUE(DecodeStepOf(Replica(54)).fits);
  EXPECT_FALSE(DecodeStepOf(Replica(55)).fits);
  EXPECT_EQ(DecodeStepOf(Replica(0)).tokens_per_second, 0);
  DecodeReplica tiny = Replica(1);
  tiny.hbm_bytes = 1e9;
  EXPECT_EQ(MaximumBatch(tiny), 0);
  EXPECT_LT(FreeBytes(tiny), 0);
}

// Throughput rises with the batch, latency too, and neither passes its limit.
TEST(ServingClosedFormTest, BatchTradesLatencyForThroughput) {
  double throughput = 0;
  double latency = 0;
  for (double batch = 1; batch <= 4096; batch *= 2) {
    const DecodeStep step = DecodeStepOf(Replica(batch));
    // Flat once compute binds.
    EXPECT_GE(step.tokens_per_second, throughput * (1 - 1e-12));
    EXPECT_GT(step.step_seconds, latency);
    EXPECT_LT(step.tokens_per_second, 4e12 / 1e9);  // caches alone
    throughput = step.tokens_per_second;
    latency = step.step_seconds;
  }
}

TEST(ServingClosedFormTest, SmallForms) {
  EXPECT_DOUBLE_EQ(SpeculativeTokensPerPass(0, 4), 1);
  EXPECT_DOUBLE_EQ(SpeculativeTokensPerPass(1, 4), 5);
  EXPECT_DOUBLE_EQ(SpeculativeTokensPerPass(0.5, 1), 1.5);
  EXPECT_DOUBLE_EQ(RemainingPrefillRatio(100, 100), 0);
  EXPECT_EQ(CacheSplitOf(8, 16).head_degree, 8);
  EXPECT_EQ(CacheSplitOf(8, 16).batch_degree, 2);
  EXPECT_EQ(CacheSplitOf(8, 4).batch_degree, 1);
  EXPECT_EQ(CacheSplitOf(6, 4).head_degree, 2);
  EXPECT_DOUBLE_EQ(UsdPerMillionTokens(3.6, 1000, 1, 1000), 1000);
  // Break-even of two-dimensional sharding: both times are equal there.
  const double chips = WeightStationaryBreakEvenChips(8192, 32768, 3);
  const WeightStationary plan = WeightStationaryOf(64, 8192, 32768, chips, 1e11, 3);
  EXPECT_NEAR(plan.seconds / plan.one_dimensional_seconds, 1, 1e-9);
  const DecodeMatmul matmul = DecodeMatmulOf(32, 8192, 32768, DecodeTensorLimit(32768, 32, 10), 200e12, 1e12, 1e11);
  EXPECT_NEAR(matmul.weights_seconds, matmul.network_seconds, 1e-12);
}

}  // namespace
}  // namespace sliceplan::planner
