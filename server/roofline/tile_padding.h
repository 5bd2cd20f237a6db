// Arrays padded up to the tiles that hardware works in. Chapters 2 and 9 of "How To Scale Your Model".
#ifndef SLICEPLAN_SERVER_ROOFLINE_TILE_PADDING_H_
#define SLICEPLAN_SERVER_ROOFLINE_TILE_PADDING_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace sliceplan::roofline {

// Rows that a systolic array takes at a time: [8, dim] x [dim, dim].
inline constexpr int64_t kMatrixUnitRows = 8;

// `dim` rounded up to a multiple of `tile`. Both positive; a double because the multiple may pass 2^63.
double PaddedDim(int64_t dim, int64_t tile);

// dim / PaddedDim: the share of the tile that does useful work, in (0, 1].
double UsefulRatio(int64_t dim, int64_t tile);

// A tiled layout T(a, b, ...): the last dimensions are padded, the others stay. The tile has at most as many
// dimensions.
struct TiledLayout {
  std::vector<double> padded_shape;
  double bytes = 0;
  double expansion_ratio = 1;  // padded over plain bytes
};
TiledLayout TiledLayoutOf(absl::Span<const int64_t> shape, absl::Span<const int64_t> tile, double bytes_per_element);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_TILE_PADDING_H_
