#include "server/planner/render/rendering.h"

#include <utility>

#include "absl/status/status.h"
#include "server/planner/render/render_words.h"

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

absl::StatusOr<Rendering> Render(RenderTarget target, const RenderInput& input) {
  const auto made = [&](absl::string_view format, absl::StatusOr<std::string> text) -> absl::StatusOr<Rendering> {
    if (!text.ok()) return text.status();
    return Rendering{target, std::string(format), *std::move(text)};
  };
  switch (target) {
    case RenderTarget::kJax: return made("python", RenderJax(input));
    case RenderTarget::kMaxText: return made("yaml", RenderMaxText(input));
    case RenderTarget::kMegatron: return made("shell", RenderMegatron(input));
    case RenderTarget::kVllm: return CannotExpress(target, "it serves models and does not train them");
    case RenderTarget::kXpk: return made("shell", RenderXpk(input));
    case RenderTarget::kGkeJobSet: return made("yaml", RenderGkeJobSet(input));
    case RenderTarget::kKueue: return made("yaml", RenderKueue(input));
    case RenderTarget::kCloudTpu: return made("shell", RenderCloudTpu(input));
  }
  return absl::InvalidArgumentError("Unknown render target.");
}

}  // namespace sliceplan::planner
