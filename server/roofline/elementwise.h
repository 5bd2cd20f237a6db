// Work of the vector unit on one chip, and table lookups. Chapters 1, 2 and 4 of "How To Scale Your Model".
#ifndef SLICEPLAN_SERVER_ROOFLINE_ELEMENTWISE_H_
#define SLICEPLAN_SERVER_ROOFLINE_ELEMENTWISE_H_

#include <cstdint>

#include "server/hardware/data_type.h"
#include "server/roofline/op_cost.h"

namespace sliceplan::roofline {

// `input_count` arrays of `element_count` read, one written. Counts at least 1 (inputs at least 0).
struct Elementwise {
  int64_t element_count = 1;
  int64_t input_count = 1;
  double flops_per_element = 1;
  hardware::DataType type = hardware::DataType::kBf16;
};
OpCost CostOf(const Elementwise& op);

// Two vectors of `length` to one scalar: `length` products, one addition less. Runs on the vector unit.
struct DotProduct {
  int64_t length = 1;
  hardware::DataType type = hardware::DataType::kBf16;
};
OpCost CostOf(const DotProduct& op);

// One row of the table read and written for each token; no FLOPs.
struct EmbeddingLookup {
  int64_t token_count = 1;
  int64_t hidden_dim = 1;
  hardware::DataType table_type = hardware::DataType::kBf16;
  hardware::DataType output_type = hardware::DataType::kBf16;
};
OpCost CostOf(const EmbeddingLookup& op);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_ELEMENTWISE_H_
