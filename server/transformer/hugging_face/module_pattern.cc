#include "server/transformer/hugging_face/module_pattern.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace sliceplan::transformer::hugging_face {
namespace {

// Segments of a module's path, regular-expression syntax removed.
std::vector<std::string> Segments(absl::string_view text) {
  if (absl::StartsWith(text, "re:")) text.remove_prefix(3);
  std::string plain =
      absl::StrReplaceAll(text, {{"\\.", "."}, {".*", "*."}, {"^", ""}, {"$", ""}, {"(", ""}, {")", ""}});
  std::vector<std::string> segments;
  for (const absl::string_view segment : absl::StrSplit(plain, '.')) {
    // "*self_attn" and "self_attn*" name the same as "self_attn".
    std::string name(segment);
    name.erase(std::remove(name.begin(), name.end(), '*'), name.end());
    if (!name.empty()) segments.push_back(std::move(name));
  }
  return segments;
}

bool HoldsAny(absl::string_view text, std::initializer_list<absl::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [text](absl::string_view word) { return absl::StrContains(text, word); });
}

// Index after "layers", "h" or "blocks"; -1 without one.
int32_t LayerOf(const std::vector<std::string>& segments) {
  for (size_t i = 0; i + 1 < segments.size(); ++i) {
    int32_t layer = 0;
    if (absl::SimpleAtoi(segments[i + 1], &layer) && layer >= 0 &&
        (segments[i] == "layers" || segments[i] == "h" || segments[i] == "blocks")) {
      return layer;
    }
  }
  return -1;
}

// Names of our matmuls that a leaf stands for; fused projections stand for several.
std::vector<std::string> MatmulNames(absl::string_view leaf) {
  static constexpr absl::string_view kSingle[] = {
      "q_proj",    "k_proj",       "v_proj",    "o_proj",    "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa",
      "kv_b_proj", "gate_proj",    "up_proj",   "down_proj", "in_proj",  "out_proj", "x_proj",
      "dt_proj",   "in_proj_qkvz", "in_proj_ba"};
  for (const absl::string_view name : kSingle) {
    if (leaf == name) return {std::string(name)};
  }
  if (leaf == "qkv_proj") return {"q_proj", "k_proj", "v_proj"};
  if (leaf == "gate_up_proj") return {"gate_proj", "up_proj"};
  return {};
}

void Add(WeightClass weight_class, const std::vector<std::string>& names, absl::string_view prefix, int32_t layer,
         ModulePattern& pattern) {
  if (names.empty()) pattern.weights.push_back({weight_class, "", layer});
  for (const std::string& name : names) pattern.weights.push_back({weight_class, absl::StrCat(prefix, name), layer});
}

}  // namespace

ModulePattern ParseModulePattern(absl::string_view text) {
  ModulePattern pattern;
  const std::vector<std::string> segments = Segments(text);
  if (segments.empty()) return pattern;
  const std::string path = absl::StrCat(".", absl::AsciiStrToLower(std::string(text)));
  const std::string& leaf = segments.back();
  const int32_t layer = LayerOf(segments);
  const std::vector<std::string> names = MatmulNames(leaf);
  pattern.is_understood = true;
  if (HoldsAny(path, {"vision", "visual", "audio", "projector", "multi_modal", "image"})) {
    pattern.is_outside_language_model = true;
  } else if (HoldsAny(path, {"lm_head"})) {
    Add(WeightClass::kHead, {}, "", -1, pattern);
  } else if (HoldsAny(path, {"embed", "wte"})) {
    Add(WeightClass::kEmbedding, {}, "", -1, pattern);
  } else if (HoldsAny(path, {"eh_proj", "mtp", "nextn", "shared_head"})) {
    Add(WeightClass::kMtpProjection, {}, "", -1, pattern);
  } else if (HoldsAny(leaf, {"norm", "e_score_correction_bias", "rotary", "sinks", "conv1d"})) {
    // Vectors are never quantised.
  } else if (leaf == "gate" || leaf == "router" || leaf == "shared_expert_gate" || leaf == "wg" ||
             HoldsAny(path, {".router"})) {
    Add(WeightClass::kRouter, {}, "", layer, pattern);
  } else if (HoldsAny(path, {"shared_expert"})) {
    Add(WeightClass::kSharedExpert, names, "shared_experts.", layer, pattern);
  } else if (HoldsAny(path, {"experts"})) {
    Add(WeightClass::kExpert, names, "experts.", layer, pattern);
  } else if (HoldsAny(path, {"attn", "attention", "mixer", "mamba"})) {
    // "indexer" and projections of other names count with all of their layer's attention.
    if (HoldsAny(path, {"indexer"})) {
      for (const char* name : {"indexer.wq_b", "indexer.wk", "indexer.weights_proj"}) {
        pattern.weights.push_back({WeightClass::kAttention, name, layer});
      }
    } else if (names.empty() && !HoldsAny(leaf, {"attn", "attention", "mixer", "mamba"})) {
      pattern.is_understood = false;
    } else {
      Add(WeightClass::kAttention, names, "", layer, pattern);
    }
  } else if (HoldsAny(path, {"mlp", "feed_forward", "ffn"})) {
    Add(WeightClass::kDenseFeedForward, names, "", layer, pattern);
    // A whole MLP holds whatever experts it has.
    if (names.empty()) {
      Add(WeightClass::kExpert, {}, "", layer, pattern);
      Add(WeightClass::kSharedExpert, {}, "", layer, pattern);
    }
  } else if (!names.empty()) {
    Add(WeightClass::kAttention, names, "", layer, pattern);
    Add(WeightClass::kDenseFeedForward, names, "", layer, pattern);
    Add(WeightClass::kExpert, names, "experts.", layer, pattern);
    Add(WeightClass::kSharedExpert, names, "shared_experts.", layer, pattern);
  } else {
    pattern.is_understood = false;
  }
  return pattern;
}

}  // namespace sliceplan::transformer::hugging_face
