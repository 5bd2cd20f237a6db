#include "server/planner/orthogonalisation.h"

#include <algorithm>

namespace sliceplan::planner {
namespace {

constexpr double kIterations = 5;

}  // namespace

Orthogonalisation OrthogonalisationFlops(const transformer::LayerOperations& layer) {
  Orthogonalisation flops;
  for (const transformer::WeightMatmul& matmul : layer.matmuls) {
    const double shorter = static_cast<double>(std::min(matmul.k, matmul.n));
    const double longer = static_cast<double>(std::max(matmul.k, matmul.n));
    const double one = kIterations * (4 * shorter * shorter * longer + 2 * shorter * shorter * shorter);
    if (matmul.expert_count > 0) {
      flops.expert += static_cast<double>(matmul.expert_count) * one;
    } else {
      flops.dense += one;
    }
  }
  return flops;
}

}  // namespace sliceplan::planner
