// Chapter 6: LLaMA 3 on TPUs.
#include <string>

#include "server/planner/budget.h"
#include "server/planner/closed_form.h"
#include "server/planner/thresholds.h"
#include "tests/book/book_case.h"
#include "tests/book/book_constants.h"
#include "tests/book/models.h"

namespace sliceplan::book {
namespace {

using namespace planner;  // NOLINT(google-build-using-namespace): this file calls little else

Json FlopsPerToken(const Json& given) {
  const double flops = TrainingFlops(Number(given, "params"), /*tokens=*/1);
  return {{"flops", flops}, {"t_s", SecondsAtMfu(flops, 1, Number(given, "flops_per_s"), 1)}};
}

Json TotalFlops(const Json& given) {
  const double flops = TrainingFlops(Number(given, "params"), Number(given, "tokens"));
  return {{"flops", flops}, {"years", SecondsAtMfu(flops, 1, Number(given, "flops_per_s"), 1) / kSecondsPerYear}};
}

Json PodTime(const Json& given) {
  const double seconds = SecondsAtMfu(TrainingFlops(Number(given, "params"), Number(given, "tokens")),
                                      Number(given, "chips"), Number(given, "flops_per_s"), Number(given, "mfu"));
  return {{"seconds", seconds}, {"days", seconds / kSecondsPerDay}};
}

Json Memory(const Json& given) {
  const double parameters = Number(given, "params");
  const StateBytes state;
  const double saved_per_layer = Number(given, "D") * Number(given, "checkpoints_per_layer");
  const double activations =
      SavedActivationBytes(Number(given, "tokens"), Number(given, "L"), saved_per_layer, /*bytes_per_element=*/2);
  const double total = parameters * state.Total() + activations;
  const double chips = MinimumChips(total, Number(given, "hbm_bytes"));
  // The chapter's run on so few chips: 15e12 tokens, bf16 peak of v5p at 40%.
  constexpr double kTokens = 15e12;
  constexpr double kMfu = 0.4;
  const double seconds =
      SecondsAtMfu(TrainingFlops(parameters, kTokens), chips, *ChipSpec("tpu-v5p").bf16_flops_per_second, kMfu);
  return {{"param_bytes", parameters * state.weights},
          {"optimizer_bytes", parameters * state.optimizer},
          {"checkpoint_bytes", activations},
          {"total_bytes", total},
          {"min_chips_exact", ChipsOfMemory(total, Number(given, "hbm_bytes"))},
          {"min_chips_ceil", chips},
          {"days_on_min_chips", seconds / kSecondsPerDay}};
}

Json Sequences(const Json& given) {
  const int64_t degree = MaximumFsdpDegree(Count(given, "global_batch_tokens"), Count(given, "sequence_length"));
  return {{"sequences", degree}, {"max_fsdp", degree}};
}

Json FullPod(const Json& given) {
  const double share = BatchShareOf(Number(given, "global_batch_tokens"), 1, Number(given, "chips")).tokens_per_chip;
  const double needed = DataTokensPerChip(Number(given, "alpha"), Number(given, "axes"));
  return {{"tokens_per_chip", share}, {"needed", needed}, {"compute_bound", share > needed}};
}

Json Mixed(const Json& given) {
  const double tokens = Number(given, "global_batch_tokens");
  const double chips = Number(given, "chips");
  const double share = BatchShareOf(tokens, 1, chips).tokens_per_chip;
  const double needed =
      FsdpTensorTokensPerChip(Number(given, "alpha"), Number(given, "M_X"), Number(given, "M_Y"), Number(given, "F"));
  const double optimum =
      OptimalFsdpDegree(tokens, Number(given, "F"), chips, Number(given, "M_X"), Number(given, "M_Y"));
  const Split split = PowerOfTwoSplit(optimum, Count(given, "chips"));
  return {{"min_tokens_per_chip", needed},   {"tokens_per_chip", share},
          {"compute_bound", share > needed}, {"X_opt", optimum},
          {"X", split.fsdp_degree},          {"Y", split.tensor_degree},
          {"chips_used", split.Chips()}};
}

Json LargeModel(const Json& given) {
  const double parameters = TotalParameters(given);
  // The question's 15e12 tokens.
  return {{"params", parameters},
          {"flops_per_token", TrainingFlops(parameters, 1)},
          {"total_flops_15t", TrainingFlops(parameters, 15e12)}};
}

Json Cost(const Json& given) {
  const double hours = ChipHoursAtMfu(Number(given, "total_flops"), Number(given, "flops_per_s"), Number(given, "mfu"));
  return {{"chip_hours", hours}, {"usd", CostUsd(hours, Number(given, "usd_per_chip_hour"))}};
}

}  // namespace

Answers AppliedTrainingAnswers() {
  return {
      {"applied-training.params", ParametersByComponent},
      {"applied-training.flops_per_token", FlopsPerToken},
      {"applied-training.total_flops", TotalFlops},
      {"applied-training.pod_time", PodTime},
      {"applied-training.memory", Memory},
      {"applied-training.fsdp_sequences", Sequences},
      {"applied-training.fsdp_full_pod", FullPod},
      {"applied-training.mixed", Mixed},
      {"applied-training.q2a", LargeModel},
      {"applied-training.cost_v5p", Cost},
      {"applied-training.cost_h100", Cost},
  };
}

}  // namespace sliceplan::book
