#include "server/rpc/convert/serving_workload.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/planner/words.h"
#include "server/rpc/convert/model.h"
#include "server/rpc/convert/ranges.h"
#include "server/rpc/convert/serving_enums.h"

namespace sliceplan::rpc {
namespace {

using hardware::DataType;
using planner::CountWords;
using planner::ServingLoadKind;
using planner::TokenLengths;

constexpr int64_t kMaxBatch = int64_t{1} << 20;
constexpr int64_t kMaxUsers = int64_t{1} << 30;
constexpr double kMaxRequestsPerSecond = 1e9;
constexpr double kMaxBurstiness = 1000;
constexpr int64_t kMaxBlockTokens = 65536;
constexpr double kMaxImbalance = 65536;
constexpr int kMaxBins = 1024;
constexpr double kLeastWeight = 1e-15;
constexpr double kMaxWeight = 1e15;
constexpr double kMaxVariation = 100;
constexpr int64_t kMaxDraftTokens = 64;
constexpr double kMaxDraftCost = 10;
constexpr double kMaxLatencySeconds = 1e6;
constexpr int32_t kDefaultPromptTokens = 1024;
constexpr int32_t kDefaultOutputTokens = 256;

std::optional<TokenLengths> ToHistogram(const v1::TokenHistogram& proto, const FieldPath& path,
                                        Violations& violations) {
  if (proto.bins().empty()) {
    AddRequired("at least one bin", FieldPath(path, "bins"), violations);
    return std::nullopt;
  }
  if (!CheckCount(proto.bins_size(), kMaxBins, FieldPath(path, "bins"), violations)) return std::nullopt;
  std::vector<planner::TokenBin> bins;
  bins.reserve(static_cast<size_t>(proto.bins_size()));
  bool legal = true;
  for (int i = 0; i < proto.bins_size(); ++i) {
    const v1::TokenBin& bin = proto.bins(i);
    const FieldPath bin_path(path, "bins", i);
    legal &= CheckRange(int64_t{bin.tokens()}, 1, kMaxTokensOfSequence, FieldPath(bin_path, "tokens"), violations);
    legal &= CheckRange(bin.weight(), kLeastWeight, kMaxWeight, FieldPath(bin_path, "weight"), violations);
    bins.push_back({bin.tokens(), bin.weight()});
  }
  if (!legal) return std::nullopt;
  return TokenLengths::Histogram(bins);
}

std::optional<TokenLengths> ToDistribution(const v1::TokenDistribution& proto, const FieldPath& path,
                                           Violations& violations) {
  switch (proto.shape_case()) {
    case v1::TokenDistribution::kHistogram:
      return ToHistogram(proto.histogram(), FieldPath(path, "histogram"), violations);
    case v1::TokenDistribution::kMoments: {
      const FieldPath moments_path(path, "moments");
      const double mean = proto.moments().mean_tokens();
      const double variation = proto.moments().coefficient_of_variation();
      bool legal = CheckRange(mean, 1, kMaxTokensOfSequence, FieldPath(moments_path, "mean_tokens"), violations);
      legal &= CheckRange(variation, 0, kMaxVariation, FieldPath(moments_path, "coefficient_of_variation"), violations);
      if (!legal) return std::nullopt;
      return TokenLengths::LogNormal(mean, variation);
    }
    case v1::TokenDistribution::SHAPE_NOT_SET: break;
  }
  AddRequired("histogram or moments", path, violations);
  return std::nullopt;
}

std::optional<TokenLengths> ToLength(int32_t tokens, const FieldPath& path, Violations& violations) {
  if (!CheckRange(int64_t{tokens}, 1, kMaxTokensOfSequence, path, violations)) return std::nullopt;
  return TokenLengths::Constant(tokens);
}

void SetLengths(const v1::ServingWorkload& proto, const FieldPath& path, Violations& violations,
                Assumptions& assumptions, planner::ServingWorkload& workload) {
  std::optional<TokenLengths> prompt;
  switch (proto.prompt_case()) {
    case v1::ServingWorkload::kPromptTokens:
      prompt = ToLength(proto.prompt_tokens(), FieldPath(path, "prompt_tokens"), violations);
      break;
    case v1::ServingWorkload::kPromptDistribution:
      prompt = ToDistribution(proto.prompt_distribution(), FieldPath(path, "prompt_distribution"), violations);
      break;
    case v1::ServingWorkload::PROMPT_NOT_SET:
      prompt = TokenLengths::Constant(kDefaultPromptTokens);
      assumptions.Add("workload.prompt_tokens", absl::StrCat(kDefaultPromptTokens),
                      absl::StrCat("Prompts of ", CountWords(kDefaultPromptTokens), " tokens."));
      break;
  }
  std::optional<TokenLengths> output;
  switch (proto.output_case()) {
    case v1::ServingWorkload::kOutputTokens:
      output = ToLength(proto.output_tokens(), FieldPath(path, "output_tokens"), violations);
      break;
    case v1::ServingWorkload::kOutputDistribution:
      output = ToDistribution(proto.output_distribution(), FieldPath(path, "output_distribution"), violations);
      break;
    case v1::ServingWorkload::OUTPUT_NOT_SET:
      output = TokenLengths::Constant(kDefaultOutputTokens);
      assumptions.Add("workload.output_tokens", absl::StrCat(kDefaultOutputTokens),
                      absl::StrCat("Outputs of ", CountWords(kDefaultOutputTokens), " tokens."));
      break;
  }
  if (prompt.has_value()) workload.prompt = *std::move(prompt);
  if (output.has_value()) workload.output = *std::move(output);
}

void SetLoad(const v1::ServingWorkload& proto, const FieldPath& path, Violations& violations,
             planner::ServingWorkload& workload) {
  switch (proto.load_case()) {
    case v1::ServingWorkload::kBatchSize:
      CheckRange(int64_t{proto.batch_size()}, 1, kMaxBatch, FieldPath(path, "batch_size"), violations);
      workload.load = ServingLoadKind::kBatch;
      workload.batch_size = proto.batch_size();
      break;
    case v1::ServingWorkload::kConcurrency:
      CheckRange(int64_t{proto.concurrency()}, 1, kMaxUsers, FieldPath(path, "concurrency"), violations);
      workload.load = ServingLoadKind::kConcurrency;
      workload.concurrency = proto.concurrency();
      break;
    case v1::ServingWorkload::kRequestsPerSecond:
      CheckPositive(proto.requests_per_second(), kMaxRequestsPerSecond, FieldPath(path, "requests_per_second"),
                    violations);
      workload.load = ServingLoadKind::kRate;
      workload.requests_per_second = proto.requests_per_second();
      break;
    case v1::ServingWorkload::LOAD_NOT_SET: workload.load = ServingLoadKind::kLargestBatch; break;
  }
  if (!proto.has_max_batch_size()) return;
  const FieldPath limit_path(path, "max_batch_size");
  if (!CheckRange(int64_t{proto.max_batch_size()}, 1, kMaxBatch, limit_path, violations)) return;
  workload.max_batch_size = proto.max_batch_size();
  if (workload.load == ServingLoadKind::kBatch && workload.batch_size > *workload.max_batch_size) {
    violations.Add(limit_path,
                   absl::StrCat("is below the batch of ", CountWords(workload.batch_size),
                                " sequences that is asked for; raise it or leave it out."),
                   "CONFLICT");
  }
}

planner::ServingPrecision ToPrecision(const v1::ServingPrecision& proto, const FieldPath& path, Violations& violations,
                                      Assumptions& assumptions) {
  planner::ServingPrecision precision;
  precision.weights = FromProto(kDataTypes, proto.weights(), FieldPath(path, "weights"), violations);
  const auto kv_cache = FromProto(kDataTypes, proto.kv_cache(), FieldPath(path, "kv_cache"), violations);
  const auto activations = FromProto(kDataTypes, proto.activations(), FieldPath(path, "activations"), violations);
  precision.compute = FromProto(kDataTypes, proto.compute(), FieldPath(path, "compute"), violations);
  if (!kv_cache.has_value()) {
    assumptions.Add("workload.precision.kv_cache", "DATA_TYPE_BF16", "Keys and values are cached in bf16.");
  }
  if (!activations.has_value()) {
    assumptions.Add("workload.precision.activations", "DATA_TYPE_BF16", "Activations are in bf16.");
  }
  precision.kv_cache = kv_cache.value_or(DataType::kBf16);
  precision.activations = activations.value_or(DataType::kBf16);
  return precision;
}

std::optional<planner::Speculation> ToSpeculation(const v1::SpeculativeDecoding& proto, const catalog::Catalog& catalog,
                                                  ModelCache& models, const FieldPath& path, ModelHandle& draft_model,
                                                  Violations& violations) {
  planner::Speculation speculation;
  CheckRange(int64_t{proto.draft_tokens()}, 1, kMaxDraftTokens, FieldPath(path, "draft_tokens"), violations);
  speculation.draft_tokens = proto.draft_tokens();
  const FieldPath acceptance_path(path, "acceptance_ratio");
  if (proto.has_acceptance_ratio()) {
    CheckRange(proto.acceptance_ratio(), 0, 1, acceptance_path, violations);
    speculation.acceptance_ratio = proto.acceptance_ratio();
  } else {
    AddRequired("acceptance_ratio", acceptance_path, violations);
  }
  switch (proto.draft_case()) {
    case v1::SpeculativeDecoding::kDraftCostRatio:
      CheckRange(proto.draft_cost_ratio(), 0, kMaxDraftCost, FieldPath(path, "draft_cost_ratio"), violations);
      speculation.draft_cost_ratio = proto.draft_cost_ratio();
      break;
    case v1::SpeculativeDecoding::kDraftModel:
      draft_model = ToModel(proto.draft_model(), catalog, models, FieldPath(path, "draft_model"), violations);
      if (draft_model != nullptr) {
        speculation.draft_model = planner::ServedModel{&draft_model->architecture, &draft_model->operations};
      }
      break;
    case v1::SpeculativeDecoding::DRAFT_NOT_SET: break;
  }
  return speculation;
}

void SetEngine(const v1::ServingWorkload& proto, const FieldPath& path, Violations& violations,
               planner::ServingWorkload& workload) {
  if (proto.has_arrival_burstiness()) {
    CheckRange(proto.arrival_burstiness(), 0, kMaxBurstiness, FieldPath(path, "arrival_burstiness"), violations);
    workload.arrival_burstiness = proto.arrival_burstiness();
  }
  if (proto.has_prefix_cache_hit_ratio()) {
    // A prompt that is cached as a whole would leave nothing that makes the first token.
    CheckRange(proto.prefix_cache_hit_ratio(), 0, 1 - kLeastPositive, FieldPath(path, "prefix_cache_hit_ratio"),
               violations);
    workload.prefix_cache_hit_ratio = proto.prefix_cache_hit_ratio();
  }
  if (proto.has_prefill_chunk_tokens()) {
    CheckRange(int64_t{proto.prefill_chunk_tokens()}, 1, kMaxTokensOfSequence, FieldPath(path, "prefill_chunk_tokens"),
               violations);
    workload.prefill_chunk_tokens = proto.prefill_chunk_tokens();
  }
  if (proto.has_kv_block_tokens()) {
    CheckRange(int64_t{proto.kv_block_tokens()}, 1, kMaxBlockTokens, FieldPath(path, "kv_block_tokens"), violations);
    workload.kv_block_tokens = proto.kv_block_tokens();
  }
  if (proto.has_hbm_utilization_ratio()) {
    CheckPositive(proto.hbm_utilization_ratio(), 1, FieldPath(path, "hbm_utilization_ratio"), violations);
    workload.hbm_utilization_ratio = proto.hbm_utilization_ratio();
  }
  if (proto.has_expert_load_imbalance_ratio()) {
    CheckRange(proto.expert_load_imbalance_ratio(), 1, kMaxImbalance, FieldPath(path, "expert_load_imbalance_ratio"),
               violations);
    workload.expert_load_imbalance_ratio = proto.expert_load_imbalance_ratio();
  }
  workload.prompt_logprobs = proto.prompt_logprobs();
  if (proto.has_max_context_tokens()) {
    CheckRange(int64_t{proto.max_context_tokens()}, 1, kMaxTokensOfSequence, FieldPath(path, "max_context_tokens"),
               violations);
    workload.max_context_tokens = proto.max_context_tokens();
  }
  workload.kv_cache_split =
      FromProto(kKvCacheSplits, proto.kv_cache_split(), FieldPath(path, "kv_cache_split"), violations);
  workload.windowed_kv_policy =
      FromProto(kWindowedKvPolicies, proto.windowed_kv_policy(), FieldPath(path, "windowed_kv_policy"), violations);
}

planner::LatencyTargets ToLimits(const v1::LatencyTarget& proto, const FieldPath& path, Violations& violations) {
  planner::LatencyTargets limits;
  const auto read = [&](bool given, double seconds, absl::string_view name, std::optional<double>& limit) {
    if (!given) return;
    CheckPositive(seconds, kMaxLatencySeconds, FieldPath(path, name), violations);
    limit = seconds;
  };
  read(proto.has_mean_seconds(), proto.mean_seconds(), "mean_seconds", limits.mean_seconds);
  read(proto.has_p50_seconds(), proto.p50_seconds(), "p50_seconds", limits.p50_seconds);
  read(proto.has_p95_seconds(), proto.p95_seconds(), "p95_seconds", limits.p95_seconds);
  read(proto.has_p99_seconds(), proto.p99_seconds(), "p99_seconds", limits.p99_seconds);
  return limits;
}

}  // namespace

planner::ServingWorkload ToServingWorkload(const v1::ServingWorkload& proto, const catalog::Catalog& catalog,
                                           ModelCache& models, const FieldPath& path, ModelHandle& draft_model,
                                           Violations& violations, Assumptions& assumptions) {
  planner::ServingWorkload workload;
  SetLengths(proto, path, violations, assumptions, workload);
  SetLoad(proto, path, violations, workload);
  workload.precision = ToPrecision(proto.precision(), FieldPath(path, "precision"), violations, assumptions);
  SetEngine(proto, path, violations, workload);
  if (proto.has_speculative()) {
    workload.speculation =
        ToSpeculation(proto.speculative(), catalog, models, FieldPath(path, "speculative"), draft_model, violations);
  }
  return workload;
}

planner::ServingSlo ToSlo(const v1::Slo& proto, const FieldPath& path, Violations& violations) {
  planner::ServingSlo slo;
  slo.ttft = ToLimits(proto.ttft(), FieldPath(path, "ttft"), violations);
  slo.tpot = ToLimits(proto.tpot(), FieldPath(path, "tpot"), violations);
  slo.end_to_end = ToLimits(proto.end_to_end(), FieldPath(path, "end_to_end"), violations);
  return slo;
}

void ToProto(const v1::ServingWorkload& asked, const planner::ServingWorkload& workload,
             const planner::ServingEstimate& estimate, v1::ServingWorkload* proto) {
  *proto = asked;
  if (asked.prompt_case() == v1::ServingWorkload::PROMPT_NOT_SET) proto->set_prompt_tokens(kDefaultPromptTokens);
  if (asked.output_case() == v1::ServingWorkload::OUTPUT_NOT_SET) proto->set_output_tokens(kDefaultOutputTokens);
  // A model that does not fit has no batch.
  if (asked.load_case() == v1::ServingWorkload::LOAD_NOT_SET && estimate.batch_size > 0) {
    proto->set_batch_size(estimate.batch_size);
  }
  const planner::LoadUsed& used = estimate.load;
  v1::ServingPrecision* const precision = proto->mutable_precision();
  precision->set_weights(ToProto(kDataTypes, used.weights));
  precision->set_kv_cache(ToProto(kDataTypes, workload.precision.kv_cache));
  precision->set_activations(ToProto(kDataTypes, workload.precision.activations));
  precision->set_compute(ToProto(kDataTypes, used.compute));
  proto->set_arrival_burstiness(workload.arrival_burstiness);
  proto->set_prefix_cache_hit_ratio(workload.prefix_cache_hit_ratio);
  if (used.prefill_chunk_tokens.has_value()) proto->set_prefill_chunk_tokens(*used.prefill_chunk_tokens);
  proto->set_kv_block_tokens(workload.kv_block_tokens);
  proto->set_hbm_utilization_ratio(used.hbm_utilization_ratio);
  proto->set_kv_cache_split(ToProto(kKvCacheSplits, used.kv_cache_split));
  proto->set_windowed_kv_policy(ToProto(kWindowedKvPolicies, used.windowed_kv_policy));
  if (used.max_batch_size.has_value()) proto->set_max_batch_size(*used.max_batch_size);
  proto->set_max_context_tokens(used.max_context_tokens);
}

}  // namespace sliceplan::rpc
