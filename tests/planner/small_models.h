// Operation lists of small made-up models, for tests of what only needs counts.
#ifndef SLICEPLAN_TESTS_PLANNER_SMALL_MODELS_H_
#define SLICEPLAN_TESTS_PLANNER_SMALL_MODELS_H_

#include <cstdint>
#include <vector>

#include "server/hardware/slice.h"
#include "server/transformer/operations.h"

namespace sliceplan::planner {

struct SmallModel {
  int32_t layers = 80;
  int32_t query_heads = 64;
  int32_t kv_heads = 8;
  int32_t head_dim = 128;
  int32_t hidden_dim = 8192;
  int32_t ffn_dim = 28672;
  int32_t vocab_size = 128256;
  int32_t experts = 0;  // 0: dense
  int32_t experts_per_token = 0;
};

inline transformer::WeightMatmul Matmul(transformer::Component component, transformer::SavedTensor output,
                                        transformer::TensorSplit split, int64_t k, int64_t n, int32_t units = 0) {
  transformer::WeightMatmul matmul;
  matmul.component = component;
  matmul.output = output;
  matmul.split = split;
  matmul.k = k;
  matmul.n = n;
  matmul.split_unit_count = units;
  return matmul;
}

// A gated transformer of identical layers.
inline transformer::ModelOperations Operations(const SmallModel& small) {
  using transformer::Component;
  using transformer::SavedTensor;
  using transformer::TensorSplit;
  const int64_t hidden = small.hidden_dim;
  const int64_t query_width = int64_t{small.query_heads} * small.head_dim;
  const int64_t kv_width = int64_t{small.kv_heads} * small.head_dim;
  transformer::LayerOperations layer;
  layer.count = small.layers;
  auto& matmuls = layer.matmuls;
  const auto projections = Component::kAttentionProjections;
  matmuls.push_back(
      Matmul(projections, SavedTensor::kQuery, TensorSplit::kColumn, hidden, query_width, small.query_heads));
  for (int i = 0; i < 2; ++i) {
    matmuls.push_back(
        Matmul(projections, SavedTensor::kKeyValue, TensorSplit::kColumn, hidden, kv_width, small.kv_heads));
    matmuls.back().copies_beyond_units = true;
  }
  matmuls.push_back(
      Matmul(projections, SavedTensor::kOutProjection, TensorSplit::kRow, query_width, hidden, small.query_heads));
  const auto feed_forward = Component::kFeedForward;
  const int64_t ffn = small.ffn_dim;
  matmuls.push_back(Matmul(feed_forward, SavedTensor::kMlpUpGate, TensorSplit::kColumn, hidden, ffn));
  matmuls.push_back(matmuls.back());
  matmuls.push_back(Matmul(feed_forward, SavedTensor::kMlpDown, TensorSplit::kRow, ffn, hidden));
  if (small.experts > 0) {
    for (size_t i = matmuls.size() - 3; i < matmuls.size(); ++i) {
      matmuls[i].expert_count = small.experts;
      matmuls[i].rows_per_token = small.experts_per_token;
    }
    layer.expert_count = small.experts;
    layer.experts_per_token = small.experts_per_token;
    layer.expert_ffn_dim = small.ffn_dim;
  }
  layer.has_softmax = true;
  layer.softmax.query_head_count = small.query_heads;
  layer.softmax.kv_head_count = small.kv_heads;
  layer.softmax.qk_head_dim = layer.softmax.value_head_dim = small.head_dim;

  transformer::ModelOperations model;
  model.hidden_dim = small.hidden_dim;
  model.vocab_size = small.vocab_size;
  model.head = Matmul(Component::kOutputHead, SavedTensor::kNone, TensorSplit::kColumn, hidden, small.vocab_size);
  model.layers = {layer};
  model.layer_kind.assign(static_cast<size_t>(small.layers), 0);
  return model;
}

// A torus of rings, without any figure of its chips.
inline hardware::Slice Torus(std::vector<int32_t> sizes, int32_t slice_count = 1) {
  hardware::Slice slice;
  for (const int32_t size : sizes) {
    slice.axes.push_back({size, true});
    slice.chip_count *= size;
  }
  slice.slice_count = slice_count;
  return slice;
}

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_TESTS_PLANNER_SMALL_MODELS_H_
