#include "server/transformer/hugging_face/plain_layer.h"

#include "server/transformer/hugging_face/decoder.h"

namespace sliceplan::transformer::hugging_face {
namespace {

// An absent or null MLP width is four times the hidden width.
DenseFeedForward ReadWidened(Config& config, const DecoderTraits& traits, int64_t hidden_dim) {
  DenseFeedForward dense;
  dense.ffn_dim = static_cast<int32_t>(
      config.IntOr({"n_inner", "intermediate_size", "ffn_hidden_size", "ffn_dim"}, kDefaultWidening * hidden_dim));
  dense.gated = traits.gated;
  dense.bias = Read(config, traits.mlp_bias);
  return dense;
}

}  // namespace

Layer ReadPlainLayer(Config& config, const DecoderTraits& traits, const Architecture& architecture) {
  Layer layer;
  layer.norms = NormsOf(traits.norm, traits.norms_per_layer);
  layer.parallel_block = Read(config, traits.parallel_block);
  layer.attention = ReadGroupedQuery(config, traits, architecture.hidden_dim);
  layer.feed_forward = ReadWidened(config, traits, architecture.hidden_dim);
  return layer;
}

Layer& SetLayers(Config& config, const Layer& layer, Architecture& architecture) {
  architecture.layer_groups = {{ReadLayerCount(config), {layer}}};
  return architecture.layer_groups.front().layers.front();
}

void ReadLearnedPositions(Config& config, int64_t extra_rows, Architecture& architecture) {
  const int64_t rows = config.Required({"n_positions", "max_position_embeddings"});
  architecture.learned_position_count = static_cast<int32_t>(rows + extra_rows);
}

}  // namespace sliceplan::transformer::hugging_face
