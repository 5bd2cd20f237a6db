#include "server/rpc/convert/layer.h"

#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/ranges.h"
#include "server/transformer/validate.h"

namespace sliceplan::rpc {
namespace {

// An optional size that is set must be one: in the engine 0 stands for the default.
int32_t OptionalSize(bool is_set, int32_t value, const FieldPath& path, Violations& violations) {
  if (is_set && value < 1) CheckRange(int64_t{value}, 1, transformer::kMaxDim, path, violations);
  return value;
}

transformer::GroupedQueryAttention ToGroupedQuery(const v1::GroupedQueryAttention& proto, const FieldPath& path,
                                                  Violations& violations) {
  transformer::GroupedQueryAttention attention;
  attention.query_head_count = proto.query_head_count();
  attention.kv_head_count = proto.kv_head_count();
  attention.head_dim = proto.head_dim();
  attention.value_head_dim =
      OptionalSize(proto.has_value_head_dim(), proto.value_head_dim(), FieldPath(path, "value_head_dim"), violations);
  attention.qkv_bias = proto.qkv_bias();
  attention.output_bias = proto.output_bias();
  if (const auto norm = FromProto(kQkNorms, proto.qk_norm(), FieldPath(path, "qk_norm"), violations)) {
    attention.qk_norm = *norm;
  }
  attention.sinks = proto.sinks();
  attention.key_is_value = proto.key_is_value();
  attention.sliding_window = proto.sliding_window();
  attention.chunked_window = proto.chunked_window();
  attention.shares_earlier_kv = proto.shares_earlier_kv();
  attention.output_gate = proto.output_gate();
  return attention;
}

transformer::LatentAttention ToLatent(const v1::LatentAttention& proto, const FieldPath& path, Violations& violations) {
  transformer::LatentAttention attention;
  attention.query_head_count = proto.query_head_count();
  attention.q_lora_rank = proto.q_lora_rank();
  attention.kv_lora_rank = proto.kv_lora_rank();
  attention.qk_nope_head_dim = proto.qk_nope_head_dim();
  attention.qk_rope_head_dim = proto.qk_rope_head_dim();
  attention.v_head_dim = proto.v_head_dim();
  attention.qkv_bias = proto.qkv_bias();
  if (proto.has_indexer()) {
    if (proto.indexer().head_count() < 1) {
      CheckRange(int64_t{proto.indexer().head_count()}, 1, transformer::kMaxHeadCount,
                 FieldPath(FieldPath(path, "indexer"), "head_count"), violations);
    }
    attention.indexer_head_count = proto.indexer().head_count();
    attention.indexer_head_dim = proto.indexer().head_dim();
    attention.indexer_top_k = proto.indexer().top_k();
  }
  return attention;
}

transformer::LinearAttention ToLinear(const v1::LinearAttention& proto, const FieldPath& path, Violations& violations) {
  transformer::LinearAttention attention;
  if (const auto kind = FromProto(kLinearAttentionKinds, proto.kind(), FieldPath(path, "kind"), violations)) {
    attention.kind = *kind;
  } else if (proto.kind() == v1::LINEAR_ATTENTION_KIND_UNSPECIFIED) {
    AddRequired("kind", FieldPath(path, "kind"), violations);
  }
  attention.key_head_count = proto.key_head_count();
  attention.value_head_count = proto.value_head_count();
  attention.key_head_dim = proto.key_head_dim();
  attention.value_head_dim = proto.value_head_dim();
  attention.inner_dim =
      OptionalSize(proto.has_inner_dim(), proto.inner_dim(), FieldPath(path, "inner_dim"), violations);
  const int64_t value_width = int64_t{proto.value_head_count()} * proto.value_head_dim();
  if (!proto.has_inner_dim() && value_width > 0 && value_width <= transformer::kMaxDim) {
    attention.inner_dim = static_cast<int32_t>(value_width);
  }
  attention.conv_width = proto.conv_width();
  attention.dt_rank = proto.dt_rank();
  attention.projection_bias = proto.projection_bias();
  attention.conv_bias = proto.conv_bias();
  attention.output_norm = !proto.has_output_norm() || proto.output_norm();
  attention.state_norms = proto.state_norms();
  attention.chunk_size =
      OptionalSize(proto.has_chunk_size(), proto.chunk_size(), FieldPath(path, "chunk_size"), violations);
  return attention;
}

transformer::MixtureOfExperts ToMixture(const v1::MixtureOfExperts& proto, const FieldPath& path,
                                        Violations& violations) {
  transformer::MixtureOfExperts moe;
  moe.expert_count = proto.expert_count();
  moe.experts_per_token = proto.experts_per_token();
  moe.expert_ffn_dim = proto.expert_ffn_dim();
  moe.shared_expert_count = proto.shared_expert_count();
  moe.shared_expert_ffn_dim = OptionalSize(proto.has_shared_expert_ffn_dim(), proto.shared_expert_ffn_dim(),
                                           FieldPath(path, "shared_expert_ffn_dim"), violations);
  moe.shared_expert_gate = proto.shared_expert_gate();
  moe.gated = proto.gated();
  moe.expert_bias = proto.expert_bias();
  moe.router_bias = proto.router_bias();
  moe.router_correction_bias = proto.router_correction_bias();
  moe.dense_residual_ffn_dim = proto.dense_residual_ffn_dim();
  moe.dense_residual_gated = !proto.has_dense_residual_gated() || proto.dense_residual_gated();
  constexpr double kMaxCapacityFactor = 65536;
  if (proto.has_capacity_factor() &&
      CheckPositive(proto.capacity_factor(), kMaxCapacityFactor, FieldPath(path, "capacity_factor"), violations)) {
    moe.capacity_factor = proto.capacity_factor();
  }
  if (proto.has_load_imbalance_ratio()) moe.load_imbalance_ratio = proto.load_imbalance_ratio();
  moe.latent_dim = proto.latent_dim();
  return moe;
}

transformer::Attention ToAttention(const v1::Attention& proto, const FieldPath& path, Violations& violations) {
  switch (proto.kind_case()) {
    case v1::Attention::kGroupedQuery:
      return ToGroupedQuery(proto.grouped_query(), FieldPath(path, "grouped_query"), violations);
    case v1::Attention::kLatent: return ToLatent(proto.latent(), FieldPath(path, "latent"), violations);
    case v1::Attention::kLinear: return ToLinear(proto.linear(), FieldPath(path, "linear"), violations);
    case v1::Attention::KIND_NOT_SET: break;
  }
  AddRequired("grouped_query, latent or linear", path, violations);
  return transformer::NoAttention();
}

transformer::FeedForward ToFeedForward(const v1::FeedForward& proto, const FieldPath& path, Violations& violations) {
  switch (proto.kind_case()) {
    case v1::FeedForward::kDense:
      return transformer::DenseFeedForward{proto.dense().ffn_dim(), proto.dense().gated(), proto.dense().bias()};
    case v1::FeedForward::kMixtureOfExperts:
      return ToMixture(proto.mixture_of_experts(), FieldPath(path, "mixture_of_experts"), violations);
    case v1::FeedForward::KIND_NOT_SET: break;
  }
  AddRequired("dense or mixture_of_experts", path, violations);
  return transformer::NoFeedForward();
}

}  // namespace

transformer::Norms ToNorms(const v1::Norms& proto, int32_t default_count, const FieldPath& path,
                           Violations& violations) {
  transformer::Norms norms;
  norms.count = proto.has_norm_count() ? proto.norm_count() : default_count;
  switch (proto.kind()) {
    case v1::NORM_KIND_UNSPECIFIED:
    case v1::NORM_KIND_RMS:
    case v1::NORM_KIND_LAYER_NO_BIAS: break;
    case v1::NORM_KIND_LAYER: norms.bias = true; break;
    case v1::NORM_KIND_NO_PARAMETERS: norms.has_weight = false; break;
    default:
      violations.Add(FieldPath(path, "kind"),
                     absl::StrCat(static_cast<int>(proto.kind()), " is no NormKind; legal are ",
                                  LegalEnumNames(*v1::NormKind_descriptor()), "."),
                     "UNKNOWN_ENUM_VALUE");
  }
  return norms;
}

transformer::Layer ToLayer(const v1::Layer& proto, const FieldPath& path, Violations& violations) {
  transformer::Layer layer;
  if (proto.has_attention()) layer.attention = ToAttention(proto.attention(), FieldPath(path, "attention"), violations);
  if (proto.has_feed_forward()) {
    layer.feed_forward = ToFeedForward(proto.feed_forward(), FieldPath(path, "feed_forward"), violations);
  }
  layer.parallel_block = proto.parallel_block();
  const bool both = proto.has_attention() && proto.has_feed_forward();
  layer.norms = ToNorms(proto.norms(), both && !proto.parallel_block() ? 2 : 1, FieldPath(path, "norms"), violations);
  layer.per_layer_input_dim = proto.per_layer_input_dim();
  layer.extra_parameter_count = proto.extra_parameter_count();
  return layer;
}

}  // namespace sliceplan::rpc
