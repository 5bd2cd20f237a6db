#include "client/calibrate/training_model.h"

#include <cmath>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/calibrate/training_notes.h"
#include "nlohmann/json.hpp"

namespace sliceplan::calibrate {
namespace {

// GPT-2's 50,257 tokens, padded to a multiple of 128 over 8 chips, as Megatron-LM pads them.
constexpr int32_t kVocabularyWhereUnstated = 51200;

int32_t Whole(const Row& row, absl::string_view column) { return static_cast<int32_t>(row.Count(column).value_or(0)); }

// A number of the notes, 0 without.
int32_t Noted(const Row& row, const std::string& pattern) {
  const std::vector<double> numbers = NotedNumbers(row, pattern);
  return numbers.empty() ? 0 : static_cast<int32_t>(numbers[0]);
}

// Blank means gated: models that leave it out are of recent families.
bool IsGated(const Row& row) { return row.Count("ffn_gated").value_or(1) != 0; }

int32_t DenseLeadingLayers(const Row& row) { return Noted(row, R"((\d+) dense (?:first )?layer)"); }

v1::Attention AttentionOf(const Row& row) {
  v1::Attention attention;
  v1::GroupedQueryAttention& heads = *attention.mutable_grouped_query();
  heads.set_query_head_count(Whole(row, "heads"));
  heads.set_kv_head_count(static_cast<int32_t>(row.Count("kv_heads").value_or(Whole(row, "heads"))));
  heads.set_head_dim(Whole(row, "head_dim"));
  return attention;
}

v1::FeedForward DenseOf(const Row& row, int32_t width) {
  v1::FeedForward feed_forward;
  feed_forward.mutable_dense()->set_ffn_dim(width);
  feed_forward.mutable_dense()->set_gated(IsGated(row));
  return feed_forward;
}

// Experts that a token visits, shared ones included.
int32_t VisitedExperts(const Row& row) {
  return Whole(row, "experts_per_token") + Noted(row, R"((\d+) shared expert)");
}

v1::FeedForward ExpertsOf(const Row& row) {
  v1::FeedForward feed_forward;
  v1::MixtureOfExperts& experts = *feed_forward.mutable_mixture_of_experts();
  experts.set_expert_count(Whole(row, "experts"));
  experts.set_experts_per_token(Whole(row, "experts_per_token"));
  experts.set_expert_ffn_dim(Whole(row, "ffn_dim"));
  experts.set_gated(IsGated(row));
  experts.set_shared_expert_count(Noted(row, R"((\d+) shared expert)"));
  return feed_forward;
}

// A pattern of layers without their number: sliding windows, and experts in every n-th.
std::vector<v1::Layer> PatternOf(const Row& row) {
  const std::vector<double> windows = NotedNumbers(row, R"((\d+) of (\d+) layers sliding window (\d+))");
  const int32_t expert_period = Whole(row, "experts") > 0 ? std::max(1, Noted(row, R"(MoE every (\d+))")) : 1;
  const int32_t window_period = windows.size() == 3 ? static_cast<int32_t>(windows[1]) : 1;
  std::vector<v1::Layer> pattern(static_cast<size_t>(std::max(expert_period, window_period)));
  for (size_t i = 0; i < pattern.size(); ++i) {
    v1::Layer& layer = pattern[i];
    *layer.mutable_attention() = AttentionOf(row);
    if (windows.size() == 3 && static_cast<int32_t>(i) % window_period < static_cast<int32_t>(windows[0])) {
      layer.mutable_attention()->mutable_grouped_query()->set_sliding_window(static_cast<int32_t>(windows[2]));
    }
    if (Whole(row, "experts") == 0) {
      *layer.mutable_feed_forward() = DenseOf(row, Whole(row, "ffn_dim"));
    } else if ((static_cast<int32_t>(i) + 1) % expert_period != 0) {
      // As wide as what a token visits elsewhere: Llama 4 and DeepSeek have it so.
      *layer.mutable_feed_forward() = DenseOf(row, Whole(row, "ffn_dim") * VisitedExperts(row));
    } else {
      *layer.mutable_feed_forward() = ExpertsOf(row);
    }
    // MaxText's own sizes ("MaxText-22B") have its default decoder layer.
    layer.set_parallel_block(row.Token("notes", "parallel_block").has_value() ||
                             absl::StartsWithIgnoreCase(row.Text("model"), "MaxText-"));
  }
  return pattern;
}

double MatrixCount(const v1::FeedForward& feed_forward, double hidden) {
  if (feed_forward.has_dense())
    return (feed_forward.dense().gated() ? 3.0 : 2.0) * hidden * feed_forward.dense().ffn_dim();
  const v1::MixtureOfExperts& experts = feed_forward.mixture_of_experts();
  return (experts.gated() ? 3.0 : 2.0) * hidden * experts.expert_ffn_dim() *
         (experts.expert_count() + experts.shared_expert_count());
}

// Whether the parameter count that the row states fits one table of tokens better than two. Without a count: models
// with a gate have two.
bool IsTied(const Row& row, const v1::Architecture& model) {
  const std::optional<double> stated = row.Number("n_params");
  if (!stated) return !IsGated(row);
  double parameters = 0;
  const double hidden = model.hidden_dim();
  for (const v1::LayerGroup& group : model.layer_groups()) {
    for (const v1::Layer& layer : group.layers()) {
      const v1::GroupedQueryAttention& heads = layer.attention().grouped_query();
      parameters +=
          group.repeat_count() * (MatrixCount(layer.feed_forward(), hidden) +
                                  2.0 * hidden * heads.head_dim() * (heads.query_head_count() + heads.kv_head_count()));
    }
  }
  const double table = hidden * model.vocab_size();
  return std::abs(parameters + table - *stated) < std::abs(parameters + 2 * table - *stated);
}

absl::StatusOr<RowModel> ModelOfColumns(const Row& row) {
  RowModel model;
  v1::Architecture& architecture = *model.spec.mutable_architecture();
  architecture.set_name(std::string(row.Text("model")));
  architecture.set_hidden_dim(Whole(row, "hidden_dim"));
  architecture.set_vocab_size(Whole(row, "vocab"));
  if (architecture.vocab_size() == 0) {
    architecture.set_vocab_size(kVocabularyWhereUnstated);
    model.remark = "vocabulary not stated: that of GPT-2, padded";
  }
  model.has_experts = Whole(row, "experts") > 0;
  int32_t layers = Whole(row, "layers");
  if (const int32_t leading = model.has_experts ? DenseLeadingLayers(row) : 0; leading > 0) {
    v1::LayerGroup& group = *architecture.add_layer_groups();
    group.set_repeat_count(leading);
    *group.add_layers()->mutable_attention() = AttentionOf(row);
    *group.mutable_layers(0)->mutable_feed_forward() = DenseOf(row, Whole(row, "ffn_dim") * VisitedExperts(row));
    layers -= leading;
  }
  const std::vector<v1::Layer> pattern = PatternOf(row);
  const auto period = static_cast<int32_t>(pattern.size());
  const auto add = [&](int32_t repeats, int32_t count) {
    if (repeats == 0 || count == 0) return;
    v1::LayerGroup& group = *architecture.add_layer_groups();
    group.set_repeat_count(repeats);
    for (int32_t i = 0; i < count; ++i) *group.add_layers() = pattern[static_cast<size_t>(i)];
  };
  add(layers / period, period);
  add(1, layers % period);
  architecture.set_tied_embeddings(IsTied(row, architecture));
  return model;
}

// The preset of the row's name, or of its name without what follows " proxy" or its last hyphen.
const catalog::v1::ModelRecord* PresetByName(absl::string_view name, const catalog::Catalog& catalog) {
  name = absl::StripAsciiWhitespace(name.substr(0, name.find(" proxy")));
  if (name.empty()) return nullptr;
  if (const auto found = catalog.FindModel(name); found.model != nullptr) return found.model;
  const size_t hyphen = name.rfind('-');
  return hyphen == absl::string_view::npos ? nullptr : catalog.FindModel(name.substr(0, hyphen)).model;
}

// Columns that the row leaves blank agree with everything.
bool Agrees(const Row& row, const nlohmann::json& config) {
  const std::pair<const char*, const char*> pairs[] = {
      {"hidden_dim", "hidden_size"}, {"heads", "num_attention_heads"}, {"vocab", "vocab_size"}};
  for (const auto& [column, key] : pairs) {
    const std::optional<int64_t> count = row.Count(column);
    if (count && config.value(key, int64_t{0}) != *count) return false;
  }
  return true;
}

nlohmann::json ConfigOf(const catalog::v1::ModelRecord& record) {
  return nlohmann::json::parse(record.hugging_face_config(), nullptr, /*allow_exceptions=*/false);
}

absl::StatusOr<RowModel> ModelOfPreset(const Row& row, const catalog::Catalog& catalog) {
  const catalog::v1::ModelRecord* preset = PresetByName(row.Text("model"), catalog);
  if (preset != nullptr && !Agrees(row, ConfigOf(*preset))) preset = nullptr;
  if (preset == nullptr && row.Count("hidden_dim") && row.Count("heads")) {
    for (const catalog::v1::ModelRecord& record : catalog.models()) {
      if (preset == nullptr && Agrees(row, ConfigOf(record))) preset = &record;
    }
  }
  if (preset == nullptr) return absl::NotFoundError("its dimensions are not in the row, nor its name in the catalog");
  nlohmann::json config = ConfigOf(*preset);
  if (const auto layers = row.Count("layers"); layers && config.value("num_hidden_layers", int64_t{0}) != *layers) {
    config["num_hidden_layers"] = *layers;
  }
  if (const int32_t leading = DenseLeadingLayers(row); leading > 0) config["first_k_dense_replace"] = leading;
  // Throughput runs train the next token alone.
  if (config.contains("num_nextn_predict_layers")) config["num_nextn_predict_layers"] = 0;
  RowModel model;
  model.spec.set_hugging_face_config(config.dump());
  model.has_experts = Whole(row, "experts") > 0;
  model.remark = absl::StrCat("dimensions of the preset ", preset->preset());
  return model;
}

}  // namespace

const catalog::v1::ModelRecord* PresetOfName(const Row& row, const catalog::Catalog& catalog) {
  const catalog::v1::ModelRecord* const preset = catalog.FindModel(row.Text("model")).model;
  if (preset == nullptr) return nullptr;
  const nlohmann::json config = ConfigOf(*preset);
  const std::optional<int64_t> layers = row.Count("layers");
  return Agrees(row, config) && (!layers || config.value("num_hidden_layers", int64_t{0}) == *layers) ? preset
                                                                                                      : nullptr;
}

absl::StatusOr<RowModel> ModelOfRow(const Row& row, const catalog::Catalog& catalog) {
  for (absl::string_view column : {"layers", "hidden_dim", "ffn_dim", "heads", "head_dim"}) {
    if (row.Count(column).value_or(0) <= 0) return ModelOfPreset(row, catalog);
  }
  return ModelOfColumns(row);
}

}  // namespace sliceplan::calibrate
