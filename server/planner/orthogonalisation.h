// What Muon adds to a step: the update of every matrix between the embedding and the head is orthogonalised.
//   K. Jordan and others, "Muon: an optimizer for hidden layers in neural networks", 2024.
#ifndef SLICEPLAN_SERVER_PLANNER_ORTHOGONALISATION_H_
#define SLICEPLAN_SERVER_PLANNER_ORTHOGONALISATION_H_

#include "server/transformer/operations.h"

namespace sliceplan::planner {

// FLOPs of one layer, all matrices of all experts: five Newton-Schulz iterations of A = X X^T, B = b A + c A A,
// X = a X + B X over the shorter side. Copies of a matrix (data parallelism) share the work as they share its state.
struct Orthogonalisation {
  double dense = 0;
  double expert = 0;
};
Orthogonalisation OrthogonalisationFlops(const transformer::LayerOperations& layer);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_ORTHOGONALISATION_H_
