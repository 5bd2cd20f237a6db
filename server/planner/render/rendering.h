// A training plan written for other systems: what an engineer pastes into a script, a config file or a cluster.
#ifndef SLICEPLAN_SERVER_PLANNER_RENDER_RENDERING_H_
#define SLICEPLAN_SERVER_PLANNER_RENDER_RENDERING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/hardware/price_table.h"
#include "server/hardware/slice.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"
#include "server/transformer/operations.h"

namespace sliceplan::planner {

// In the order of the contract.
enum class RenderTarget { kJax, kMaxText, kMegatron, kVllm, kXpk, kGkeJobSet, kKueue, kCloudTpu };

// "JAX", "MaxText", "GKE JobSet", ...
absl::string_view RenderTargetName(RenderTarget target);

struct Rendering {
  RenderTarget target = RenderTarget::kJax;
  std::string format;  // "python", "yaml", "shell"
  std::string text;    // ends with a newline
};

// What clouds and schedulers call the slice, and on which terms it is asked for. Empty or 0: does not apply, or is not
// public; a target that needs it says so.
struct SliceNames {
  std::string accelerator_type;     // of the Cloud TPU API: "v5p-256"
  std::string topology;             // of TPUs, as GKE and the Cloud TPU API spell it: "4x4x8"
  std::string gke_tpu_accelerator;  // node label cloud.google.com/gke-tpu-accelerator
  std::string gke_accelerator;      // node label cloud.google.com/gke-accelerator (GPUs)
  std::string machine_type;
  std::string xpk_device_type;
  int32_t host_count = 0;                     // of one slice; 0: chips of the slice over chips_per_host
  int32_t chips_per_host = 0;                 // 0: as the slice says
  bool gke_workload_policy_required = false;  // instead of compact placement
  std::string zone;
  std::string capacity_pool;
  hardware::PriceModel price_model = hardware::PriceModel::kOnDemand;
};

// All pointers are required and outlive the call. The estimate is one of EstimateTraining or of a search: it holds the
// complete plan of the job.
struct RenderInput {
  std::string model_name;  // any text; names of Kubernetes objects are made from it
  const transformer::ModelOperations* model = nullptr;
  const hardware::Slice* slice = nullptr;
  const TrainingWorkload* workload = nullptr;
  const TrainingEstimate* estimate = nullptr;
  SliceNames names;
};

// Targets that suit the kind of slice: a torus JAX, MaxText, XPK, GKE JobSet, Kueue and Cloud TPU; a switched system
// JAX, Megatron, GKE JobSet and Kueue.
std::vector<RenderTarget> DefaultTargets(const hardware::Slice& slice);

// FAILED_PRECONDITION: the target cannot express the plan, or a name that it needs is not known; the message is a
// sentence for people.
absl::StatusOr<Rendering> Render(RenderTarget target, const RenderInput& input);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_RENDER_RENDERING_H_
