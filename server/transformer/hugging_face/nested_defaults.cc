#include "server/transformer/hugging_face/nested_defaults.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace sliceplan::transformer::hugging_face {
namespace {

struct ClassDefaults {
  const char* model_type;
  int64_t hidden_size;
  int64_t intermediate_size;
  int64_t num_hidden_layers;
  int64_t num_attention_heads;
  int64_t num_key_value_heads;  // 0: as many as query heads
  int64_t vocab_size;
};

// LlamaConfig, MistralConfig and Qwen2Config of transformers.
constexpr ClassDefaults kDefaults[] = {
    {"llama", 4096, 11008, 32, 32, 0, 32000},
    {"mistral", 4096, 14336, 32, 32, 8, 32000},
    {"qwen2", 4096, 22016, 32, 32, 32, 151936},
};

}  // namespace

nlohmann::json WithClassDefaults(absl::string_view model_type, const nlohmann::json& part, const std::string& path,
                                 Report& report) {
  nlohmann::json filled = part;
  for (const ClassDefaults& defaults : kDefaults) {
    if (model_type != defaults.model_type) continue;
    const auto fill = [&](const char* key, int64_t value) {
      if (value == 0 || filled.contains(key)) return;
      filled[key] = value;
      report.Warn(ImportWarning::Kind::kAssumedValue, absl::StrCat(path, ".", key),
                  absl::StrCat("is missing: taken as ", value, ", the default of this family"));
    };
    fill("hidden_size", defaults.hidden_size);
    fill("intermediate_size", defaults.intermediate_size);
    fill("num_hidden_layers", defaults.num_hidden_layers);
    fill("num_attention_heads", defaults.num_attention_heads);
    fill("num_key_value_heads", defaults.num_key_value_heads);
    fill("vocab_size", defaults.vocab_size);
  }
  return filled;
}

}  // namespace sliceplan::transformer::hugging_face
