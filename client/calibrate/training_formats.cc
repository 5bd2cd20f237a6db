#include "client/calibrate/training_formats.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/calibrate/training_notes.h"

namespace sliceplan::calibrate {
namespace {

struct NamedPolicy {
  absl::string_view name;
  v1::RematPolicy policy;
};

// As MaxText's remat_policy names them.
constexpr NamedPolicy kPolicies[] = {
    {"full", v1::REMAT_POLICY_FULL},
    {"minimal", v1::REMAT_POLICY_MINIMAL},
    {"minimal_with_context", v1::REMAT_POLICY_MINIMAL_FLASH},
    {"minimal_flash", v1::REMAT_POLICY_MINIMAL_FLASH},
    {"save_qkv_proj", v1::REMAT_POLICY_SAVE_QKV_PROJ},
    {"save_dot_except_mlp", v1::REMAT_POLICY_SAVE_DOT_EXCEPT_MLP},
    {"save_dot_except_mlpwi", v1::REMAT_POLICY_SAVE_DOT_EXCEPT_MLPWI},
    {"save_dot_with_context_except_mlp", v1::REMAT_POLICY_SAVE_DOT_WITH_CONTEXT_EXCEPT_MLP},
    {"save_dot_with_no_batch_dim", v1::REMAT_POLICY_SAVE_MATMUL_OUTPUTS},
};

// Words of policies beside those above.
constexpr absl::string_view kOtherPolicies[] = {"none", "custom", "qkv_proj_offloaded", "selective", "partial"};

// Words of a custom policy beside the tensors.
constexpr absl::string_view kCustomWords[] = {"q/k/v_proj", "q/k/v",          "k/v_proj", "offloaded", "offload",
                                              "recomputed", "rematerialized", "saved",    "on",        "to",
                                              "device",     "host",           "and"};

struct NamedTensor {
  absl::string_view name;
  v1::LayerTensor tensor;
};

constexpr NamedTensor kTensors[] = {
    {"decoder_layer_input", v1::LAYER_TENSOR_LAYER_INPUT},
    {"query_proj", v1::LAYER_TENSOR_QUERY_PROJ},
    {"key_proj", v1::LAYER_TENSOR_KEY_PROJ},
    {"value_proj", v1::LAYER_TENSOR_VALUE_PROJ},
    {"context", v1::LAYER_TENSOR_CONTEXT},
    {"out_proj", v1::LAYER_TENSOR_OUT_PROJ},
    {"mlpwi", v1::LAYER_TENSOR_MLPWI},
    {"mlpwo", v1::LAYER_TENSOR_MLPWO},
};

struct NamedFormat {
  absl::string_view name;
  v1::DataType format;
};

// What a cell of the precision column begins with.
constexpr absl::string_view kFormatWords[] = {"bf16",     "fp16", "fp32", "fp8",  "mxfp8",
                                              "fp8_full", "int8", "fp4",  "nvfp4"};

constexpr struct {
  absl::string_view word;
  v1::Optimizer optimizer;  // unspecified: the service's own, AdamW; LAMB keeps and reads the same state
} kOptimizers[] = {
    {"adam", v1::OPTIMIZER_UNSPECIFIED},
    {"adamw", v1::OPTIMIZER_UNSPECIFIED},
    {"fusedadam", v1::OPTIMIZER_UNSPECIFIED},
    {"adam_pax", v1::OPTIMIZER_UNSPECIFIED},
    {"lamb", v1::OPTIMIZER_UNSPECIFIED},
    {"distributed", v1::OPTIMIZER_UNSPECIFIED},
    {"adamw_8bit", v1::OPTIMIZER_ADAMW_8BIT},
    {"adafactor", v1::OPTIMIZER_ADAFACTOR},
    {"muon", v1::OPTIMIZER_MUON},
    {"sgd", v1::OPTIMIZER_SGD},
};

// Operands of the matmuls: the narrowest format that is named. FP16 takes the time of BF16.
constexpr NamedFormat kFormats[] = {{"fp4", v1::DATA_TYPE_FP4},   {"fp8", v1::DATA_TYPE_FP8},
                                    {"int8", v1::DATA_TYPE_INT8}, {"bf16", v1::DATA_TYPE_BF16},
                                    {"fp16", v1::DATA_TYPE_BF16}, {"fp32", v1::DATA_TYPE_FP32}};

constexpr v1::LayerTensor kQueryKeyValue[] = {v1::LAYER_TENSOR_QUERY_PROJ, v1::LAYER_TENSOR_KEY_PROJ,
                                              v1::LAYER_TENSOR_VALUE_PROJ};

std::vector<v1::LayerTensor> TensorsIn(absl::string_view clause) {
  std::vector<v1::LayerTensor> tensors;
  if (absl::StrContains(clause, "q/k/v")) {
    tensors.assign(std::begin(kQueryKeyValue), std::end(kQueryKeyValue));
  } else if (absl::StrContains(clause, "k/v_proj")) {
    tensors = {v1::LAYER_TENSOR_KEY_PROJ, v1::LAYER_TENSOR_VALUE_PROJ};
  }
  for (const auto& [name, tensor] : kTensors) {
    if (absl::StrContains(clause, name)) tensors.push_back(tensor);
  }
  return tensors;
}

// "a, b+c offloaded to host, d recomputed": a verb holds for the tensors before it.
void SetCustom(absl::string_view text, v1::CustomRemat& custom) {
  std::vector<v1::LayerTensor> open;
  bool input_named = false;
  for (absl::string_view clause : absl::StrSplit(text, ',')) {
    for (v1::LayerTensor tensor : TensorsIn(clause)) open.push_back(tensor);
    const bool offloaded = absl::StrContains(clause, "offload");
    const bool saved = absl::StrContains(clause, "device") || absl::StrContains(clause, "saved");
    if (!offloaded && !saved && !absl::StrContains(clause, "recompute") && !absl::StrContains(clause, "remat"))
      continue;
    for (v1::LayerTensor tensor : open) {
      input_named |= tensor == v1::LAYER_TENSOR_LAYER_INPUT;
      if (offloaded) {
        custom.add_offloaded(tensor);
      } else if (saved) {
        custom.add_saved(tensor);
      } else {
        custom.add_recomputed(tensor);
      }
    }
    open.clear();
  }
  // A scan over layers keeps its carry.
  if (!input_named) custom.add_saved(v1::LAYER_TENSOR_LAYER_INPUT);
}

// TorchTitan's selective checkpointing of operations saves every second matmul and the attention kernel's output.
// Nearest to it among whole tensors: all but the up and gate projections.
void SetSelectedOperations(v1::CustomRemat& custom) {
  for (v1::LayerTensor tensor : kQueryKeyValue) custom.add_saved(tensor);
  for (v1::LayerTensor tensor : {v1::LAYER_TENSOR_LAYER_INPUT, v1::LAYER_TENSOR_CONTEXT, v1::LAYER_TENSOR_OUT_PROJ}) {
    custom.add_saved(tensor);
  }
}

// What a stack does when nothing is said.
std::string SetDefaultRemat(Stack stack, v1::TrainingWorkload& workload) {
  if (stack == Stack::kTpu) {
    workload.set_remat_policy(v1::REMAT_POLICY_FULL);
    return "recompute not stated: full, MaxText's default";
  }
  if (stack == Stack::kTorchTitan) {
    workload.set_remat_policy(v1::REMAT_POLICY_CUSTOM);
    SetSelectedOperations(*workload.mutable_custom_remat());
    return "recompute not stated: selective by operation, TorchTitan's default";
  }
  return "recompute not stated: the cheapest that fits";
}

}  // namespace

std::vector<absl::string_view> RecomputeWords() {
  std::vector<absl::string_view> words(std::begin(kOtherPolicies), std::end(kOtherPolicies));
  for (const auto& [name, policy] : kPolicies) words.push_back(name);
  for (const auto& [name, tensor] : kTensors) words.push_back(name);
  words.insert(words.end(), std::begin(kCustomWords), std::end(kCustomWords));
  return words;
}

std::string UnknownRecomputeWord(absl::string_view cell) {
  const std::string text = absl::AsciiStrToLower(cell);
  const std::string name = text.substr(0, text.find_first_of(" :("));
  const bool is_policy = absl::c_linear_search(kOtherPolicies, name) ||
                         absl::c_any_of(kPolicies, [&name](const auto& known) { return known.name == name; });
  if (!is_policy) return name;
  if (!absl::StartsWith(text, "custom:")) return "";
  const std::vector<absl::string_view> known = RecomputeWords();
  for (absl::string_view word :
       absl::StrSplit(absl::string_view(text).substr(text.find(':') + 1), absl::ByAnyChar(" ,+"), absl::SkipEmpty())) {
    if (!absl::c_linear_search(known, word)) return std::string(word);
  }
  return "";
}

std::vector<absl::string_view> TrainingFormatWords() { return {std::begin(kFormatWords), std::end(kFormatWords)}; }

std::vector<absl::string_view> OptimizerWords() {
  std::vector<absl::string_view> words;
  for (const auto& [word, optimizer] : kOptimizers) words.push_back(word);
  return words;
}

absl::StatusOr<std::string> SetRemat(const Row& row, v1::TrainingWorkload& workload) {
  const std::string text = absl::AsciiStrToLower(row.Text("remat"));
  const Stack stack = StackOf(row);
  const std::string name = text.substr(0, text.find_first_of(" :("));
  if (text.empty() || text == "custom (offload)") return SetDefaultRemat(stack, workload);
  if (name == "none") {
    workload.set_remat_policy(v1::REMAT_POLICY_NONE);
    return "";
  }
  for (const auto& [known, policy] : kPolicies) {
    if (name == known) workload.set_remat_policy(policy);
  }
  if (workload.remat_policy() != v1::REMAT_POLICY_UNSPECIFIED) return "";
  workload.set_remat_policy(v1::REMAT_POLICY_CUSTOM);
  v1::CustomRemat& custom = *workload.mutable_custom_remat();
  if (name == "custom" && !TensorsIn(text).empty()) {
    SetCustom(text, custom);
    return "";
  }
  if (name == "qkv_proj_offloaded") {
    for (v1::LayerTensor tensor : kQueryKeyValue) custom.add_offloaded(tensor);
    custom.add_saved(v1::LAYER_TENSOR_LAYER_INPUT);
    return "";
  }
  if (name == "selective" && !absl::StrContains(text, "every")) {
    // Megatron-Core's list of modules: those other than attention are a percent of a layer's work.
    if (absl::StrContains(text, "(") && !absl::StrContains(text, "attention")) {
      workload.clear_custom_remat();
      workload.set_remat_policy(v1::REMAT_POLICY_NONE);
      return absl::StrCat("recompute of single modules counts as none: ", row.Text("remat"));
    }
    if (stack == Stack::kTorchTitan) {
      SetSelectedOperations(custom);
      return "selective recompute by operation: the MLP's up and gate projections count as recomputed";
    }
    // Megatron: the attention kernel runs again.
    workload.clear_custom_remat();
    workload.set_remat_policy(v1::REMAT_POLICY_MINIMAL);
    return "";
  }
  return absl::InvalidArgumentError(absl::StrCat("no policy recomputes as \"", row.Text("remat"), "\""));
}

absl::Status SetFormats(const Row& row, v1::TrainingWorkload& workload) {
  const Stack stack = StackOf(row);
  v1::TrainingPrecision& precision = *workload.mutable_precision();
  const auto says = [&row](absl::string_view text) { return Mentions(row, "precision", text); };
  const NamedFormat* const named = absl::c_find_if(kFormats, [&says](const NamedFormat& f) { return says(f.name); });
  if (named != std::end(kFormats)) {
    precision.set_compute(named->format);
  } else if (!row.Text("precision").empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no number format is called \"", row.Text("precision"), "\""));
  }
  if (says("bf16 weights")) {
    precision.set_parameters(v1::DATA_TYPE_BF16);
    precision.set_master_weights(v1::DATA_TYPE_BF16);
    precision.set_optimizer_state(v1::DATA_TYPE_BF16);  // MaxText's Adam keeps the format of the weights
  } else if (says("fp32 weights") || says("fp32 master") || says("PURE") || stack == Stack::kTorchTitan) {
    precision.set_parameters(v1::DATA_TYPE_FP32);
  }
  // FSDP reduces in what its policy says: fp32 in llm-foundry's DEFAULT and in TorchTitan, bf16 in PURE.
  if (says("DEFAULT") || stack == Stack::kTorchTitan) precision.set_gradient_reduction(v1::DATA_TYPE_FP32);
  if (says("PURE")) precision.set_gradient_reduction(v1::DATA_TYPE_BF16);
  if (Mentions(row, "notes", "fp32 grad")) precision.set_gradients(v1::DATA_TYPE_FP32);

  for (const auto& [word, optimizer] : kOptimizers) {
    if (optimizer != v1::OPTIMIZER_UNSPECIFIED && Mentions(row, "optimizer", word)) workload.set_optimizer(optimizer);
  }
  workload.set_optimizer_offload(Mentions(row, "optimizer", "offload") || Mentions(row, "framework", "CPU offload"));
  return absl::OkStatus();
}

}  // namespace sliceplan::calibrate
