#include "server/rpc/convert/architecture.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/layer.h"
#include "server/rpc/convert/ranges.h"
#include "server/transformer/validate.h"

namespace sliceplan::rpc {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxShortNameBytes = 64;
constexpr size_t kMaxBufferNameBytes = 128;
constexpr int kMaxGroups = 4096;
constexpr int kMaxBuffers = 64;
constexpr int64_t kMaxBufferCount = int64_t{1} << 40;
constexpr int kMaxExceptions = 1 << 16;
constexpr int64_t kMaxBlock = int64_t{1} << 24;
constexpr double kMaxScaleBytes = 16;
constexpr double kMaxScalarBytes = 1024;

void ToLayerGroups(const v1::Architecture& proto, const FieldPath& path, Violations& violations,
                   transformer::Architecture& architecture) {
  if (!CheckCount(proto.layer_groups_size(), kMaxGroups, FieldPath(path, "layer_groups"), violations)) return;
  architecture.layer_groups.reserve(static_cast<size_t>(proto.layer_groups_size()));
  for (int g = 0; g < proto.layer_groups_size(); ++g) {
    const v1::LayerGroup& proto_group = proto.layer_groups(g);
    const FieldPath group_path(path, "layer_groups", g);
    CheckLength(proto_group.name(), kMaxShortNameBytes, FieldPath(group_path, "name"), violations);
    transformer::LayerGroup group;
    group.repeat_count = proto_group.repeat_count();
    if (CheckCount(proto_group.layers_size(), kMaxGroups, FieldPath(group_path, "layers"), violations)) {
      group.layers.reserve(static_cast<size_t>(proto_group.layers_size()));
      for (int l = 0; l < proto_group.layers_size(); ++l) {
        group.layers.push_back(ToLayer(proto_group.layers(l), FieldPath(group_path, "layers", l), violations));
      }
    }
    architecture.layer_groups.push_back(std::move(group));
  }
}

void ToWeightFormat(const v1::WeightFormat& proto, const FieldPath& path, Violations& violations,
                    transformer::Quantization& quantization) {
  const auto weight_class =
      FromProto(kWeightClasses, proto.weight_class(), FieldPath(path, "weight_class"), violations);
  const auto dtype = FromProto(kDataTypes, proto.dtype(), FieldPath(path, "dtype"), violations);
  if (proto.weight_class() == v1::WEIGHT_CLASS_UNSPECIFIED) {
    AddRequired("weight_class", FieldPath(path, "weight_class"), violations);
  }
  if (proto.dtype() == v1::DATA_TYPE_UNSPECIFIED) AddRequired("dtype", FieldPath(path, "dtype"), violations);
  CheckRange(int64_t{proto.block_rows()}, 0, kMaxBlock, FieldPath(path, "block_rows"), violations);
  CheckRange(int64_t{proto.block_columns()}, 0, kMaxBlock, FieldPath(path, "block_columns"), violations);
  CheckRange(proto.scale_bytes(), 0, kMaxScaleBytes, FieldPath(path, "scale_bytes"), violations);
  CheckRange(proto.zero_point_bytes(), 0, kMaxScaleBytes, FieldPath(path, "zero_point_bytes"), violations);
  CheckRange(proto.tensor_scalar_bytes(), 0, kMaxScalarBytes, FieldPath(path, "tensor_scalar_bytes"), violations);
  if (!weight_class || !dtype) return;
  const auto index = static_cast<size_t>(*weight_class);
  if (quantization.quantized[index]) {
    violations.Add(FieldPath(path, "weight_class"), "is listed twice; each class has one format.");
    return;
  }
  quantization.quantized[index] = true;
  transformer::WeightFormat& format = quantization.formats[index];
  format.dtype = *dtype;
  format.block_rows = proto.block_rows();
  format.block_columns = proto.block_columns();
  format.scale_bytes = proto.scale_bytes();
  format.zero_point_bytes = proto.zero_point_bytes();
  format.tensor_scalar_bytes = proto.tensor_scalar_bytes();
}

void ToQuantization(const v1::Quantization& proto, int64_t layer_count, const FieldPath& path, Violations& violations,
                    transformer::Quantization& quantization) {
  CheckLength(proto.method(), kMaxShortNameBytes, FieldPath(path, "method"), violations);
  quantization.method = proto.method().empty() ? "custom" : proto.method();
  if (proto.formats().empty()) AddRequired("the format of a weight class", FieldPath(path, "formats"), violations);
  if (CheckCount(proto.formats_size(), transformer::kWeightClassCount, FieldPath(path, "formats"), violations)) {
    for (int i = 0; i < proto.formats_size(); ++i) {
      ToWeightFormat(proto.formats(i), FieldPath(path, "formats", i), violations, quantization);
    }
  }
  if (!CheckCount(proto.exceptions_size(), kMaxExceptions, FieldPath(path, "exceptions"), violations)) return;
  for (int i = 0; i < proto.exceptions_size(); ++i) {
    const v1::UnquantizedWeight& exception = proto.exceptions(i);
    const FieldPath exception_path(path, "exceptions", i);
    const auto weight_class =
        FromProto(kWeightClasses, exception.weight_class(), FieldPath(exception_path, "weight_class"), violations);
    if (exception.weight_class() == v1::WEIGHT_CLASS_UNSPECIFIED) {
      AddRequired("weight_class", FieldPath(exception_path, "weight_class"), violations);
    }
    CheckLength(exception.name(), kMaxShortNameBytes, FieldPath(exception_path, "name"), violations);
    if (exception.has_layer()) {
      CheckRange(int64_t{exception.layer()}, 0, std::max<int64_t>(layer_count - 1, 0),
                 FieldPath(exception_path, "layer"), violations);
    }
    if (!weight_class) continue;
    quantization.exceptions.push_back(
        {*weight_class, exception.name(), exception.has_layer() ? exception.layer() : -1});
  }
  std::stable_sort(quantization.exceptions.begin(), quantization.exceptions.end(),
                   [](const auto& a, const auto& b) { return a.layer < b.layer; });
}

// The engine's names of fields that the contract nests.
std::string FieldOf(const std::string& engine_field) {
  constexpr std::pair<absl::string_view, absl::string_view> kPrefixes[] = {
      {"mtp_layer_count", "multi_token_prediction.layer_count"}, {"mtp_layer.", "multi_token_prediction.layer."}};
  constexpr std::pair<absl::string_view, absl::string_view> kSuffixes[] = {
      {"norms.count", "norms.norm_count"},
      {"final_norm.count", "final_norm.norm_count"},
      {"latent.indexer_head_count", "latent.indexer.head_count"},
      {"latent.indexer_head_dim", "latent.indexer.head_dim"},
      {"latent.indexer_top_k", "latent.indexer.top_k"}};
  std::string field = engine_field;
  for (const auto& [ours, theirs] : kPrefixes) {
    if (absl::StartsWith(field, ours)) field = absl::StrCat(theirs, field.substr(ours.size()));
  }
  for (const auto& [ours, theirs] : kSuffixes) {
    if (absl::EndsWith(field, ours)) field = absl::StrCat(field.substr(0, field.size() - ours.size()), theirs);
  }
  return field;
}

}  // namespace

