#include "server/transformer/operations.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/transformer/layer_operations.h"
#include "server/transformer/validate.h"

namespace sliceplan::transformer {
namespace {

// Passes over the residual stream: a norm reads and writes it, an addition reads two and writes one, and a parallel
// block adds attention and MLP to it at once.
constexpr double kNormPasses = 2;
constexpr double kAdditionPasses = 3;
constexpr double kParallelAdditionPasses = 5;
// A gate reads its input and what it multiplies, and writes the product.
constexpr double kGatePasses = 3;
// A multi-token-prediction layer norms the hidden state, the embedding and its own output.
constexpr int64_t kMtpNorms = 3;

int64_t NormParameters(const Norms& norms, int64_t width) {
  return norms.has_weight ? norms.count * width * (norms.bias ? 2 : 1) : 0;
}

double HiddenElements(const Layer& layer, int64_t hidden_dim) {
  const int sublayers = (std::holds_alternative<NoAttention>(layer.attention) ? 0 : 1) +
                        (std::holds_alternative<NoFeedForward>(layer.feed_forward) ? 0 : 1);
  const double additions =
      layer.parallel_block && sublayers == 2 ? kParallelAdditionPasses : kAdditionPasses * sublayers;
  const double streams = layer.residual_stream_count;
  // Several streams are read once more before each part, to join them.
  const double joins = layer.residual_stream_count > 1 ? streams * sublayers : 0;
  return static_cast<double>(hidden_dim) * (kNormPasses * layer.norms.count + streams * additions + joins);
}

// The table of per-layer inputs, a projection of the embedding to the same width, and a norm of one layer's part.
void AddPerLayerInputs(const Architecture& architecture, ModelOperations& model) {
  int64_t width = 0;
  int64_t part = 0;
  for (const LayerGroup& group : architecture.layer_groups) {
    for (const Layer& layer : group.layers) {
      width += static_cast<int64_t>(group.repeat_count) * layer.per_layer_input_dim;
      part = std::max<int64_t>(part, layer.per_layer_input_dim);
    }
  }
  if (width == 0) return;
  model.embedding_parameter_count += architecture.per_layer_vocab_size * width;
  WeightMatmul projection;
  projection.name = "per_layer_model_projection";
  projection.weight_class = WeightClass::kPerLayerInput;
  projection.component = Component::kEmbedding;
  projection.k = architecture.hidden_dim;
  projection.n = width;
  model.embedding_projections.push_back(projection);
  model.final_norm_parameter_count += part;
}

void AddEmbedding(const Architecture& architecture, ModelOperations& model) {
  const int64_t hidden_dim = architecture.hidden_dim;
  const int64_t vocab_size = architecture.vocab_size;
  const int64_t embedding_dim = architecture.embedding_dim > 0 ? architecture.embedding_dim : hidden_dim;
  model.hidden_dim = hidden_dim;
  model.vocab_size = vocab_size;
  const bool scores_tokens = architecture.head_output_count < 0;
  const int64_t output_count = scores_tokens ? vocab_size : architecture.head_output_count;
  model.tied_embeddings = architecture.tied_embeddings && scores_tokens;
  model.embedding_parameter_count = vocab_size * embedding_dim + architecture.learned_position_count * hidden_dim;
  model.head.name = scores_tokens ? "lm_head" : "score";
  model.head.weight_class = WeightClass::kHead;
  model.head.component = Component::kOutputHead;
  model.head.split = TensorSplit::kColumn;
  model.head.k = embedding_dim;
  model.head.n = output_count;
  model.head.bias_count = architecture.head_bias ? output_count : 0;
  model.head.low_precision_allowed = false;
  model.head_parameter_count = (model.tied_embeddings ? 0 : output_count * embedding_dim) + model.head.bias_count;
  if (embedding_dim != hidden_dim) {
    WeightMatmul in;
    in.name = "project_in";
    in.weight_class = WeightClass::kPerLayerInput;
    in.component = Component::kEmbedding;
    in.k = embedding_dim;
    in.n = hidden_dim;
    WeightMatmul out = in;
    out.name = "project_out";
    out.component = Component::kOutputHead;
    std::swap(out.k, out.n);
    model.embedding_projections.push_back(in);
    model.embedding_projections.push_back(out);
  }
  AddPerLayerInputs(architecture, model);
  Norms embedding_norm = architecture.final_norm;
  embedding_norm.count = architecture.embedding_norm ? 1 : 0;
  model.final_norm_parameter_count +=
      NormParameters(architecture.final_norm, hidden_dim) + NormParameters(embedding_norm, hidden_dim);
}

// What a mix of residual streams computes from all of them: weights to join them, to place a part's output, and to mix
// the streams among themselves.
int64_t MixCount(int64_t streams) { return (2 + streams) * streams; }

WeightMatmul StreamMix(const char* name, int64_t streams, int64_t hidden_dim, int64_t outputs, int64_t bias_count) {
  WeightMatmul mix;
  mix.name = name;
  mix.weight_class = WeightClass::kRouter;
  mix.component = Component::kOther;
  mix.k = streams * hidden_dim;
  mix.n = outputs;
  mix.bias_count = bias_count;
  mix.low_precision_allowed = false;
  return mix;
}

void AddStreamMixes(const Layer& layer, int64_t hidden_dim, LayerOperations& operations) {
  const int64_t streams = layer.residual_stream_count;
  if (streams <= 1) return;
  constexpr int64_t kScales = 3;  // of the three kinds of weights
  for (const char* name : {"attn_hc", "ffn_hc"}) {
    operations.matmuls.push_back(StreamMix(name, streams, hidden_dim, MixCount(streams), MixCount(streams) + kScales));
  }
}

// Joins the streams before the final norm.
WeightMatmul FinalStreamJoin(int64_t streams, int64_t hidden_dim) {
  return StreamMix("hc_head", streams, hidden_dim, streams, streams + 1);
}

void AddMtp(const Architecture& architecture, ModelOperations& model) {
  if (architecture.mtp_layer_count == 0) return;
  const int64_t hidden_dim = architecture.hidden_dim;
  model.mtp_layer_count = architecture.mtp_layer_count;
  model.mtp = OperationsOfLayer(architecture.mtp_layer, hidden_dim);
  model.mtp.count = architecture.mtp_layer_count;
  WeightMatmul projection;
  projection.name = "eh_proj";
  projection.weight_class = WeightClass::kMtpProjection;
  projection.component = Component::kMtp;
  projection.k = 2 * hidden_dim;
  projection.n = hidden_dim;
  model.mtp.matmuls.push_back(projection);
  const int32_t streams = architecture.mtp_layer.residual_stream_count;
  if (streams > 1) model.mtp.matmuls.push_back(FinalStreamJoin(streams, hidden_dim));
  Norms norms = architecture.mtp_layer.norms;
  norms.count = kMtpNorms;
  model.mtp.norm_parameter_count += NormParameters(norms, hidden_dim);
  model.mtp.hidden_elements_per_token += kNormPasses * kMtpNorms * static_cast<double>(hidden_dim);
}

int32_t StreamCount(const Architecture& architecture) {
  return architecture.layer_groups.back().layers.back().residual_stream_count;
}

void AddPerLayerInput(const Layer& layer, int64_t hidden_dim, LayerOperations& operations) {
  if (layer.per_layer_input_dim == 0) return;
  WeightMatmul gate;
  gate.name = "per_layer_input_gate";
  gate.weight_class = WeightClass::kPerLayerInput;
  gate.component = Component::kOther;
  gate.k = hidden_dim;
  gate.n = layer.per_layer_input_dim;
  WeightMatmul projection = gate;
  projection.name = "per_layer_projection";
  std::swap(projection.k, projection.n);
  operations.matmuls.push_back(gate);
  operations.matmuls.push_back(projection);
  Norms norm = layer.norms;
  norm.count = 1;
  operations.norm_parameter_count += NormParameters(norm, hidden_dim);
  operations.hidden_elements_per_token +=
      (kNormPasses + kAdditionPasses) * static_cast<double>(hidden_dim) + kGatePasses * layer.per_layer_input_dim;
}

// Index in `model.layers` of the kind equal to `layer`, added when new. `prototypes` runs beside `model.layers`.
size_t KindOf(const Layer& layer, int64_t hidden_dim, int32_t group_index, std::vector<const Layer*>& prototypes,
              ModelOperations& model) {
  for (size_t i = 0; i < prototypes.size(); ++i) {
    if (*prototypes[i] == layer) return i;
  }
  prototypes.push_back(&layer);
  model.layers.push_back(OperationsOfLayer(layer, hidden_dim));
  model.layers.back().group_index = group_index;
  return prototypes.size() - 1;
}

}  // namespace

LayerOperations OperationsOfLayer(const Layer& layer, int64_t hidden_dim) {
  LayerOperations operations;
  operations.parallel_block = layer.parallel_block;
  operations.matmuls.reserve(8);
  operations.hidden_elements_per_token = HiddenElements(layer, hidden_dim);
  operations.norm_parameter_count = NormParameters(layer.norms, hidden_dim);
  operations.other_parameter_count = layer.extra_parameter_count;
  AddAttention(layer.attention, hidden_dim, operations);
  AddFeedForward(layer.feed_forward, hidden_dim, operations);
  AddPerLayerInput(layer, hidden_dim, operations);
  AddStreamMixes(layer, hidden_dim, operations);
  return operations;
}

absl::StatusOr<ModelOperations> OperationsOf(const Architecture& architecture) {
  const std::vector<hardware::Violation> violations = Validate(architecture);
  if (!violations.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(violations.front().field, ": ", violations.front().description));
  }
  ModelOperations model;
  AddEmbedding(architecture, model);
  model.layer_kind.reserve(static_cast<size_t>(architecture.LayerCount()));
  std::vector<const Layer*> prototypes;
  std::vector<size_t> pattern;
  for (size_t group = 0; group < architecture.layer_groups.size(); ++group) {
    const LayerGroup& layer_group = architecture.layer_groups[group];
    pattern.clear();
    for (const Layer& layer : layer_group.layers) {
      pattern.push_back(KindOf(layer, architecture.hidden_dim, static_cast<int32_t>(group), prototypes, model));
    }
    for (int32_t repeat = 0; repeat < layer_group.repeat_count; ++repeat) {
      for (const size_t kind : pattern) {
        LayerOperations& operations = model.layers[kind];
        ++operations.count;
        operations.positions.push_back(static_cast<int32_t>(model.layer_kind.size()));
        model.layer_kind.push_back(static_cast<int32_t>(kind));
      }
    }
  }
  if (StreamCount(architecture) > 1) {
    model.embedding_projections.push_back(FinalStreamJoin(StreamCount(architecture), architecture.hidden_dim));
  }
  AddMtp(architecture, model);
  return model;
}

}  // namespace sliceplan::transformer
