// Attention of every kind as matmuls, scores or scans, and small vectors.
#include <cstdint>

#include "server/transformer/layer_operations.h"

namespace sliceplan::transformer {
namespace {

// Rotary embedding and layout changes read and write every projected query, key and value once.
constexpr double kProjectionPasses = 2;

WeightMatmul Projection(const char* name, SavedTensor output, TensorSplit split, int64_t k, int64_t n, int32_t units) {
  WeightMatmul matmul;
  matmul.name = name;
  matmul.weight_class = WeightClass::kAttention;
  matmul.component = Component::kAttentionProjections;
  matmul.output = output;
  matmul.split = split;
  matmul.k = k;
  matmul.n = n;
  matmul.split_unit_count = units;
  return matmul;
}

int64_t QkNormElements(const GroupedQueryAttention& attention) {
  using QkNorm = GroupedQueryAttention::QkNorm;
  const int64_t head_dim = attention.head_dim;
  const int64_t key_heads = attention.shares_earlier_kv ? 0 : attention.kv_head_count;
  switch (attention.qk_norm) {
    case QkNorm::kNone: return 0;
    case QkNorm::kPerHeadDim: return attention.shares_earlier_kv ? head_dim : 2 * head_dim;
    case QkNorm::kAllHeads: return (attention.query_head_count + key_heads) * head_dim;
  }
  return 0;
}

void AddGroupedQuery(const GroupedQueryAttention& attention, int64_t hidden_dim, LayerOperations& operations) {
  const int64_t head_dim = attention.head_dim;
  const int64_t value_head_dim = attention.value_head_dim > 0 ? attention.value_head_dim : head_dim;
  const int64_t query_width = attention.query_head_count * head_dim;
  const int64_t key_width = attention.kv_head_count * head_dim;
  const int64_t value_width = attention.kv_head_count * value_head_dim;
  const int64_t context_width = attention.query_head_count * value_head_dim;
  const int64_t gate_width = attention.output_gate ? context_width : 0;

  WeightMatmul query = Projection("q_proj", SavedTensor::kQuery, TensorSplit::kColumn, hidden_dim,
                                  query_width + gate_width, attention.query_head_count);
  query.bias_count = attention.qkv_bias ? query.n : 0;
  operations.matmuls.push_back(query);
  if (!attention.shares_earlier_kv) {
    WeightMatmul key = Projection("k_proj", SavedTensor::kKeyValue, TensorSplit::kColumn, hidden_dim, key_width,
                                  attention.kv_head_count);
    key.copies_beyond_units = true;
    key.bias_count = attention.qkv_bias ? key.n : 0;
    operations.matmuls.push_back(key);
    if (!attention.key_is_value) {
      WeightMatmul value = key;
      value.name = "v_proj";
      value.n = value_width;
      value.bias_count = attention.qkv_bias ? value.n : 0;
      operations.matmuls.push_back(value);
    }
  }
  WeightMatmul output = Projection("o_proj", SavedTensor::kOutProjection, TensorSplit::kRow, context_width, hidden_dim,
                                   attention.query_head_count);
  output.bias_count = attention.output_bias ? hidden_dim : 0;
  operations.matmuls.push_back(output);

  operations.has_softmax = true;
  SoftmaxAttention& softmax = operations.softmax;
  softmax.query_head_count = attention.query_head_count;
  softmax.kv_head_count = attention.kv_head_count;
  softmax.qk_head_dim = attention.head_dim;
  softmax.value_head_dim = static_cast<int32_t>(value_head_dim);
  softmax.window = attention.sliding_window;
  softmax.chunk = attention.chunked_window;
  softmax.cache_head_count = attention.kv_head_count;
  softmax.cache_width = static_cast<int32_t>(attention.head_dim + value_head_dim);
  softmax.reads_earlier_cache = attention.shares_earlier_kv;

  operations.norm_parameter_count += QkNormElements(attention);
  if (attention.sinks) operations.other_parameter_count += attention.query_head_count;
  operations.split_elements_per_token +=
      kProjectionPasses * static_cast<double>(query_width + gate_width) +
      (attention.shares_earlier_kv ? 0 : kProjectionPasses / 2 * static_cast<double>(key_width + value_width));
}

// Training multiplies the expanded form: keys and values are projected up from the latent for every head. The latent
// itself is not split over tensor parallelism.
void AddLatent(const LatentAttention& attention, int64_t hidden_dim, LayerOperations& operations) {
  const int64_t heads = attention.query_head_count;
  const int64_t qk_head_dim = attention.qk_nope_head_dim + attention.qk_rope_head_dim;
  const int64_t latent_width = attention.kv_lora_rank + attention.qk_rope_head_dim;
  std::vector<WeightMatmul>& matmuls = operations.matmuls;

  if (attention.q_lora_rank > 0) {
    matmuls.push_back(
        Projection("q_a_proj", SavedTensor::kQuery, TensorSplit::kNone, hidden_dim, attention.q_lora_rank, 0));
    matmuls.back().bias_count = attention.qkv_bias ? attention.q_lora_rank : 0;
    matmuls.push_back(Projection("q_b_proj", SavedTensor::kQuery, TensorSplit::kColumn, attention.q_lora_rank,
                                 heads * qk_head_dim, attention.query_head_count));
    operations.norm_parameter_count += attention.q_lora_rank;
  } else {
    matmuls.push_back(Projection("q_proj", SavedTensor::kQuery, TensorSplit::kColumn, hidden_dim, heads * qk_head_dim,
                                 attention.query_head_count));
  }
  matmuls.push_back(
      Projection("kv_a_proj_with_mqa", SavedTensor::kKeyValue, TensorSplit::kNone, hidden_dim, latent_width, 0));
  matmuls.back().bias_count = attention.qkv_bias ? latent_width : 0;
  operations.norm_parameter_count += attention.kv_lora_rank;
  matmuls.push_back(Projection("kv_b_proj", SavedTensor::kKeyValue, TensorSplit::kColumn, attention.kv_lora_rank,
                               heads * (attention.qk_nope_head_dim + attention.v_head_dim),
                               attention.query_head_count));
  matmuls.push_back(Projection("o_proj", SavedTensor::kOutProjection, TensorSplit::kRow, heads * attention.v_head_dim,
                               hidden_dim, attention.query_head_count));
  matmuls.back().bias_count = attention.qkv_bias ? hidden_dim : 0;

  operations.has_softmax = true;
  SoftmaxAttention& softmax = operations.softmax;
  softmax.query_head_count = attention.query_head_count;
  softmax.kv_head_count = attention.query_head_count;
  softmax.qk_head_dim = static_cast<int32_t>(qk_head_dim);
  softmax.value_head_dim = attention.v_head_dim;
  softmax.cache_head_count = 1;
  softmax.cache_width = static_cast<int32_t>(latent_width);
  softmax.absorbed_qk_dim = static_cast<int32_t>(latent_width);
  softmax.absorbed_value_dim = attention.kv_lora_rank;

  if (attention.indexer_head_count > 0) {
    const int64_t query_source = attention.q_lora_rank > 0 ? attention.q_lora_rank : hidden_dim;
    const int64_t index_width = static_cast<int64_t>(attention.indexer_head_count) * attention.indexer_head_dim;
    matmuls.push_back(Projection("indexer.wq_b", SavedTensor::kNone, TensorSplit::kNone, query_source, index_width, 0));
    matmuls.push_back(
        Projection("indexer.wk", SavedTensor::kNone, TensorSplit::kNone, hidden_dim, attention.indexer_head_dim, 0));
    matmuls.push_back(Projection("indexer.weights_proj", SavedTensor::kNone, TensorSplit::kNone, hidden_dim,
                                 attention.indexer_head_count, 0));
    // Like a router, it weighs and is kept in full precision.
    matmuls.back().weight_class = WeightClass::kRouter;
    matmuls.back().low_precision_allowed = false;
    operations.norm_parameter_count += 2 * static_cast<int64_t>(attention.indexer_head_dim);  // weight and bias
    softmax.selected_key_count = attention.indexer_top_k;
    softmax.indexer_head_count = attention.indexer_head_count;
    softmax.indexer_head_dim = attention.indexer_head_dim;
  }
  operations.split_elements_per_token +=
      kProjectionPasses * static_cast<double>(heads) * static_cast<double>(qk_head_dim) * 2;
}

// Columns of queries, one key that is the value, grouped output; the pooled past has projections of its own.
void AddCompressed(const CompressedAttention& attention, int64_t hidden_dim, LayerOperations& operations) {
  const int64_t head_dim = attention.head_dim;
  const int64_t query_width = attention.query_head_count * head_dim;
  const int64_t group_width = static_cast<int64_t>(attention.output_group_count) * attention.output_lora_rank;
  std::vector<WeightMatmul>& matmuls = operations.matmuls;
  matmuls.push_back(
      Projection("q_a_proj", SavedTensor::kQuery, TensorSplit::kNone, hidden_dim, attention.q_lora_rank, 0));
  matmuls.push_back(Projection("q_b_proj", SavedTensor::kQuery, TensorSplit::kColumn, attention.q_lora_rank,
                               query_width, attention.query_head_count));
  matmuls.push_back(Projection("kv_proj", SavedTensor::kKeyValue, TensorSplit::kNone, hidden_dim, head_dim, 0));
  // One block per group: a token's part of a group meets that group's columns only.
  matmuls.push_back(Projection("o_a_proj", SavedTensor::kOutProjection, TensorSplit::kColumn,
                               query_width / attention.output_group_count, group_width, attention.output_group_count));
  matmuls.push_back(Projection("o_b_proj", SavedTensor::kOutProjection, TensorSplit::kRow, group_width, hidden_dim,
                               attention.output_group_count));
  operations.norm_parameter_count += attention.q_lora_rank + head_dim;
  if (attention.sinks) operations.other_parameter_count += attention.query_head_count;

  operations.has_softmax = true;
  SoftmaxAttention& softmax = operations.softmax;
  softmax.query_head_count = attention.query_head_count;
  softmax.kv_head_count = 1;
  softmax.qk_head_dim = attention.head_dim;
  softmax.value_head_dim = attention.head_dim;
  softmax.window = attention.sliding_window;
  softmax.compression = attention.compression;
  softmax.cache_head_count = 1;
  softmax.cache_width = attention.head_dim;  // key and value are one vector
  operations.split_elements_per_token += kProjectionPasses * static_cast<double>(query_width + head_dim);
  if (attention.compression == 0) return;

  // Values and gates of a pool are computed in full precision, and so are the scores' weights.
  const auto add_pool = [&](const char* values, const char* gates, int64_t width) {
    const int64_t columns = attention.overlapping ? 2 * width : width;
    for (const char* name : {values, gates}) {
      matmuls.push_back(Projection(name, SavedTensor::kNone, TensorSplit::kNone, hidden_dim, columns, 0));
      matmuls.back().weight_class = WeightClass::kRouter;
      matmuls.back().low_precision_allowed = false;
    }
    operations.other_parameter_count += attention.compression * columns;  // a bias for each position of a block
    operations.norm_parameter_count += width;
  };
  add_pool("compressor.kv_proj", "compressor.gate_proj", head_dim);
  if (attention.indexer_head_count == 0) return;
  add_pool("indexer.kv_proj", "indexer.gate_proj", attention.indexer_head_dim);
  matmuls.push_back(Projection("indexer.q_b_proj", SavedTensor::kNone, TensorSplit::kNone, attention.q_lora_rank,
                               static_cast<int64_t>(attention.indexer_head_count) * attention.indexer_head_dim, 0));
  matmuls.push_back(Projection("indexer.weights_proj", SavedTensor::kNone, TensorSplit::kNone, hidden_dim,
                               attention.indexer_head_count, 0));
  matmuls.back().weight_class = WeightClass::kRouter;
  matmuls.back().low_precision_allowed = false;
  softmax.selected_key_count = attention.indexer_top_k;
  softmax.indexer_head_count = attention.indexer_head_count;
  softmax.indexer_head_dim = attention.indexer_head_dim;
}

struct Adder {
  int64_t hidden_dim;
  LayerOperations& operations;
  void operator()(const NoAttention&) const {}
  void operator()(const GroupedQueryAttention& attention) const { AddGroupedQuery(attention, hidden_dim, operations); }
  void operator()(const LatentAttention& attention) const { AddLatent(attention, hidden_dim, operations); }
  void operator()(const CompressedAttention& attention) const { AddCompressed(attention, hidden_dim, operations); }
  void operator()(const LinearAttention& attention) const { AddLinearAttention(attention, hidden_dim, operations); }
};

}  // namespace

void AddAttention(const Attention& attention, int64_t hidden_dim, LayerOperations& operations) {
  std::visit(Adder{hidden_dim, operations}, attention);
}

}  // namespace sliceplan::transformer
