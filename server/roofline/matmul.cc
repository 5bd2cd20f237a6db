#include "server/roofline/matmul.h"

#include "server/roofline/bound.h"
#include "server/roofline/tile_padding.h"

namespace sliceplan::roofline {
namespace {

using hardware::BytesPerElement;
using hardware::DataType;

constexpr double kFlopsPerMultiplyAdd = 2;

bool IsInteger(DataType type) { return type == DataType::kInt8 || type == DataType::kInt4; }

double Real(int64_t count) { return static_cast<double>(count); }

double Tiles(int64_t dim, int64_t tile) { return PaddedDim(dim, tile) / Real(tile); }

}  // namespace

DataType ComputeType(DataType lhs, DataType rhs) {
  if (lhs == rhs) return lhs;
  if (lhs == DataType::kFp32 || rhs == DataType::kFp32) return DataType::kFp32;
  if (IsInteger(lhs) != IsInteger(rhs)) return DataType::kBf16;
  if (BytesPerElement(lhs) == BytesPerElement(rhs)) return DataType::kBf16;  // bf16 beside fp16
  return BytesPerElement(lhs) > BytesPerElement(rhs) ? lhs : rhs;
}

DataType Matmul::Compute() const { return compute ? *compute : ComputeType(lhs, rhs); }

double MatmulFlops(const Matmul& matmul) {
  return kFlopsPerMultiplyAdd * Real(matmul.batch) * Real(matmul.m) * Real(matmul.k) * Real(matmul.n);
}

double ContractionFlops(absl::Span<const int64_t> distinct_dims) {
  double flops = kFlopsPerMultiplyAdd;
  for (const int64_t dim : distinct_dims) flops *= Real(dim);
  return flops;
}

TrainingMatmulFlops TrainingFlopsOf(const Matmul& matmul) {
  const double forward = MatmulFlops(matmul);
  const double backward = 2 * forward;
  return {forward, backward, forward + backward};
}

MatmulBytes BytesOf(const Matmul& matmul) {
  const double batch = Real(matmul.batch);
  return {.lhs = batch * Real(matmul.m) * Real(matmul.k) * BytesPerElement(matmul.lhs),
          .rhs = batch * Real(matmul.k) * Real(matmul.n) * BytesPerElement(matmul.rhs),
          .output = batch * Real(matmul.m) * Real(matmul.n) * BytesPerElement(matmul.output)};
}

OpCost CostOf(const Matmul& matmul) {
  OpCost cost;
  cost.MatrixFlops(matmul.Compute()) = MatmulFlops(matmul);
  cost.hbm_bytes = BytesOf(matmul).Total();
  return cost;
}

double PaddedOverUseful(const Matmul& matmul, int64_t mxu_dim) {
  return 1 / (UsefulRatio(matmul.m, kMatrixUnitRows) * UsefulRatio(matmul.k, mxu_dim) * UsefulRatio(matmul.n, mxu_dim));
}

absl::StatusOr<double> AttainableFlopsPerSecond(const Matmul& matmul, const hardware::AcceleratorSpec& accelerator) {
  const absl::StatusOr<ResourceSeconds> seconds = SecondsOf(CostOf(matmul), accelerator);
  if (!seconds.ok()) return seconds.status();
  return MatmulFlops(matmul) / BoundOf(*seconds).lower_seconds;
}

double BytesOf(const TiledMatmul& tiled) {
  const Matmul& matmul = tiled.matmul;
  const double tiles_m = Tiles(matmul.m, tiled.tile_m);
  const double tiles_k = Tiles(matmul.k, tiled.tile_k);
  const double tiles_n = Tiles(matmul.n, tiled.tile_n);
  const double lhs_tile = Real(tiled.tile_m) * Real(tiled.tile_k) * BytesPerElement(matmul.lhs);
  const double rhs_tile = Real(tiled.tile_k) * Real(tiled.tile_n) * BytesPerElement(matmul.rhs);
  const double output_tile = Real(tiled.tile_m) * Real(tiled.tile_n) * BytesPerElement(matmul.output);
  return Real(matmul.batch) * tiles_m * tiles_n * (tiles_k * (lhs_tile + rhs_tile) + output_tile);
}

double LoadIntensity(const TiledMatmul& tiled) {
  const double m = Real(tiled.tile_m);
  const double n = Real(tiled.tile_n);
  return kFlopsPerMultiplyAdd * m * n / (m * BytesPerElement(tiled.matmul.lhs) + n * BytesPerElement(tiled.matmul.rhs));
}

}  // namespace sliceplan::roofline
