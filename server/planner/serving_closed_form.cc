#include "server/planner/serving_closed_form.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "server/planner/budget.h"

namespace sliceplan::planner {
namespace {

constexpr double kBytes = 2;  // of an element in the closed forms of sharding

}  // namespace

DecodeStep DecodeStepOf(const DecodeReplica& replica) {
  const double bytes_per_second = replica.chip_count * replica.hbm_bytes_per_second;
  const double kv_bytes = replica.batch_size * replica.kv_bytes_per_sequence;
  DecodeStep step;
  step.kv_seconds = kv_bytes / bytes_per_second;
  step.weights_seconds = replica.weight_bytes / bytes_per_second;
  step.compute_seconds = ForwardFlops(replica.active_parameter_count, replica.batch_size) /
                         (replica.chip_count * replica.flops_per_second);
  step.step_seconds = step.kv_seconds + std::max(step.weights_seconds, step.compute_seconds);
  step.tokens_per_second = replica.batch_size / step.step_seconds;
  step.tokens_per_second_per_chip = step.tokens_per_second / replica.chip_count;
  step.used_bytes = kv_bytes + replica.weight_bytes;
  step.fits = replica.hbm_bytes <= 0 || step.used_bytes <= replica.chip_count * replica.hbm_bytes;
  return step;
}

double FreeBytes(const DecodeReplica& replica) { return replica.chip_count * replica.hbm_bytes - replica.weight_bytes; }

double MaximumBatch(const DecodeReplica& replica) {
  return std::max(0.0, std::floor(FreeBytes(replica) / replica.kv_bytes_per_sequence));
}

double KvOverComputeContext(const DecodeReplica& replica, double kv_bytes_per_token) {
  return ForwardFlops(replica.active_parameter_count, /*tokens=*/1) / replica.flops_per_second *
         replica.hbm_bytes_per_second / kv_bytes_per_token;
}

double WeightToCacheRatio(double hidden_dim, double ffn_dim, double context, double kv_head_count, double head_dim) {
  constexpr double kMatrices = 2;
  return kMatrices * hidden_dim * ffn_dim / (context * kv_head_count * head_dim);
}

double SequencesOutweighingWeights(double weight_bytes, double kv_bytes_per_sequence) {
  return std::ceil(weight_bytes / kv_bytes_per_sequence);
}

double PrefillSeconds(double parameter_count, double prompt_tokens, double chip_count, double flops_per_second,
                      double mfu_ratio) {
  return SecondsAtMfu(ForwardFlops(parameter_count, prompt_tokens), chip_count, flops_per_second, mfu_ratio);
}

double RemainingPrefillRatio(double prompt_tokens, double cached_tokens) {
  return (prompt_tokens - cached_tokens) / prompt_tokens;
}

double RequestsPerSecond(double batch_size, double step_seconds, double output_tokens) {
  return batch_size / (step_seconds * output_tokens);
}

double PrefillPerGenerateServers(double prefill_seconds, double batch_size, double step_seconds, double output_tokens) {
  return prefill_seconds * RequestsPerSecond(batch_size, step_seconds, output_tokens);
}

double KvTransferSeconds(double kv_bytes, double chip_count, double dcn_bytes_per_second) {
  return kv_bytes / (chip_count * dcn_bytes_per_second);
}

double UsdPerMillionTokens(double usd_per_chip_hour, double chip_count, double step_seconds, double batch_size) {
  constexpr double kMillion = 1e6;
  return CostUsd(chip_count * step_seconds / kSecondsPerHour, usd_per_chip_hour) / batch_size * kMillion;
}

double SpeculativeTokensPerPass(double acceptance, double draft_tokens) {
  if (acceptance >= 1) return draft_tokens + 1;
  return (1 - std::pow(acceptance, draft_tokens + 1)) / (1 - acceptance);
}

double DecodeTensorLimit(double ffn_dim, double batch_size, double hbm_to_network_ratio) {
  return ffn_dim / (batch_size * hbm_to_network_ratio);
}

DecodeMatmul DecodeMatmulOf(double batch_size, double hidden_dim, double ffn_dim, double tensor_degree,
                            double flops_per_second, double hbm_bytes_per_second, double network_bytes_per_second) {
  const double weights_per_chip = hidden_dim * ffn_dim / tensor_degree;
  return {.weights_seconds = kBytes * weights_per_chip / hbm_bytes_per_second,
          .network_seconds = kBytes * batch_size * hidden_dim / network_bytes_per_second,
          .compute_seconds = ForwardFlops(weights_per_chip, batch_size) / flops_per_second};
}

double LatencyBoundDegree(double batch_size, double hidden_dim, double bytes_per_element, double link_bytes_per_second,
                          double hop_seconds) {
  return batch_size * hidden_dim * bytes_per_element / (link_bytes_per_second * hop_seconds);
}

CacheSplit CacheSplitOf(int64_t kv_head_count, int64_t degree) {
  const int64_t heads = std::gcd(kv_head_count, degree);
  return {heads, degree / heads};
}

WeightStationary WeightStationaryOf(double batch_size, double hidden_dim, double ffn_dim, double chip_count,
                                    double axis_bytes_per_second, double axis_count) {
  WeightStationary result;
  result.hidden_degree = std::sqrt(chip_count * hidden_dim / (2 * ffn_dim));
  result.ffn_degree = chip_count / result.hidden_degree;
  const double hidden_bytes = kBytes * batch_size * hidden_dim;
  const double ffn_bytes = 2 * kBytes * batch_size * ffn_dim;  // gathered and reduced
  result.seconds = (hidden_bytes / result.hidden_degree + ffn_bytes / result.ffn_degree) / axis_bytes_per_second;
  result.one_dimensional_seconds = 2 * hidden_bytes / (axis_count * axis_bytes_per_second);
  return result;
}

double WeightStationaryBreakEvenChips(double hidden_dim, double ffn_dim, double axis_count) {
  return 2 * axis_count * axis_count * ffn_dim / hidden_dim;
}

}  // namespace sliceplan::planner
