// Names of modules in quantisation configs: "lm_head", "model.layers.3.mlp.down_proj", "model.layers.*.self_attn",
// "re:.*gate$". Patterns are read by their parts, not run as regular expressions.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_MODULE_PATTERN_H_
#define SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_MODULE_PATTERN_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "server/transformer/architecture.h"

namespace sliceplan::transformer::hugging_face {

struct ModulePattern {
  std::vector<UnquantizedWeight> weights;  // what the pattern names
  bool is_understood = false;              // also when it names nothing that has a weight of a matmul (norms)
  bool is_outside_language_model = false;  // a vision or audio tower, a projector
};

ModulePattern ParseModulePattern(absl::string_view text);

}  // namespace sliceplan::transformer::hugging_face

#endif  // SLICEPLAN_SERVER_TRANSFORMER_HUGGING_FACE_MODULE_PATTERN_H_
