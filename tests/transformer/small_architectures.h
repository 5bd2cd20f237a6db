// Small models for tests: hidden_dim 64, vocabulary 1,000, untied.
#ifndef SLICEPLAN_TESTS_TRANSFORMER_SMALL_ARCHITECTURES_H_
#define SLICEPLAN_TESTS_TRANSFORMER_SMALL_ARCHITECTURES_H_

#include <utility>
#include <vector>

#include "server/transformer/architecture.h"

namespace sliceplan::transformer {

inline Layer Dense(int32_t heads, int32_t kv_heads, int32_t head_dim, int32_t ffn_dim) {
  GroupedQueryAttention attention;
  attention.query_head_count = heads;
  attention.kv_head_count = kv_heads;
  attention.head_dim = head_dim;
  DenseFeedForward dense;
  dense.ffn_dim = ffn_dim;
  Layer layer;
  layer.attention = attention;
  layer.feed_forward = dense;
  return layer;
}

inline Layer Moe(int32_t heads, int32_t kv_heads, int32_t head_dim, int32_t experts, int32_t per_token, int32_t ffn_dim,
                 int32_t shared) {
  MixtureOfExperts moe;
  moe.expert_count = experts;
  moe.experts_per_token = per_token;
  moe.expert_ffn_dim = ffn_dim;
  moe.shared_expert_count = shared;
  Layer layer = Dense(heads, kv_heads, head_dim, 1);
  layer.feed_forward = moe;
  return layer;
}

inline Architecture Small(std::vector<Layer> pattern, int32_t repeat_count) {
  Architecture architecture;
  architecture.hidden_dim = 64;
  architecture.vocab_size = 1000;
  architecture.layer_groups = {{repeat_count, std::move(pattern)}};
  return architecture;
}

}  // namespace sliceplan::transformer

#endif  // SLICEPLAN_TESTS_TRANSFORMER_SMALL_ARCHITECTURES_H_
