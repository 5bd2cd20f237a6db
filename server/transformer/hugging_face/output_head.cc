#include "server/transformer/hugging_face/output_head.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace sliceplan::transformer::hugging_face {
namespace {

// Generate text in spite of their names.
constexpr absl::string_view kGenerators[] = {"ChatGLMModel", "ChatModel", "HeadModel", "HeadsModel", "LMModel"};

// PretrainedConfig: what id2label lists, 2 when it lists nothing.
int32_t LabelCount(Config& root) {
  constexpr int64_t kDefaultLabels = 2;
  if (const std::optional<int64_t> count = root.Int({"num_labels"}, 1, kMaxDim)) return static_cast<int32_t>(*count);
  const nlohmann::json* labels = root.Raw("id2label");
  if (labels == nullptr || !labels->is_object() || labels->empty()) return kDefaultLabels;
  return static_cast<int32_t>(labels->size());
}

void SetHead(int32_t output_count, bool bias, Architecture& architecture) {
  architecture.head_output_count = output_count;
  architecture.head_bias = bias;
  architecture.tied_embeddings = false;
  architecture.stores_tied_table_twice = false;
}

}  // namespace

void ReadOutputHead(Config& root, absl::string_view class_name, bool is_nested, Architecture& architecture) {
  constexpr int32_t kSpan = 2;  // start and end of an answer
  const std::string shown = absl::StrCat("'", class_name.substr(0, 60), "' ");
  const auto classify = [&](int32_t label_count, bool bias) {
    SetHead(label_count, bias, architecture);
    root.Warn(ImportWarning::Kind::kExcludedPart, "architectures",
              absl::StrCat(shown, "scores ", label_count, label_count == 1 ? " label" : " labels",
                           " instead of tokens: a head of that many outputs is counted, and no output head of ",
                           architecture.vocab_size, " tokens"));
  };
  if (absl::EndsWith(class_name, "ForSequenceClassification")) return classify(LabelCount(root), false);
  if (absl::EndsWith(class_name, "ForTokenClassification")) return classify(LabelCount(root), true);
  if (absl::EndsWith(class_name, "ForQuestionAnswering")) return classify(kSpan, true);
  if (class_name == "InternLM2ForRewardModel") return classify(1, false);
  if (absl::EndsWith(class_name, "RewardModel")) {
    SetHead(0, false, architecture);
    root.Warn(ImportWarning::Kind::kExcludedPart, "architectures",
              absl::StrCat(shown, "is a reward model: no output head of ", architecture.vocab_size,
                           " tokens is counted, and neither is the reward head, whose size the file does not say"));
    return;
  }
  const bool generates = std::any_of(std::begin(kGenerators), std::end(kGenerators),
                                     [class_name](auto suffix) { return absl::EndsWith(class_name, suffix); });
  if (is_nested || generates || !absl::EndsWith(class_name, "Model")) return;
  SetHead(0, false, architecture);
  root.Warn(ImportWarning::Kind::kExcludedPart, "architectures",
            absl::StrCat(shown,
                         "has no output head, as embedding models do: none is counted. A language model over the same "
                         "weights is of a class like ...ForCausalLM"));
}

}  // namespace sliceplan::transformer::hugging_face
