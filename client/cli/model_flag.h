// --model: a preset, a config.json, or an architecture written out.
#ifndef SLICEPLAN_CLIENT_CLI_MODEL_FLAG_H_
#define SLICEPLAN_CLIENT_CLI_MODEL_FLAG_H_

#include <functional>
#include <istream>
#include <string>

#include "absl/status/status.h"
#include "client/cli/flags.h"
#include "proto/sliceplan/v1/model.pb.h"

namespace sliceplan::cli {

// What an existing file, a name that ends in ".json", or "-" (standard input) holds is sent: the text of a Hugging Face
// config.json, or an Architecture in proto3 JSON, which its "layerGroups" give away. Anything else is the name of a
// preset.
absl::Status ReadModel(const std::string& text, std::istream& in, v1::ModelSpec* model);

// Text of a file, or of `in` for "-". NOT_FOUND when it cannot be read, INVALID_ARGUMENT above `max_bytes`.
absl::Status ReadText(const std::string& path, std::istream& in, size_t max_bytes, std::string* text);

// Adds the flag for the field `model`, which is required; `name` is "--model", or "model,--model" for a positional one.
void AddModelFlag(Flags& flags, const std::string& name, const std::function<v1::ModelSpec*()>& model);

// What a reader recognises the model by: the preset, the file, the architecture's name.
std::string ModelLabel(const v1::ModelSpec& model, const Flags& flags);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_MODEL_FLAG_H_
