#include "server/transformer/hugging_face/import.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/transformer/hugging_face/config.h"
#include "server/transformer/hugging_face/decoder.h"
#include "server/transformer/hugging_face/family.h"
#include "server/transformer/hugging_face/json.h"
#include "server/transformer/hugging_face/quantization.h"
#include "server/transformer/validate.h"

namespace sliceplan::transformer {
namespace {

using hugging_face::Config;
using hugging_face::Family;
using hugging_face::Report;
using nlohmann::json;

// Where multimodal configs keep the language part; the last nests twice.
constexpr const char* kLanguageParts[] = {"text_config", "llm_config", "language_config"};
constexpr char kNestedParent[] = "thinker_config";

constexpr const char* kTowers[] = {"vision_config",    "vision_tower_config", "visual",        "visual_config",
                                   "audio_config",     "speech_config",       "vision_tower",  "mm_vision_tower",
                                   "img_processor",    "audio_processor",     "talker_config", "code2wav_config",
                                   "projector_config", "vision_cfg"};

void Refuse(absl::string_view field, std::string description, Report& report) {
  report.Violate(field, std::move(description), "MODEL_FAMILY_UNSUPPORTED", hardware::Violation::Kind::kUnsupported);
}

// Companions of a config.json and other dialects, recognised to say so.
bool RefuseOtherFile(const Config& config, Report& report) {
  if (config.Has("model_type") || config.Has("architectures")) return false;
  const char* what = nullptr;
  if (config.Has("weight_map")) {
    what = "this is an index of weight files, which says nothing about layers: send the config.json beside it";
  } else if (config.Has("quant_algo") || config.Has("producer")) {
    what = "this is an hf_quant_config.json: send the config.json beside it";
  } else if (config.Has("dim") && config.Has("n_layers")) {
    what = "this is a params.json: send the config.json of the model's Hugging Face conversion";
  } else if (config.Has("base_emb_dim")) {
    what = "this is a MaxText configuration, which is not read: send a Hugging Face config.json or an architecture";
  }
  if (what == nullptr) return false;
  report.Violate("model_type", what, "REQUIRED");
  return true;
}

struct Language {
  const json* object = nullptr;
  std::string path;
};

Language FindLanguage(const json& document) {
  for (const char* key : kLanguageParts) {
    const auto place = document.find(key);
    if (place != document.end() && place->is_object()) return {&*place, key};
  }
  const auto parent = document.find(kNestedParent);
  if (parent != document.end() && parent->is_object()) {
    const auto place = parent->find(kLanguageParts[0]);
    if (place != parent->end() && place->is_object()) {
      return {&*place, absl::StrCat(kNestedParent, ".", kLanguageParts[0])};
    }
  }
  return {&document, ""};
}

std::string TextOrEmpty(const json& object, const char* key) {
  const auto place = object.find(key);
  return place != object.end() && place->is_string() ? place->get<std::string>() : std::string();
}

std::string FirstClass(const json& object) {
  const auto place = object.find("architectures");
  if (place == object.end() || !place->is_array() || place->empty() || !place->front().is_string()) return "";
  return place->front().get<std::string>();
}

// An unknown family is read as a model like Llama when everything that such a model needs is there and nothing speaks
// against it; the reply says so.
bool MayAssumeLlama(const Config& config, absl::string_view class_name) {
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"}) {
    if (!config.Has(key)) return false;
  }
  for (const char* key :
       {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "moe_intermediate_size",
        "kv_lora_rank", "state_size", "ssm_state_size", "mamba_d_state", "d_state", "block_configs",
        "hybrid_override_pattern", "linear_num_key_heads", "attn_type_list", "type_vocab_size", "conv_L_cache",
        "compress_ratios", "cross_attention_layers", "num_decoder_layers"}) {
    if (config.Has(key)) return false;
  }
  return class_name.empty() || absl::StrContains(class_name, "CausalLM") || absl::StrContains(class_name, "LMHead") ||
         absl::StrContains(class_name, "ForConditionalGeneration");
}

const Family* ChooseFamily(const Config& config, const json& document, const json& language, std::string& model_type,
                           Report& report) {
  const std::string root_type = TextOrEmpty(document, "model_type");
  model_type = TextOrEmpty(language, "model_type");
  if (model_type.empty()) model_type = root_type;
  const std::string class_name = FirstClass(language).empty() ? FirstClass(document) : FirstClass(language);
  if (model_type.empty()) model_type = std::string(hugging_face::ModelTypeOfClass(class_name));

  for (const std::string& name : {root_type, model_type}) {
    const absl::string_view why = hugging_face::WhyUnsupported(name);
    if (!why.empty()) {
      Refuse("model_type", absl::StrCat("'", name, "' is not supported: ", why), report);
      return nullptr;
    }
  }
  for (const json* object : {&document, &language}) {
    const auto place = object->find("is_encoder_decoder");
    if (place != object->end() && *place == true) {
      Refuse("is_encoder_decoder", "encoder-decoders are not supported: there is no decoder-only part", report);
      return nullptr;
    }
  }
  if (const Family* family = hugging_face::FindFamily(model_type)) return family;
  if (const Family* family = hugging_face::FindFamily(hugging_face::ModelTypeOfClass(class_name))) return family;

  const std::string shown =
      model_type.empty() ? "no model_type" : absl::StrCat("model_type '", model_type.substr(0, 60), "'");
  if (MayAssumeLlama(config, class_name)) {
    config.Warn(ImportWarning::Kind::kAssumedFamily, "model_type",
                absl::StrCat(shown,
                             " is unknown: read as a model like Llama (grouped-query attention, gated MLP, two RMS "
                             "norms a layer), which may be wrong"));
    return hugging_face::FindFamily("llama");
  }
  Refuse("model_type", absl::StrCat(shown, " is unknown, and the file does not describe a model like Llama"), report);
  return nullptr;
}

void WarnOfTowers(const json& document, Report& report) {
  for (const char* key : kTowers) {
    const auto place = document.find(key);
    if (place == document.end() || place->is_null()) continue;
    report.Warn(ImportWarning::Kind::kExcludedPart, key, "is not counted: only the language part is");
  }
}

// The outer object's word on tying stands for the whole model.
void ReadOuterTying(const json& document, Architecture& architecture, Report& report) {
  Config root(document, "", report);
  if (!root.Has("tie_word_embeddings")) return;
  const bool tied = root.Bool({"tie_word_embeddings"}, architecture.tied_embeddings);
  if (!tied) architecture.stores_tied_table_twice = false;
  architecture.tied_embeddings = tied;
}

std::optional<ImportedModel> Import(absl::string_view text, Report& report) {
  const std::optional<json> document = hugging_face::ParseJson(text, report);
  if (!document) return std::nullopt;
  const Language language = FindLanguage(*document);
  Config config(*language.object, language.path, report);
  if (RefuseOtherFile(config, report)) return std::nullopt;

  ImportedModel model;
  std::string model_type;
  const Family* family = ChooseFamily(config, *document, *language.object, model_type, report);
  if (family == nullptr) return std::nullopt;
  model.family = family->traits.model_type;
  Architecture& architecture = model.architecture;
  architecture.name = model_type;
  family->build(config, family->traits, architecture);
  Config root(*document, "", report);
  architecture.checkpoint_dtype =
      hugging_face::ReadCheckpointDtype(config.HasAny({"torch_dtype", "dtype"}) ? config : root);
  hugging_face::ReadQuantization(config.Has("quantization_config") ? config : root, family->traits,
                                 architecture.quantization);
  if (language.object != &*document) ReadOuterTying(*document, architecture, report);

  config.Ignore({"quantization_config", "torch_dtype", "dtype", "is_encoder_decoder", "tie_word_embeddings"});
  for (const char* key : kTowers) config.Ignore({key});
  WarnOfTowers(*document, report);
  if (language.object == &*document && document->contains(kNestedParent)) config.Ignore({kNestedParent});
  config.WarnUnknown();
  if (architecture.stores_tied_table_twice) {
    config.Warn(
        ImportWarning::Kind::kAssumedValue, "tie_word_embeddings",
        "checkpoints of this family usually store the tied table twice: the second copy is a line beside the total");
  }
  if (!report.violations.empty()) return std::nullopt;

  report.violations = Validate(architecture);
  if (!report.violations.empty()) return std::nullopt;
  model.warnings = std::move(report.warnings);
  return model;
}

}  // namespace

ImportResult ImportHuggingFaceConfig(absl::string_view text) {
  Report report;
  ImportResult result;
  result.model = Import(text, report);
  result.violations = std::move(report.violations);
  return result;
}

}  // namespace sliceplan::transformer
