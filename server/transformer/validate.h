// What makes an architecture impossible. Everything else in this room may assume that nothing here was found.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_VALIDATE_H_
#define SLICEPLAN_SERVER_TRANSFORMER_VALIDATE_H_

#include <cstdint>
#include <vector>

#include "server/hardware/violation.h"
#include "server/transformer/architecture.h"

namespace sliceplan::transformer {

// Widest tensor dimension, and most rows of a table.
inline constexpr int64_t kMaxDim = int64_t{1} << 24;
inline constexpr int64_t kMaxHeadCount = int64_t{1} << 16;
inline constexpr int64_t kMaxExpertCount = int64_t{1} << 16;
// Layers in all, and distinct entries of the patterns of all groups.
inline constexpr int64_t kMaxLayerCount = 4096;
inline constexpr int64_t kMaxMtpLayerCount = 16;
// Parameters in all, so that bytes of any number format fit 64 bits.
inline constexpr double kMaxParameterCount = 1e18;

// All violations, with field paths such as "layer_groups[0].layers[1].attention.grouped_query.head_dim". Empty: the
// architecture can be counted, timed and cached without overflow.
std::vector<hardware::Violation> Validate(const Architecture& architecture);

}  // namespace sliceplan::transformer

#endif  // SLICEPLAN_SERVER_TRANSFORMER_VALIDATE_H_
