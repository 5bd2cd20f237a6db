#include "server/transformer/hugging_face/import.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/transformer/hugging_face/config.h"
#include "server/transformer/hugging_face/decoder.h"
#include "server/transformer/hugging_face/family.h"
#include "server/transformer/hugging_face/json.h"
#include "server/transformer/hugging_face/llama_fallback.h"
#include "server/transformer/hugging_face/nested_defaults.h"
#include "server/transformer/hugging_face/output_head.h"
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
  const char* what = nullptr;
  if (config.Has("peft_type")) {
    what = "this is the adapter_config.json of an adapter: send the config.json of the model that it adapts";
  } else if (config.Has("_class_name")) {
    what = "this is a part of a diffusers pipeline, which is no decoder-only language model";
  } else if (config.Has("model_type") || config.Has("architectures")) {
    return false;
  } else if (config.Has("weight_map")) {
    what = "this is an index of weight files, which says nothing about layers: send the config.json beside it";
  } else if (config.Has("quant_algo") || config.Has("producer")) {
    what = "this is an hf_quant_config.json: send the config.json beside it";
  } else if (config.Has("dim") && config.Has("n_layers")) {
    what = "this is a params.json: send the config.json of the model's Hugging Face conversion";
  } else if (config.Has("ssm_cfg")) {
    what = "this is the first release's dialect of Mamba: send the config.json of the model's Hugging Face conversion";
  } else if (config.Has("base_emb_dim")) {
    what = "this is a MaxText configuration, which is not read: send a Hugging Face config.json or an architecture";
  }
  if (what == nullptr) return false;
  report.Violate("model_type", what, "REQUIRED");
  return true;
}

void RefuseUnlikeLlama(absl::string_view shown, absl::string_view why, Report& report) {
  Refuse("model_type", absl::StrCat(shown, ", and the file does not describe a model like Llama: ", why), report);
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

// `shown` is how messages name a family that nobody knows; it stays empty for known ones.
const Family* ChooseFamily(const Config& config, const json& document, const json& language, std::string& model_type,
                           std::string& shown, Report& report) {
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

  shown = model_type.empty() ? "no model_type is given and architectures names no known class"
                             : absl::StrCat("model_type '", model_type.substr(0, 60), "' is unknown");
  const std::string why = hugging_face::WhyUnlikeLlama(config, class_name);
  if (!why.empty()) {
    RefuseUnlikeLlama(shown, why, report);
    return nullptr;
  }
  config.Warn(
      ImportWarning::Kind::kAssumedFamily, "model_type",
      absl::StrCat(shown, ": read as a model like Llama (grouped-query attention, gated MLP, two RMS norms a layer",
                   config.Has("tie_word_embeddings") ? "" : ", a table of its own for the output head",
                   "), which may be wrong"));
  return hugging_face::FindFamily("llama");
}

bool HasBias(const Layer& layer) {
  const auto* grouped = std::get_if<GroupedQueryAttention>(&layer.attention);
  const auto* latent = std::get_if<LatentAttention>(&layer.attention);
  const auto* dense = std::get_if<DenseFeedForward>(&layer.feed_forward);
  const auto* moe = std::get_if<MixtureOfExperts>(&layer.feed_forward);
  return (grouped != nullptr && (grouped->qkv_bias || grouped->output_bias)) ||
         (latent != nullptr && latent->qkv_bias) || (dense != nullptr && dense->bias) ||
         (moe != nullptr && (moe->expert_bias || moe->router_bias));
}

// Biases that a file switches off and that the model does not have anyway are no news.
void IgnoreBiasesSwitchedOff(const Architecture& architecture, Config& config) {
  bool has_bias = architecture.head_bias;
  for (const LayerGroup& group : architecture.layer_groups) {
    has_bias |= std::any_of(group.layers.begin(), group.layers.end(), HasBias);
  }
  if (has_bias) return;
  for (const auto& item : config.object().items()) {
    if (item.value() == false && absl::StrContains(item.key(), "bias")) config.Ignore({item.key().c_str()});
  }
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
  const bool is_nested = language.object != &*document;
  const Config as_sent(*language.object, language.path, report);
  if (RefuseOtherFile(Config(*document, "", report), report)) return std::nullopt;

  ImportedModel model;
  std::string model_type;
  std::string unknown_family;
  const Family* family = ChooseFamily(as_sent, *document, *language.object, model_type, unknown_family, report);
  if (family == nullptr) return std::nullopt;
  model.family = family->traits.model_type;
  hugging_face::DecoderTraits traits = family->traits;
  json filled;
  if (is_nested || !unknown_family.empty()) traits.rotary_buffers = false;
  if (is_nested && unknown_family.empty()) {
    filled = hugging_face::WithClassDefaults(model.family, *language.object, language.path, report);
  }
  Config config(filled.is_null() ? *language.object : filled, language.path, report);
  Architecture& architecture = model.architecture;
  architecture.name = model_type;
  family->build(config, traits, architecture);
  Config root(*document, "", report);
  architecture.checkpoint_dtype =
      hugging_face::ReadCheckpointDtype(config.HasAny({"torch_dtype", "dtype"}) ? config : root);
  hugging_face::ReadQuantization(hugging_face::HasQuantization(config) ? config : root, traits,
                                 architecture.quantization);
  if (is_nested) ReadOuterTying(*document, architecture, report);
  hugging_face::ReadOutputHead(root, FirstClass(*document), is_nested, architecture);

  config.Ignore({"quantization_config", "compression_config", "quantization", "torch_dtype", "dtype",
                 "is_encoder_decoder", "tie_word_embeddings", "num_labels"});
  for (const char* key : kTowers) config.Ignore({key});
  WarnOfTowers(*document, report);
  if (!is_nested && document->contains(kNestedParent)) config.Ignore({kNestedParent});
  IgnoreBiasesSwitchedOff(architecture, config);
  const std::string why = unknown_family.empty() ? "" : hugging_face::WhyUnlikeLlamaByKeys(config);
  if (!why.empty()) {
    RefuseUnlikeLlama(unknown_family, why, report);
    return std::nullopt;
  }
  config.WarnUnknown();
  if (architecture.stores_tied_table_twice) {
    config.Warn(
        ImportWarning::Kind::kAssumedValue, "tie_word_embeddings",
        "checkpoints of this family, as published, store the tied table twice: the second copy is a line beside the "
        "total, and a checkpoint that was saved again may lack it");
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
