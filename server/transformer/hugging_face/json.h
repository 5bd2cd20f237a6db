// JSON with limits: size, depth, no duplicate keys, no exceptions. Bare Infinity, -Infinity and NaN, which some
// published files hold, are read as the strings of that spelling, so that they are harmless where nothing is read and a
// wrong type where a number is.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_JSON_H_
#define SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_JSON_H_

#include <optional>

#include <nlohmann/json.hpp>

#include "absl/strings/string_view.h"
#include "server/transformer/hugging_face/report.h"

namespace sliceplan::transformer::hugging_face {

// Empty, with a violation in `report`, when `text` is not one JSON object within the limits of import.h.
std::optional<nlohmann::json> ParseJson(absl::string_view text, Report& report);

}  // namespace sliceplan::transformer::hugging_face

#endif  // SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_JSON_H_
