#include "server/rpc/convert/model.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/rpc/convert/architecture.h"
#include "server/rpc/convert/ranges.h"
#include "server/rpc/text.h"
#include "server/transformer/hugging_face/import.h"

namespace sliceplan::rpc {
namespace {

constexpr size_t kMaxPresetBytes = 256;
// Texts up to this size are read and counted within the time that a gRPC thread may give.
constexpr size_t kQuicklyReadBytes = 4 << 10;
// Tells the texts of architectures from those of configs, which start with a brace or a blank.
constexpr char kArchitectureKey[] = "\x01";

std::string ArchitectureKey(const v1::Architecture& architecture) {
  std::string key = kArchitectureKey;
  architecture.AppendToString(&key);
  return key;
}

// Counts what was read and remembers it.
ModelHandle Remember(std::string key, std::unique_ptr<ParsedModel> model, ModelCache& cache, const FieldPath& path,
                     Violations& violations) {
  absl::StatusOr<transformer::ModelOperations> operations = transformer::OperationsOf(model->architecture);
  if (!operations.ok()) {
    violations.Add(path, std::string(operations.status().message()), "MODEL_NOT_COUNTABLE");
    return nullptr;
  }
  model->operations = *std::move(operations);
  model->parameters = transformer::CountParameters(model->architecture, model->operations);
  model->group_names.resize(model->architecture.layer_groups.size());
  for (size_t i = 0; i < model->group_names.size(); ++i) {
    if (model->group_names[i].empty()) model->group_names[i] = absl::StrCat("group ", i);
  }
  ModelHandle handle = std::move(model);
  cache.Insert(std::move(key), handle);
  return handle;
}

ModelHandle ReadConfig(const std::string& text, ModelCache& cache, const FieldPath& path, Violations& violations) {
  if (ModelHandle known = cache.Find(text); known != nullptr) return known;
  transformer::ImportResult result = transformer::ImportHuggingFaceConfig(text);
  for (const hardware::Violation& violation : result.violations) {
    // Fields are those of the config: part of the sentence, since the request's own field is the text as a whole.
    violations.Add(
        path,
        violation.field.empty() ? violation.description : absl::StrCat(violation.field, ": ", violation.description),
        violation.reason);
  }
  if (!result.model.has_value()) return nullptr;
  auto model = std::make_unique<ParsedModel>();
  model->name = result.model->architecture.name.empty() ? result.model->family : result.model->architecture.name;
  model->architecture = std::move(result.model->architecture);
  model->warnings = std::move(result.model->warnings);
  return Remember(text, std::move(model), cache, path, violations);
}

ModelHandle ReadArchitecture(const v1::Architecture& proto, ModelCache& cache, const FieldPath& path,
                             Violations& violations) {
  std::string key = ArchitectureKey(proto);
  if (ModelHandle known = cache.Find(key); known != nullptr) return known;
  const size_t violation_count = violations.size();
  auto model = std::make_unique<ParsedModel>();
  model->architecture = ToArchitecture(proto, path, violations);
  if (violations.size() > violation_count) return nullptr;
  model->name = proto.name().empty() ? "architecture" : proto.name();
  for (const v1::LayerGroup& group : proto.layer_groups()) model->group_names.push_back(group.name());
  return Remember(std::move(key), std::move(model), cache, path, violations);
}

ModelHandle ReadPreset(const std::string& name, const catalog::Catalog& catalog, ModelCache& cache,
                       const FieldPath& path, Violations& violations) {
  if (!CheckLength(name, kMaxPresetBytes, path, violations)) return nullptr;
  const catalog::ModelLookup lookup = catalog.FindModel(name);
  if (lookup.violation.has_value()) {
    violations.AddUnknownName(path, "model preset", name, lookup.violation->description, lookup.violation->reason);
    return nullptr;
  }
  return ReadConfig(lookup.model->hugging_face_config(), cache, path, violations);
}

absl::string_view WarningCode(transformer::ImportWarning::Kind kind) {
  switch (kind) {
    case transformer::ImportWarning::Kind::kAssumedFamily: return "MODEL_FAMILY_ASSUMED";
    case transformer::ImportWarning::Kind::kAssumedValue: return "CONFIG_VALUE_ASSUMED";
    case transformer::ImportWarning::Kind::kExcludedPart: return "MODEL_PART_EXCLUDED";
    case transformer::ImportWarning::Kind::kUnknownKey: return "CONFIG_KEY_UNKNOWN";
    case transformer::ImportWarning::Kind::kIgnoredValue: return "CONFIG_VALUE_IGNORED";
  }
  return "";
}

}  // namespace

ModelHandle ToModel(const v1::ModelSpec& spec, const catalog::Catalog& catalog, ModelCache& cache,
                    const FieldPath& path, Violations& violations) {
  switch (spec.source_case()) {
    case v1::ModelSpec::kPreset:
      return ReadPreset(spec.preset(), catalog, cache, FieldPath(path, "preset"), violations);
    case v1::ModelSpec::kHuggingFaceConfig:
      return ReadConfig(spec.hugging_face_config(), cache, FieldPath(path, "hugging_face_config"), violations);
    case v1::ModelSpec::kArchitecture:
      return ReadArchitecture(spec.architecture(), cache, FieldPath(path, "architecture"), violations);
    case v1::ModelSpec::SOURCE_NOT_SET: break;
  }
  AddRequired("preset, hugging_face_config or architecture", path, violations);
  return nullptr;
}

bool IsQuicklyRead(const v1::ModelSpec& spec, const ModelCache& cache) {
  switch (spec.source_case()) {
    case v1::ModelSpec::kHuggingFaceConfig:
      return spec.hugging_face_config().size() <= kQuicklyReadBytes || cache.Contains(spec.hugging_face_config());
    case v1::ModelSpec::kArchitecture:
      return spec.architecture().ByteSizeLong() <= kQuicklyReadBytes ||
             cache.Contains(ArchitectureKey(spec.architecture()));
    default: return true;
  }
}

std::string ModelName(const v1::ModelSpec& spec, const catalog::Catalog& catalog, const ParsedModel& model) {
  if (!spec.has_preset()) return model.name;
  const catalog::ModelLookup lookup = catalog.FindModel(spec.preset());
  return lookup.model == nullptr ? model.name : lookup.model->preset();
}

void AddImportWarnings(const ParsedModel& model, google::protobuf::RepeatedPtrField<v1::Warning>* warnings) {
  for (const transformer::ImportWarning& ours : model.warnings) {
    v1::Warning* const warning = warnings->Add();
    const absl::string_view code = WarningCode(ours.kind);
    warning->set_code(code.data(), code.size());
    warning->set_sentence(ours.field.empty() ? ours.text : absl::StrCat(ours.field, ": ", ours.text));
    warning->set_field("model");
  }
}

}  // namespace sliceplan::rpc
