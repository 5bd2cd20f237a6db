#include "server/planner/render/jax_specs.h"

#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/planner/plan_laws.h"

namespace sliceplan::planner {
namespace {

using transformer::Component;
using transformer::SavedTensor;
using transformer::TensorSplit;
using transformer::WeightMatmul;

using Axes = std::vector<LogicalAxis>;

Axes Present(const DeviceDegrees& degrees, std::initializer_list<LogicalAxis> axes) {
  Axes present;
  for (const LogicalAxis axis : axes) {
    if (degrees.Degree(axis) > 1) present.push_back(axis);
  }
  return present;
}

// What one dimension of a PartitionSpec holds: None, "fsdp" or ("fsdp", "context").
std::string Dimension(const Axes& axes) {
  const std::string names = absl::StrJoin(
      axes, ", ", [](std::string* out, LogicalAxis axis) { absl::StrAppend(out, "\"", LogicalAxisName(axis), "\""); });
  return axes.empty() ? "None" : axes.size() == 1 ? names : absl::StrCat("(", names, ")");
}

// A name for a weight that has none.
absl::string_view ClassName(const WeightMatmul& matmul) {
  if (*matmul.name != '\0') return matmul.name;
  switch (matmul.output) {
    case SavedTensor::kQuery: return "q_proj";
    case SavedTensor::kKeyValue: return "kv_proj";
    case SavedTensor::kOutProjection: return "o_proj";
    case SavedTensor::kMlpUpGate: return matmul.expert_count > 0 ? "experts.up_proj" : "up_proj";
    case SavedTensor::kMlpDown: return matmul.expert_count > 0 ? "experts.down_proj" : "down_proj";
    default: return matmul.component == Component::kRouter ? "router" : "proj";
  }
}

class WeightTable {
 public:
  WeightTable(const transformer::ModelOperations& model, const DeviceDegrees& degrees)
      : model_(model), tensor_(degrees.Degree(LogicalAxis::kTensor)), degrees_(degrees) {}

  void Add(const WeightMatmul& matmul) {
    const std::string tensor = Dimension(Present(degrees_, {LogicalAxis::kTensor}));
    const bool expert = matmul.expert_count > 0;
    const std::string width = expert ? "e" : "d";
    std::string spec = expert ? Dimension(Present(degrees_, {LogicalAxis::kExpert})) + ", " : "";
    switch (matmul.split) {
      case TensorSplit::kColumn: absl::StrAppend(&spec, width, ", ", tensor); break;
      case TensorSplit::kRow: absl::StrAppend(&spec, tensor, ", ", width); break;
      case TensorSplit::kNone: {
        const bool writes_width = matmul.n == model_.hidden_dim && matmul.k != model_.hidden_dim;
        absl::StrAppend(&spec, writes_width ? absl::StrCat("None, ", width) : absl::StrCat(width, ", None"));
        break;
      }
    }
    AddLine(std::string(ClassName(matmul)), spec, Note(matmul));
  }

  // A name that recurs with another split (layers of other kinds) gets a number.
  void AddLine(std::string name, const std::string& spec, const std::string& note) {
    for (int number = 2;; ++number) {
      const auto [found, added] = specs_.try_emplace(name, spec);
      if (!added && found->second == spec) return;
      if (added) break;
      name = absl::StrCat(name.substr(0, name.find('#')), "#", number);
    }
    absl::StrAppend(&text_, "      \"", name, "\": P(", spec, "),", note.empty() ? "" : "  # ", note, "\n");
  }

  const std::string& text() const { return text_; }

 private:
  std::string Note(const WeightMatmul& matmul) const {
    const int64_t units = matmul.split_unit_count;
    if (matmul.split == TensorSplit::kNone || units == 0 || tensor_ <= 1 || units % tensor_ == 0) return "";
    if (matmul.copies_beyond_units && tensor_ % units == 0) {
      return absl::StrCat(units, " heads: repeat each ", tensor_ / units, " times first");
    }
    return absl::StrCat(units, " heads: pad to ", (units + tensor_ - 1) / tensor_ * tensor_, " first");
  }

