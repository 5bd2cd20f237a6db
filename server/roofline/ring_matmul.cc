#include "server/roofline/ring_matmul.h"

#include <algorithm>

namespace sliceplan::roofline {

RingMatmul RingMatmulOf(const Matmul& local, int64_t ring_size) {
  RingMatmul ring;
  ring.chunk_count = ring_size;
  ring.permute_count = ring_size - 1;
  ring.chunk = local;
  ring.chunk.k = local.k / ring_size;
  ring.chunk_flops = MatmulFlops(ring.chunk);
  return ring;
}

double RingMatmulSeconds(const RingMatmul& ring, double chunk_seconds, double permute_seconds) {
  return chunk_seconds + static_cast<double>(ring.permute_count) * std::max(chunk_seconds, permute_seconds);
}

}  // namespace sliceplan::roofline
