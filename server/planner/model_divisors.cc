#include "server/planner/model_divisors.h"

#include <algorithm>
#include <numeric>

namespace sliceplan::planner {
namespace {

using transformer::Component;
using transformer::LayerOperations;
using transformer::TensorSplit;
using transformer::WeightMatmul;

// Heads that are not copied say all there is to say about others of the same count.
void AddUnit(ModelDivisors::Unit unit, ModelDivisors& divisors) {
  for (ModelDivisors::Unit& other : divisors.units) {
    if (other.count != unit.count) continue;
    if (!unit.copies) other = unit;
    return;
  }
  divisors.units.push_back(unit);
}

void AddWidth(ModelDivisors::Width width, ModelDivisors& divisors) {
  const auto same = [&](const ModelDivisors::Width& other) { return other.size == width.size; };
  if (std::none_of(divisors.widths.begin(), divisors.widths.end(), same)) divisors.widths.push_back(width);
}

absl::string_view UnitName(const WeightMatmul& matmul, bool has_softmax) {
  if (matmul.copies_beyond_units) return "KV heads";
  return has_softmax ? "query heads" : "linear-attention heads";
}

absl::string_view WidthName(const WeightMatmul& matmul) {
  if (matmul.expert_count > 0) return "expert FFN width";
  return matmul.component == Component::kFeedForward ? "FFN width" : "inner width";
}

void AddLayer(const LayerOperations& layer, ModelDivisors& divisors) {
  for (const WeightMatmul& matmul : layer.matmuls) {
    if (matmul.split == TensorSplit::kNone) continue;
    if (matmul.split_unit_count > 0) {
      AddUnit({matmul.split_unit_count, matmul.copies_beyond_units, UnitName(matmul, layer.has_softmax)}, divisors);
    } else if (matmul.split == TensorSplit::kRow) {
      // Gate and up projections may be fused: the width that the down projection reads is the one that is cut.
      AddWidth({matmul.k, WidthName(matmul)}, divisors);
    }
  }
  auto& experts = divisors.expert_counts;
  if (layer.expert_count > 0 && std::find(experts.begin(), experts.end(), layer.expert_count) == experts.end()) {
    experts.push_back(layer.expert_count);
  }
}

}  // namespace

int64_t ModelDivisors::HeadDivisor() const {
  int64_t divisor = 0;
  for (const Unit& unit : units) {
    if (!unit.copies) divisor = std::gcd(divisor, int64_t{unit.count});
  }
  return divisor;
}

int64_t ModelDivisors::ExpertDivisor() const {
  int64_t divisor = 0;
  for (const int32_t count : expert_counts) divisor = std::gcd(divisor, int64_t{count});
  return divisor;
}

ModelDivisors DivisorsOf(const transformer::ModelOperations& model) {
  ModelDivisors divisors;
  divisors.layer_count = static_cast<int64_t>(model.layer_kind.size());
  divisors.vocab_size = model.vocab_size;
  for (const LayerOperations& layer : model.layers) AddLayer(layer, divisors);
  if (model.mtp_layer_count > 0) AddLayer(model.mtp, divisors);
  return divisors;
}

}  // namespace sliceplan::planner
