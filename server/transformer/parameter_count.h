// How many parameters a model has, which of them a token touches, and what its checkpoint holds beside them.
// Counts follow from the operation list; book, chapter 4, for the dense parts.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_PARAMETER_COUNT_H_
#define SLICEPLAN_SERVER_TRANSFORMER_PARAMETER_COUNT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/transformer/architecture.h"
#include "server/transformer/operations.h"

namespace sliceplan::transformer {

// Something that a checkpoint holds and the main model's count leaves out.
struct StoredExtra {
  enum class Kind { kMtpLayers, kMtpTableCopies, kTiedTableCopy, kQuantizationScales, kBuffer } kind = Kind::kBuffer;
  std::string name;   // "multi-token-prediction layers", ...
  int64_t count = 0;  // elements
};

// One weight, or the equal weights of all experts of one layer.
struct TensorSize {
  std::string name;         // "lm_head", "experts.down_proj"
  int64_t rows = 0;         // outputs
  int64_t columns = 0;      // inputs
  int64_t copies = 1;       // experts
  int64_t layer_count = 0;  // layers with such a tensor; 0: outside the layers
  int64_t count = 0;        // elements in one layer
};

struct ParameterCount {
  int64_t total_count = 0;      // the main model, a tied table once
  int64_t active_count = 0;     // what one token touches: all but the experts it does not visit, whole tables included
  int64_t embedding_count = 0;  // lookup tables: tokens and learned positions
  int64_t mtp_count = 0;        // multi-token-prediction layers without copies of tables, not in total_count
  std::array<int64_t, kComponentCount> components = {};  // by Component, sums to total_count (kMtp is 0)
  // total_count and the extras sum to stored_count.
  std::vector<StoredExtra> extras;
  int64_t stored_count = 0;
  // Bytes of the checkpoint's tensors as stored: quantised weights, scales, everything else.
  int64_t checkpoint_bytes = 0;
  int64_t scale_bytes = 0;  // the part of checkpoint_bytes that is scales, zero points and scalars
};

// The architecture must be valid, and `model` its operations.
ParameterCount CountParameters(const Architecture& architecture, const ModelOperations& model);
absl::StatusOr<ParameterCount> CountParameters(const Architecture& architecture);

// Bytes of the main model's weights with every matmul weight and table in `dtype`, no scales.
double WeightBytes(const ParameterCount& parameters, hardware::DataType dtype);

// Bytes that an engine reads of one weight, its experts together: as stored where the checkpoint quantises it, scales
// included, else in 16 bits. The mean over the layers in `positions`, which may be empty outside the stack.
double ServedWeightBytes(const Architecture& architecture, const WeightMatmul& matmul,
                         const std::vector<int32_t>& positions);

// The `limit` largest tensors, by elements of one layer, then by name.
std::vector<TensorSize> LargestTensors(const ModelOperations& model, size_t limit);

}  // namespace sliceplan::transformer

#endif  // SLICEPLAN_SERVER_TRANSFORMER_PARAMETER_COUNT_H_
