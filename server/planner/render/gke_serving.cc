// Fields as in Kubernetes apps/v1, kubernetes-sigs/lws leaderworkerset.x-k8s.io/v1 (0.6, 2025) and
// kubernetes-sigs/kueue kueue.x-k8s.io/v1beta2 (0.15, 2025); labels as in Google's samples of vLLM on GKE (2026-08).
#include "server/planner/render/gke_serving.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/planner/render/capacity.h"
#include "server/planner/render/render_words.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

// Pods are named <name>-<group>-<worker> or <name>-<10 characters>-<5>, at most 63 characters.
constexpr size_t kMaxNameSize = 40;
constexpr size_t kMaxFlavorSize = 63;
constexpr int kVllmPort = 8000;  // of `vllm serve`
constexpr int kRayPort = 6379;   // of the head
constexpr absl::string_view kCountNodes =
    R"(import ray; ray.init(address="auto"); print(len([n for n in ray.nodes() if n["Alive"]])))";

// What renderings of capacity ask of a slice; nothing of a training.
RenderInput CapacityOf(const ServingRenderInput& input, size_t pool) {
  RenderInput capacity;
  capacity.model_name = input.model_name;
  capacity.slice = &input.job->pools[pool].slice;
  capacity.names = input.names[pool];
  return capacity;
}

std::string NameOf(const ServingRenderInput& input, size_t pool) {
  const std::string model = DnsLabel(input.model_name, kMaxNameSize - 8);
  switch (input.job->pools[pool].role) {
    case PoolRole::kPrefill: return absl::StrCat(model, "-prefill");
    case PoolRole::kDecode: return absl::StrCat(model, "-decode");
    case PoolRole::kBoth: return input.job->pools.size() > 1 ? absl::StrCat(model, "-", pool) : model;
  }
  return model;
}

std::string FlavorOf(const RenderInput& capacity) {
  return DnsLabel(IsTorus(capacity) ? absl::StrCat(capacity.names.gke_tpu_accelerator, "-", capacity.names.topology)
                                    : absl::StrCat(capacity.names.gke_accelerator, "-", capacity.names.machine_type),
                  kMaxFlavorSize);
}

// Lines of a shell script as a YAML block.
std::string Block(absl::string_view script, absl::string_view indent) {
  std::string text;
  for (const absl::string_view line : absl::StrSplit(script, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&text, indent, line, "\n");
  }
  return text;
}

struct Pod {
  std::string script;
  std::string selector;  // label of the pods
  bool is_worker = false;
};

std::string DraftLines(const Pod& pod, const std::string& in) {
  constexpr absl::string_view kName = "YOUR_DRAFT_MODEL";
  if (!absl::StrContains(pod.script, kName)) return "";
  return absl::StrCat(in, "    - name: ", kName, "\n", in, "      value: ", kName, "\n");
}

// A pod template, from `metadata` on.
std::string PodLines(const RenderInput& capacity, const Labels& nodes, int64_t chips, const Pod& pod,
                     absl::string_view indent) {
  const std::string in = std::string(indent);
  std::string text = absl::StrCat(
      in, "metadata:\n", in, "  labels:\n", in, "    app: ", pod.selector, "\n", in, "spec:\n", in, "  nodeSelector:\n",
      LabelLines(nodes, absl::StrCat(in, "    ")), in, "  tolerations:\n", in, "  - key: ", ChipResource(capacity),
      "\n", in, "    operator: Exists\n", in, "    effect: NoSchedule\n", in, "  containers:\n", in, "  - name: vllm\n",
      in, "    image: YOUR_VLLM_IMAGE\n", in, "    env:\n", in, "    - name: YOUR_MODEL\n", in,
      "      value: YOUR_MODEL\n", DraftLines(pod, in), in, "    command: [\"bash\", \"-c\"]\n", in, "    args:\n", in,
      "    - |\n", Block(pod.script, absl::StrCat(in, "      ")));
  if (!pod.is_worker) {
    absl::StrAppend(&text, in, "    ports:\n", in, "    - containerPort: ", kVllmPort, "\n", in,
                    "    readinessProbe:\n", in, "      httpGet:\n", in, "        path: /health\n", in,
                    "        port: ", kVllmPort, "\n");
  }
  absl::StrAppend(&text, in, "    resources:\n", in, "      requests:\n", in, "        ", ChipResource(capacity), ": ",
                  chips, "\n", in, "      limits:\n", in, "        ", ChipResource(capacity), ": ", chips, "\n");
  return text;
}

std::string DeploymentOf(const std::string& name, int64_t replicas, const std::string& pod_lines) {
  return absl::StrCat("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: ", name,
                      "\n  labels:\n    kueue.x-k8s.io/queue-name: YOUR_LOCAL_QUEUE\nspec:\n  replicas: ", replicas,
                      "\n  selector:\n    matchLabels:\n      app: ", name, "\n  template:\n", pod_lines);
}

std::string LeaderWorkerSetOf(const std::string& name, int64_t replicas, int64_t hosts, bool torus,
                              const std::string& leader, const std::string& worker) {
  std::string text =
      absl::StrCat("apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata:\n  name: ", name,
                   "\n  labels:\n    kueue.x-k8s.io/queue-name: YOUR_LOCAL_QUEUE\n");
  if (torus) {
    absl::StrAppend(&text,
                    "  annotations:\n    # One slice, one node pool.\n"
                    "    leaderworkerset.sigs.k8s.io/exclusive-topology: cloud.google.com/gke-nodepool\n");
  }
  absl::StrAppend(&text, "spec:\n  replicas: ", replicas, "\n  leaderWorkerTemplate:\n    size: ", hosts,
                  "  # hosts of a replica\n    restartPolicy: RecreateGroupOnPodRestart\n    leaderTemplate:\n", leader,
                  "    workerTemplate:\n", worker);
  return text;
}

}  // namespace

