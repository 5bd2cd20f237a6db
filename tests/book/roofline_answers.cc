// Chapter 1: rooflines.
#include "server/planner/budget.h"
#include "server/roofline/bound.h"
#include "server/roofline/critical_batch.h"
#include "server/roofline/elementwise.h"
#include "server/roofline/matmul.h"
#include "server/roofline/memory_tiers.h"
#include "server/roofline/op_cost.h"
#include "server/roofline/sharded_matmul.h"
#include "tests/book/book_case.h"
#include "tests/book/book_constants.h"

namespace sliceplan::book {
namespace {

using hardware::AcceleratorSpec;
using hardware::BytesPerElement;
using hardware::DataType;
using namespace roofline;  // NOLINT(google-build-using-namespace): this file calls nothing else

Json TimeAtPeak(const Json& given) {
  OpCost cost;
  cost.MatrixFlops(DataType::kBf16) = Number(given, "flops");
  return {{"t_math_s", SecondsOf(cost, GivenChip(given)).value().matrix_unit}};
}

Json DotProductIntensity(const Json& given) {
  const OpCost cost = CostOf(DotProduct{Count(given, "N"), DataType::kBf16});
  return {{"flops", cost.TotalFlops()}, {"bytes", cost.hbm_bytes}, {"intensity_flops_per_byte", cost.Intensity()}};
}

Json ExactIntensity(const Json& given) {
  const Matmul matmul{.m = Count(given, "B"), .k = Count(given, "D"), .n = Count(given, "F")};
  return {{"flops", MatmulFlops(matmul)},
          {"bytes_loaded", BytesOf(matmul).Loaded()},
          {"bytes_written", BytesOf(matmul).output},
          {"intensity_flops_per_byte", CostOf(matmul).Intensity()}};
}

Json LocalBatch(const Json& given) {
  const planner::BatchShare share =
      planner::BatchShareOf(Number(given, "sequences"), Number(given, "tokens_per_sequence"), Number(given, "chips"));
  return {{"global_tokens", share.global_tokens}, {"local_tokens", share.tokens_per_chip}};
}

Json Tiling(const Json& given) {
  TiledMatmul tiled;
  tiled.matmul = {.m = Count(given, "m"), .k = Count(given, "k"), .n = Count(given, "n")};
  tiled.tile_m = Count(given, "bm");
  tiled.tile_k = Count(given, "bk");
  tiled.tile_n = Count(given, "bn");
  return {{"flops", MatmulFlops(tiled.matmul)},
          {"bytes", BytesOf(tiled)},
          {"intensity_ignoring_output", LoadIntensity(tiled)}};
}

Json TwoChips(const Json& given) {
  const AcceleratorSpec chip = GivenChip(given);
  const hardware::Slice pair = TorusOf(chip, {2}, /*wraps=*/false);
  const CollectiveLaw reduce = LawOf(CollectiveKind::kAllReduce, pair, {.pieces = {{0, 2, 1}}}).value();
  return {{"D_critical", CriticalContractingDim(*chip.bf16_flops_per_second, Number(given, "chips"), reduce)},
          {"intensity_needed", CriticalIntensity(chip, MemoryTier::kIciLink).value()}};
}

Json Int8Matmul(const Json& given) {
  AcceleratorSpec chip = GivenChip(given);
  chip.int8_ops_per_second = chip.bf16_flops_per_second;  // the case gives the int8 rate
  const Matmul matmul{.m = Count(given, "B"),
                      .k = Count(given, "D"),
                      .n = Count(given, "F"),
                      .lhs = DataType::kInt8,
                      .rhs = DataType::kInt8,
                      .output = DataType::kInt8};
  const ResourceSeconds seconds = SecondsOf(CostOf(matmul), chip).value();
  const Bound bound = BoundOf(seconds);
  return {{"bytes_loaded", BytesOf(matmul).Loaded()},
          {"bytes_written", BytesOf(matmul).output},
          {"ops", MatmulFlops(matmul)},
          {"hw_intensity_ops_per_byte", CriticalIntensity(chip, MemoryTier::kHbm, DataType::kInt8).value()},
          {"batch_critical",
           CriticalBatch(*chip.MatmulRate(matmul.Compute()), *chip.hbm_bytes_per_second, BytesPerElement(matmul.rhs))},
          {"t_math_s", seconds.matrix_unit},
          {"t_comms_s", seconds.hbm},
          {"t_lower_s", bound.lower_seconds},
          {"t_upper_s", bound.upper_seconds}};
}

Json Int8WeightsCriticalBatch(const Json& given) {
  const AcceleratorSpec chip = GivenChip(given);
  const DataType compute = ComputeType(DataType::kBf16, DataType::kInt8);
  return {{"batch_critical",
           CriticalBatch(*chip.MatmulRate(compute), *chip.hbm_bytes_per_second, BytesPerElement(DataType::kInt8))}};
}

Json ExactCrossover(const Json& given) {
  const AcceleratorSpec chip = GivenChip(given);
  Matmul matmul{.k = Count(given, "D"), .n = Count(given, "F"), .rhs = DataType::kInt8};
  const Json batch = ExactCriticalBatch(matmul, *chip.bf16_flops_per_second, *chip.hbm_bytes_per_second).value();
  Json rates = Json::array();
  for (const Json& rows : given.at("B_list")) {
    matmul.m = rows.get<int64_t>();
    rates.push_back(AttainableFlopsPerSecond(matmul, chip).value());
  }
  return {{"batch_critical_exact", batch}, {"flops_per_s_at_B", rates}};
}

Json WeightsPerRow(const Json& given) {
  const Matmul matmul{.batch = Count(given, "B"),
                      .m = 1,
                      .k = Count(given, "D"),
                      .n = Count(given, "F"),
                      .lhs = DataType::kInt8,
                      .rhs = DataType::kInt8,
                      .output = DataType::kInt8};
  const OpCost cost = CostOf(matmul);
  return {{"flops", cost.TotalFlops()}, {"bytes", cost.hbm_bytes}, {"intensity_flops_per_byte", cost.Intensity()}};
}

Json SpecSheet(const Json& given) {
  // The sheet counts zeros of 2:4 sparsity as work.
  const double dense = Number(given, "spec_sheet_bf16_with_sparsity_flops_per_s") / 2;
  return {{"dense_flops_per_s", dense},
          {"batch_critical", CriticalBatch(dense, Number(given, "hbm_bytes_per_s"), BytesPerElement(DataType::kBf16))}};
}

}  // namespace

Answers RooflineAnswers() {
  return {
      {"roofline.time_h100", TimeAtPeak},
      {"roofline.time_v6e", TimeAtPeak},
      {"roofline.hw_intensity_v5e",
       [](const Json& given) -> Json {
         return {{"intensity_flops_per_byte", CriticalIntensity(GivenChip(given), MemoryTier::kHbm).value()}};
       }},
      {"roofline.dot_product_n1", DotProductIntensity},
      {"roofline.dot_product_nlarge", DotProductIntensity},
      {"roofline.matmul_exact", ExactIntensity},
      {"roofline.critical_batch_v5e",
       [](const Json& given) -> Json {
         return {{"batch_tokens", CriticalBatch(Number(given, "flops_per_s"), Number(given, "hbm_bytes_per_s"),
                                                BytesPerElement(DataType::kBf16))}};
       }},
      {"roofline.local_batch", LocalBatch},
      {"roofline.tiling_intensity", Tiling},
      {"roofline.two_chip_contracting", TwoChips},
      {"roofline.q1", Int8Matmul},
      {"roofline.q2", Int8WeightsCriticalBatch},
      {"roofline.q3.d1024", ExactCrossover},
      {"roofline.q4", WeightsPerRow},
      {"roofline.q5", SpecSheet},
  };
}

}  // namespace sliceplan::book
