// What passes of a replica need in memory beside weights and caches: counts for serving_memory.h, per chip.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_BUFFERS_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_BUFFERS_H_

#include "server/transformer/architecture.h"
#include "server/transformer/operations.h"

namespace sliceplan::planner {

struct BufferShape {
  double tensor = 1;
  bool copies_heads = false;  // of KV heads beyond their number; false: cut inside a head and exchanged
  double activation_bytes = 2;
};

// The part of a weight that one chip of a tensor group holds, 0 to 1.
double ServedShare(const transformer::WeightMatmul& matmul, double tensor, bool copies_heads);

// What the wider of attention and dense feed-forward has in memory when its last projection starts: all outputs of the
// others and its input.
double ProjectionBytesPerToken(const transformer::LayerOperations& layer, const BufferShape& shape);

// Two buffers of a layer's routed experts, each as wide as the widest that passes through it: gathered inputs and what
// the activation function writes; what the first and what the last matmul writes. 0 without experts.
double ExpertWorkspaceBytesPerToken(const transformer::LayerOperations& layer, double hidden_dim,
                                    const BufferShape& shape);

// Sines and cosines of every position in 16 bits; 0 with learned positions.
double RotaryTableBytes(const transformer::Architecture& architecture, const transformer::ModelOperations& model);

// Up projections of latent attention in 16 bits, as they are absorbed (DeepSeek-V2, section 2.1.2).
double AbsorbedCopyBytes(const transformer::SoftmaxAttention& softmax, double tensor);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_BUFFERS_H_
