#include "server/planner/render/render_words.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// One line, whatever the text holds.
std::string OneLine(absl::string_view text) {
  std::string line(text);
  for (char& c : line) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = ' ';
  }
  return line;
}

TensorPlacement Offloaded(TensorPlacement placement) {
  return placement == TensorPlacement::kSaved ? TensorPlacement::kOffloaded : placement;
}

}  // namespace

absl::Status CannotExpress(RenderTarget target, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(RenderTargetName(target), " cannot express this plan: ", why, "."));
}

bool IsTorus(const RenderInput& input) { return input.slice->accelerator.fabric == hardware::FabricKind::kTorus; }

std::string DnsLabel(absl::string_view text, size_t max_size) {
  // An owner before a slash says little, and labels are short.
  const size_t slash = text.rfind('/');
  if (slash != absl::string_view::npos && slash + 1 < text.size()) text.remove_prefix(slash + 1);
  std::string label;
  for (const char c : text) {
    const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (IsLower(lower) || IsDigit(lower)) {
      label += lower;
    } else if (!label.empty() && label.back() != '-') {
      label += '-';
    }
  }
  if (!label.empty() && IsDigit(label.front())) label = absl::StrCat("m-", label);
  label.resize(std::min(label.size(), max_size));
  while (!label.empty() && label.back() == '-') label.pop_back();
  return label.empty() ? "model" : label;
}

std::string PlainWord(absl::string_view text) {
  std::string word(text);
  for (char& c : word) {
    const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!IsLower(lower) && !IsDigit(lower) && absl::string_view("._/:@+-").find(c) == absl::string_view::npos) c = '-';
  }
  return word;
}

std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : OneLine(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string PlanComment(const RenderInput& input) {
  const TrainingEstimate& estimate = *input.estimate;
  const hardware::Slice& slice = *input.slice;
  std::vector<std::string> degrees;
  for (const LogicalAxis axis : kLogicalAxes) {
    if (estimate.parallelism.Degree(axis) <= 1) continue;
    std::string words = absl::StrCat(LogicalAxisName(axis), " ", estimate.parallelism.Degree(axis));
    if (const int32_t dcn = estimate.parallelism.dcn[axis]; dcn > 1)
      absl::StrAppend(&words, " (", dcn, " across slices)");
    degrees.push_back(std::move(words));
  }
  const std::string plan = degrees.empty() ? "one chip" : absl::StrJoin(degrees, ", ");
  std::string name = OneLine(slice.accelerator_type.empty() ? slice.accelerator.name : slice.accelerator_type);
  if (!input.names.topology.empty()) absl::StrAppend(&name, " ", OneLine(input.names.topology));
  std::string text = absl::StrCat("# ", OneLine(input.model_name), " on ", slice.slice_count, " x ", name, ", ",
                                  CountWords(slice.TotalChips()), " chips: ", plan, ".\n# ",
                                  CountWords(input.workload->global_batch_size), " sequences of ",
                                  CountWords(input.workload->sequence_length), " tokens a step");
  if (estimate.step_time.expected_seconds > 0) {
    absl::StrAppend(&text, ", ", SecondsWords(estimate.step_time.expected_seconds), " expected");
  }
  absl::StrAppend(&text, ".\n");
  if (!input.names.capacity_pool.empty()) {
    absl::StrAppend(&text, "# Capacity pool: ", OneLine(input.names.capacity_pool), ".\n");
  }
  return text;
}

int32_t ChipsPerHost(const RenderInput& input) {
  return input.names.chips_per_host > 0 ? input.names.chips_per_host : input.slice->chips_per_host;
}

int64_t HostCount(const RenderInput& input) {
  if (input.names.host_count > 0) return input.names.host_count;
  if (input.slice->host_count > 0) return input.slice->host_count;
  const int64_t chips_per_host = ChipsPerHost(input);
  return chips_per_host > 0 ? (input.slice->chip_count + chips_per_host - 1) / chips_per_host : 0;
}

DeviceDegrees DegreesInDevices(const RenderInput& input) {
  const Parallelism& plan = input.estimate->parallelism;
  DeviceDegrees degrees;
  degrees.ici = plan.ici;
  degrees.dcn = plan.dcn;
  degrees.devices_per_chip = std::max(1, input.slice->accelerator.devices_per_chip);
  if (input.estimate->microbatch_size % degrees.devices_per_chip != 0) {
    degrees.doubled = LogicalAxis::kTensor;
  } else if (plan.Degree(LogicalAxis::kFsdp) <= 1 && plan.Degree(LogicalAxis::kData) > 1) {
    degrees.doubled = LogicalAxis::kData;
  }
  degrees.ici[degrees.doubled] *= degrees.devices_per_chip;
  return degrees;
}

int32_t Stride(const RenderInput& input, LogicalAxis axis) {
  for (const AxisPlacement& placement : input.estimate->mapping) {
    if (placement.axis == axis && !placement.group.pieces.empty()) return placement.group.pieces.back().stride;
  }
  return 0;
}

RematPlan SavedTensors(const RenderInput& input) {
  RematPlan plan = PlanRemat(input.estimate->remat_policy, *input.workload, /*whole_layer_recompute=*/false);
  if (!input.workload->activation_offload) return plan;
  CustomRemat& tensors = plan.tensors;
  if (plan.save_everything) {
    plan.save_everything = false;
    for (TensorPlacement* placement : {&tensors.query, &tensors.key_value, &tensors.context, &tensors.out_projection,
                                       &tensors.mlp_up_gate, &tensors.mlp_down}) {
      *placement = TensorPlacement::kSaved;
    }
  }
  for (TensorPlacement* placement : {&tensors.query, &tensors.key_value, &tensors.context, &tensors.out_projection,
                                     &tensors.mlp_up_gate, &tensors.mlp_down, &tensors.layer_input}) {
    *placement = Offloaded(*placement);
  }
  return plan;
}

ModelFacts FactsOf(const transformer::ModelOperations& model) {
  ModelFacts facts;
  for (const transformer::LayerOperations& layer : model.layers) {
    facts.has_experts |= layer.expert_count > 0;
    facts.capacity_factor = std::max(facts.capacity_factor, layer.capacity_factor);
    int up_count = 0;
    for (const transformer::WeightMatmul& matmul : layer.matmuls) {
      if (matmul.output == transformer::SavedTensor::kMlpUpGate) ++up_count;
      facts.has_dense_feed_forward |= matmul.output == transformer::SavedTensor::kMlpUpGate && matmul.expert_count == 0;
      // Low-rank projections are computed whole by every chip of a tensor group.
      facts.has_latent_attention |= matmul.component == transformer::Component::kAttentionProjections &&
                                    matmul.split == transformer::TensorSplit::kNone && matmul.n < matmul.k;
    }
    facts.gated |= up_count > 1;
  }
  return facts;
}

StageSplit StagesOf(const RenderInput& input) {
  StageSplit split;
  SplitStages(*input.model, input.estimate->parallelism, split);
  return split;
}

}  // namespace sliceplan::planner
