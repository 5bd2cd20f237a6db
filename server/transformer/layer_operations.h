// The parts that `OperationsOf` assembles: what attention and the feed-forward add to a layer's operation list.
#ifndef SLICEPLAN_SERVER_TRANSFORMER_LAYER_OPERATIONS_H_
#define SLICEPLAN_SERVER_TRANSFORMER_LAYER_OPERATIONS_H_

#include "server/transformer/architecture.h"
#include "server/transformer/operations.h"

namespace sliceplan::transformer {

// Adds matmuls, scores or scan, parameters and elementwise traffic of one layer's attention. `hidden_dim` is the width
// of the residual stream. The architecture must be valid (validate.h).
void AddAttention(const Attention& attention, int64_t hidden_dim, LayerOperations& operations);

// The same for one constant-state layer.
void AddLinearAttention(const LinearAttention& attention, int64_t hidden_dim, LayerOperations& operations);

// The same for the feed-forward.
void AddFeedForward(const FeedForward& feed_forward, int64_t hidden_dim, LayerOperations& operations);

// Everything of one layer but its count and positions.
LayerOperations OperationsOfLayer(const Layer& layer, int64_t hidden_dim);

}  // namespace sliceplan::transformer

#endif  // SLICEPLAN_SERVER_TRANSFORMER_LAYER_OPERATIONS_H_