  const transformer::ModelOperations& model_;
  const int64_t tensor_;
  const DeviceDegrees& degrees_;
  std::map<std::string, std::string> specs_;
  std::string text_;
};

}  // namespace

std::string JaxWeightSpecs(const RenderInput& input, const DeviceDegrees& degrees) {
  const transformer::ModelOperations& model = *input.model;
  const Parallelism& plan = input.estimate->parallelism;
  WeightTable table(model, degrees);
  const std::string tensor = Dimension(Present(degrees, {LogicalAxis::kTensor}));
  table.AddLine("embed_tokens", absl::StrCat(tensor, ", d"), model.tied_embeddings ? "also the output head" : "");
  if (!model.tied_embeddings && model.head.n > 0) {
    // A classifier's few outputs are not split.
    const bool splits = model.head.n >= degrees.Degree(LogicalAxis::kTensor);
    table.AddLine(*model.head.name != '\0' ? model.head.name : "lm_head",
                  absl::StrCat("d, ", splits ? tensor : std::string("None")), "");
  }
  for (const WeightMatmul& matmul : model.embedding_projections) table.Add(matmul);
  for (const transformer::LayerOperations& layer : model.layers) {
    for (const WeightMatmul& matmul : layer.matmuls) table.Add(matmul);
  }
  if (model.mtp_layer_count > 0) {
    for (const WeightMatmul& matmul : model.mtp.matmuls) table.Add(matmul);
  }
  table.AddLine("norm", "d", "");

  // The same axes as WeightSharding counts (plan_laws.h).
  const WeightSharding sharding = ShardingOf(plan);
  const auto shards = [&](LogicalAxis axis) { return sharding.shards_weights[static_cast<size_t>(axis)]; };
  Axes weights;
  Axes replicas;
  for (const LogicalAxis axis : Present(degrees, {LogicalAxis::kFsdp, LogicalAxis::kContext, LogicalAxis::kData})) {
    // An axis that only counts a chip's devices shards as FSDP does.
    const bool joins = shards(axis) || (axis == LogicalAxis::kFsdp && plan.Degree(axis) <= 1);
    (joins ? weights : replicas).push_back(axis);
  }
  Axes expert_state = weights;
  expert_state.insert(expert_state.end(), replicas.begin(), replicas.end());
  Axes dense_state = expert_state;
  for (const LogicalAxis axis : Present(degrees, {LogicalAxis::kExpert})) dense_state.push_back(axis);

  const auto call = [](const Axes& dense, const Axes& expert) {
    return absl::StrCat("weight_specs(d=", Dimension(dense), ", e=", Dimension(expert), ")\n");
  };
  std::string text = absl::StrCat(
      "# Weights are [in, out], experts [expert, in, out], the embedding [vocabulary, width]; of [width, heads, head "
      "size]\n"
      "# the heads take the entry of their columns. Biases follow the last dimension. Names as in Hugging Face.\n"
      "def weight_specs(d, e):\n  \"\"\"d: axes that shard the model width of dense weights; e: of expert "
      "weights.\"\"\"\n"
      "  return {\n",
      table.text(), "  }\n\n\nPARAMETERS = ", call(weights, weights));
  const ZeroStage zero = plan.data_zero_stage;
  absl::StrAppend(
      &text, "GRADIENTS = ", zero >= ZeroStage::k2 ? call(dense_state, expert_state) : std::string("PARAMETERS\n"));
  absl::StrAppend(&text, "OPTIMIZER_STATE = ",
                  zero >= ZeroStage::k1 ? call(dense_state, expert_state) : std::string("PARAMETERS\n"));
  const bool pipelined = degrees.Degree(LogicalAxis::kPipeline) > 1;
  absl::StrAppend(&text, "\n\ndef stacked(spec):\n  \"\"\"Of a layer's weight stacked over ",
                  pipelined ? "[stage, layers of the stage]" : "[layers]", ".\"\"\"\n  return P(",
                  pipelined ? "\"pipeline\", None" : "None", ", *spec)\n\n\n");
  return text;
}

std::string JaxActivationSpecs(const RenderInput& input, const DeviceDegrees& degrees) {
  const auto dimension = [&](std::initializer_list<LogicalAxis> axes) { return Dimension(Present(degrees, axes)); };
  const std::string batch = dimension({LogicalAxis::kData, LogicalAxis::kFsdp, LogicalAxis::kExpert});
  const std::string context = dimension({LogicalAxis::kContext});
  const std::string tensor = dimension({LogicalAxis::kTensor});
  const std::string sequence = input.estimate->parallelism.sequence_parallel
                                   ? dimension({LogicalAxis::kContext, LogicalAxis::kTensor})
                                   : context;
  bool has_softmax = false;
  for (const transformer::LayerOperations& layer : input.model->layers) has_softmax |= layer.has_softmax;
  const ModelFacts facts = FactsOf(*input.model);

  std::string text = "ACTIVATIONS = {\n";
  const auto add = [&](absl::string_view name, const std::string& spec, absl::string_view shape) {
    absl::StrAppend(&text, "    \"", name, "\": P(", spec, "),  # ", shape, "\n");
  };
  const std::string hidden = absl::StrCat(batch, ", ", context, ", ", tensor);
  add("tokens", absl::StrCat(batch, ", ", context), "batch, sequence");
  add("residual", absl::StrCat(batch, ", ", sequence, ", None"), "batch, sequence, width: between blocks");
  if (has_softmax) {
    add("query", absl::StrCat(hidden, ", None"), "batch, sequence, heads, head size; also the attention's output");
    const absl::string_view gathered = degrees.Degree(LogicalAxis::kContext) > 1
                                           ? "batch, sequence (gathered over context), KV heads, head size"
                                           : "batch, sequence, KV heads, head size";
    add("key_value", absl::StrCat(batch, ", None, ", tensor, ", None"), gathered);
  }
  if (facts.has_dense_feed_forward) add("mlp_hidden", hidden, "batch, sequence, MLP width");
  if (facts.has_experts) {
    const std::string rows = dimension({LogicalAxis::kData, LogicalAxis::kFsdp, LogicalAxis::kContext});
    add("expert_hidden", absl::StrCat(dimension({LogicalAxis::kExpert}), ", ", rows, ", ", tensor),
        "expert, routed tokens, expert width");
  }
  add("logits", hidden, "batch, sequence, vocabulary");
  absl::StrAppend(&text, "}\n\n");
  return text;
}

}  // namespace sliceplan::planner
