// Chapter 7: inference.
#include <cmath>
#include <string>
#include <vector>

#include "server/planner/budget.h"
#include "server/planner/serving_closed_form.h"
#include "server/planner/thresholds.h"
#include "server/roofline/attention.h"
#include "server/roofline/critical_batch.h"
#include "server/roofline/memory_tiers.h"
#include "server/roofline/ring_collective.h"
#include "server/transformer/kv_cache.h"
#include "tests/book/book_case.h"
#include "tests/book/book_constants.h"
#include "tests/book/models.h"

namespace sliceplan::book {
namespace {

using namespace planner;  // NOLINT(google-build-using-namespace): this file calls little else
using hardware::DataType;

Json WeightsCriticalBatch(const Json& given) {
  return {{"batch_tokens", roofline::CriticalBatch(Number(given, "flops_per_s"), Number(given, "hbm_bytes_per_s"),
                                                   Number(given, "weight_bytes"))}};
}

Json AttentionIntensity(const Json& given) {
  Json intensity = Json::array();
  for (size_t i = 0; i < given.at("T_list").size(); ++i) {
    roofline::AttentionOp op;
    op.query_length = given.at("T_list")[i];
    op.key_length = given.at("S_list")[i];
    intensity.push_back(CostOf(op).Intensity());
  }
  // The chapter rounds the v5e ridge.
  constexpr double kRidge = 240;
  return {{"intensity", intensity},
          {"prefill_compute_bound_T", roofline::CriticalPromptLength(kRidge, /*queries_per_kv_head=*/1)}};
}

DecodeReplica ReplicaOf(const Json& given) {
  DecodeReplica replica;
  replica.active_parameter_count = Number(given, "params");
  replica.weight_bytes = replica.active_parameter_count * Number(given, "param_bytes");
  replica.batch_size = Number(given, "batch");
  replica.chip_count = Number(given, "chips");
  replica.flops_per_second = Number(given, "flops_per_s");
  replica.hbm_bytes_per_second = Number(given, "hbm_bytes_per_s");
  replica.kv_bytes_per_sequence = given.contains("kv_bytes_per_seq")
                                      ? Number(given, "kv_bytes_per_seq")
                                      : Number(given, "kv_bytes_per_token") * Number(given, "context");
  return replica;
}

Json SmallBatch(const Json& given) {
  const DecodeReplica replica = ReplicaOf(given);
  return {{"kv_bytes_per_seq", replica.kv_bytes_per_sequence}, {"step_s", DecodeStepOf(replica).step_seconds}};
}

Json LargeBatch(const Json& given) {
  const DecodeStep step = DecodeStepOf(ReplicaOf(given));
  return {{"attention_s", step.kv_seconds},
          {"mlp_flops_s", step.compute_seconds},
          {"param_load_s", step.weights_seconds},
          {"step_s", step.step_seconds}};
}

Json Parameters(const Json& given) {
  Json answer = ParametersByComponent(given);
  answer["bf16_bytes"] = answer.at("total").get<double>() * hardware::BytesPerElement(DataType::kBf16);
  return answer;
}

Json Cache(const Json& given) {
  const double bytes = CacheBytes(given, Count(given, "T"), DataType::kBf16);
  return {
      {"bytes_per_token", transformer::GrowingBytesPerToken(transformer::KvCacheOf(ModelOf(given)), DataType::kBf16)},
      {"bytes", bytes},
      {"sequences_to_exceed_params", SequencesOutweighingWeights(Number(given, "param_bytes"), bytes)}};
}

// bf16 weights of a dense model on the chapter's chip.
Json TableRow(const Json& given) {
  DecodeReplica replica;
  replica.weight_bytes = Number(given, "param_bytes");
  replica.active_parameter_count = replica.weight_bytes / hardware::BytesPerElement(DataType::kBf16);
  replica.kv_bytes_per_sequence = Number(given, "kv_bytes_per_seq");
  replica.batch_size = Number(given, "batch");
  replica.chip_count = Number(given, "chips");
  replica.flops_per_second = *ChipSpec(given.at("chip")).bf16_flops_per_second;
  replica.hbm_bytes_per_second = Number(given, "hbm_bytes_per_s");
  const DecodeStep step = DecodeStepOf(replica);
  return {{"kv_total_bytes", step.used_bytes - replica.weight_bytes},
          {"total_bytes", step.used_bytes},
          {"step_s", step.step_seconds},
          {"tokens_per_s", step.tokens_per_second}};
}

Json Totals(const Json& given) {
  const hardware::Slice slice = TorusOf(GivenChip(given), {static_cast<int32_t>(Count(given, "chips"))}, false);
  const SliceTotals totals = TotalsOf(slice);
  return {{"hbm_bytes_per_s", totals.hbm_bytes_per_second.value()}, {"flops_per_s", totals.flops_per_second.value()}};
}

Json DecodeLimit(const Json& given) {
  const double beta =
      BandwidthRatio(GivenChip(given), roofline::MemoryTier::kHbm, roofline::MemoryTier::kIciAxis).value();
  constexpr double kRoundedBeta = 8;
  return {{"beta", beta},
          {"Y_max", DecodeTensorLimit(Number(given, "F"), Number(given, "B"), beta)},
          {"Y_max_with_beta_8", DecodeTensorLimit(Number(given, "F"), Number(given, "B"), kRoundedBeta)}};
}

// Weights alone: no sequence in the batch.
Json StreamWeights(const Json& given) {
  DecodeReplica replica;
  replica.weight_bytes = Number(given, "params") * Number(given, "param_bytes");
  replica.chip_count = Number(given, "chips");
  replica.hbm_bytes_per_second = Number(given, "hbm_bytes_per_s");
  replica.flops_per_second = *ChipSpec("tpu-v5e").bf16_flops_per_second;
  return {{"t_s", DecodeStepOf(replica).step_seconds}};
}

Json SmallSlice(const Json& given) {
  const hardware::Slice slice = SliceOf(given.at("chip"), given.at("topology"));
  constexpr int64_t kKvHeads = 8;  // of the chapter's model
  const CacheSplit split = CacheSplitOf(kKvHeads, Count(given, "chips"));
  DecodeReplica replica;
  replica.weight_bytes = Number(given, "param_bytes");
  replica.active_parameter_count = replica.weight_bytes;  // int8
  replica.kv_bytes_per_sequence = Number(given, "kv_bytes_per_seq");
  replica.batch_size = Number(given, "batch");
  replica.chip_count = Number(given, "chips");
  replica.flops_per_second = *slice.accelerator.bf16_flops_per_second;
  replica.hbm_bytes_per_second = Number(given, "hbm_bytes_per_s");
  return {{"wraparound", slice.axes[0].wraps || slice.axes[1].wraps},
          {"tp_max_full_rings", TensorDegreeLimit(Number(given, "alpha"), Number(given, "axes"), Number(given, "F"))},
          {"tp_max_no_wraparound", TensorDegreeLimit(Number(given, "alpha"), AxesOf(slice).all, Number(given, "F"))},
          {"kv_head_shards", split.head_degree},
          {"kv_batch_shards", split.batch_degree},
          {"step_s", DecodeStepOf(replica).step_seconds}};
}

Json TwoDimensional(const Json& given) {
  const double chips = Number(given, "N");
  const double hidden = Number(given, "D");
  const double ffn = Number(given, "F");
  const double rate = AxisBytesPerSecond(given);
  const WeightStationary plan =
      WeightStationaryOf(Number(given, "B"), hidden, ffn, chips, rate, Number(given, "axes_1d"));
  return {{"X_opt", plan.hidden_degree},
          {"YZ_opt", plan.ffn_degree},
          {"comms_coefficient", plan.seconds * std::sqrt(chips) * rate / (Number(given, "B") * hidden)},
          {"t_2d_s", plan.seconds},
          {"t_1d_s", plan.one_dimensional_seconds},
          {"breakeven_chips_F_4D", WeightStationaryBreakEvenChips(hidden, ffn, Number(given, "axes_1d"))},
          {"breakeven_general_coefficient",
           WeightStationaryBreakEvenChips(/*hidden_dim=*/1, /*ffn_dim=*/1, Number(given, "axes_1d"))}};
}

Json LatencyBound(const Json& given) {
  const double link = LinkBytesPerSecond(given);
  const double hop = Number(given, "hop_latency_s");
  const double bytes = SavedActivationBytes(Number(given, "batch"), /*layer_count=*/1, Number(given, "D"),
                                            Number(given, "activation_bytes"));
  const double threshold = roofline::LatencyBoundShardBytes(link, hop) * Number(given, "shards");
  return {{"threshold_bytes", threshold},
          {"example_bytes", bytes},
          {"latency_bound", bytes < threshold},
          {"Y_bound", LatencyBoundDegree(Number(given, "batch"), Number(given, "D"), Number(given, "activation_bytes"),
                                         link, hop)}};
}

}  // namespace

Answers InferenceAnswers() {
  Answers answers = {
      {"inference.attention_intensity", AttentionIntensity},
      {"inference.popquiz.b4", SmallBatch},
      {"inference.popquiz.b256", LargeBatch},
      {"inference.llama13b_params", Parameters},
      {"inference.activation_8k",
       [](const Json& given) -> Json {
         return {{"bytes", SavedActivationBytes(Number(given, "tokens"), /*layer_count=*/1, Number(given, "D"),
                                                Number(given, "bytes_per_element"))}};
       }},
      {"inference.llama13b_kv", Cache},
      {"inference.v5e8_totals", Totals},
      {"inference.decode_tp_limit", DecodeLimit},
      {"inference.q3", StreamWeights},
      {"inference.q4", SmallSlice},
      {"inference.q7", TwoDimensional},
      {"inference.latency_bound_tp", LatencyBound},
      {"inference.prefix_cache",
       [](const Json& given) -> Json {
         return {{"remaining_fraction",
                  RemainingPrefillRatio(Number(given, "prompt_tokens"), Number(given, "shared_prefix_tokens"))}};
       }},
      {"inference.speculative_expected",
       [](const Json& given) -> Json {
         return {
             {"tokens_per_pass", SpeculativeTokensPerPass(Number(given, "acceptance"), Number(given, "draft_tokens"))}};
       }},
      {"inference.step_time_general", LargeBatch},
      {"inference.prefix_ratio",
       [](const Json& given) -> Json {
         return {{"ratio", WeightToCacheRatio(Number(given, "D"), Number(given, "F"), Number(given, "S"),
                                              Number(given, "K"), Number(given, "H"))}};
       }},
  };
  for (const char* mix : {"bf16", "int8w_bf16", "int8w_int8", "h100"}) {
    answers[std::string("inference.b_crit_") + mix] = WeightsCriticalBatch;
  }
  for (const char* row : {"mha_b1", "mha_b8", "mha_b240", "gqa5_b1", "gqa5_b32", "gqa5_b240"}) {
    answers[std::string("inference.table_") + row] = TableRow;
  }
  return answers;
}

}  // namespace sliceplan::book
