#include "server/transformer/hugging_face/llama_fallback.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sliceplan::transformer::hugging_face {
namespace {

constexpr const char* kSizes[] = {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                                  "vocab_size"};
// Keys that change no count by themselves, but come with parts that Llama does not have.
constexpr const char* kForeign[] = {"add_cross_attention",   "attn_logit_softcapping", "final_logit_softcapping",
                                    "moe_router_dtype",      "norm_topk_prob",         "query_pre_attn_scalar",
                                    "routed_scaling_factor", "router_aux_loss_coef",   "scoring_func",
                                    "time_step_max",         "time_step_min",          "use_mamba_kernels"};
constexpr const char* kLayerNormKeys[] = {"layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon"};
// Activations of gated MLPs. Others mostly come without a gate.
constexpr absl::string_view kGatedActivations[] = {"silu", "swish", "swiglu"};

}  // namespace

std::string WhyUnlikeLlama(const Config& config, absl::string_view class_name) {
  for (const char* key : kSizes) {
    if (!config.Has(key)) return absl::StrCat("it has no ", key);
  }
  if (!class_name.empty() && !absl::StrContains(class_name, "CausalLM") && !absl::StrContains(class_name, "LMHead") &&
      !absl::StrContains(class_name, "ForConditionalGeneration")) {
    return absl::StrCat("its class '", class_name.substr(0, 60), "' is no language model with an output head");
  }
  if (!config.Has("rms_norm_eps")) {
    for (const char* key : kLayerNormKeys) {
      if (config.Has(key)) return absl::StrCat(key, " speaks of layer norms");
    }
  }
  for (const char* key : kForeign) {
    const auto place = config.object().find(key);
    if (place != config.object().end() && !place->is_null() && *place != false) {
      return absl::StrCat(key, " belongs to parts that such a model does not have");
    }
  }
  for (const char* key : {"hidden_act", "hidden_activation", "activation_function"}) {
    const auto place = config.object().find(key);
    if (place == config.object().end() || !place->is_string()) continue;
    const std::string activation = place->get<std::string>();
    if (std::find(std::begin(kGatedActivations), std::end(kGatedActivations), activation) ==
        std::end(kGatedActivations)) {
      return absl::StrCat("its activation '", activation.substr(0, 40), "' does not say whether the MLP has a gate");
    }
  }
  return "";
}

std::string WhyUnlikeLlamaByKeys(const Config& config) {
  constexpr size_t kMostKeys = 8;
  std::vector<std::string> unknown = config.UnknownKeys();
  if (unknown.empty()) return "";
  const size_t count = unknown.size();
  unknown.resize(std::min(count, kMostKeys));
  for (std::string& key : unknown) key.resize(std::min<size_t>(key.size(), 60));
  return absl::StrCat("it has keys that are not understood: ", absl::StrJoin(unknown, ", "),
                      count > kMostKeys ? " and more" : "");
}

}  // namespace sliceplan::transformer::hugging_face
