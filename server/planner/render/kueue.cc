// Kueue: the resource flavor of the slice, and a queue with quota for the plan. Fields as in kubernetes-sigs/kueue
// kueue.x-k8s.io/v1beta2 (0.15, 2025).
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/planner/render/capacity.h"
#include "server/planner/render/render_words.h"

namespace sliceplan::planner {
namespace {

constexpr size_t kMaxNameSize = 63;
constexpr absl::string_view kTopologyName = "gpu-blocks";

}  // namespace

absl::StatusOr<std::string> RenderKueue(const RenderInput& input) {
  absl::StatusOr<Labels> labels = NodeLabels(RenderTarget::kKueue, input);
  if (!labels.ok()) return labels.status();
  const bool torus = IsTorus(input);
  const std::string flavor = DnsLabel(torus ? absl::StrCat(input.names.gke_tpu_accelerator, "-", input.names.topology)
                                            : absl::StrCat(input.names.gke_accelerator, "-", input.names.machine_type),
                                      kMaxNameSize);
  // Kueue charges all chips of the hosts that the pods fill.
  const int64_t chips = input.slice->TotalChips();

  std::string text = absl::StrCat(PlanComment(input),
                                  "# One flavor for each slice shape. Replace the words that begin "
                                  "with YOUR_.\n");
  if (!torus) {
    absl::StrAppend(&text, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Topology\nmetadata:\n  name: ", kTopologyName,
                    "\nspec:\n  levels:\n  - nodeLabel: cloud.google.com/gce-topology-block\n"
                    "  - nodeLabel: cloud.google.com/gce-topology-subblock\n"
                    "  - nodeLabel: cloud.google.com/gce-topology-host\n  - nodeLabel: kubernetes.io/hostname\n---\n");
  }
  absl::StrAppend(&text, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata:\n  name: ", flavor,
                  "\nspec:\n  nodeLabels:\n", LabelLines(*labels, "    "));
  if (!torus) absl::StrAppend(&text, "  topologyName: ", kTopologyName, "\n");
  absl::StrAppend(&text, "  tolerations:\n  - key: ", ChipResource(input),
                  "\n    operator: Exists\n    effect: NoSchedule\n---\napiVersion: kueue.x-k8s.io/v1beta2\n"
                  "kind: ClusterQueue\nmetadata:\n  name: ",
                  flavor, "\nspec:\n  namespaceSelector: {}\n  resourceGroups:\n  - coveredResources: [\"",
                  ChipResource(input), "\"]\n    flavors:\n    - name: ", flavor,
                  "\n      resources:\n      - name: ", ChipResource(input), "\n        nominalQuota: ", chips,
                  "  # chips of this plan\n");
  return text;
}

}  // namespace sliceplan::planner
