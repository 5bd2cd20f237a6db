#include "server/rpc/convert/serving_parts.h"

#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/rpc/convert/assumptions.h"
#include "server/rpc/convert/parallelism.h"
#include "server/rpc/convert/serving_enums.h"
#include "server/rpc/convert/training_parts.h"

namespace sliceplan::rpc {
namespace {

// Parts that take no time are left out.
void AddParts(const std::vector<planner::PassPart>& parts, v1::Phase phase,
              google::protobuf::RepeatedPtrField<v1::BreakdownEntry>* proto) {
  proto->Reserve(static_cast<int>(parts.size()));
  for (const planner::PassPart& part : parts) {
    if (part.seconds == 0) continue;
    v1::BreakdownEntry* const entry = proto->Add();
    entry->set_component(ToProto(kComponents, part.component));
    entry->set_resource(ToProto(kStepResources, part.resource));
    entry->set_phase(phase);
    entry->set_seconds(part.seconds);
    if (part.axis.has_value()) entry->set_axis(ToProto(kParallelismAxes, *part.axis));
  }
}

// Whether `text` begins with a field of the request: "workload.kv_block_tokens", "pools[0].parallelism".
bool IsRequestField(absl::string_view text) {
  const std::string first(text.substr(0, text.find_first_of(".[")));
  return text.find(' ') == absl::string_view::npos &&
         v1::EstimateServingRequest::descriptor()->FindFieldByName(first) != nullptr;
}

}  // namespace

void ToProto(const planner::ServingShortfall& shortfall, v1::Shortfall* proto) {
  proto->set_limit(shortfall.limit);
  proto->set_needed(shortfall.needed);
  proto->set_available(shortfall.available);
  proto->set_missing(shortfall.missing);
  if (shortfall.floor.has_value()) proto->set_floor(*shortfall.floor);
  proto->set_sentence(AsSentence(shortfall.sentence));
}

void ToProto(const planner::ServingMemory& memory, v1::ServingMemory* proto) {
  proto->set_weights_bytes(memory.weights_bytes);
  proto->set_kv_cache_bytes(memory.kv_cache_bytes);
  proto->set_used_bytes(memory.used_bytes);
  proto->set_capacity_bytes(memory.capacity_bytes);
  proto->set_activations_bytes(memory.activations_bytes);
  proto->set_buffers_bytes(memory.buffers_bytes);
  proto->set_reserve_bytes(memory.reserve_bytes);
  proto->set_headroom_bytes(memory.headroom_bytes);
  proto->set_kv_pool_bytes(memory.kv_pool_bytes);
  proto->set_kv_pool_tokens(memory.kv_pool_tokens);
  proto->set_stage_index(memory.stage);
  proto->set_layer_count(memory.layer_count);
  proto->set_kv_bytes_per_token(memory.kv_bytes_per_token);
  proto->set_max_context_tokens(memory.max_context_tokens);
}

void ToProto(const planner::PassTime& pass, v1::PrefillEstimate* proto) {
  ToProto(pass.time, proto->mutable_time());
  proto->set_compute_seconds(pass.compute_seconds);
  proto->set_hbm_seconds(pass.hbm_seconds);
  proto->set_network_seconds(pass.network_seconds);
  proto->set_bound(ToProto(kStepResources, pass.bound));
  if (pass.mfu_ratio.has_value()) proto->set_mfu_ratio(*pass.mfu_ratio);
  AddParts(pass.parts, v1::PHASE_PREFILL, proto->mutable_breakdown());
}

void ToProto(const planner::PassTime& pass, v1::DecodeEstimate* proto) {
  ToProto(pass.time, proto->mutable_step_time());
  proto->set_kv_seconds(pass.kv_seconds);
  proto->set_weights_seconds(pass.weights_seconds);
  proto->set_compute_seconds(pass.compute_seconds);
  proto->set_network_seconds(pass.network_seconds);
  proto->set_bound(ToProto(kStepResources, pass.bound));
  AddParts(pass.parts, v1::PHASE_DECODE, proto->mutable_breakdown());
}

void ToProto(const planner::Latency& latency, v1::LatencyEstimate* proto) {
  proto->set_mean_seconds(latency.mean_seconds);
  proto->set_p50_seconds(latency.p50_seconds);
  proto->set_p95_seconds(latency.p95_seconds);
  proto->set_p99_seconds(latency.p99_seconds);
  if (latency.mean_p05_seconds.has_value()) proto->set_mean_p05_seconds(*latency.mean_p05_seconds);
  if (latency.mean_p95_seconds.has_value()) proto->set_mean_p95_seconds(*latency.mean_p95_seconds);
}

void ToProto(const planner::ServingThroughput& throughput, v1::ServingThroughput* proto) {
  proto->set_output_tokens_per_second(throughput.output_tokens_per_second);
  proto->set_output_tokens_per_second_per_chip(throughput.output_tokens_per_second_per_chip);
  proto->set_requests_per_second(throughput.requests_per_second);
  proto->set_saturation_requests_per_second(throughput.saturation_requests_per_second);
  if (throughput.goodput_requests_per_second.has_value()) {
    proto->set_goodput_requests_per_second(*throughput.goodput_requests_per_second);
  }
  proto->set_input_tokens_per_second(throughput.input_tokens_per_second);
  if (throughput.output_tokens_per_second_p05.has_value()) {
    proto->set_output_tokens_per_second_p05(*throughput.output_tokens_per_second_p05);
  }
  if (throughput.output_tokens_per_second_p95.has_value()) {
    proto->set_output_tokens_per_second_p95(*throughput.output_tokens_per_second_p95);
  }
}

void ToProto(const planner::ServingCost& cost, v1::ServingCost* proto) {
  proto->set_usd_per_million_input_tokens(cost.usd_per_million_input_tokens);
  proto->set_usd_per_million_cached_input_tokens(cost.usd_per_million_cached_input_tokens);
  proto->set_usd_per_million_output_tokens(cost.usd_per_million_output_tokens);
  proto->set_usd_per_hour(cost.usd_per_hour);
  if (cost.usd_per_chip_hour.has_value()) proto->set_usd_per_chip_hour(*cost.usd_per_chip_hour);
}

void ToProto(const planner::CostSplit& split, v1::CostSplit* proto) {
  proto->set_kind(split.fixed_ratio ? v1::COST_SPLIT_KIND_FIXED_RATIO : v1::COST_SPLIT_KIND_TIME);
  if (split.fixed_ratio) proto->set_output_to_input_price_ratio(split.output_to_input_price_ratio);
  proto->set_cached_to_input_price_ratio(split.cached_to_input_price_ratio);
}

void ToProto(const planner::ServingPoint& point, v1::ServingPoint* proto) {
  proto->set_batch_size(point.batch_size);
  ToProto(point.parallelism, proto->mutable_parallelism());
  proto->set_tpot_seconds(point.tpot_seconds);
  if (point.ttft_seconds.has_value()) proto->set_ttft_seconds(*point.ttft_seconds);
  proto->set_output_tokens_per_second_per_chip(point.output_tokens_per_second_per_chip);
  if (point.usd_per_million_output_tokens.has_value()) {
    proto->set_usd_per_million_output_tokens(*point.usd_per_million_output_tokens);
  }
}

void ToProto(const planner::Disaggregation& disaggregation, v1::Disaggregation* proto) {
  proto->set_prefill_per_decode_ratio(disaggregation.prefill_per_decode_ratio);
  proto->set_kv_transfer_seconds(disaggregation.kv_transfer_seconds);
  proto->set_kv_transfer_bytes(disaggregation.kv_transfer_bytes);
  proto->set_tier(ToProto(kFabricTiers, disaggregation.tier));
}

void ToProto(const planner::PoolEstimate& estimate, const planner::ServingPool& pool, v1::PoolEstimate* proto) {
  ToProto(estimate.parallelism, proto->mutable_parallelism());
  proto->mutable_parallelism()->set_allow_idle_chips(pool.allow_idle_chips);
  proto->mutable_parallelism()->set_allow_padding(pool.allow_padding);
  for (const planner::AxisPlacement& placement : estimate.mapping) {
    ToProto(placement, estimate.parallelism, pool.slice, proto->add_mapping());
  }
  ToProto(estimate.memory, proto->mutable_memory());
  for (const planner::ServingMemory& stage : estimate.stages) ToProto(stage, proto->add_stages());
  if (estimate.busy_ratio.has_value()) proto->set_busy_ratio(*estimate.busy_ratio);
  const int64_t used = estimate.parallelism.ici.Product() * estimate.parallelism.dcn.Product();
  proto->set_idle_chip_count(static_cast<int32_t>(pool.slice.TotalChips() - used));
  for (const planner::Padding& padding : estimate.paddings) ToProto(padding, proto->add_paddings());
}

void ToProto(const std::string& line, v1::Assumption* proto) {
  constexpr absl::string_view kSeparator = ": ";
  absl::string_view sentence = line;
  const size_t end = sentence.find(kSeparator);
  const absl::string_view subject = sentence.substr(0, end == absl::string_view::npos ? 0 : end);
  // What the sentence is about need not be a field: "throughput: ...".
  if (!subject.empty() && subject.find(' ') == absl::string_view::npos) {
    if (IsRequestField(subject)) proto->set_field(subject.data(), subject.size());
    sentence.remove_prefix(end + kSeparator.size());
  }
  proto->set_sentence(AsSentence(sentence));
}

}  // namespace sliceplan::rpc
