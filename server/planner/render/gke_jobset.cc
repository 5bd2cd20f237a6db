// GKE: a JobSet with one pod on every host of every slice. Fields as in kubernetes-sigs/jobset jobset.x-k8s.io/v1alpha2
// and Google's multislice samples (2026-08).
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/planner/render/capacity.h"
#include "server/planner/render/render_words.h"

namespace sliceplan::planner {
namespace {

constexpr RenderTarget kTarget = RenderTarget::kGkeJobSet;
// Pods are named <name>-workers-<slice>-<host>-<5 characters>, at most 63 characters.
constexpr size_t kMaxNameSize = 32;
constexpr int kMaxRestarts = 10;

}  // namespace

absl::StatusOr<std::string> RenderGkeJobSet(const RenderInput& input) {
  absl::StatusOr<Labels> labels = NodeLabels(kTarget, input);
  if (!labels.ok()) return labels.status();
  const int64_t hosts = HostCount(input);
  if (hosts <= 0) return CannotExpress(kTarget, "the chips of one host are not known");
  const int64_t chips = std::min<int64_t>(ChipsPerHost(input), input.slice->chip_count);
  const bool torus = IsTorus(input);
  const std::string name = DnsLabel(input.model_name, kMaxNameSize);

  std::string text = absl::StrCat(PlanComment(input), "# Replace the words that begin with YOUR_.\n");
  if (torus && hosts > 1 && input.names.gke_workload_policy_required) {
    absl::StrAppend(&text, "# The node pool needs a workload policy that holds the topology (--placement-policy).\n");
  }
  absl::StrAppend(&text, "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata:\n  name: ", name,
                  "\n  labels:\n    kueue.x-k8s.io/queue-name: YOUR_LOCAL_QUEUE\n");
  if (torus && hosts > 1) {
    absl::StrAppend(&text,
                    "  annotations:\n"
                    "    # One slice, one node pool.\n"
                    "    alpha.jobset.sigs.k8s.io/exclusive-topology: cloud.google.com/gke-nodepool\n");
  }
  absl::StrAppend(
      &text, "spec:\n  failurePolicy:\n    maxRestarts: ", kMaxRestarts,
      "\n  replicatedJobs:\n  - name: workers\n    replicas: ", input.slice->slice_count,
      "  # slices\n    template:\n      spec:\n        parallelism: ", hosts,
      "  # hosts of a slice\n        completions: ", hosts, "\n        backoffLimit: 0\n",
      "        template:\n          spec:\n            restartPolicy: Never\n            hostNetwork: true\n",
      "            dnsPolicy: ClusterFirstWithHostNet\n            nodeSelector:\n",
      LabelLines(*labels, "              "));
  absl::StrAppend(&text, "            tolerations:\n            - key: ", ChipResource(input),
                  "\n              operator: Exists\n              effect: NoSchedule\n            containers:\n"
                  "            - name: train\n              image: YOUR_IMAGE\n"
                  "              command: [\"bash\", \"-c\", \"YOUR_COMMAND\"]\n");
  if (torus) {
    // Ports of libtpu and of its metrics.
    absl::StrAppend(&text,
                    "              ports:\n              - containerPort: 8471\n"
                    "              - containerPort: 8080\n");
  } else {
    absl::StrAppend(
        &text, "              env:\n              - name: MASTER_ADDR\n                value: ",
        Quoted(absl::StrCat(name, "-workers-0-0.", name)),
        "\n              - name: NODE_RANK\n                valueFrom:\n                  fieldRef:\n"
        "                    fieldPath: metadata.annotations['batch.kubernetes.io/job-completion-index']\n");
    if (input.slice->slice_count > 1) {
      absl::StrAppend(&text, "              # NODE_RANK counts within a replica: add JOB_INDEX x ", hosts, ".\n",
                      "              - name: JOB_INDEX\n                valueFrom:\n                  fieldRef:\n"
                      "                    fieldPath: metadata.annotations['jobset.sigs.k8s.io/job-index']\n");
    }
  }
  absl::StrAppend(&text, "              resources:\n                requests:\n                  ", ChipResource(input),
                  ": ", chips, "\n                limits:\n                  ", ChipResource(input), ": ", chips, "\n");
  return text;
}

}  // namespace sliceplan::planner
