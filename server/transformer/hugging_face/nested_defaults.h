// Sizes that the language parts of multimodal configs leave out because they equal the class default.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_NESTED_DEFAULTS_H_
#define SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_NESTED_DEFAULTS_H_

#include <string>

#include <nlohmann/json.hpp>

#include "absl/strings/string_view.h"
#include "server/transformer/hugging_face/report.h"

namespace sliceplan::transformer::hugging_face {

// A copy of the language part at `path` with the class defaults of `model_type` for keys that are absent, each with a
// warning. Whole configs get none: they name every size, and one that does not is damaged.
nlohmann::json WithClassDefaults(absl::string_view model_type, const nlohmann::json& part, const std::string& path,
                                 Report& report);

}  // namespace sliceplan::transformer::hugging_face

#endif  // SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_NESTED_DEFAULTS_H_
