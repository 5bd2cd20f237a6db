#include "server/planner/proposal_words.h"

#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/planner/explain.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

// Where the time of a step goes, in the terms in which plans differ.
enum class Spent { kCompute, kRecompute, kNetwork, kSchedule, kRest };
constexpr int kSpentCount = 5;
constexpr std::array<absl::string_view, kSpentCount> kSpentWords = {
    "compute and memory traffic", "recompute", "exposed communication", "pipeline bubbles", "other time"};

Spent SpentOn(const BreakdownEntry& entry) {
  if (entry.phase == Phase::kSchedule || entry.resource == StepResource::kBubble) return Spent::kSchedule;
  if (entry.axis || IsNetwork(entry.resource)) return Spent::kNetwork;
  if (entry.phase == Phase::kRecompute) return Spent::kRecompute;
  switch (entry.resource) {
    case StepResource::kMatrixUnit:
    case StepResource::kVectorUnit:
    case StepResource::kHbm: return Spent::kCompute;
    default: return Spent::kRest;
  }
}

std::array<double, kSpentCount> SpentSeconds(const TrainingEstimate& estimate) {
  std::array<double, kSpentCount> seconds = {};
  for (const BreakdownEntry& entry : estimate.breakdown) seconds[static_cast<size_t>(SpentOn(entry))] += entry.seconds;
  return seconds;
}

// "; 12 ms less exposed communication": the largest saving of a step against the next proposal's, per token of work.
std::string LargestSaving(const TrainingEstimate& mine, const TrainingEstimate& theirs) {
  const auto ours = SpentSeconds(mine);
  const auto others = SpentSeconds(theirs);
  size_t largest = 0;
  for (size_t i = 1; i < ours.size(); ++i) {
    if (others[i] - ours[i] > others[largest] - ours[largest]) largest = i;
  }
  const double saving = others[largest] - ours[largest];
  if (saving <= 0) return "";
  return absl::StrCat(": ", SecondsWords(saving), " less ", kSpentWords[largest], " a step");
}

std::string Compared(absl::string_view what, double mine, double theirs, std::string (*words)(double)) {
  if (theirs <= 0 || mine >= theirs) return absl::StrCat("as good in ", what);
  return absl::StrCat(PercentWords(1 - mine / theirs), " less ", what, " (", words(mine), " against ", words(theirs),
                      ")");
}

double ChipSeconds(const TrainingEstimate& estimate) {
  return estimate.step_time.expected_seconds * static_cast<double>(estimate.chip_count);
}

double EndSeconds(const ShardingQuestion& question, const Proposal& proposal) {
  const TrainingEstimate& estimate = proposal.estimate;
  const double run = estimate.goodput.wall_seconds.value_or(
      estimate.time_to_train_seconds.value_or(estimate.step_time.expected_seconds));
  return question.candidates[proposal.candidate].available_after_seconds + run;
}

double Usd(const TrainingEstimate& estimate) {
  return estimate.cost ? estimate.cost->total_usd.value_or(estimate.cost->usd_per_step) : 0;
}

}  // namespace

std::string DegreesWords(const Parallelism& parallelism) {
  std::string inside;
  std::string across;
  const auto add = [](LogicalAxis axis, int32_t degree, std::string& text) {
    if (degree > 1) absl::StrAppend(&text, text.empty() ? "" : ", ", LogicalAxisName(axis), " ", degree);
  };
  for (LogicalAxis axis : kLogicalAxes) {
    add(axis, parallelism.ici[axis], inside);
    add(axis, parallelism.dcn[axis], across);
  }
  if (inside.empty()) inside = "one chip";
  return across.empty() ? inside : absl::StrCat(inside, "; ", across, " across slices");
}

