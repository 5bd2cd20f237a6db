#include "server/planner/explain.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

// Classes of memory that a shortfall names, the largest first.
constexpr size_t kClassesNamed = 3;

absl::string_view BoundWords(StepResource resource) {
  switch (resource) {
    case StepResource::kMatrixUnit:
    case StepResource::kVectorUnit: return "Compute-bound";
    case StepResource::kHbm: return "HBM-bound";
    case StepResource::kIci:
    case StepResource::kScaleUp:
    case StepResource::kScaleOut: return "Interconnect-bound";
    case StepResource::kDcn: return "Bound by the network between slices";
    case StepResource::kPcie: return "Bound by the host link";
    case StepResource::kBubble: return "Bound by the pipeline bubble";
    case StepResource::kHost: return "Host-bound";
  }
  return "";
}

absl::string_view AxesWords(const hardware::Slice& slice) {
  if (slice.accelerator.fabric != hardware::FabricKind::kTorus) return "";
  const auto axes = std::count_if(slice.axes.begin(), slice.axes.end(),
                                  [](const hardware::TorusAxis& axis) { return axis.size > 1; });
  constexpr std::array<absl::string_view, 4> kWords = {"", " on one axis", " on two axes", " on three axes"};
  return axes >= 0 && static_cast<size_t>(axes) < kWords.size() ? kWords[static_cast<size_t>(axes)] : "";
}

// "512 tokens per chip where FSDP alone needs 850 on three axes", or nothing.
std::string TokensWords(const TrainingJob& job, const TrainingEstimate& estimate) {
  const double needed = NeededTokensPerChip(estimate);
  if (needed <= 0) return "";
  const int64_t tensor =
      int64_t{estimate.parallelism.ici[LogicalAxis::kTensor]} * estimate.parallelism.dcn[LogicalAxis::kTensor];
  const bool fsdp =
      int64_t{estimate.parallelism.ici[LogicalAxis::kFsdp]} * estimate.parallelism.dcn[LogicalAxis::kFsdp] > 1;
  const absl::string_view strategy = fsdp ? "FSDP" : "data parallelism";
  std::string words =
      absl::StrCat(NumberWords(estimate.thresholds.tokens_per_chip), " tokens per chip where ", strategy);
  if (tensor > 1) {
    absl::StrAppend(&words, " beside tensor ", CountWords(tensor), " needs ", NumberWords(needed));
    if (estimate.thresholds.fsdp_tensor_tokens_per_chip) {
      absl::StrAppend(&words, ", ", NumberWords(*estimate.thresholds.fsdp_tensor_tokens_per_chip),
                      " at the best split");
    }
  } else {
    absl::StrAppend(&words, " alone needs ", NumberWords(needed), AxesWords(job.slice));
  }
  return words;
}

absl::string_view MomentWords(MemoryMoment moment) {
  switch (moment) {
    case MemoryMoment::kLoss: return "while the loss is computed";
    case MemoryMoment::kLayerBackward: return "in a layer's backward pass";
    case MemoryMoment::kOptimizerUpdate: return "in the optimizer update";
  }
  return "";
}

std::string MemoryWords(const TrainingEstimate& estimate) {
  const MemoryUse& memory = estimate.memory;
  using Class = std::pair<int64_t, absl::string_view>;
  std::array<Class, 8> classes = {{{memory.parameters_bytes, "parameters"},
                                   {memory.gradients_bytes, "gradients"},
                                   {memory.optimizer_bytes, "optimizer state"},
                                   {memory.activations_bytes, "saved activations"},
                                   {memory.gathered_weights_bytes, "gathered weights"},
                                   {memory.workspace_bytes, "workspace"},
                                   {memory.logits_bytes, "logits"},
                                   {memory.buffers_bytes, "buffers"}}};
  std::stable_sort(classes.begin(), classes.end(), [](const Class& a, const Class& b) { return a.first > b.first; });
  std::string words =
      estimate.stage_memory.empty() ? std::string("Each chip") : absl::StrCat("Each chip of stage ", memory.stage);
  absl::StrAppend(&words, " needs ", BytesWords(static_cast<double>(memory.used_bytes)), " ",
                  MomentWords(memory.worst_moment), " and has ", BytesWords(static_cast<double>(memory.capacity_bytes)),
                  ": ", BytesWords(static_cast<double>(-memory.headroom_bytes)), " too little. Largest: ");
  for (size_t i = 0; i < kClassesNamed; ++i) {
    absl::StrAppend(&words, i == 0 ? "" : ", ", classes[i].second, " ",
                    BytesWords(static_cast<double>(classes[i].first)));
  }
  absl::StrAppend(&words, ".");
  return words;
}

std::string PlanWords(const TrainingJob& job) {
  return absl::StrCat(
      "No split of ", CountWords(job.slice.chip_count), " chips",
      job.slice.slice_count > 1 ? absl::StrCat(" on ", CountWords(job.slice.slice_count), " slices") : std::string(),
      " divides a batch of ", CountWords(job.workload.global_batch_size), " sequences of ",
      CountWords(job.workload.sequence_length), " tokens, the heads and the ",
      CountWords(static_cast<int64_t>(job.model->layer_kind.size())), " layers of this model.");
}

