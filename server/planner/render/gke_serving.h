// A serving plan for GKE and for Kueue.
#ifndef SLICEPLAN_SERVER_PLANNER_RENDER_GKE_SERVING_H_
#define SLICEPLAN_SERVER_PLANNER_RENDER_GKE_SERVING_H_

#include "absl/status/statusor.h"
#include "server/planner/render/vllm.h"

namespace sliceplan::planner {

// One object for each pool: a Deployment of replicas on one host, a LeaderWorkerSet of replicas on several. Containers
// run vLLM with the arguments of RenderVllm. FAILED_PRECONDITION: as VllmOptionsOf, or labels of the nodes are not
// known.
absl::StatusOr<Rendering> RenderGkeServing(const ServingRenderInput& input);

// Resource flavors of the slices, and a queue with quota for all replicas.
absl::StatusOr<Rendering> RenderKueueServing(const ServingRenderInput& input);

// Any target that plans of serving are written for. FAILED_PRECONDITION: no such target, or as above.
absl::StatusOr<Rendering> RenderServing(RenderTarget target, const ServingRenderInput& input);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_RENDER_GKE_SERVING_H_