std::string BeatsBecause(const ShardingQuestion& question, const Proposal& proposal, const Proposal& next) {
  const TrainingEstimate& mine = proposal.estimate;
  const TrainingEstimate& theirs = next.estimate;
  std::string main;
  switch (question.objective) {
    case Objective::kMinStepTime: break;
    case Objective::kMinCost: main = Compared("cost", Usd(mine), Usd(theirs), UsdWords); break;
    case Objective::kMaxThroughputPerChip:
      main = Compared("chip time per token", ChipSeconds(mine), ChipSeconds(theirs), SecondsWords);
      break;
    case Objective::kMinChips:
      if (mine.chip_count < theirs.chip_count) {
        main = absl::StrCat(CountWords(mine.chip_count), " chips against ", CountWords(theirs.chip_count));
      }
      break;
    case Objective::kMinTimeToTrain:
      main = Compared("time until it is trained", EndSeconds(question, proposal), EndSeconds(question, next),
                      SecondsWords);
      break;
  }
  const double step = mine.step_time.expected_seconds;
  const double next_step = theirs.step_time.expected_seconds;
  if (step == next_step && main.empty()) return "As fast as the next, and simpler.";
  std::string text = main;
  if (step != next_step && (main.empty() || mine.chip_count == theirs.chip_count)) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", Compared("step time", step, next_step, SecondsWords));
    if (step < next_step) absl::StrAppend(&text, LargestSaving(mine, theirs));
  }
  absl::StrAppend(&text, ".");
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::vector<ClosedFormOptimum> ClosedForms(const TrainingJob& job, const Proposal& first) {
  std::vector<ClosedFormOptimum> optima;
  const TrainingEstimate& estimate = first.estimate;
  const Thresholds& thresholds = estimate.thresholds;
  const Parallelism& plan = estimate.parallelism;
  const auto at = [](ClosedFormOptimum& optimum, LogicalAxis axis) -> double& {
    return optimum.degrees[static_cast<size_t>(axis)];
  };
  // Data, FSDP and context all divide the tokens; the book calls them X together.
  const double token_shards = static_cast<double>(plan.ici[LogicalAxis::kData]) * plan.ici[LogicalAxis::kFsdp] *
                              plan.ici[LogicalAxis::kContext];
  const int32_t tensor = plan.Degree(LogicalAxis::kTensor);
  if (thresholds.optimal_fsdp_degree) {
    ClosedFormOptimum optimum;
    optimum.name = "FSDP x tensor at its best split";
    at(optimum, LogicalAxis::kFsdp) = *thresholds.optimal_fsdp_degree;
    at(optimum, LogicalAxis::kTensor) = static_cast<double>(job.slice.chip_count) / *thresholds.optimal_fsdp_degree;
    optimum.sentence = absl::StrCat(
        "sqrt((B / F) x (M_X / M_Y) x n) = ", NumberWords(*thresholds.optimal_fsdp_degree), "-way over tokens and ",
        NumberWords(at(optimum, LogicalAxis::kTensor)),
        "-way tensor makes weights and activations take equally long; the first proposal has ",
        NumberWords(token_shards), " and ", CountWords(tensor),
        thresholds.fsdp_tensor_tokens_per_chip && thresholds.tokens_per_chip >= *thresholds.fsdp_tensor_tokens_per_chip
            ? ": with enough tokens for compute to bind, what is exposed decides, not the traffic's sum."
            : ".");
    optima.push_back(std::move(optimum));
  }
  if (thresholds.tensor_degree_limit) {
    ClosedFormOptimum optimum;
    optimum.name = "largest tensor degree";
    at(optimum, LogicalAxis::kTensor) = *thresholds.tensor_degree_limit;
    optimum.sentence =
        absl::StrCat("M_Y x F / alpha = ", NumberWords(*thresholds.tensor_degree_limit),
                     ": above it tensor parallelism is bound by the network; the first proposal has ",
                     CountWords(tensor), tensor <= *thresholds.tensor_degree_limit ? ", below it." : ", above it.");
    optima.push_back(std::move(optimum));
  }
  if (thresholds.data_tokens_per_chip && *thresholds.data_tokens_per_chip > 0) {
    ClosedFormOptimum optimum;
    optimum.name = "most chips for FSDP alone";
    const double chips = estimate.tokens_per_step / *thresholds.data_tokens_per_chip;
    at(optimum, LogicalAxis::kFsdp) = chips;
    optimum.sentence = absl::StrCat(
        "Above ", NumberWords(chips), " chips (", NumberWords(*thresholds.data_tokens_per_chip),
        " tokens a chip) FSDP alone is bound by the network; the job has ", CountWords(estimate.chip_count), " chips.");
    optima.push_back(std::move(optimum));
  }
  if (thresholds.dcn_tokens_per_slice && *thresholds.dcn_tokens_per_slice > 0 && job.slice.slice_count > 1) {
    ClosedFormOptimum optimum;
    optimum.name = "most slices for data parallelism";
    const double slices = estimate.tokens_per_step / *thresholds.dcn_tokens_per_slice;
    at(optimum, LogicalAxis::kData) = slices;
    optimum.sentence = absl::StrCat(
        "Above ", NumberWords(slices), " slices (", NumberWords(*thresholds.dcn_tokens_per_slice),
        " tokens a slice) data parallelism between slices is bound by the data-centre network; the job has ",
        CountWords(job.slice.slice_count), ".");
    optima.push_back(std::move(optimum));
  }
  return optima;
}

}  // namespace sliceplan::planner
