#include "server/roofline/elementwise.h"

namespace sliceplan::roofline {
namespace {

using hardware::BytesPerElement;

double Real(int64_t count) { return static_cast<double>(count); }

}  // namespace

OpCost CostOf(const Elementwise& op) {
  OpCost cost;
  cost.vector_flops = Real(op.element_count) * op.flops_per_element;
  cost.hbm_bytes = Real(op.element_count) * (Real(op.input_count) + 1) * BytesPerElement(op.type);
  return cost;
}

OpCost CostOf(const DotProduct& op) {
  OpCost cost;
  cost.vector_flops = 2 * Real(op.length) - 1;
  cost.hbm_bytes = (2 * Real(op.length) + 1) * BytesPerElement(op.type);
  return cost;
}

OpCost CostOf(const EmbeddingLookup& op) {
  OpCost cost;
  cost.hbm_bytes =
      Real(op.token_count) * Real(op.hidden_dim) * (BytesPerElement(op.table_type) + BytesPerElement(op.output_type));
  return cost;
}

}  // namespace sliceplan::roofline
