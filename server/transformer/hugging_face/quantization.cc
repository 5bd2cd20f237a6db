#include "server/transformer/hugging_face/quantization.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/transformer/hugging_face/module_pattern.h"

namespace sliceplan::transformer::hugging_face {
namespace {

using hardware::DataType;

constexpr double kFp32Bytes = 4;
constexpr double kFp16Bytes = 2;
constexpr double kByte = 1;
constexpr double kBitsPerByte = 8;
constexpr int64_t kMaxBlock = 65536;
// OCP microscaling: one 8-bit exponent for 32 elements. NVFP4: one 8-bit float for 16, and one fp32 scale a tensor.
constexpr int32_t kMxBlock = 32;
constexpr int32_t kNvfp4Block = 16;
// bitsandbytes: one maximum for 64 elements; double quantisation stores it in 8 bits and one fp32 for 256 of those.
constexpr int32_t kNf4Block = 64;
constexpr double kNf4DoubleScaleBytes = kByte + kFp32Bytes / 256;
// compressed-tensors keeps the shape of a packed weight as two 64-bit integers.
constexpr double kPackedShapeBytes = 16;

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

// Widths that are stored packed in other than 4 or 8 bits are not in the list of formats.
bool CheckBits(Config& part, const char* key, int64_t bits) {
  if (bits == 4 || bits == 8) return true;
  part.Unsupported(key, absl::StrCat(bits, " bits: only 4 and 8 are modelled"));
  return false;
}

// Block scales of [rows, columns], or one scale a tensor.
void ReadFp8(Config& part, Quantization& quantization) {
  WeightFormat format;
  format.dtype = DataType::kFp8;
  format.scale_bytes = kFp32Bytes;
  if (const auto block = part.Ints("weight_block_size", 1, kMaxBlock)) {
    if (block->size() != 2) {
      part.Violate("weight_block_size", "must be two numbers: rows and columns");
    } else {
      format.block_rows = static_cast<int32_t>((*block)[0]);
      format.block_columns = static_cast<int32_t>((*block)[1]);
    }
  } else if (part.Text({"activation_scheme"}) == "static") {
    format.tensor_scalar_bytes = kFp32Bytes;  // scale of the activations
  }
  part.Ignore({"activation_scheme", "fmt", "scale_fmt", "dequantize"});
  QuantizeLinears(format, quantization);
}

// One scale for each output.
void ReadFbgemm(Config& part, Quantization& quantization) {
  WeightFormat format;
  format.dtype = DataType::kFp8;
  format.block_rows = 1;
  format.scale_bytes = kFp32Bytes;
  part.Ignore({"activation_scale_ub"});
  QuantizeLinears(format, quantization);
}

WeightFormat Mxfp4() {
  WeightFormat format;
  format.dtype = DataType::kFp4;
  format.block_rows = 1;
  format.block_columns = kMxBlock;
  format.scale_bytes = kByte;
  return format;
}

void ReadMxfp4(Config&, Quantization& quantization) { Quantize(WeightClass::kExpert, Mxfp4(), quantization); }

// Groups along the input, each with a scale and a packed zero point.
WeightFormat ReadGroups(Config& part) {
  WeightFormat format;
  const int64_t bits = part.Required({"bits", "w_bit"}, 2, 8);
  CheckBits(part, "bits", bits);
  format.dtype = IntegerOf(bits);
  format.block_rows = 1;
  const int64_t group = part.IntOr({"group_size", "q_group_size"}, -1, -1, kMaxBlock);
  format.block_columns = group > 0 ? static_cast<int32_t>(group) : 0;
  format.scale_bytes = kFp16Bytes;
  format.zero_point_bytes = static_cast<double>(bits) / kBitsPerByte;
  return format;
}

void ReadAwq(Config& part, Quantization& quantization) {
  WeightFormat format = ReadGroups(part);
  if (!part.Bool({"zero_point"}, true)) format.zero_point_bytes = 0;
  part.Ignore({"version", "backend", "do_fuse", "fuse_max_seq_len", "exllama_config", "desc_act", "sym"});
  QuantizeLinears(format, quantization);
}

void ReadGptq(Config& part, Quantization& quantization) {
  WeightFormat format = ReadGroups(part);
  format.column_bytes = kFp32Bytes;  // g_idx, stored whatever desc_act says
  part.Ignore({"sym",
               "desc_act",
               "static_groups",
               "true_sequential",
               "damp_percent",
               "damp_auto_increment",
               "model_name_or_path",
               "model_file_base_name",
               "checkpoint_format",
               "meta",
               "pack_dtype",
               "quantizer",
               "use_exllama",
               "dataset",
               "exllama_config",
               "use_cuda_fp16",
               "cache_block_outputs",
               "is_marlin_format",
               "batch_size",
               "max_input_length",
               "block_name_to_quantize",
               "module_name_preceding_first_block",
               "model_seqlen",
               "pad_token_id",
               "tokenizer",
               "use_exllama",
               "backend",
               "hyb_act"});
  if (part.Bool({"lm_head"}, false)) Quantize(WeightClass::kHead, format, quantization);
  QuantizeLinears(format, quantization);
}

void ReadBitsAndBytes(Config& part, Quantization& quantization) {
  WeightFormat format;
  if (part.Bool({"load_in_4bit", "_load_in_4bit"}, false)) {
    format.dtype = DataType::kInt4;
    format.block_rows = 1;
    format.block_columns = kNf4Block;
    format.scale_bytes = part.Bool({"bnb_4bit_use_double_quant"}, false) ? kNf4DoubleScaleBytes : kFp32Bytes;
  } else {
    format.dtype = DataType::kInt8;
    format.block_rows = 1;
    format.scale_bytes = kFp32Bytes;
  }
  part.Ignore({"load_in_4bit", "load_in_8bit", "_load_in_4bit", "_load_in_8bit", "bnb_4bit_compute_dtype",
               "bnb_4bit_quant_type", "bnb_4bit_quant_storage", "bnb_4bit_use_double_quant",
               "llm_int8_enable_fp32_cpu_offload", "llm_int8_has_fp16_weight", "llm_int8_threshold"});
  QuantizeLinears(format, quantization);
}

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

struct Method {
  const char* name;
  void (*read)(Config& part, Quantization& quantization);
};

constexpr Method kMethods[] = {
    {"fp8", ReadFp8},
    {"fbgemm_fp8", ReadFbgemm},
    {"mxfp4", ReadMxfp4},
    {"awq", ReadAwq},
    {"gptq", ReadGptq},
    {"compressed-tensors", ReadCompressedTensors},
    {"bitsandbytes", ReadBitsAndBytes},
    {"modelopt", ReadModelOpt},
};

void ReadExceptions(Config& part, Quantization& quantization) {
  for (const char* key :
       {"modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules", "llm_int8_skip_modules"}) {
    const std::optional<std::vector<std::string>> modules = part.Texts(key);
    if (!modules) continue;
    constexpr int kMostWarnings = 4;
    int warned = 0;
    for (const std::string& module : *modules) {
      ModulePattern pattern = ParseModulePattern(module);
      if (!pattern.is_understood && ++warned <= kMostWarnings) {
        part.Warn(ImportWarning::Kind::kUnknownKey, key,
                  absl::StrCat("'", module.substr(0, 80), "' names no weight that is known: it is taken as quantised"));
      }
      for (UnquantizedWeight& weight : pattern.weights) quantization.exceptions.push_back(std::move(weight));
    }
  }
  // Exceptions of a whole class need no look-up for every layer.
  auto& exceptions = quantization.exceptions;
  for (const UnquantizedWeight& weight : exceptions) {
    if (weight.layer < 0 && weight.name.empty())
      quantization.quantized[static_cast<size_t>(weight.weight_class)] = false;
  }
  exceptions.erase(std::remove_if(exceptions.begin(), exceptions.end(),
                                  [&quantization](const UnquantizedWeight& weight) {
                                    return !quantization.Quantizes(weight.weight_class);
                                  }),
                   exceptions.end());
  std::stable_sort(exceptions.begin(), exceptions.end(),
                   [](const UnquantizedWeight& a, const UnquantizedWeight& b) { return a.layer < b.layer; });
}

}  // namespace

DataType ReadCheckpointDtype(Config& config) {
  const std::string name = config.Text({"torch_dtype", "dtype"});
  config.Ignore({"torch_dtype", "dtype"});
  if (name == "float16" || name == "torch.float16" || name == "half") return DataType::kFp16;
  if (name == "float32" || name == "torch.float32" || name == "float") return DataType::kFp32;
  if (name.empty() || name == "bfloat16" || name == "torch.bfloat16" || name == "auto") return DataType::kBf16;
  config.Warn(ImportWarning::Kind::kUnknownKey, "torch_dtype",
              absl::StrCat("'", name.substr(0, 40), "' is not understood: weights count as bf16"));
  return DataType::kBf16;
}

void ReadQuantization(Config& config, const DecoderTraits& traits, Quantization& quantization) {
  const nlohmann::json* object = config.Object("quantization_config");
  if (object == nullptr) return;
  Config part(*object, config.Path("quantization_config"), config.report());
  const std::string name = part.Text({"quant_method"});
  const auto method = std::find_if(std::begin(kMethods), std::end(kMethods),
                                   [&name](const Method& known) { return name == known.name; });
  if (method == std::end(kMethods)) {
    part.Warn(ImportWarning::Kind::kUnknownKey, "quant_method",
              absl::StrCat("'", name.substr(0, 40), "' is not understood: weights count in the checkpoint's format"));
    return;
  }
  quantization.method = name;
  method->read(part, quantization);
  // Experts in fewer bits than the rest have a key outside.
  const std::string expert_dtype = config.Text({"expert_dtype"});
  if (expert_dtype == "fp4") {
    Quantize(WeightClass::kExpert, Mxfp4(), quantization);
  } else if (!expert_dtype.empty()) {
    config.Warn(
        ImportWarning::Kind::kUnknownKey, "expert_dtype",
        absl::StrCat("'", expert_dtype.substr(0, 40), "' is not understood: experts count like the other weights"));
  }
  if (traits.quantizes_mtp_projection && quantization.Quantizes(WeightClass::kAttention)) {
    Quantize(WeightClass::kMtpProjection, quantization.FormatOf(WeightClass::kAttention), quantization);
  }
  ReadExceptions(part, quantization);
}

}  // namespace sliceplan::transformer::hugging_face
