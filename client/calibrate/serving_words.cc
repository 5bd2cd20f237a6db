#include "client/calibrate/serving_words.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace sliceplan::calibrate {

namespace {

constexpr std::pair<absl::string_view, v1::DataType> kDataTypes[] = {
    {"bf16", v1::DATA_TYPE_BF16}, {"bfloat16", v1::DATA_TYPE_BF16}, {"fp16", v1::DATA_TYPE_FP16},
    {"fp32", v1::DATA_TYPE_FP32}, {"fp8", v1::DATA_TYPE_FP8},       {"fp8_block", v1::DATA_TYPE_FP8},
    {"fp4", v1::DATA_TYPE_FP4},   {"nvfp4", v1::DATA_TYPE_FP4},     {"mxfp4", v1::DATA_TYPE_FP4},
    {"int8", v1::DATA_TYPE_INT8}, {"int4", v1::DATA_TYPE_INT4},
};

}  // namespace

v1::DataType DataTypeNamed(absl::string_view word) {
  for (const auto& [name, type] : kDataTypes) {
    if (absl::EqualsIgnoreCase(word, name)) return type;
  }
  return v1::DATA_TYPE_UNSPECIFIED;
}

std::vector<absl::string_view> DataTypeWords() {
  std::vector<absl::string_view> words;
  for (const auto& [name, type] : kDataTypes) words.push_back(name);
  return words;
}

std::string ProfileOf(absl::string_view framework, absl::string_view accelerator) {
  const std::string engine = absl::AsciiStrToLower(framework);
  if (absl::StartsWith(accelerator, "tpu")) return "jax-serving-tpu";
  constexpr std::pair<absl::string_view, absl::string_view> kProfiles[] = {
      {"tensorrt-llm", "trtllm-gpu"},
      {"trtllm", "trtllm-gpu"},
      {"vllm", "vllm-gpu"},
      {"sglang", "sglang-gpu"},
      {"fastertransformer", "fastertransformer-gpu"},
      {"pytorch", "torch-compile-gpu"},
      {"gpt-fast", "torch-compile-gpu"},
  };
  for (const auto& [word, profile] : kProfiles) {
    if (absl::StrContains(engine, word)) return std::string(profile);
  }
  return "";
}

std::optional<double> NumberAfter(absl::string_view remark, absl::string_view words) {
  const size_t at = remark.find(words);
  if (at == absl::string_view::npos) return std::nullopt;
  const absl::string_view rest = absl::StripLeadingAsciiWhitespace(remark.substr(at + words.size()));
  const absl::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789."));
  double number = 0;
  if (!absl::SimpleAtod(absl::StripSuffix(digits, "."), &number)) return std::nullopt;
  return number;
}

v1::TokenDistribution DrawnLengths(double nominal_tokens, double least_ratio) {
  v1::TokenDistribution lengths;
  const double mean = (1 + least_ratio) / 2;
  lengths.mutable_moments()->set_mean_tokens(mean * nominal_tokens);
  // Standard deviation of an even distribution: its width / sqrt(12).
  lengths.mutable_moments()->set_coefficient_of_variation((1 - least_ratio) / std::sqrt(12.0) / mean);
  return lengths;
}

std::string ChipOf(absl::string_view name, const catalog::Catalog& catalog) {
  const catalog::AcceleratorLookup found = catalog.FindAccelerator(name);
  return found.accelerator != nullptr ? found.accelerator->record.id() : std::string(name);
}

std::string JobOf(v1::EstimateServingRequest request) {
  int64_t chips = request.slice().chip_count();
  std::string accelerator = request.slice().accelerator();
  for (const v1::Pool& pool : request.pools()) {
    chips += int64_t{pool.slice().chip_count()} * std::max(1, pool.replica_count());
    accelerator = pool.slice().accelerator();
  }
  request.clear_slice();
  request.clear_parallelism();
  request.clear_pools();
  return absl::StrCat(chips, " ", accelerator, "/", request.SerializeAsString());
}

std::string SourceOf(absl::string_view id) { return std::string(id.substr(0, id.rfind('-'))); }

void AddUnmapped(const Row& row, absl::string_view source, std::string reason, CaseTable& table) {
  table.unmapped.push_back({std::string(row.Text("id")), std::string(source), std::move(reason)});
}

}  // namespace sliceplan::calibrate
