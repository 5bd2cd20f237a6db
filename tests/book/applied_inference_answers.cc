// Chapter 8: serving LLaMA 3 on TPUs.
#include <cmath>
#include <string>
#include <vector>

#include "server/hardware/topology.h"
#include "server/planner/budget.h"
#include "server/planner/serving_closed_form.h"
#include "server/planner/thresholds.h"
#include "server/roofline/critical_batch.h"
#include "server/transformer/kv_cache.h"
#include "tests/book/book_case.h"
#include "tests/book/book_constants.h"
#include "tests/book/models.h"

namespace sliceplan::book {
namespace {

using namespace planner;  // NOLINT(google-build-using-namespace): this file calls little else
using hardware::DataType;

constexpr char kChip[] = "tpu-v5e";  // of the whole chapter

// What the case gives, on the chapter's chip and model where it says nothing: 70e9 int8 parameters.
DecodeReplica ReplicaOf(const Json& given) {
  const hardware::AcceleratorSpec chip = ChipSpec(kChip);
  constexpr double kParameters = 70e9;
  DecodeReplica replica;
  replica.active_parameter_count = given.value("params", kParameters);
  replica.weight_bytes = given.value("param_bytes", kParameters);
  if (given.contains("kv_bytes_per_token")) {
    replica.kv_bytes_per_sequence = Number(given, "kv_bytes_per_token") * given.value("context", 1.0);
  }
  replica.batch_size = given.value("batch", 0.0);
  replica.chip_count = given.value("chips", 1.0);
  replica.flops_per_second = given.value("flops_per_s", *chip.bf16_flops_per_second);
  replica.hbm_bytes_per_second = given.value("hbm_bytes_per_s", *chip.hbm_bytes_per_second);
  replica.hbm_bytes = given.value("hbm_bytes", 0.0);
  return replica;
}

// The book writes the host's eight chips as "4x2".
std::string SliceName(int64_t chips) {
  const std::string name = hardware::ShapeName(hardware::ShapesOf(chips, /*dims=*/2, /*unit=*/1).front());
  const std::string host = ChipRecord(kChip).at("host_topology");
  const hardware::Shape host_shape = hardware::CanonicalOrder(hardware::ParseShape(host).value());
  return hardware::ShapeName(host_shape) == name ? host : name;
}

int64_t SmallestSlice(double bytes, double hbm_bytes) {
  const std::vector<int64_t> sizes = ChipRecord(kChip).at("slice_chips");
  return SmallestSliceFor(bytes, hbm_bytes, sizes).value();
}

Json LongContext(const Json& given) {
  const DecodeReplica replica = ReplicaOf(given);
  const double used = DecodeStepOf(replica).used_bytes;
  return {{"bytes_per_seq", replica.kv_bytes_per_sequence},
          {"batch_bytes", used - replica.weight_bytes},
          {"chips", ChipsOfMemory(used, replica.hbm_bytes)}};
}

// The case gives weights and caches in one sum, all of which a step reads.
Json ReadEverything(const Json& given) {
  DecodeReplica replica = ReplicaOf(given);
  replica.weight_bytes = Number(given, "total_bytes");
  const DecodeStep step = DecodeStepOf(replica);
  return {{"step_s", step.step_seconds},
          {"tokens_per_s", step.tokens_per_second},
          {"tokens_per_s_per_chip", step.tokens_per_second_per_chip}};
}

Json TensorLimits(const Json& given) {
  const double lines = AxesOf(SliceOf(kChip, "4x4")).all;
  return {{"Y_max", TensorDegreeLimit(Number(given, "alpha"), Number(given, "axes"), Number(given, "F"))},
          {"Y_max_no_wraparound", TensorDegreeLimit(Number(given, "alpha"), lines, Number(given, "F"))}};
}

Json CriticalBatchOf(const Json& given) {
  return {{"batch_tokens", roofline::CriticalBatch(Number(given, "flops_per_s"), Number(given, "hbm_bytes_per_s"),
                                                   Number(given, "weight_bytes"))}};
}

Json MinimumSlice(const Json& given) {
  DecodeReplica replica = ReplicaOf(given);
  const int64_t chips = SmallestSlice(replica.weight_bytes, replica.hbm_bytes);
  replica.chip_count = static_cast<double>(chips);
  return {{"param_bytes", replica.weight_bytes},
          {"chips_exact", ChipsOfMemory(replica.weight_bytes, replica.hbm_bytes)},
          {"min_chips", chips},
          {"min_slice", SliceName(chips)},
          {"free_bytes", FreeBytes(replica)},
          {"kv_caches", MaximumBatch(replica)}};
}

Json Queries(const Json& given) {
  const double rate =
      RequestsPerSecond(Number(given, "batch"), Number(given, "step_s"), Number(given, "decode_tokens"));
  return {{"qps_total", rate}, {"qps_per_chip", rate / Number(given, "chips")}};
}

Json QueriesOnTwice(const Json& given) {
  const DecodeReplica replica = ReplicaOf(given);
  Json full = given;
  full["batch"] = MaximumBatch(replica);
  Json answer = Queries(full);
  answer["free_bytes"] = FreeBytes(replica);
  answer["batch"] = MaximumBatch(replica);
  return answer;
}

Json DecodeOneMatmul(const Json& given) {
  const DecodeMatmul matmul =
      DecodeMatmulOf(Number(given, "batch"), Number(given, "D"), Number(given, "F"), Number(given, "chips"),
                     Number(given, "flops_per_s"), Number(given, "hbm_bytes_per_s"), AxisBytesPerSecond(given));
  return {{"Y_max", DecodeTensorLimit(Number(given, "F"), Number(given, "batch"), Number(given, "beta"))},
          {"t_ici_s", matmul.network_seconds},
          {"t_hbm_s", matmul.weights_seconds},
          {"t_math_s", matmul.compute_seconds},
          {"bound", matmul.IsWeightsBound() ? "hbm" : "another"}};
}

Json Prefill(const Json& given) {
  return {{"t_s", PrefillSeconds(Number(given, "params"), Number(given, "tokens"), Number(given, "chips"),
                                 Number(given, "flops_per_s"), Number(given, "mfu"))}};
}

Json Disaggregation(const Json& given) {
  const auto ratio = [&](double batch) {
    return PrefillPerGenerateServers(Number(given, "prefill_s"), batch, Number(given, "step_s"),
                                     Number(given, "decode_tokens"));
  };
  constexpr double kBatchDerivedBefore = 43;  // chapter: what fits
  return {{"prefill_per_generate", ratio(Number(given, "batch"))}, {"ratio_if_batch_43", ratio(kBatchDerivedBefore)}};
}

Json ParetoPoint(const Json& given) {
  const DecodeStep step = DecodeStepOf(ReplicaOf(given));
  return {{"kv_load_s", step.kv_seconds},
          {"param_load_s", step.weights_seconds},
          {"flops_s", step.compute_seconds},
          {"step_s", step.step_seconds},
          {"tokens_per_s_per_chip", step.tokens_per_second_per_chip},
          {"fits_in_hbm", step.fits}};
}

// LLaMA-3 70B with an int8 cache.
double CacheBytesPerToken() {
  const Json model = {{"L", 80}, {"K", 8}, {"H", 128}};
  return CacheBytes(model, /*context=*/1, DataType::kInt8);
}

Json Plateau(const Json& given) {
  DecodeReplica replica = ReplicaOf(given);
  replica.kv_bytes_per_sequence = CacheBytesPerToken() * Number(given, "context");
  const DecodeStep full = DecodeStepOf(replica);
  replica.batch_size = 1;
  const DecodeStep alone = DecodeStepOf(replica);
  constexpr double kMillisecondsPerSecond = 1000;
  return {{"tokens_per_ms_per_chip", full.tokens_per_second_per_chip / kMillisecondsPerSecond},
          {"cost_ratio_b1_to_b120", full.tokens_per_second / alone.tokens_per_second}};
}

Json MaximumBatchOf(const Json& given) {
  const double batch = MaximumBatch(ReplicaOf(given));
  // The printed code returns the index of the largest batch of 1, 5, 9, ... that fits.
  constexpr double kStep = 4;
  return {{"max_batch", batch}, {"printed_code_returns", std::floor((batch - 1) / kStep)}};
}

Json LargeModel(const Json& given) {
  DecodeReplica replica = ReplicaOf(given);
  replica.batch_size = 1;
  const auto weights_seconds = [&](DataType type) {
    replica.weight_bytes = replica.active_parameter_count * hardware::BytesPerElement(type);
    return DecodeStepOf(replica).weights_seconds;
  };
  return {{"flops_per_token", ForwardFlops(replica.active_parameter_count, /*tokens=*/1)},
          {"flops_bound_s_times_chips", DecodeStepOf(replica).compute_seconds},
          {"hbm_bound_bf16_s_times_chips", weights_seconds(DataType::kBf16)},
          {"hbm_bound_int8_s_times_chips", weights_seconds(DataType::kInt8)}};
}

Json SmallModel(const Json& given) {
  DecodeReplica replica = ReplicaOf(given);
  const double parameters = TotalParameters(given);
  replica.weight_bytes = parameters * Number(given, "weight_bytes");
  replica.kv_bytes_per_sequence = CacheBytes(given, Count(given, "context"), DataType::kInt8);
  const double used = DecodeStepOf(replica).used_bytes;
  return {{"params", parameters},
          {"kv_bytes_per_token",
           transformer::GrowingBytesPerToken(transformer::KvCacheOf(ModelOf(given)), DataType::kInt8)},
          {"kv_total_bytes", used - replica.weight_bytes},
          {"ffw_activation_bytes", SavedActivationBytes(Number(given, "batch"), /*layer_count=*/1, Number(given, "F"),
                                                        hardware::BytesPerElement(DataType::kBf16))},
          {"chips_exact", ChipsOfMemory(used, replica.hbm_bytes)},
          {"min_slice", SliceName(SmallestSlice(used, replica.hbm_bytes))}};
}

Json KvTransfer(const Json& given) {
  const double bytes = Number(given, "kv_bytes_per_token") * Number(given, "tokens");
  return {{"bytes", bytes},
          {"t_s", KvTransferSeconds(bytes, Number(given, "chips"), Number(given, "dcn_bytes_per_s_per_chip"))}};
}

}  // namespace

Answers AppliedInferenceAnswers() {
  const Answer flops_per_usd = [](const Json& given) -> Json {
    return {{"flops_per_usd", FlopsPerUsd(Number(given, "flops_per_s"), Number(given, "usd_per_hour"))}};
  };
  const Answer step_only = [](const Json& given) -> Json {
    return {{"step_s", DecodeStepOf(ReplicaOf(given)).step_seconds}};
  };
  Answers answers = {
      {"applied-inference.flops_per_dollar_v5p", flops_per_usd},
      {"applied-inference.flops_per_dollar_v5e", flops_per_usd},
      {"applied-inference.kv_per_token",
       [](const Json& given) -> Json {
         return {{"bytes", CacheBytes(given, /*context=*/1, DataType::kInt8)}};
       }},
      {"applied-inference.kv_32k", LongContext},
      {"applied-inference.bs32_latency_4x2", ReadEverything},
      {"applied-inference.bs32_latency_4x4", ReadEverything},
      {"applied-inference.tp_limit_2axes", TensorLimits},
      {"applied-inference.b_crit_bf16", CriticalBatchOf},
      {"applied-inference.b_crit_int8w_bf16", CriticalBatchOf},
      {"applied-inference.b_crit_int8w_int8", CriticalBatchOf},
      {"applied-inference.min_slice_bf16", MinimumSlice},
      {"applied-inference.min_slice_int8", MinimumSlice},
      {"applied-inference.int4_min_step", step_only},
      {"applied-inference.qps_bf16", Queries},
      {"applied-inference.qps_int8", Queries},
      {"applied-inference.qps_int4", Queries},
      {"applied-inference.qps_double_bf16", QueriesOnTwice},
      {"applied-inference.qps_double_int4", QueriesOnTwice},
      {"applied-inference.decode_tp_b64", DecodeOneMatmul},
      {"applied-inference.prefill_8k", Prefill},
      {"applied-inference.disaggregation", Disaggregation},
      {"applied-inference.pareto_low_batch_latency", step_only},
      {"applied-inference.pareto_plateau_2k", Plateau},
      {"applied-inference.pareto_max_batch", MaximumBatchOf},
      {"applied-inference.q1", LargeModel},
      {"applied-inference.q2", SmallModel},
      {"applied-inference.cost_per_token_bs240_8k",
       [](const Json& given) -> Json {
         return {
             {"usd_per_million_tokens", UsdPerMillionTokens(Number(given, "usd_per_chip_hour"), Number(given, "chips"),
                                                            Number(given, "step_s"), Number(given, "batch"))}};
       }},
      {"applied-inference.kv_transfer", KvTransfer},
      {"applied-inference.kv_vs_flops_crossover",
       [](const Json& given) -> Json {
         return {{"context", KvOverComputeContext(ReplicaOf(given), Number(given, "kv_bytes_per_token"))}};
       }},
  };
  for (const char* point : {"t2048_b1", "t2048_b32", "t2048_b120", "t2048_b240", "t8192_b1", "t8192_b32", "t8192_b120",
                            "t8192_b240", "t32768_b1", "t32768_b32", "t32768_b240"}) {
    answers[std::string("applied-inference.pareto_") + point] = ParetoPoint;
  }
  return answers;
}

}  // namespace sliceplan::book
