#include "server/planner/serving/replica_buffers.h"

#include <algorithm>
#include <cmath>

#include "server/planner/step_load.h"

namespace sliceplan::planner {
namespace {

using transformer::Component;
using transformer::LayerOperations;
using transformer::SoftmaxAttention;
using transformer::TensorSplit;
using transformer::WeightMatmul;

constexpr double kWideBytes = 2;

int32_t RotaryWidth(const SoftmaxAttention& softmax) {
  return softmax.absorbed_qk_dim > 0 ? softmax.absorbed_qk_dim - softmax.absorbed_value_dim : softmax.qk_head_dim;
}

}  // namespace

double ServedShare(const WeightMatmul& matmul, double tensor, bool copies_heads) {
  if (matmul.copies_beyond_units && !copies_heads && tensor > matmul.split_unit_count) return 1 / tensor;
  return TensorShare(matmul, tensor);
}

double ProjectionBytesPerToken(const LayerOperations& layer, const BufferShape& shape) {
  double attention = 0;
  double feed_forward = 0;
  for (const WeightMatmul& matmul : layer.matmuls) {
    if (matmul.expert_count > 0) continue;
    const double width = static_cast<double>(matmul.split == TensorSplit::kRow ? matmul.k : matmul.n) *
                         ServedShare(matmul, shape.tensor, shape.copies_heads);
    (matmul.component == Component::kAttentionProjections ? attention : feed_forward) += width;
  }
  return shape.activation_bytes * std::max(attention, feed_forward);
}

double ExpertWorkspaceBytesPerToken(const LayerOperations& layer, double hidden_dim, const BufferShape& shape) {
  double first = 0;
  double last = 0;
  for (const WeightMatmul& matmul : layer.matmuls) {
    if (matmul.expert_count == 0) continue;
    const double share = ServedShare(matmul, shape.tensor, shape.copies_heads);
    if (matmul.split == TensorSplit::kRow) {
      last = std::max(last, static_cast<double>(matmul.k) * share);
    } else {
      first += static_cast<double>(matmul.n) * share;
    }
  }
  if (first <= 0) return 0;
  return shape.activation_bytes * layer.experts_per_token * (std::max(last, hidden_dim) + std::max(first, hidden_dim));
}

double RotaryTableBytes(const transformer::Architecture& architecture, const transformer::ModelOperations& model) {
  if (architecture.learned_position_count > 0) return 0;
  int32_t width = 0;
  for (const LayerOperations& layer : model.layers) {
    if (layer.has_softmax) width = std::max(width, RotaryWidth(layer.softmax));
  }
  return kWideBytes * width * architecture.max_position_count;
}

double AbsorbedCopyBytes(const SoftmaxAttention& softmax, double tensor) {
  const double plain_width = softmax.qk_head_dim - RotaryWidth(softmax);
  return kWideBytes * softmax.absorbed_value_dim * std::ceil(softmax.query_head_count / tensor) *
         (plain_width + softmax.value_head_dim);
}

}  // namespace sliceplan::planner
