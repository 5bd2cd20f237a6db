#include "client/calibrate/training_notes.h"

#include <regex>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace sliceplan::calibrate {

std::vector<double> NotedNumbers(const Row& row, const std::string& pattern) {
  const std::string notes(row.Text("notes"));
  std::smatch match;
  std::vector<double> numbers;
  if (!std::regex_search(notes, match, std::regex(pattern, std::regex::ECMAScript | std::regex::icase))) return numbers;
  for (size_t i = 1; i < match.size(); ++i) {
    double number = 0;
    if (absl::SimpleAtod(match[i].str(), &number)) numbers.push_back(number);
  }
  return numbers;
}

bool Mentions(const Row& row, absl::string_view column, absl::string_view text) {
  return absl::StrContains(absl::AsciiStrToLower(row.Text(column)), absl::AsciiStrToLower(text));
}

Stack StackOf(const Row& row) {
  if (absl::StartsWithIgnoreCase(row.Text("accelerator"), "tpu")) return Stack::kTpu;
  const auto framework = [&row](absl::string_view text) { return Mentions(row, "framework", text); };
  if (framework("MaxText") || framework("Pax")) return Stack::kJaxGpu;
  if (framework("AutoModel")) return Stack::kOtherTorch;  // NeMo's, on FSDP of PyTorch
  if (framework("NeMo") || framework("Megatron-Bridge")) return Stack::kNeMo;
  // Others build on parts of it: "Megatron-DeepSpeed" is no Megatron-LM.
  if (absl::StartsWithIgnoreCase(row.Text("framework"), "Megatron-LM")) return Stack::kMegatronLm;
  if (framework("TorchTitan")) return Stack::kTorchTitan;
  return Stack::kOtherTorch;
}

bool IsVendorStack(Stack stack) {
  return stack == Stack::kJaxGpu || stack == Stack::kNeMo || stack == Stack::kMegatronLm;
}

std::string ProfileOf(const Row& row) {
  if (const auto named = row.Token("notes", "profile")) return std::string(*named);
  const Stack stack = StackOf(row);
  if (stack == Stack::kTpu) return "";
  return IsVendorStack(stack) ? "megatron-gpu" : "fsdp-torch-gpu";
}

}  // namespace sliceplan::calibrate
