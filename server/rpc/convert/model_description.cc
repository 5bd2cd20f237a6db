#include "server/rpc/convert/model_description.h"

#include <algorithm>
#include <cmath>

#include "server/rpc/convert/architecture.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/model.h"
#include "server/transformer/kv_cache.h"

namespace sliceplan::rpc {
namespace {

constexpr size_t kMaxTensors = 16;

void ToProto(const transformer::ParameterCount& parameters, v1::ParameterCounts* proto) {
  proto->set_total_count(parameters.total_count);
  proto->set_active_count(parameters.active_count);
  proto->set_embedding_count(parameters.embedding_count);
  proto->set_mtp_count(parameters.mtp_count);
  proto->set_stored_count(parameters.stored_count);
  for (const auto& pair : kComponents) {
    const bool is_mtp = pair.engine == transformer::Component::kMtp;
    const int64_t count = is_mtp ? parameters.mtp_count : parameters.components[static_cast<size_t>(pair.engine)];
    if (count == 0) continue;
    v1::ComponentCount* const component = proto->add_components();
    component->set_component(pair.proto);
    component->set_count(count);
  }
  for (const transformer::StoredExtra& ours : parameters.extras) {
    if (ours.count == 0) continue;
    v1::StoredExtra* const extra = proto->add_stored_extras();
    extra->set_kind(rpc::ToProto(kStoredExtraKinds, ours.kind));
    extra->set_count(ours.count);
    extra->set_name(ours.name);
  }
  proto->set_weights_bytes(parameters.checkpoint_bytes);
  proto->set_scale_bytes(parameters.scale_bytes);
}

void ToProto(const transformer::FlopsPerToken& flops, v1::ModelFlops* proto) {
  proto->set_forward_flops_per_token(flops.forward);
  proto->set_training_flops_per_token(flops.training());
  for (const auto& pair : kComponents) {
    const double forward = flops.components[static_cast<size_t>(pair.engine)];
    if (forward == 0) continue;
    v1::ComponentFlops* const component = proto->add_components();
    component->set_component(pair.proto);
    component->set_forward_flops_per_token(forward);
    component->set_training_flops_per_token(transformer::kTrainingPasses * forward);
  }
  proto->set_forward_flops_per_token_without_attention(flops.forward_matmuls);
  proto->set_training_flops_per_token_without_attention(transformer::kTrainingPasses * flops.forward_matmuls);
  // Two FLOPs for each such parameter: exact below 2^53.
  proto->set_active_matmul_parameter_count(static_cast<int64_t>(std::llround(flops.forward_matmuls / 2)));
  proto->set_mtp_forward_flops_per_token(flops.forward_mtp);
}

void ToProto(const transformer::KvCache& cache, const DescriptionSetting& setting, v1::KvCacheSize* proto) {
  const hardware::DataType dtype = setting.kv_cache_dtype;
  proto->set_bytes_per_token(transformer::GrowingBytesPerToken(cache, dtype));
  proto->set_reserved_bytes_per_token(transformer::ReservedBytesPerToken(cache, dtype));
  proto->set_indexer_bytes_per_token(transformer::IndexerBytesPerToken(cache, dtype));
  proto->set_state_bytes(transformer::StateBytes(cache, dtype));
  // Whole bytes; a model and a sequence at the end of their ranges may pass what 64 bits count.
  constexpr double kMaxBytes = 9.2e18;
  const auto bytes = [&](double value) { return static_cast<int64_t>(std::min(value, kMaxBytes)); };
  proto->set_bytes_at_context(bytes(transformer::BytesAtContext(cache, setting.sequence_length, dtype)));
  proto->set_reserved_bytes_at_context(
      bytes(transformer::ReservedBytesAtContext(cache, setting.sequence_length, dtype)));
  double window_bytes = 0;
  for (const transformer::KvCache::Window& window : cache.windows) {
    window_bytes += static_cast<double>(window.token_limit) * static_cast<double>(window.elements_per_token) *
                    hardware::BytesPerElement(dtype);
  }
  proto->set_window_bytes(bytes(std::ceil(window_bytes)));
  proto->set_dtype(rpc::ToProto(kDataTypes, dtype));
  proto->set_growing_layer_count(static_cast<int32_t>(cache.growing_layer_count));
  proto->set_window_layer_count(static_cast<int32_t>(cache.window_layer_count));
  proto->set_state_layer_count(static_cast<int32_t>(cache.state_layer_count));
}

void ToProto(const transformer::TensorSize& tensor, v1::TensorSize* proto) {
  proto->set_name(tensor.name);
  proto->set_rows(tensor.rows);
  proto->set_columns(tensor.columns);
  proto->set_expert_count(tensor.copies);
  proto->set_layer_count(static_cast<int32_t>(tensor.layer_count));
  proto->set_parameter_count(tensor.count);
}

}  // namespace

void ToProto(const ParsedModel& model, const DescriptionSetting& setting, v1::DescribeModelResponse* response) {
  ToProto(model.parameters, response->mutable_parameters());
  const transformer::FlopsPerToken flops =
      transformer::CountFlops(model.operations, setting.sequence_length, setting.mask);
  ToProto(flops, response->mutable_flops());
  ToProto(transformer::KvCacheOf(model.architecture), setting, response->mutable_kv_cache());
  response->mutable_attention()->set_flops_ratio(transformer::AttentionShare(flops));
  if (const auto length = transformer::AttentionEqualLength(model.operations, setting.mask)) {
    response->mutable_attention()->set_break_even_sequence_length(*length);
  }
  for (const transformer::TensorSize& tensor : transformer::LargestTensors(model.operations, kMaxTensors)) {
    ToProto(tensor, response->add_largest_tensors());
  }
  ToProto(model.architecture, response->mutable_architecture());
  for (size_t i = 0; i < model.group_names.size(); ++i) {
    response->mutable_architecture()->mutable_layer_groups(static_cast<int>(i))->set_name(model.group_names[i]);
  }
  for (const transformer::ImportWarning& warning : model.warnings) {
    if (warning.kind != transformer::ImportWarning::Kind::kExcludedPart) continue;
    v1::ExcludedPart* const part = response->add_excluded_parts();
    part->set_name(warning.field);
    part->set_sentence(warning.text);
  }
  response->set_sequence_length(setting.sequence_length);
  response->set_layer_count(static_cast<int32_t>(model.architecture.LayerCount()));
  AddImportWarnings(model, response->mutable_warnings());
}

}  // namespace sliceplan::rpc
