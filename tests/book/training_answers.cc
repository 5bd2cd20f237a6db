// Chapter 5: training on tori.
#include <cmath>
#include <string>
#include <vector>

#include "server/planner/budget.h"
#include "server/planner/closed_form.h"
#include "server/planner/thresholds.h"
#include "server/roofline/memory_tiers.h"
#include "tests/book/book_case.h"
#include "tests/book/book_constants.h"
#include "tests/book/models.h"

namespace sliceplan::book {
namespace {

using namespace planner;  // NOLINT(google-build-using-namespace): this file calls little else
using roofline::CriticalIntensity;
using roofline::MemoryTier;

double AlphaOf(const Json& given) { return CriticalIntensity(GivenChip(given), MemoryTier::kIciAxis).value(); }

MlpLayer LayerOf(const Json& given) { return {Number(given, "B"), Number(given, "D"), Number(given, "F")}; }

double AxesBytesPerSecond(const Json& given, const char* axes) {
  return AxisBytesPerSecond(given) * (given.contains(axes) ? Number(given, axes) : 1);
}

int64_t PodChips(const std::string& chip) { return SliceOf(chip, ChipRecord(chip).at("pod_topology")).chip_count; }

Json LargestReplicatedModel(const Json& given) {
  const StateBytes state;
  return {{"params", MaximumParametersPerChip(Number(given, "hbm_bytes"), state.Total())},
          {"bytes_per_param", state.Total()}};
}

Json DataThreshold(const Json& given) {
  const double tokens = DataTokensPerChip(AlphaOf(given), Number(given, "axes"));
  const double chips = static_cast<double>(PodChips(given.at("chip")));
  return {{"tokens_per_chip", tokens}, {"tokens_per_pod", MinimumGlobalBatchTokens(chips, tokens)}};
}

Json DataLayer(const Json& given) {
  const LayerTimes times = DataParallelBackward(LayerOf(given), Number(given, "X"), Number(given, "flops_per_s"),
                                                AxesBytesPerSecond(given, "axes"));
  return {{"t_math_s", times.compute_seconds},
          {"t_comms_s", times.weights_seconds},
          {"t_s", times.Seconds()},
          {"compute_bound", times.IsComputeBound()}};
}

Json FsdpLayer(const Json& given) {
  const LayerTimes times =
      FsdpForward(LayerOf(given), Number(given, "X"), Number(given, "flops_per_s"), AxesBytesPerSecond(given, "axes"));
  return {{"t_math_s", times.compute_seconds},
          {"t_comms_s", times.weights_seconds},
          {"compute_bound", times.IsComputeBound()}};
}

Json ReachableChips(const Json& given) {
  const double chips = MaximumChips(Number(given, "global_batch_tokens"), Number(given, "critical_tokens_per_chip"));
  return {{"chips", chips}, {"pods", chips / Number(given, "pod_chips")}};
}

Json TensorLimit(const Json& given) {
  const double axes = given.contains("axes") ? Number(given, "axes") : 1;
  const double limit = TensorDegreeLimit(Number(given, "alpha"), axes, Number(given, "F"));
  const Split split = PowerOfTwoSplit(/*optimal_fsdp_degree=*/1, static_cast<int64_t>(limit));
  return {{"Y_max", limit}, {"Y_pow2", split.tensor_degree}};
}

Json TensorLimitAndWidth(const Json& given) {
  Json answer = TensorLimit(given);
  answer["F_needed_for_8way"] = MinimumFfnDim(answer.at("Y_pow2"), Number(given, "alpha"), Number(given, "axes"));
  return answer;
}

Json OptimalSplit(const Json& given) {
  const double optimum = OptimalFsdpDegree(Number(given, "B"), Number(given, "F"), Number(given, "N"),
                                           Number(given, "M_X"), Number(given, "M_Y"));
  const Split split = PowerOfTwoSplit(optimum, Count(given, "N"));
  return {{"X_opt", optimum}, {"X_rounded", split.fsdp_degree}, {"Y_rounded", split.tensor_degree}};
}

double MixedThreshold(const Json& given) {
  return FsdpTensorTokensPerChip(Number(given, "alpha"), Number(given, "M_X"), Number(given, "M_Y"),
                                 Number(given, "F"));
}

Json MixedCriticalBatch(const Json& given) {
  const double fsdp = DataTokensPerChip(Number(given, "alpha"), Number(given, "M_X") + Number(given, "M_Y"));
  return {{"tokens_per_chip", MixedThreshold(given)}, {"gain_over_fsdp", fsdp / MixedThreshold(given)}};
}

Json MixedRatio(const Json& given) {
  return {{"ratio", ComputeOverNetworkAtOptimum(Number(given, "B"), Number(given, "F"), Number(given, "N"),
                                                Number(given, "alpha"), Number(given, "M_X"), Number(given, "M_Y"))}};
}

Json MixedLayer(const Json& given) {
  const LayerTimes times =
      FsdpTensorForward(LayerOf(given), Number(given, "X"), Number(given, "Y"), Number(given, "flops_per_s"),
                        AxesBytesPerSecond(given, "M_X"), AxesBytesPerSecond(given, "M_Y"));
  return {{"t_math_s", times.compute_seconds},
          {"t_fsdp_s", times.weights_seconds},
          {"t_tp_s", times.activations_seconds},
          {"compute_bound", times.IsComputeBound()}};
}

Json BetweenSlices(const Json& given) {
  const LayerTimes times =
      DataParallelBetweenSlicesBackward(LayerOf(given), Number(given, "N"), Number(given, "M"),
                                        Number(given, "flops_per_s"), Number(given, "dcn_bytes_per_s_per_chip"));
  return {{"t_math_s", times.compute_seconds},
          {"t_comms_s", times.weights_seconds},
          {"compute_bound", times.IsComputeBound()}};
}

Json TwoPods(const Json& given) {
  const double tokens = Number(given, "global_batch_tokens");
  const double alpha = Number(given, "alpha");
  const StrategyAxes axes = AxesOf(SliceOf("tpu-v5p", ChipRecord("tpu-v5p").at("pod_topology")));
  const double mixed = FsdpTensorTokensPerChip(alpha, axes.data, axes.tensor, Number(given, "F"));
  const double pod_tokens = tokens / Number(given, "pods");
  return {{"tp_max_per_axis", TensorDegreeLimit(alpha, axes.tensor, Number(given, "F"))},
          {"fsdp_max_chips_3axes", MaximumChips(tokens, DataTokensPerChip(alpha, axes.all))},
          {"mixed_min_tokens_per_chip", mixed},
          {"mixed_max_chips", MaximumChips(tokens, mixed)},
          {"per_pod_batch", pod_tokens},
          {"per_chip_batch", BatchShareOf(pod_tokens, 1, Number(given, "pod_chips")).tokens_per_chip}};
}

Json Volumes(const Json& given) {
  const MlpLayer layer = LayerOf(given);
  const double x = Number(given, "X");
  const double y = Number(given, "Y");
  const StrategyVolume data = DataParallelVolume(layer, x);
  const StrategyVolume fsdp = FsdpVolume(layer, x);
  const StrategyVolume tensor = TensorVolume(layer, y);
  const StrategyVolume mixed = FsdpTensorVolume(layer, x, y);
  return {{"dp_flops", data.flops},
          {"dp_bytes", data.Bytes()},
          {"fsdp_flops", fsdp.flops},
          {"fsdp_bytes", fsdp.Bytes()},
          {"tp_flops", tensor.flops},
          {"tp_bytes", tensor.Bytes()},
          {"mixed_flops", mixed.flops},
          {"mixed_fwd_bytes", mixed.forward_bytes},
          {"mixed_bwd_weight_bytes", mixed.backward_weight_bytes},
          {"mixed_bwd_activation_bytes_shared_gather", mixed.backward_activation_bytes},
          {"mixed_bwd_activation_bytes_regather", mixed.backward_activation_bytes_regathered}};
}

Json TrainingMemory(const Json& given) {
  const StateBytes state{Number(given, "param_bytes"), Number(given, "optimizer_bytes")};
  const double saved_per_layer = Number(given, "D") + 2 * Number(given, "F");
  return {{"params_and_optimizer_bytes", Number(given, "params") * state.Total()},
          {"activation_bytes", SavedActivationBytes(Number(given, "tokens"), Number(given, "L"), saved_per_layer,
                                                    Number(given, "checkpoint_bytes"))}};
}

Json MixedStep(const Json& given) {
  const double tokens = Number(given, "global_batch_tokens");
  const double chips = Number(given, "chips");
  const double share = BatchShareOf(tokens, 1, chips).tokens_per_chip;
  const double optimum =
      OptimalFsdpDegree(tokens, Number(given, "F"), chips, Number(given, "M_X"), Number(given, "M_Y"));
  const Split split = PowerOfTwoSplit(optimum, Count(given, "chips"));
  const double flops = TrainingFlops(Number(given, "params"), tokens);
  return {{"min_tokens_per_chip", MixedThreshold(given)},
          {"tokens_per_chip", share},
          {"compute_bound", share > MixedThreshold(given)},
          {"X_opt", optimum},
          {"X", split.fsdp_degree},
          {"Y", split.tensor_degree},
          {"step_s", SecondsAtMfu(flops, chips, Number(given, "flops_per_s"), Number(given, "mfu"))}};
}

Json OtherGenerations(const Json& given) {
  return {{"one_axis", DataTokensPerChip(AlphaOf(given), 1)},
          {"all_axes", DataTokensPerChip(AlphaOf(given), Number(given, "axes"))}};
}

Json GatheredVolumes(const Json& given) {
  const MlpLayer layer = LayerOf(given);
  const double weights = FsdpVolume(layer, Number(given, "X")).forward_bytes / Number(given, "Y");
  const double activations = TensorVolume(layer, Number(given, "Y")).forward_bytes / Number(given, "X");
  return {{"fsdp_bytes", weights}, {"tp_bytes", activations}, {"cheaper", activations < weights ? "tp" : "fsdp"}};
}

}  // namespace

Answers TrainingAnswers() {
  return {
      {"training.dp_max_params", LargestReplicatedModel},
      {"training.dp_critical_batch_v5p_1axis", DataThreshold},
      {"training.dp_critical_batch_v5p_2axis", DataThreshold},
      {"training.dp_layer_times", DataLayer},
      {"training.fsdp_layer_times", FsdpLayer},
      {"training.fsdp_deepseek_v2", ReachableChips},
      {"training.tp_limit_formula", TensorLimitAndWidth},
      {"training.tp_gemma7b", TensorLimit},
      {"training.mixed_xopt_64", OptimalSplit},
      {"training.mixed_critical_batch", MixedCriticalBatch},
      {"training.mixed_ratio", MixedRatio},
      {"training.mixed_layer_times", MixedLayer},
      {"training.critical_batch_16cubed",
       [](const Json& given) -> Json {
         return {{"global_batch_tokens", MinimumGlobalBatchTokens(Number(given, "N"), MixedThreshold(given))}};
       }},
      {"training.dcn_intensity",
       [](const Json& given) -> Json {
         return {{"tokens_per_slice",
                  DcnTokensPerSlice(Number(given, "flops_per_s"), Number(given, "dcn_bytes_per_s_per_chip"))}};
       }},
      {"training.dcn_layer_times", BetweenSlices},
      {"training.llama70b_2m_walkthrough", TwoPods},
      {"training.summary_table", Volumes},
      {"training.q1", ParametersByComponent},
      {"training.q2", TrainingMemory},
      {"training.q3.dp",
       [](const Json& given) -> Json {
         return {{"fits", MinimumChips(Number(given, "state_bytes"), Number(given, "hbm_bytes")) <= 1}};
       }},
      {"training.q3.mixed", MixedStep},
      {"training.dp_critical_batch_v5e", OtherGenerations},
      {"training.dp_critical_batch_v4p", OtherGenerations},
      {"training.tp_vs_fsdp_volume", GatheredVolumes},
  };
}

}  // namespace sliceplan::book
