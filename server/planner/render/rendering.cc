#include "server/planner/render/rendering.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace sliceplan::planner {

absl::string_view RenderTargetName(RenderTarget target) {
  switch (target) {
    case RenderTarget::kJax: return "JAX";
    case RenderTarget::kMaxText: return "MaxText";
    case RenderTarget::kMegatron: return "Megatron";
    case RenderTarget::kVllm: return "vLLM";
    case RenderTarget::kXpk: return "XPK";
    case RenderTarget::kGkeJobSet: return "GKE JobSet";
    case RenderTarget::kKueue: return "Kueue";
    case RenderTarget::kCloudTpu: return "Cloud TPU";
  }
  return "";
}

std::vector<RenderTarget> DefaultTargets(const hardware::Slice& slice) {
  if (slice.accelerator.fabric == hardware::FabricKind::kTorus) {
    return {RenderTarget::kJax,       RenderTarget::kMaxText, RenderTarget::kXpk,
            RenderTarget::kGkeJobSet, RenderTarget::kKueue,   RenderTarget::kCloudTpu};
  }
  return {RenderTarget::kJax, RenderTarget::kMegatron, RenderTarget::kGkeJobSet, RenderTarget::kKueue};
}

absl::StatusOr<Rendering> Render(RenderTarget target, const RenderInput&) {
  return absl::UnimplementedError(absl::StrCat("No rendering for ", RenderTargetName(target), " yet."));
}

}  // namespace sliceplan::planner
