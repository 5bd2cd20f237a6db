#include "client/cli/choices.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "client/cli/text.h"

namespace sliceplan::cli {
namespace {

using google::protobuf::EnumDescriptor;

// Other names of values. The first of a value is the one that is shown.
struct Synonym {
  absl::string_view typed;
  absl::string_view value;
};
constexpr Synonym kSynonyms[] = {
    {"1f1b", "PIPELINE_SCHEDULE_ONE_F_ONE_B"},
    {"interleaved", "PIPELINE_SCHEDULE_INTERLEAVED_1F1B"},
    {"permute", "COLLECTIVE_KIND_COLLECTIVE_PERMUTE"},
    {"adam", "OPTIMIZER_ADAMW"},
    {"flash-attention", "ATTENTION_KERNEL_FLASH"},
    {"bfloat16", "DATA_TYPE_BF16"},
    {"float16", "DATA_TYPE_FP16"},
    {"float32", "DATA_TYPE_FP32"},
    {"float8", "DATA_TYPE_FP8"},
};
// Synonyms up to here replace the name of the contract when a value is shown.
constexpr size_t kShownSynonyms = 3;

// "REMAT_POLICY_", from the value 0.
absl::string_view Prefix(const EnumDescriptor& type) {
  return absl::StripSuffix(absl::string_view(type.value(0)->name()), "UNSPECIFIED");
}

std::string Normal(absl::string_view text) { return absl::StrReplaceAll(absl::AsciiStrToLower(text), {{"_", "-"}}); }

std::string ShortName(const EnumDescriptor& type, absl::string_view full_name) {
  for (size_t i = 0; i < kShownSynonyms; ++i) {
    if (kSynonyms[i].value == full_name) return std::string(kSynonyms[i].typed);
  }
  return Normal(absl::StripPrefix(full_name, Prefix(type)));
}

}  // namespace

std::string ChoiceName(const EnumDescriptor& type, int number) {
  const auto* const value = type.FindValueByNumber(number);
  if (value == nullptr) return absl::StrCat("number ", number);
  return number == 0 ? "unset" : ShortName(type, value->name());
}

absl::StatusOr<int> ParseChoice(const EnumDescriptor& type, absl::string_view text) {
  const std::string typed = Normal(text);
  for (int i = 1; i < type.value_count(); ++i) {
    const absl::string_view full_name = type.value(i)->name();
    bool same = typed == Normal(full_name) || typed == Normal(absl::StripPrefix(full_name, Prefix(type)));
    for (const Synonym& synonym : kSynonyms) same = same || (synonym.value == full_name && synonym.typed == typed);
    if (same) return type.value(i)->number();
  }
  std::vector<std::string> names;
  for (int i = 1; i < type.value_count(); ++i) names.push_back(ShortName(type, type.value(i)->name()));
  const std::vector<std::string> near = NearNames(typed, names);
  const std::string hint = near.empty() ? "" : absl::StrCat("; did you mean ", absl::StrJoin(near, " or "), "?");
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is none of ", AllChoices(type), hint));
}

std::string AllChoices(const EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 1; i < type.value_count(); ++i) names.push_back(ShortName(type, type.value(i)->name()));
  return absl::StrJoin(names, ", ");
}

}  // namespace sliceplan::cli
