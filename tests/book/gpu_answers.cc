// Chapter 12, first half: GPUs as chips, and training on them.
#include <string>
#include <vector>

#include "server/planner/budget.h"
#include "server/planner/closed_form.h"
#include "server/planner/pipeline_schedule.h"
#include "server/planner/thresholds.h"
#include "server/roofline/fat_tree.h"
#include "server/roofline/memory_tiers.h"
#include "server/roofline/unit_rates.h"
#include "tests/book/book_case.h"
#include "tests/book/book_constants.h"

namespace sliceplan::book {
namespace {

using namespace planner;  // NOLINT(google-build-using-namespace): this file calls little else
using hardware::AcceleratorSpec;
using hardware::DataType;
using roofline::CriticalIntensity;
using roofline::MemoryTier;

Json SpecOf(const Json& given) {
  const std::string id = given.at("chip");
  const Json& record = ChipRecord(id);
  const AcceleratorSpec chip = ChipSpec(id);
  Json answer = {{"generation", record.at("generation")},
                 {"sms", chip.sm_count.value()},
                 {"smem_bytes_per_sm", chip.smem_bytes_per_sm.value()},
                 {"l2_bytes", record.at("l2_bytes")},
                 {"hbm_capacity_bytes", chip.hbm_bytes.value()},
                 {"hbm_bytes_per_s", TierBytesPerSecond(chip, MemoryTier::kHbm).value()},
                 {"register_bytes_per_sm", record.at("register_bytes_per_sm")},
                 {"bf16_flops_per_s", chip.MatmulRate(DataType::kBf16).value()}};
  if (chip.fp8_flops_per_second) answer["fp8_flops_per_s"] = *chip.fp8_flops_per_second;
  if (chip.fp4_flops_per_second) answer["fp4_flops_per_s"] = *chip.fp4_flops_per_second;
  for (const char* clock : {"clock_base_hz", "clock_boost_hz"}) {
    if (record.contains(clock)) answer[clock] = record.at(clock);
  }
  if (record.contains("printed")) answer.update(record.at("printed"));
  return answer;
}

Json TensorCoreRate(const Json& given) {
  const auto rate = [&](const std::string& chip) {
    return roofline::FlopsPerCyclePerUnit(Number(given, (chip + "_flops_per_s").c_str()),
                                          Number(given, (chip + "_sms").c_str()) * Number(given, "tensor_cores_per_sm"),
                                          Number(given, (chip + "_clock_hz").c_str()));
  };
  return {{"h100", rate("h100")}, {"b200", rate("b200")}};
}

Json Registers(const Json& given) {
  const double bytes = roofline::RegisterFileBytes(
      Number(given, "subpartitions"), Number(given, "words_per_subpartition"), Number(given, "bytes_per_word"));
  return {{"bytes_per_sm", bytes},
          {"warps", roofline::ResidentWarps(bytes, Number(given, "bytes_per_word"), Number(given, "threads_per_warp"),
                                            Number(given, "registers_per_thread"))}};
}

Json AgainstTpu(const Json& given) {
  const double gpu = FlopsPerUsd(Number(given, "h200_flops"), Number(given, "h200_usd_per_h"));
  const double tpu = FlopsPerUsd(Number(given, "v5p_flops"), Number(given, "v5p_usd_per_h"));
  return {{"flops_ratio", *ChipSpec("h200").bf16_flops_per_second / *ChipSpec("tpu-v5p").bf16_flops_per_second},
          {"hbm_ratio",
           static_cast<double>(*ChipSpec("h200").hbm_bytes) / static_cast<double>(*ChipSpec("tpu-v5p").hbm_bytes)},
          {"price_ratio", Number(given, "h200_usd_per_h") / Number(given, "v5p_usd_per_h")},
          {"flops_per_usd_ratio", gpu / tpu}};
}

Json LaneCounts(const Json& given) {
  const auto gpu = [&](const char* sms) {
    return roofline::VectorLaneCount(Number(given, sms), Number(given, "cores_per_subpartition"),
                                     Number(given, "subpartitions"));
  };
  constexpr double kSublanes = 8;
  constexpr double kLanes = 128;
  constexpr double kAlus = 4;
  return {{"h100", gpu("h100_sms")},
          {"b200", gpu("b200_sms")},
          {"v5p", roofline::VectorLaneCount(Number(given, "v5p_cores") * kSublanes, kLanes, kAlus)}};
}

Json VectorRates(const Json& given) {
  const double lanes = Number(given, "alus");
  const double boost = roofline::VectorFlopsPerSecond(lanes, Number(given, "boost_hz"));
  return {{"base", roofline::VectorFlopsPerSecond(lanes, Number(given, "clock_hz"))},
          {"boost", boost},
          {"boost_with_fma", roofline::VectorFlopsPerSecond(lanes, Number(given, "boost_hz"), /*flops_per_cycle=*/2)},
          {"matmul_over_vector", Number(given, "matmul_flops") / boost}};
}

Json Ridges(const Json& given) {
  const auto ridge = [&](const std::string& id, DataType type) {
    AcceleratorSpec chip;
    chip.bf16_flops_per_second = Number(given, (id + "_flops").c_str());
    chip.fp8_flops_per_second = 2 * *chip.bf16_flops_per_second;
    chip.hbm_bytes_per_second = Number(given, (id + "_hbm").c_str());
    return CriticalIntensity(chip, MemoryTier::kHbm, type).value();
  };
  return {{"h100_fp16", ridge("h100", DataType::kFp16)},
          {"b200_fp16", ridge("b200", DataType::kFp16)},
          {"h100_fp8", ridge("h100", DataType::kFp8)},
          {"b200_fp8", ridge("b200", DataType::kFp8)}};
}

Json OnChipMemory(const Json& given) {
  AcceleratorSpec chip;
  chip.sm_count = static_cast<int32_t>(Count(given, "sms"));
  chip.smem_bytes_per_sm = Count(given, "smem_bytes");
  const double shared = roofline::SharedMemoryBytes(chip).value();
  const double registers = roofline::RegisterFileBytes(Number(given, "sms"), Number(given, "register_bytes"), 1);
  return {{"smem", shared}, {"registers", registers}, {"total", shared + registers}};
}

Json ImpliedClock(const Json& given) {
  constexpr double kFusedMultiplyAdd = 2;
  return {
      {"flops_per_cycle", roofline::VectorFlopsPerSecond(Number(given, "alus"), /*clock_hertz=*/1, kFusedMultiplyAdd)},
      {"clock_hz",
       roofline::ImpliedClockHertz(Number(given, "flops_per_s"), Number(given, "alus"), kFusedMultiplyAdd)}};
}

double InnerAlpha(const Json& given) {
  return ComputeToNetworkRatio(Number(given, "flops_per_s"), Number(given, "gpu_bytes_per_s"));
}

double OuterAlpha(const Json& given) {
  return ComputeToNetworkRatio(Number(given, "flops_per_s"), Number(given, "node_bytes_per_s"));
}

Json DataThresholds(const Json& given) {
  // Switches that reduce let each byte leave once instead of twice.
  constexpr double kPassesSaved = 2;
  return {{"intra_node", DataTokensPerChip(InnerAlpha(given), 1)},
          {"scale_out", DataTokensPerChip(OuterAlpha(given), 1)},
          {"with_sharp_theory", DataTokensPerChip(OuterAlpha(given), kPassesSaved)}};
}

Json DeepSeekThreshold(const Json& given) {
  const double tokens =
      DataTokensPerChip(ComputeToNetworkRatio(Number(given, "flops_per_s"), Number(given, "bytes_per_s")), 1);
  return {{"tokens_per_gpu", tokens}, {"batch_tokens", MinimumGlobalBatchTokens(Number(given, "gpus"), tokens)}};
}

Json FewNodes(const Json& given) {
  Json tokens = Json::array();
  for (const Json& nodes : given.at("node_counts"))
    tokens.push_back(DomainTokensPerChip(Number(given, "alpha"), nodes));
  return {{"tokens_per_gpu", tokens}};
}

Json TensorLimits(const Json& given) {
  constexpr double kNode = 8;
  const double inner = TensorDegreeLimit(InnerAlpha(given), 1, Number(given, "F"));
  return {{"intra_node", inner},
          {"scale_out", TensorDegreeLimit(OuterAlpha(given), 1, Number(given, "F"))},
          {"two_node", TwoDomainTensorLimit(OuterAlpha(given), kNode, Number(given, "F"))},
          {"practical", PowerOfTwoSplit(/*optimal_fsdp_degree=*/1, static_cast<int64_t>(inner)).tensor_degree}};
}

Json ExpertLayer(const Json& given) {
  const LayerTimes times = ExpertParallelForward(
      {Number(given, "B"), Number(given, "D"), Number(given, "F")}, Number(given, "k"), Number(given, "Z"),
      *ChipSpec("h100").scale_up_domain_size, Number(given, "flops_per_s"), Number(given, "node_bytes_per_s"));
  return {{"t_math_s", times.compute_seconds}, {"t_comms_s", times.activations_seconds}};
}

Json PipelineComms(const Json& given) {
  const PipelineShape shape{PipelineSchedule::kGpipe, Count(given, "stages"), Count(given, "microbatches"), 1};
  constexpr double kBytes = 2;
  const PipelineTraffic traffic =
      PipelineTrafficOf(shape, Number(given, "B"), Number(given, "D"), kBytes, Number(given, "node_bytes_per_s"));
  return {{"per_hop_s", traffic.seconds_per_hop},
          {"hops", traffic.hop_count},
          {"total_s", traffic.total_seconds},
          {"per_layer_approx_s", PipelineSecondsPerLayer(Number(given, "B"), Number(given, "D"), kBytes,
                                                         Number(given, "node_bytes_per_s"), Number(given, "layers"))}};
}

Json Bubble(const Json& given) {
  const PipelineShape shape{PipelineSchedule::kGpipe, Count(given, "stages"), Count(given, "microbatches"), 1};
  const double backward = Number(given, "backward_units");
  const StageWork work{Number(given, "forward_units"), backward / 2, backward / 2};
  return {{"ideal_units", ScheduleTime(shape, work) - BubbleTime(shape, work)},
          {"makespan_units", ScheduleTime(shape, work)},
          {"idle_fraction", BubbleRatio(shape, work)}};
}

Json DeepSeekPlan(const Json& given) {
  const BatchShare share =
      BatchShareOf(Number(given, "sequences"), Number(given, "sequence_length"), Number(given, "gpus"));
  const roofline::FatTreeLevel groups{static_cast<int32_t>(Count(given, "dp")), /*child_bytes_per_second=*/1};
  return {{"batch_tokens", share.global_tokens},
          {"tokens_per_gpu", share.tokens_per_chip},
          {"model_parallel", Count(given, "ep") * Count(given, "pp")},
          {"ar_gain", LevelGatherBytesPerSecond(groups)}};
}

Json Blackwell(const Json& given) {
  const double rack = roofline::DomainEgressBytesPerSecond(ChipSpec("gb200-nvl72")).value();
  return {{"intra_node", InnerAlpha(given)},
          {"scale_out", OuterAlpha(given)},
          {"gb200_scale_out", ComputeToNetworkRatio(Number(given, "flops_per_s"), rack)},
          {"flops_ratio_vs_h100", Number(given, "flops_per_s") / *ChipSpec("h100").bf16_flops_per_second}};
}

Json MinimumGpus(const Json& given) {
  const double bytes = Number(given, "params") * Number(given, "bytes_per_param");
  const double node_bytes = Number(given, "hbm_bytes") * *ChipSpec("h100").scale_up_domain_size;
  return {{"bytes", bytes},
          {"gpus", MinimumChips(bytes, Number(given, "hbm_bytes"))},
          {"nodes", MinimumChips(bytes, node_bytes)}};
}

Json TrainingTime(const Json& given) {
  const double seconds = SecondsAtMfu(Number(given, "total_flops"), Number(given, "gpus"), Number(given, "flops_per_s"),
                                      Number(given, "mfu"));
  return {{"flops_per_s", Number(given, "total_flops") / seconds},
          {"seconds", seconds},
          {"days", seconds / kSecondsPerDay}};
}

double TokensPerGpu(const Json& given) {
  return BatchShareOf(Number(given, "global_batch_sequences"), Number(given, "sequence_length"), Number(given, "gpus"))
      .tokens_per_chip;
}

Json MegatronPlan(const Json& given) {
  const double node = *ChipSpec("h100").scale_up_domain_size;
  const double threshold = DomainTokensPerChip(Number(given, "scale_out_threshold"), Number(given, "gpus") / node,
                                               Number(given, "model_parallel") / node);
  return {{"tokens_per_gpu", TokensPerGpu(given)},
          {"threshold", threshold},
          {"compute_bound", TokensPerGpu(given) > threshold}};
}

}  // namespace

Answers GpuAnswers() {
  return {
      {"gpus.spec.a100", SpecOf},
      {"gpus.spec.h100", SpecOf},
      {"gpus.spec.h200", SpecOf},
      {"gpus.spec.b200", SpecOf},
      {"gpus.tensor_core_rate", TensorCoreRate},
      {"gpus.registers", Registers},
      {"gpus.h200_vs_v5p", AgainstTpu},
      {"gpus.quiz1.q1", LaneCounts},
      {"gpus.quiz1.q2", VectorRates},
      {"gpus.quiz1.q3", Ridges},
      {"gpus.quiz1.q5", OnChipMemory},
      {"gpus.quiz1.q6", ImpliedClock},
      {"gpus.dp_threshold", DataThresholds},
      {"gpus.dp_deepseek", DeepSeekThreshold},
      {"gpus.dp_moe",
       [](const Json& given) -> Json {
         return {
             {"tokens_per_gpu", DataTokensPerChip(Number(given, "alpha"), 1, Number(given, "E") / Number(given, "k"))}};
       }},
      {"gpus.dp_small_x", FewNodes},
      {"gpus.tp_limit", TensorLimits},
      {"gpus.ep_layer_times", ExpertLayer},
      {"gpus.pp_comms", PipelineComms},
      {"gpus.pp_bubble_2x2", Bubble},
      {"gpus.deepseek_config", DeepSeekPlan},
      {"gpus.quiz5.q1", Blackwell},
      {"gpus.quiz5.q2.1", MinimumGpus},
      {"gpus.quiz5.q2.2", TrainingTime},
      {"gpus.quiz5.q3.16b",
       [](const Json& given) -> Json {
         return {{"tokens_per_gpu", TokensPerGpu(given)}};
       }},
      {"gpus.quiz5.q3.70b", MegatronPlan},
  };
}

}  // namespace sliceplan::book