transformer::Architecture ToArchitecture(const v1::Architecture& proto, const FieldPath& path, Violations& violations) {
  transformer::Architecture architecture;
  CheckLength(proto.name(), kMaxNameBytes, FieldPath(path, "name"), violations);
  architecture.name = proto.name();
  architecture.hidden_dim = proto.hidden_dim();
  architecture.vocab_size = proto.vocab_size();
  architecture.tied_embeddings = proto.tied_embeddings();
  architecture.learned_position_count = proto.learned_position_count();
  architecture.embedding_dim = proto.embedding_dim();
  architecture.embedding_norm = proto.embedding_norm();
  architecture.final_norm = ToNorms(proto.final_norm(), /*default_count=*/1, FieldPath(path, "final_norm"), violations);
  architecture.head_bias = proto.head_bias();
  if (proto.has_head_output_count()) {
    if (proto.head_output_count() < 0) {
      CheckRange(int64_t{proto.head_output_count()}, 0, transformer::kMaxDim, FieldPath(path, "head_output_count"),
                 violations);
    }
    architecture.head_output_count = std::max(proto.head_output_count(), 0);
  }
  architecture.max_position_count = proto.max_position_count();
  architecture.per_layer_vocab_size = proto.per_layer_vocab_size();
  architecture.stores_tied_table_twice = proto.stores_tied_table_twice();
  ToLayerGroups(proto, path, violations, architecture);
  if (proto.has_multi_token_prediction()) {
    const v1::MultiTokenPrediction& mtp = proto.multi_token_prediction();
    const FieldPath mtp_path(path, "multi_token_prediction");
    if (!mtp.has_layer()) AddRequired("layer", FieldPath(mtp_path, "layer"), violations);
    CheckRange(int64_t{mtp.layer_count()}, 1, transformer::kMaxMtpLayerCount, FieldPath(mtp_path, "layer_count"),
               violations);
    architecture.mtp_layer_count = mtp.layer_count();
    architecture.mtp_layer = ToLayer(mtp.layer(), FieldPath(mtp_path, "layer"), violations);
    architecture.mtp_shares_embeddings = !mtp.has_shares_embeddings() || mtp.shares_embeddings();
  }
  if (const auto dtype =
          FromProto(kDataTypes, proto.checkpoint_dtype(), FieldPath(path, "checkpoint_dtype"), violations)) {
    architecture.checkpoint_dtype = *dtype;
  }
  if (proto.has_quantization()) {
    ToQuantization(proto.quantization(), architecture.LayerCount(), FieldPath(path, "quantization"), violations,
                   architecture.quantization);
  }
  if (CheckCount(proto.stored_buffers_size(), kMaxBuffers, FieldPath(path, "stored_buffers"), violations)) {
    for (int i = 0; i < proto.stored_buffers_size(); ++i) {
      const FieldPath buffer_path(path, "stored_buffers", i);
      CheckLength(proto.stored_buffers(i).name(), kMaxBufferNameBytes, FieldPath(buffer_path, "name"), violations);
      CheckRange(proto.stored_buffers(i).count(), 1, kMaxBufferCount, FieldPath(buffer_path, "count"), violations);
      architecture.stored_buffers.push_back({proto.stored_buffers(i).name(), proto.stored_buffers(i).count()});
    }
  }
  // What was too long to be read is not missing as well.
  std::vector<hardware::Violation> found = transformer::Validate(architecture);
  for (hardware::Violation& violation : found) violation.field = FieldOf(violation.field);
  violations.AddMissing(path, found);
  return architecture;
}

}  // namespace sliceplan::rpc
