// One matmul on one chip: lhs [batch, m, k] x rhs [batch, k, n] -> output [batch, m, n]. Chapters 1, 2 and 4 of "How To
// Scale Your Model". In a layer, m counts tokens, lhs holds activations and rhs weights.
#ifndef SLICEPLAN_SERVER_ROOFLINE_MATMUL_H_
#define SLICEPLAN_SERVER_ROOFLINE_MATMUL_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/hardware/accelerator.h"
#include "server/hardware/data_type.h"
#include "server/roofline/op_cost.h"

namespace sliceplan::roofline {

// All dimensions positive. `batch` is the product of the batch dimensions: each has its own lhs and rhs.
struct Matmul {
  int64_t batch = 1;
  int64_t m = 1;
  int64_t k = 1;
  int64_t n = 1;
  hardware::DataType lhs = hardware::DataType::kBf16;
  hardware::DataType rhs = hardware::DataType::kBf16;
  hardware::DataType output = hardware::DataType::kBf16;
  // What the matrix unit multiplies in; absent: ComputeType of the operands.
  std::optional<hardware::DataType> compute = std::nullopt;

  hardware::DataType Compute() const;
};

// The narrowest type that holds both operands: equal types stay, the wider of two integers or of two floats wins, and
// an integer meeting a float is converted to bf16 (fp32 beside fp32).
hardware::DataType ComputeType(hardware::DataType lhs, hardware::DataType rhs);

// 2 x batch x m x k x n.
double MatmulFlops(const Matmul& matmul);

// 2 x the product of all distinct dimensions of a general contraction, batch and contracting ones counted once.
double ContractionFlops(absl::Span<const int64_t> distinct_dims);

// Forward once; backward one matmul for each operand's gradient.
struct TrainingMatmulFlops {
  double forward = 0;
  double backward = 0;
  double total = 0;
};
TrainingMatmulFlops TrainingFlopsOf(const Matmul& matmul);

struct MatmulBytes {
  double lhs = 0;
  double rhs = 0;
  double output = 0;
  double Loaded() const { return lhs + rhs; }
  double Total() const { return lhs + rhs + output; }
};
// Each operand read once, the output written once.
MatmulBytes BytesOf(const Matmul& matmul);

// FLOPs in Compute(), bytes through HBM.
OpCost CostOf(const Matmul& matmul);

// Work of the padded matmul over the useful work, at least 1: m to the rows of the matrix unit, k and n to `mxu_dim`.
double PaddedOverUseful(const Matmul& matmul, int64_t mxu_dim);

// The roofline's throughput: FLOPs over the larger of compute and HBM time. FAILED_PRECONDITION names a missing rate.
absl::StatusOr<double> AttainableFlopsPerSecond(const Matmul& matmul, const hardware::AcceleratorSpec& accelerator);

// A matmul walked in tiles [tile_m, tile_k] x [tile_k, tile_n] with one output tile resident: operands are loaded again
// for every output tile. Book, chapter 1. Tiles are clamped to nothing: dimensions are counted in whole tiles.
struct TiledMatmul {
  Matmul matmul;
  int64_t tile_m = 1;
  int64_t tile_k = 1;
  int64_t tile_n = 1;
};
double BytesOf(const TiledMatmul& tiled);
// FLOPs per byte loaded when the output's own traffic is left out: tm * tn / (tm + tn) for two-byte operands.
double LoadIntensity(const TiledMatmul& tiled);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_MATMUL_H_
