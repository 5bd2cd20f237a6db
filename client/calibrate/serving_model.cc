#include "client/calibrate/serving_model.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/calibrate/training_model.h"

namespace sliceplan::calibrate {
namespace {

// Models whose layers differ in what no column says: latent or windowed attention, hybrid or parallel blocks.
constexpr std::pair<absl::string_view, absl::string_view> kPresets[] = {
    {"palm-540b", "palm-540b"},
    {"palm-8b", "palm-8b"},
    {"deepseek-v3", "deepseek-v3"},
    {"deepseek-r1-distill", ""},
    {"deepseek-r1", "deepseek-r1"},
    {"deepseek-v2-lite", "deepseek-v2-lite"},
    {"deepseek-v2", "deepseek-v2"},
    {"gpt-oss-120b", "gpt-oss-120b"},
    {"gpt-oss-20b", "gpt-oss-20b"},
    {"gpt-j", "gpt-j-6b"},
    {"falcon-180b", "falcon-180b"},
    {"qwen3.5-397b-a17b", "qwen3.5-397b-a17b"},
    {"qwen3.5-35b-a3b", "qwen3.5-35b-a3b"},
    {"qwen3-next-80b-a3b", "qwen3-next-80b-a3b"},
    {"gemma-2-27b", "gemma-2-27b"},
    {"gemma-3-27b", "gemma-3-27b"},
};

absl::string_view PresetOf(absl::string_view model) {
  const std::string name = absl::AsciiStrToLower(model);
  for (const auto& [prefix, preset] : kPresets) {
    if (absl::StartsWith(name, prefix)) return preset;
  }
  return "";
}

absl::StatusOr<v1::FeedForward> FeedForwardOf(const Row& row, int32_t ffn_dim) {
  const bool gated = row.Count("ffn_gated").value_or(0) != 0;
  v1::FeedForward feed_forward;
  const int64_t experts = row.Count("experts").value_or(0);
  if (experts == 0) {
    feed_forward.mutable_dense()->set_ffn_dim(ffn_dim);
    feed_forward.mutable_dense()->set_gated(gated);
    return feed_forward;
  }
  const std::optional<int64_t> visited = row.Count("experts_per_token");
  if (!visited) return absl::InvalidArgumentError("experts_per_token is blank");
  v1::MixtureOfExperts& mixture = *feed_forward.mutable_mixture_of_experts();
  mixture.set_expert_count(static_cast<int32_t>(experts));
  mixture.set_experts_per_token(static_cast<int32_t>(*visited));
  mixture.set_expert_ffn_dim(ffn_dim);
  mixture.set_gated(gated);
  if (absl::StrContains(row.Text("notes"), "shared expert")) mixture.set_shared_expert_count(1);
  return feed_forward;
}

}  // namespace

absl::StatusOr<v1::ModelSpec> ModelOfColumns(const Row& row) {
  v1::ModelSpec model;
  if (const absl::string_view preset = PresetOf(row.Text("model")); !preset.empty()) {
    model.set_preset(std::string(preset));
    return model;
  }
  const absl::string_view kind = row.Text("attention_kind");
  if (kind != "mha" && kind != "gqa" && kind != "mqa" && !kind.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the columns do not describe attention of the kind ", kind));
  }
  for (const absl::string_view special : {"hybrid", "sliding", "linear attention"}) {
    if (absl::StrContains(row.Text("notes"), special))
      return absl::InvalidArgumentError(absl::StrCat("the columns do not describe layers that differ: ", special));
  }
  v1::Architecture& architecture = *model.mutable_architecture();
  v1::LayerGroup& group = *architecture.add_layer_groups();
  v1::Layer& layer = *group.add_layers();
  v1::GroupedQueryAttention& attention = *layer.mutable_attention()->mutable_grouped_query();
  int32_t ffn_dim = 0;
  const auto required = [&row](absl::string_view column, auto set) {
    const std::optional<int64_t> count = row.Count(column);
    if (count) set(static_cast<int32_t>(*count));
    return count.has_value();
  };
  if (!required("layers", [&](int32_t n) { group.set_repeat_count(n); }) ||
      !required("hidden_dim", [&](int32_t n) { architecture.set_hidden_dim(n); }) ||
      !required("ffn_dim", [&](int32_t n) { ffn_dim = n; }) ||
      !required("heads", [&](int32_t n) { attention.set_query_head_count(n); })) {
    return absl::InvalidArgumentError("the architecture is not stated");
  }
  attention.set_kv_head_count(static_cast<int32_t>(row.Count("kv_heads").value_or(attention.query_head_count())));
  attention.set_head_dim(
      static_cast<int32_t>(row.Count("head_dim").value_or(architecture.hidden_dim() / attention.query_head_count())));
  if (const std::optional<int64_t> vocab = row.Count("vocab")) {
    architecture.set_vocab_size(static_cast<int32_t>(*vocab));
  } else {
    // Layers alone.
    architecture.set_vocab_size(1);
    architecture.set_head_output_count(0);
  }
  absl::StatusOr<v1::FeedForward> feed_forward = FeedForwardOf(row, ffn_dim);
  if (!feed_forward.ok()) return feed_forward.status();
  *layer.mutable_feed_forward() = *std::move(feed_forward);
  architecture.set_name(std::string(row.Text("model")));
  return model;
}

absl::StatusOr<v1::ModelSpec> ModelOfServingRow(const Row& row, const catalog::Catalog& catalog) {
  absl::StatusOr<v1::ModelSpec> model = ModelOfColumns(row);
  if (model.ok()) return model;
  if (const catalog::v1::ModelRecord* const preset = PresetOfName(row, catalog)) {
    model = v1::ModelSpec();
    model->set_preset(preset->preset());
    return model;
  }
  const catalog::ModelLookup named = catalog.FindModel(row.Text("model"));
  return absl::InvalidArgumentError(
      absl::StrCat(model.status().message(), named.violation ? "; " : "; the preset of its name has other dimensions",
                   named.violation ? named.violation->description : ""));
}

v1::ModelSpec ModelOfPath(absl::string_view model_path) {
  std::string name = absl::AsciiStrToLower(model_path.substr(model_path.rfind('/') + 1));
  for (const absl::string_view suffix : {"-nvfp4", "-fp4", "-fp8"}) name = std::string(absl::StripSuffix(name, suffix));
  // The same architecture under a later name.
  if (name == "deepseek-v3.1") name = "deepseek-v3";
  v1::ModelSpec model;
  model.set_preset(name);
  return model;
}

bool IsPublishedIn(absl::string_view model, v1::DataType weights) {
  const std::string name = absl::AsciiStrToLower(model);
  if (absl::StrContains(name, "gpt-oss")) return weights == v1::DATA_TYPE_FP4;
  const bool deepseek = absl::StrContains(name, "deepseek-v3") || absl::StrContains(name, "deepseek-r1");
  return deepseek && !absl::StrContains(name, "distill") && weights == v1::DATA_TYPE_FP8;
}

}  // namespace sliceplan::calibrate