absl::StatusOr<Rendering> RenderGkeServing(const ServingRenderInput& input) {
  std::vector<std::string> objects;
  const bool apart = input.job->pools.size() > 1 && input.estimate->disaggregation.has_value();
  for (size_t i = 0; i < input.job->pools.size(); ++i) {
    absl::StatusOr<VllmOptions> options = VllmOptionsOf(input, i);
    if (!options.ok()) return options.status();
    const RenderInput capacity = CapacityOf(input, i);
    absl::StatusOr<Labels> nodes = NodeLabels(RenderTarget::kGkeJobSet, capacity);
    if (!nodes.ok()) return nodes.status();
    const int64_t hosts = HostCount(capacity);
    if (hosts <= 0) return CannotExpress(RenderTarget::kGkeJobSet, "the chips of one host are not known");
    if (capacity.slice->slice_count > 1) {
      return CannotExpress(RenderTarget::kGkeJobSet, "a replica takes several slices");
    }
    const int64_t chips = std::min<int64_t>(ChipsPerHost(capacity), capacity.slice->chip_count);
    const std::string name = NameOf(input, i);
    const int64_t replicas = input.estimate->pools[i].replica_count;
    std::string text = absl::StrCat("# ", CountWords(replicas), " replicas of ", CountWords(capacity.slice->chip_count),
                                    " chips on ", CountWords(hosts), hosts == 1 ? " host" : " hosts",
                                    ". Replace the words that begin with YOUR_.\n");
    for (const std::string& sentence : options->not_expressed) {
      absl::StrAppend(&text, "# Not expressed: ", sentence, ".\n");
    }
    const std::string serve = VllmCommand(*options, apart);
    if (hosts == 1) {
      absl::StrAppend(&text,
                      DeploymentOf(name, replicas, PodLines(capacity, *nodes, chips, {serve, name, false}, "    ")));
    } else {
      // Ray joins the hosts: the leader waits for all of them before it serves.
      const std::string head = absl::StrCat("ray start --head --port=", kRayPort, "\nuntil [ \"$(python3 -c '",
                                            kCountNodes, "')\" -ge \"${LWS_GROUP_SIZE}\" ]; do sleep 5; done\n", serve);
      const std::string join = absl::StrCat("until ray start --address=\"${LWS_LEADER_ADDRESS}:", kRayPort,
                                            "\" --block; do sleep 5; done\n");
      absl::StrAppend(&text, LeaderWorkerSetOf(name, replicas, hosts, IsTorus(capacity),
                                               PodLines(capacity, *nodes, chips, {head, name, false}, "      "),
                                               PodLines(capacity, *nodes, chips, {join, name, true}, "      ")));
    }
    objects.push_back(std::move(text));
  }
  return Rendering{RenderTarget::kGkeJobSet, "yaml", absl::StrJoin(objects, "---\n")};
}

absl::StatusOr<Rendering> RenderKueueServing(const ServingRenderInput& input) {
  struct Flavor {
    Labels nodes;
    std::string resource;
    int64_t chips = 0;
  };
  std::map<std::string, Flavor> flavors;
  for (size_t i = 0; i < input.job->pools.size(); ++i) {
    const RenderInput capacity = CapacityOf(input, i);
    absl::StatusOr<Labels> nodes = NodeLabels(RenderTarget::kKueue, capacity);
    if (!nodes.ok()) return nodes.status();
    Flavor& flavor = flavors[FlavorOf(capacity)];
    flavor.nodes = *std::move(nodes);
    flavor.resource = std::string(ChipResource(capacity));
    flavor.chips += capacity.slice->TotalChips() * input.estimate->pools[i].replica_count;
  }
  std::string text =
      "# One flavor for each slice shape, quota for all replicas. Replace the words that begin with YOUR_.\n";
  std::map<std::string, std::vector<std::string>> names_of;  // flavors by resource
  for (const auto& [name, flavor] : flavors) {
    absl::StrAppend(&text, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata:\n  name: ", name,
                    "\nspec:\n  nodeLabels:\n", LabelLines(flavor.nodes, "    "),
                    "  tolerations:\n  - key: ", flavor.resource,
                    "\n    operator: Exists\n    effect: NoSchedule\n---\n");
    names_of[flavor.resource].push_back(name);
  }
  absl::StrAppend(&text, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata:\n  name: ",
                  DnsLabel(input.model_name, kMaxNameSize),
                  "-serving\nspec:\n  namespaceSelector: {}\n  resourceGroups:\n");
  for (const auto& [resource, names] : names_of) {
    absl::StrAppend(&text, "  - coveredResources: [\"", resource, "\"]\n    flavors:\n");
    for (const std::string& name : names) {
      absl::StrAppend(&text, "    - name: ", name, "\n      resources:\n      - name: ", resource,
                      "\n        nominalQuota: ", flavors[name].chips, "\n");
    }
  }
  return Rendering{RenderTarget::kKueue, "yaml", std::move(text)};
}

absl::StatusOr<Rendering> RenderServing(RenderTarget target, const ServingRenderInput& input) {
  switch (target) {
    case RenderTarget::kVllm: return RenderVllm(input);
    case RenderTarget::kGkeJobSet: return RenderGkeServing(input);
    case RenderTarget::kKueue: return RenderKueueServing(input);
    default: break;
  }
  return absl::FailedPreconditionError(
      absl::StrCat(RenderTargetName(target), ": plans of serving are written for vLLM, GKE and Kueue."));
}

}  // namespace sliceplan::planner
