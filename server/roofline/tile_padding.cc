#include "server/roofline/tile_padding.h"

#include <cstddef>

namespace sliceplan::roofline {

double PaddedDim(int64_t dim, int64_t tile) {
  const int64_t tiles = dim / tile + (dim % tile != 0 ? 1 : 0);
  return static_cast<double>(tiles) * static_cast<double>(tile);
}

double UsefulRatio(int64_t dim, int64_t tile) { return static_cast<double>(dim) / PaddedDim(dim, tile); }

TiledLayout TiledLayoutOf(absl::Span<const int64_t> shape, absl::Span<const int64_t> tile, double bytes_per_element) {
  TiledLayout layout;
  const size_t untiled = shape.size() - tile.size();
  double elements = 1;
  double padded_elements = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const double padded = i < untiled ? static_cast<double>(shape[i]) : PaddedDim(shape[i], tile[i - untiled]);
    layout.padded_shape.push_back(padded);
    elements *= static_cast<double>(shape[i]);
    padded_elements *= padded;
  }
  layout.bytes = padded_elements * bytes_per_element;
  layout.expansion_ratio = padded_elements / elements;
  return layout;
}

}  // namespace sliceplan::roofline
