// Reads the text of a Hugging Face config.json into an Architecture.
//
// Never a silent guess: a value that the file leaves out is either what the family's reference implementation takes, or
// the import fails; every assumption that could change a count is a warning.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_IMPORT_H_
#define SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_IMPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/hardware/violation.h"
#include "server/transformer/architecture.h"

namespace sliceplan::transformer {

// Larger or deeper texts are refused unread.
inline constexpr size_t kMaxConfigBytes = size_t{1} << 20;
inline constexpr int kMaxConfigDepth = 64;

struct ImportWarning {
  enum class Kind {
    kAssumedFamily,  // unknown model_type, read as a model like Llama
    kAssumedValue,   // a missing key, read as the family's default
    kExcludedPart,   // a vision or audio tower, drafts that are not stored, ...
    kUnknownKey,     // a key that could change a count and was not understood
    kIgnoredValue,   // a key that this family ignores or that has no effect here
  } kind = Kind::kUnknownKey;
  std::string field;  // path in the config: "text_config.num_experts"
  std::string text;   // a sentence
};

struct ImportedModel {
  Architecture architecture;  // valid (validate.h)
  std::string family;         // the model_type whose rules were applied
  std::vector<ImportWarning> warnings;
};

// Either a model, or at least one violation. Reasons: MALFORMED_JSON, TOO_LARGE, TOO_DEEP, DUPLICATE_KEY, REQUIRED,
// WRONG_TYPE, OUT_OF_RANGE, NOT_DIVISIBLE, CONFLICT, MODEL_FAMILY_UNSUPPORTED, UNSUPPORTED_VALUE.
struct ImportResult {
  std::optional<ImportedModel> model;
  std::vector<hardware::Violation> violations;
};

// Throws nothing and needs no valid input of any kind.
ImportResult ImportHuggingFaceConfig(absl::string_view text);

}  // namespace sliceplan::transformer

#endif  // SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_IMPORT_H_
