// A matmul that hides its all-gather: shards of one operand travel round a ring while each chip multiplies what it has.
// "How To Scale Your Model", chapters 3 and 10 (collective matmul).
#ifndef SLICEPLAN_SERVER_ROOFLINE_RING_MATMUL_H_
#define SLICEPLAN_SERVER_ROOFLINE_RING_MATMUL_H_

#include <cstdint>

#include "server/roofline/matmul.h"

namespace sliceplan::roofline {

struct RingMatmul {
  int64_t chunk_count = 1;    // multiplications of one chip, one per shard
  int64_t permute_count = 0;  // between them
  Matmul chunk;               // one multiplication
  double chunk_flops = 0;
};

// `local` is what one chip multiplies after a plain all-gather of lhs along k over `ring_size` chips; ring_size divides
// k.
RingMatmul RingMatmulOf(const Matmul& local, int64_t ring_size);

// The first chunk, then the slower of a chunk and a permute for each of the others.
double RingMatmulSeconds(const RingMatmul& ring, double chunk_seconds, double permute_seconds);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_RING_MATMUL_H_
