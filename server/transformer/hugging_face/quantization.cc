#include "server/transformer/hugging_face/quantization.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/transformer/hugging_face/module_pattern.h"
#include "server/transformer/hugging_face/quantization_methods.h"

namespace sliceplan::transformer::hugging_face {
namespace {

using hardware::DataType;

// bitsandbytes: one maximum for 64 elements; double quantisation stores it in 8 bits and one fp32 for 256 of those.
constexpr int32_t kNf4Block = 64;
constexpr double kNf4DoubleScaleBytes = kByte + kFp32Bytes / 256;

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

// Values in groups along the input, each with a scale and a bias, of tables and head too.
void ReadMlx(Config& part, Quantization& quantization) {
  const std::string mode = part.Text({"mode"});
  if (!mode.empty() && mode != "affine") {
    part.Unsupported("mode", absl::StrCat("'", mode.substr(0, 40), "' is not modelled"));
    return;
  }
  WeightFormat format;
  const int64_t bits = part.Required({"bits"}, 2, 8);
  CheckBits(part, "bits", bits);
  format.dtype = IntegerOf(bits);
  format.block_rows = 1;
  format.block_columns = static_cast<int32_t>(part.Required({"group_size"}, 1, kMaxBlock));
  format.scale_bytes = kFp16Bytes;
  format.zero_point_bytes = kFp16Bytes;
  QuantizeLinears(format, quantization);
  for (const WeightClass weight_class : {WeightClass::kHead, WeightClass::kEmbedding, WeightClass::kRouter}) {
    Quantize(weight_class, format, quantization);
  }
  for (const auto& item : part.object().items()) {
    // Modules by name: false keeps the checkpoint's format, an object has settings of its own.
    if (item.value() == false) {
      for (UnquantizedWeight& weight : ParseModulePattern(item.key()).weights) {
        quantization.exceptions.push_back(std::move(weight));
      }
    } else if (item.value().is_object()) {
      part.Warn(ImportWarning::Kind::kUnknownKey, "",
                "modules with settings of their own are not modelled: they count like the other weights");
      break;
    }
  }
}

// Packed like GPTQ or AWQ, as packing_format says; its own packing has no group indices.
void ReadAutoRound(Config& part, Quantization& quantization) {
  const std::string packing = part.Text({"packing_format", "backend"});
  WeightFormat format = ReadGroups(part);
  if (absl::StrContains(packing, "gptq")) format.column_bytes = kFp32Bytes;
  part.Warn(ImportWarning::Kind::kAssumedValue, "packing_format",
            absl::StrCat("weights count as packed like ", format.column_bytes > 0 ? "GPTQ" : "AWQ",
                         ", the few bytes of group indices may differ"));
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
    {"mlx", ReadMlx},
    {"auto-round", ReadAutoRound},
    {"intel/auto-round", ReadAutoRound},
};

// Early files of some methods do not name them.
std::string MethodOf(Config& part, bool is_mlx_beside) {
  std::string name = part.Text({"quant_method"});
  if (!name.empty()) return name;
  if (part.HasAny({"config_groups"})) return "compressed-tensors";
  if (part.HasAny({"desc_act", "damp_percent", "true_sequential"})) return "gptq";
  if (part.HasAny({"zero_point", "w_bit", "q_group_size"})) return "awq";
  if (part.HasAny({"load_in_4bit", "load_in_8bit"})) return "bitsandbytes";
  return is_mlx_beside && part.HasAny({"group_size"}) && part.HasAny({"bits"}) ? "mlx" : "";
}

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

bool HasQuantization(const Config& config) {
  return config.HasAny({"quantization_config", "compression_config", "quantization"});
}

void ReadQuantization(Config& config, const DecoderTraits& traits, Quantization& quantization) {
  const char* key = "quantization_config";
  // Older names of compressed-tensors, and mlx, which writes both.
  for (const char* other : {"compression_config", "quantization"}) {
    if (!config.Has(key) && config.Has(other)) key = other;
  }
  const nlohmann::json* object = config.Object(key);
  if (object == nullptr) return;
  Config part(*object, config.Path(key), config.report());
  const std::string name = MethodOf(part, config.Has("quantization"));
  const auto method = std::find_if(std::begin(kMethods), std::end(kMethods),
                                   [&name](const Method& known) { return name == known.name; });
  if (method == std::end(kMethods)) {
    part.Warn(ImportWarning::Kind::kUnknownKey, "quant_method",
              absl::StrCat(name.empty() ? "is missing" : absl::StrCat("'", name.substr(0, 40), "' is not understood"),
                           ": how many bytes the weights take is not known, they count in the checkpoint's format"));
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
