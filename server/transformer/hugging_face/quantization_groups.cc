// Quantisation methods that list groups of weights: compressed-tensors and modelopt.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/transformer/hugging_face/module_pattern.h"
#include "server/transformer/hugging_face/quantization_methods.h"

namespace sliceplan::transformer::hugging_face {
namespace {

using hardware::DataType;

// compressed-tensors keeps the shape of a packed weight as two 64-bit integers.
constexpr double kPackedShapeBytes = 16;

// One entry of config_groups, as compressed-tensors and modelopt write it.
std::optional<WeightFormat> ReadWeights(Config& weights, absl::string_view packing) {
  WeightFormat format;
  const int64_t bits = weights.Required({"num_bits"}, 2, 8);
  if (!CheckBits(weights, "num_bits", bits)) return std::nullopt;
  const bool is_float = weights.Text({"type"}) == "float";
  format.dtype = is_float ? (bits == 4 ? DataType::kFp4 : DataType::kFp8) : IntegerOf(bits);
  const std::string strategy = weights.Text({"strategy"});
  const int64_t group = weights.IntOr({"group_size"}, 0, -1, kMaxBlock);
  format.scale_bytes = kFp16Bytes;
  if (is_float && bits == 4) {
    format.block_rows = 1;
    format.block_columns = group > 0 ? static_cast<int32_t>(group) : kNvfp4Block;
    format.scale_bytes = kByte;
    if (format.block_columns == kNvfp4Block) format.tensor_scalar_bytes = 2 * kFp32Bytes;  // scales of weight and input
  } else if (strategy == "channel" || (strategy.empty() && group < 0)) {
    format.block_rows = 1;
  } else if (strategy == "group" || (strategy.empty() && group > 0)) {
    format.block_rows = 1;
    format.block_columns = static_cast<int32_t>(std::max<int64_t>(group, 0));
  } else if (strategy == "block") {
    const auto block = weights.Ints("block_structure", 1, kMaxBlock);
    if (!block || block->size() != 2) {
      weights.Violate("block_structure", "must be two numbers: rows and columns");
      return std::nullopt;
    }
    format.block_rows = static_cast<int32_t>((*block)[0]);
    format.block_columns = static_cast<int32_t>((*block)[1]);
    format.scale_bytes = kFp32Bytes;
  } else if (strategy == "tensor" || strategy.empty()) {
    format.scale_bytes = kFp32Bytes;
  } else {
    weights.Unsupported("strategy", absl::StrCat("'", strategy, "' is not modelled"));
    return std::nullopt;
  }
  if (!is_float && !weights.Bool({"symmetric"}, true))
    format.zero_point_bytes = static_cast<double>(bits) / kBitsPerByte;
  if (packing == "pack-quantized") format.tensor_scalar_bytes = kPackedShapeBytes;
  return format;
}

void ReadGroupTargets(Config& group, const WeightFormat& format, Quantization& quantization) {
  const std::vector<std::string> targets = group.Texts("targets").value_or(std::vector<std::string>{"Linear"});
  for (const std::string& target : targets) {
    if (target == "Linear") {
      QuantizeLinears(format, quantization);
      continue;
    }
    const ModulePattern pattern = ParseModulePattern(target);
    for (const UnquantizedWeight& weight : pattern.weights) Quantize(weight.weight_class, format, quantization);
    if (pattern.weights.empty() && !pattern.is_outside_language_model) {
      group.Warn(ImportWarning::Kind::kUnknownKey, "targets",
                 absl::StrCat("'", target.substr(0, 80), "' was not understood"));
    }
  }
}

void ReadConfigGroups(Config& part, Quantization& quantization) {
  const std::string packing = part.Text({"format"});
  const nlohmann::json* groups = part.Object("config_groups");
  if (groups == nullptr) {
    part.Violate("config_groups", "is missing", "REQUIRED");
    return;
  }
  for (const auto& item : groups->items()) {
    const std::string path = part.Path(absl::StrCat("config_groups.", item.key()));
    if (!item.value().is_object()) {
      part.report().Violate(path, "must be an object", "WRONG_TYPE");
      continue;
    }
    Config group(item.value(), path, part.report());
    const nlohmann::json* object = group.Object("weights");
    if (object == nullptr) continue;  // only activations are quantised
    Config weights(*object, group.Path("weights"), part.report());
    const std::string group_packing = group.Text({"format"});
    if (const auto format = ReadWeights(weights, group_packing.empty() ? packing : group_packing)) {
      ReadGroupTargets(group, *format, quantization);
    }
  }
}

}  // namespace

void QuantizeLinears(const WeightFormat& format, Quantization& quantization) {
  for (const WeightClass weight_class :
       {WeightClass::kAttention, WeightClass::kDenseFeedForward, WeightClass::kExpert, WeightClass::kSharedExpert}) {
    quantization.quantized[static_cast<size_t>(weight_class)] = true;
    quantization.formats[static_cast<size_t>(weight_class)] = format;
  }
}

void Quantize(WeightClass weight_class, const WeightFormat& format, Quantization& quantization) {
  quantization.quantized[static_cast<size_t>(weight_class)] = true;
  quantization.formats[static_cast<size_t>(weight_class)] = format;
}

DataType IntegerOf(int64_t bits) { return bits <= 4 ? DataType::kInt4 : DataType::kInt8; }

bool CheckBits(Config& part, const char* key, int64_t bits) {
  if (bits == 4 || bits == 8) return true;
  part.Unsupported(key, absl::StrCat(bits, " bits: only 4 and 8 are modelled"));
  return false;
}

void ReadCompressedTensors(Config& part, Quantization& quantization) {
  ReadConfigGroups(part, quantization);
  part.Ignore({"format", "global_compression_ratio", "kv_cache_scheme", "quantization_status", "sparsity_config",
               "transform_config", "version", "config_groups"});
}

void ReadModelOpt(Config& part, Quantization& quantization) {
  const std::string algorithm = part.Text({"quant_algo"});
  WeightFormat format;
  if (algorithm == "FP8") {
    format.dtype = DataType::kFp8;
    format.scale_bytes = kFp32Bytes;
    format.tensor_scalar_bytes = kFp32Bytes;  // scale of the activations
  } else if (algorithm == "NVFP4") {
    format.dtype = DataType::kFp4;
    format.block_rows = 1;
    format.block_columns = kNvfp4Block;
    format.scale_bytes = kByte;
    format.tensor_scalar_bytes = 2 * kFp32Bytes;
  } else if (algorithm == "W4A8_AWQ" || algorithm == "W4A16_AWQ") {
    format.dtype = DataType::kInt4;
    format.block_rows = 1;
    format.block_columns = static_cast<int32_t>(part.IntOr({"group_size"}, 128, 1, kMaxBlock));
    format.scale_bytes = kFp16Bytes;
  } else if (part.Has("config_groups")) {
    ReadConfigGroups(part, quantization);
    return;
  } else {
    part.Warn(
        ImportWarning::Kind::kUnknownKey, "quant_algo",
        absl::StrCat("'", algorithm.substr(0, 40), "' is not understood: weights count in the checkpoint's format"));
    return;
  }
  part.Ignore({"config_groups", "kv_cache_quant_algo", "kv_cache_scheme", "producer", "group_size", "quant_library"});
  QuantizeLinears(format, quantization);
}

}  // namespace sliceplan::transformer::hugging_face
