// What the renderings share: names that Kubernetes and shells accept, the plan in words, degrees in devices.
#ifndef SLICEPLAN_SERVER_PLANNER_RENDER_RENDER_WORDS_H_
#define SLICEPLAN_SERVER_PLANNER_RENDER_RENDER_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/planner/parallelism.h"
#include "server/planner/remat.h"
#include "server/planner/render/rendering.h"
#include "server/planner/stage_split.h"

namespace sliceplan::planner {

// One per target; each may assume that the pointers are set.
absl::StatusOr<std::string> RenderJax(const RenderInput& input);
absl::StatusOr<std::string> RenderMaxText(const RenderInput& input);
absl::StatusOr<std::string> RenderMegatron(const RenderInput& input);
absl::StatusOr<std::string> RenderXpk(const RenderInput& input);
absl::StatusOr<std::string> RenderGkeJobSet(const RenderInput& input);
absl::StatusOr<std::string> RenderKueue(const RenderInput& input);
absl::StatusOr<std::string> RenderCloudTpu(const RenderInput& input);

// "GKE JobSet cannot express this plan: <why>."
absl::Status CannotExpress(RenderTarget target, absl::string_view why);

bool IsTorus(const RenderInput& input);

// A DNS-1123 label of at most `max_size` characters that begins with a letter: "meta-llama/Llama-3.1-70B" is
// "llama-3-1-70b", "8B" is "m-8b", and nothing usable is "model".
std::string DnsLabel(absl::string_view text, size_t max_size);

// A word that a shell takes as it is, and YAML as text: characters outside [A-Za-z0-9._/:@+-] become "-".
std::string PlainWord(absl::string_view text);

// YAML text in double quotes; control characters become spaces.
std::string Quoted(absl::string_view text);

// Comment lines ("# ...") that say what is rendered: model, slice, degrees, batch, time.
std::string PlanComment(const RenderInput& input);

// Chips of one host and hosts of one slice, from the names or else the slice; 0 when unknown.
int32_t ChipsPerHost(const RenderInput& input);
int64_t HostCount(const RenderInput& input);

// The plan's degrees in devices. A chip of two devices doubles one axis: one that shards the batch when the
// microbatch divides further (FSDP where there is FSDP), else tensor.
struct DeviceDegrees {
  AxisDegrees ici;
  AxisDegrees dcn;
  int32_t devices_per_chip = 1;
  LogicalAxis doubled = LogicalAxis::kFsdp;  // the axis that took devices_per_chip

  int64_t Degree(LogicalAxis axis) const { return int64_t{ici[axis]} * dcn[axis]; }
};
DeviceDegrees DegreesInDevices(const RenderInput& input);

// Distance between neighbours of an axis in the slice, 0 for degree 1 (behind switches: in device order).
int32_t Stride(const RenderInput& input, LogicalAxis axis);

// What is saved for the backward pass, with the workload's offload applied.
RematPlan SavedTensors(const RenderInput& input);

struct ModelFacts {
  bool has_experts = false;
  bool has_dense_feed_forward = false;
  bool has_latent_attention = false;  // low-rank queries or keys and values
  bool gated = false;                 // two up projections
  double capacity_factor = 0;
};
ModelFacts FactsOf(const transformer::ModelOperations& model);

StageSplit StagesOf(const RenderInput& input);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_RENDER_RENDER_WORDS_H_
