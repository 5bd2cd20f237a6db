#include "client/cli/model_flag.h"

#include <sys/stat.h>

#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/rpc/json.h"

namespace sliceplan::cli {
namespace {

// Of ModelSpec.hugging_face_config.
constexpr size_t kMaxConfigBytes = 1 << 20;

bool IsFile(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
}

// A checkpoint's directory; presets have no slash.
bool IsDirectory(const std::string& path) {
  struct stat status;
  return absl::StrContains(path, '/') && stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

absl::Status ReadText(const std::string& path, std::istream& in, size_t max_bytes, std::string* text) {
  std::ifstream file;
  if (path != "-") {
    if (!IsFile(path)) return absl::NotFoundError(absl::StrCat("cannot read the file '", path, "'"));
    file.open(path, std::ios::binary);
  }
  std::istream& source = path == "-" ? in : file;
  text->resize(max_bytes + 1);
  source.read(text->data(), static_cast<std::streamsize>(text->size()));
  text->resize(static_cast<size_t>(source.gcount()));
  if (path != "-" && !file.is_open()) return absl::NotFoundError(absl::StrCat("cannot read the file '", path, "'"));
  if (text->size() > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' holds more than ", max_bytes, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status ReadModel(const std::string& text, std::istream& in, v1::ModelSpec* model) {
  if (IsDirectory(text)) return ReadModel(absl::StrCat(text, "/config.json"), in, model);
  if (text != "-" && !absl::EndsWith(text, ".json") && !IsFile(text)) {
    model->set_preset(text);
    return absl::OkStatus();
  }
  std::string config;
  if (absl::Status status = ReadText(text, in, kMaxConfigBytes, &config); !status.ok()) return status;
  if (absl::StrContains(config, "\"layerGroups\"") || absl::StrContains(config, "\"layer_groups\"")) {
    const rpc::Result result = rpc::ParseJson(config, model->mutable_architecture());
    if (!result.ok()) return absl::InvalidArgumentError(result.status().message());
  } else {
    model->set_hugging_face_config(std::move(config));
  }
  return absl::OkStatus();
}

void AddModelFlag(Flags& flags, const std::string& name, const std::function<v1::ModelSpec*()>& model) {
  flags.Custom(
      name, "model", "NAME|FILE",
      "preset (sliceplan catalog models), a Hugging Face config.json or its directory, or - for standard input",
      [&flags, model](const std::string& text) { return ReadModel(text, flags.in(), model()); });
  flags.Require("model");
}

std::string ModelLabel(const v1::ModelSpec& model, const Flags& flags) {
  if (model.has_preset()) return model.preset();
  if (model.has_architecture() && !model.architecture().name().empty()) return model.architecture().name();
  const std::string typed = flags.Typed("--model");
  return typed.empty() || typed == "-" ? "the given model" : typed;
}

}  // namespace sliceplan::cli