std::string HostWords(const TrainingEstimate& estimate) {
  const MemoryUse& memory = estimate.memory;
  return absl::StrCat("What is offloaded takes ", BytesWords(static_cast<double>(memory.host_bytes)),
                      " of the host's memory per chip, and a chip's share of it is ",
                      BytesWords(static_cast<double>(memory.host_capacity_bytes)), ": ",
                      BytesWords(estimate.shortfall_amount), " too little.");
}

std::string NeverWords(const TrainingEstimate& estimate, absl::string_view limit, absl::string_view amount) {
  return absl::StrCat("Training never finishes, so it meets no ", limit, ", not even ", amount, ": ",
                      NumberWords(estimate.goodput.failures_per_day), " interruptions a day leave no time for it.");
}

}  // namespace

absl::string_view ResourceWords(StepResource resource) {
  switch (resource) {
    case StepResource::kMatrixUnit: return "the matrix unit";
    case StepResource::kVectorUnit: return "the vector unit";
    case StepResource::kHbm: return "HBM";
    case StepResource::kIci: return "ICI";
    case StepResource::kScaleUp: return "the scale-up network";
    case StepResource::kScaleOut: return "the scale-out network";
    case StepResource::kDcn: return "the data-centre network";
    case StepResource::kPcie: return "PCIe";
    case StepResource::kBubble: return "the pipeline bubble";
    case StepResource::kHost: return "the host";
  }
  return "";
}

bool IsNetwork(StepResource resource) {
  return resource == StepResource::kIci || resource == StepResource::kScaleUp || resource == StepResource::kScaleOut ||
         resource == StepResource::kDcn;
}

double NeededTokensPerChip(const TrainingEstimate& estimate) {
  const bool tensor =
      estimate.parallelism.ici[LogicalAxis::kTensor] > 1 || estimate.parallelism.dcn[LogicalAxis::kTensor] > 1;
  const Thresholds& thresholds = estimate.thresholds;
  return (tensor ? thresholds.fsdp_tokens_per_chip : thresholds.data_tokens_per_chip).value_or(0);
}

std::string ExplainBottleneck(const TrainingJob& job, const TrainingEstimate& estimate) {
  const Bottleneck& bottleneck = estimate.bottleneck;
  if (bottleneck.share_ratio <= 0) return "";
  if (estimate.step_time.assumed) {
    return absl::StrCat("The step time is assumed, ", PercentWords(estimate.mfu_ratio),
                        " of the peak, so what holds it back is not; by the roofline ",
                        ResourceWords(bottleneck.resource), " would.");
  }
  const std::string tokens = TokensWords(job, estimate);
  const absl::string_view bound = BoundWords(bottleneck.resource);
  // Tokens come first where they are the reason.
  const bool tokens_bind = IsNetwork(bottleneck.resource) && !tokens.empty() &&
                           estimate.thresholds.tokens_per_chip < NeededTokensPerChip(estimate);
  std::string sentence = absl::StrCat(bound, ": ", tokens_bind ? tokens : std::string(), tokens_bind ? "; " : "",
                                      ResourceWords(bottleneck.resource),
                                      bottleneck.resource == StepResource::kBubble ? " takes " : " is busy ",
                                      PercentWords(bottleneck.share_ratio), " of the ideal step");
  if (bottleneck.next_share_ratio > 0) {
    absl::StrAppend(&sentence, ", ", ResourceWords(bottleneck.next_resource), " ",
                    PercentWords(bottleneck.next_share_ratio));
  }
  if (!tokens_bind && !tokens.empty()) absl::StrAppend(&sentence, "; ", tokens);
  absl::StrAppend(&sentence, ".");
  return sentence;
}

std::string DescribeShortfall(const TrainingJob& job, const TrainingEstimate& estimate) {
  const double deadline = job.deadline_seconds.value_or(0);
  const double budget = job.budget_usd.value_or(0);
  switch (estimate.outcome) {
    case Outcome::kFeasible: return "";
    case Outcome::kOutOfMemory: return estimate.memory.headroom_bytes < 0 ? MemoryWords(estimate) : HostWords(estimate);
    case Outcome::kMissesDeadline:
      if (!estimate.goodput.finishes) return NeverWords(estimate, "deadline", SecondsWords(deadline));
      return absl::StrCat("Training takes ", SecondsWords(deadline + estimate.shortfall_amount), ", ",
                          SecondsWords(estimate.shortfall_amount), " longer than the deadline of ",
                          SecondsWords(deadline), " allows.");
    case Outcome::kOverBudget:
      if (!estimate.goodput.finishes) return NeverWords(estimate, "budget", UsdWords(budget));
      return absl::StrCat("Training costs ", UsdWords(budget + estimate.shortfall_amount), ", ",
                          UsdWords(estimate.shortfall_amount), " more than the budget of ", UsdWords(budget), ".");
    case Outcome::kNoLegalPlan: return PlanWords(job);
  }
  return "";
}

}  // namespace sliceplan::planner
