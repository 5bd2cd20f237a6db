// Engine to contract; the other way is in architecture.cc and layer.cc.
#include <variant>

#include "server/rpc/convert/architecture.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/layer.h"

namespace sliceplan::rpc {
namespace {

void ToProto(const transformer::GroupedQueryAttention& attention, v1::GroupedQueryAttention* proto) {
  proto->set_query_head_count(attention.query_head_count);
  proto->set_kv_head_count(attention.kv_head_count);
  proto->set_head_dim(attention.head_dim);
  if (attention.value_head_dim > 0) proto->set_value_head_dim(attention.value_head_dim);
  proto->set_sliding_window(attention.sliding_window);
  proto->set_chunked_window(attention.chunked_window);
  proto->set_qkv_bias(attention.qkv_bias);
  proto->set_output_bias(attention.output_bias);
  proto->set_qk_norm(rpc::ToProto(kQkNorms, attention.qk_norm));
  proto->set_shares_earlier_kv(attention.shares_earlier_kv);
  proto->set_key_is_value(attention.key_is_value);
  proto->set_output_gate(attention.output_gate);
  proto->set_sinks(attention.sinks);
}

void ToProto(const transformer::LatentAttention& attention, v1::LatentAttention* proto) {
  proto->set_query_head_count(attention.query_head_count);
  proto->set_q_lora_rank(attention.q_lora_rank);
  proto->set_kv_lora_rank(attention.kv_lora_rank);
  proto->set_qk_nope_head_dim(attention.qk_nope_head_dim);
  proto->set_qk_rope_head_dim(attention.qk_rope_head_dim);
  proto->set_v_head_dim(attention.v_head_dim);
  proto->set_qkv_bias(attention.qkv_bias);
  if (attention.indexer_head_count > 0) {
    v1::SparseIndexer* const indexer = proto->mutable_indexer();
    indexer->set_head_count(attention.indexer_head_count);
    indexer->set_head_dim(attention.indexer_head_dim);
    indexer->set_top_k(attention.indexer_top_k);
  }
}

void ToProto(const transformer::LinearAttention& attention, v1::LinearAttention* proto) {
  proto->set_kind(rpc::ToProto(kLinearAttentionKinds, attention.kind));
  proto->set_key_head_count(attention.key_head_count);
  proto->set_value_head_count(attention.value_head_count);
  proto->set_key_head_dim(attention.key_head_dim);
  proto->set_value_head_dim(attention.value_head_dim);
  if (attention.inner_dim > 0) proto->set_inner_dim(attention.inner_dim);
  proto->set_conv_width(attention.conv_width);
  proto->set_dt_rank(attention.dt_rank);
  proto->set_projection_bias(attention.projection_bias);
  proto->set_conv_bias(attention.conv_bias);
  proto->set_output_norm(attention.output_norm);
  proto->set_state_norms(attention.state_norms);
  if (attention.chunk_size > 0) proto->set_chunk_size(attention.chunk_size);
}

void ToProto(const transformer::MixtureOfExperts& moe, v1::MixtureOfExperts* proto) {
  proto->set_expert_count(moe.expert_count);
  proto->set_experts_per_token(moe.experts_per_token);
  proto->set_expert_ffn_dim(moe.expert_ffn_dim);
  proto->set_gated(moe.gated);
  proto->set_shared_expert_count(moe.shared_expert_count);
  if (moe.shared_expert_ffn_dim > 0) proto->set_shared_expert_ffn_dim(moe.shared_expert_ffn_dim);
  proto->set_shared_expert_gate(moe.shared_expert_gate);
  proto->set_dense_residual_ffn_dim(moe.dense_residual_ffn_dim);
  if (moe.capacity_factor > 0) proto->set_capacity_factor(moe.capacity_factor);
  if (moe.load_imbalance_ratio != 1) proto->set_load_imbalance_ratio(moe.load_imbalance_ratio);
  proto->set_router_bias(moe.router_bias);
  proto->set_expert_bias(moe.expert_bias);
  proto->set_latent_dim(moe.latent_dim);
  proto->set_router_correction_bias(moe.router_correction_bias);
  if (moe.dense_residual_ffn_dim > 0) proto->set_dense_residual_gated(moe.dense_residual_gated);
}

void ToProto(const transformer::Quantization& quantization, v1::Quantization* proto) {
  proto->set_method(quantization.method);
  for (const auto& pair : kWeightClasses) {
    if (!quantization.Quantizes(pair.engine)) continue;
    const transformer::WeightFormat& ours = quantization.FormatOf(pair.engine);
    v1::WeightFormat* const format = proto->add_formats();
    format->set_weight_class(pair.proto);
    format->set_dtype(rpc::ToProto(kDataTypes, ours.dtype));
    format->set_block_rows(ours.block_rows);
    format->set_block_columns(ours.block_columns);
    format->set_scale_bytes(ours.scale_bytes);
    format->set_zero_point_bytes(ours.zero_point_bytes);
    format->set_tensor_scalar_bytes(ours.tensor_scalar_bytes);
  }
  for (const transformer::UnquantizedWeight& ours : quantization.exceptions) {
    v1::UnquantizedWeight* const exception = proto->add_exceptions();
    exception->set_weight_class(rpc::ToProto(kWeightClasses, ours.weight_class));
    exception->set_name(ours.name);
    if (ours.layer >= 0) exception->set_layer(ours.layer);
  }
}

}  // namespace

void ToProto(const transformer::Norms& norms, v1::Norms* proto) {
  proto->set_kind(!norms.has_weight ? v1::NORM_KIND_NO_PARAMETERS
                  : norms.bias      ? v1::NORM_KIND_LAYER
                                    : v1::NORM_KIND_RMS);
  proto->set_norm_count(norms.count);
}

void ToProto(const transformer::Layer& layer, v1::Layer* proto) {
  if (const auto* grouped = std::get_if<transformer::GroupedQueryAttention>(&layer.attention)) {
    ToProto(*grouped, proto->mutable_attention()->mutable_grouped_query());
  } else if (const auto* latent = std::get_if<transformer::LatentAttention>(&layer.attention)) {
    ToProto(*latent, proto->mutable_attention()->mutable_latent());
  } else if (const auto* linear = std::get_if<transformer::LinearAttention>(&layer.attention)) {
    ToProto(*linear, proto->mutable_attention()->mutable_linear());
  }
  if (const auto* dense = std::get_if<transformer::DenseFeedForward>(&layer.feed_forward)) {
    v1::DenseFeedForward* const feed_forward = proto->mutable_feed_forward()->mutable_dense();
    feed_forward->set_ffn_dim(dense->ffn_dim);
    feed_forward->set_gated(dense->gated);
    feed_forward->set_bias(dense->bias);
  } else if (const auto* moe = std::get_if<transformer::MixtureOfExperts>(&layer.feed_forward)) {
    ToProto(*moe, proto->mutable_feed_forward()->mutable_mixture_of_experts());
  }
  ToProto(layer.norms, proto->mutable_norms());
  proto->set_parallel_block(layer.parallel_block);
  proto->set_extra_parameter_count(layer.extra_parameter_count);
  proto->set_per_layer_input_dim(layer.per_layer_input_dim);
}

void ToProto(const transformer::Architecture& architecture, v1::Architecture* proto) {
  proto->set_name(architecture.name);
  proto->set_hidden_dim(architecture.hidden_dim);
  proto->set_vocab_size(architecture.vocab_size);
  proto->set_tied_embeddings(architecture.tied_embeddings);
  proto->set_learned_position_count(architecture.learned_position_count);
  for (const transformer::LayerGroup& ours : architecture.layer_groups) {
    v1::LayerGroup* const group = proto->add_layer_groups();
    group->set_repeat_count(ours.repeat_count);
    for (const transformer::Layer& layer : ours.layers) ToProto(layer, group->add_layers());
  }
  if (architecture.mtp_layer_count > 0) {
    v1::MultiTokenPrediction* const mtp = proto->mutable_multi_token_prediction();
    mtp->set_layer_count(architecture.mtp_layer_count);
    ToProto(architecture.mtp_layer, mtp->mutable_layer());
    mtp->set_shares_embeddings(architecture.mtp_shares_embeddings);
  }
  if (architecture.embedding_dim > 0) proto->set_embedding_dim(architecture.embedding_dim);
  proto->set_embedding_norm(architecture.embedding_norm);
  ToProto(architecture.final_norm, proto->mutable_final_norm());
  proto->set_head_bias(architecture.head_bias);
  if (architecture.head_output_count >= 0) proto->set_head_output_count(architecture.head_output_count);
  proto->set_max_position_count(architecture.max_position_count);
  proto->set_checkpoint_dtype(rpc::ToProto(kDataTypes, architecture.checkpoint_dtype));
  if (!architecture.quantization.method.empty()) ToProto(architecture.quantization, proto->mutable_quantization());
  proto->set_stores_tied_table_twice(architecture.stores_tied_table_twice);
  for (const transformer::StoredBuffer& ours : architecture.stored_buffers) {
    v1::StoredBuffer* const buffer = proto->add_stored_buffers();
    buffer->set_name(ours.name);
    buffer->set_count(ours.count);
  }
  proto->set_per_layer_vocab_size(architecture.per_layer_vocab_size);
}

}  // namespace sliceplan::rpc
