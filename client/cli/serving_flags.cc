#include "client/cli/serving_flags.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/model_flag.h"
#include "client/cli/quantity.h"

namespace sliceplan::cli {
namespace {

absl::StatusOr<int32_t> ReadTokens(absl::string_view text) {
  const absl::StatusOr<int64_t> tokens = ParseCount(text);
  if (!tokens.ok()) return tokens.status();
  if (*tokens > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(text, " are too many"));
  }
  return static_cast<int32_t>(*tokens);
}

absl::Status ReadHistogram(const std::string& text, v1::TokenHistogram* histogram) {
  const absl::StatusOr<std::vector<Assignment>> bins = ParseAssignments(text);
  if (!bins.ok()) return bins.status();
  for (const auto& [length, weight] : *bins) {
    const absl::StatusOr<int32_t> tokens = ReadTokens(length);
    if (!tokens.ok()) return tokens.status();
    const absl::StatusOr<double> share = ParseNumber(weight);
    if (!share.ok()) return share.status();
    v1::TokenBin* const bin = histogram->add_bins();
    bin->set_tokens(*tokens);
    bin->set_weight(*share);
  }
  return absl::OkStatus();
}

absl::Status ReadMoments(absl::string_view mean, absl::string_view spread, v1::TokenMoments* moments) {
  const absl::StatusOr<double> mean_tokens = ParseNumber(mean);
  if (!mean_tokens.ok()) return mean_tokens.status();
  const absl::StatusOr<double> variation = ParseNumber(spread);
  if (!variation.ok()) return variation.status();
  moments->set_mean_tokens(*mean_tokens);
  moments->set_coefficient_of_variation(*variation);
  return absl::OkStatus();
}

// Lengths in one of the three spellings.
absl::Status ReadLengths(const std::string& text, const std::function<void(int32_t)>& set_tokens,
                         const std::function<v1::TokenDistribution*()>& distribution) {
  if (text.find('=') != std::string::npos) return ReadHistogram(text, distribution()->mutable_histogram());
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('~', 1));
  if (parts.size() == 2) return ReadMoments(parts[0], parts[1], distribution()->mutable_moments());
  const absl::StatusOr<int32_t> tokens = ReadTokens(text);
  if (!tokens.ok()) return tokens.status();
  set_tokens(*tokens);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadPrompt(const std::string& text, v1::ServingWorkload* workload) {
  return ReadLengths(
      text, [workload](int32_t tokens) { workload->set_prompt_tokens(tokens); },
      [workload] { return workload->mutable_prompt_distribution(); });
}

absl::Status ReadOutput(const std::string& text, v1::ServingWorkload* workload) {
  return ReadLengths(
      text, [workload](int32_t tokens) { workload->set_output_tokens(tokens); },
      [workload] { return workload->mutable_output_distribution(); });
}

void AddLoadFlags(Flags& flags, const std::string& name, const ServingWorkloadOf& workload) {
  const auto field = [&name](absl::string_view part) { return absl::StrCat(name, ".", part); };
  flags.Custom("--prompt", field("prompt_tokens"), "TOKENS",
               "length of a prompt: 2048, 2048~0.8 (mean~standard deviation/mean) or 512=3,4096=1 (length=weight); "
               "default 1024",
               [workload](const std::string& text) { return ReadPrompt(text, workload()); });
  flags.Alias(field("prompt_distribution"), "--prompt");
  flags.Custom("--output", field("output_tokens"), "TOKENS", "length of an output, likewise; default 256",
               [workload](const std::string& text) { return ReadOutput(text, workload()); });
  flags.Alias(field("output_distribution"), "--output");
  flags.Field("--batch", field("batch_size"),
              "sequences resident per replica; default: the largest that meets the targets, or that fits");
  flags.Field("--concurrency", field("concurrency"), "users over all replicas, each with one request at a time");
  flags.Field("--rate", field("requests_per_second"), "requests per second over all replicas");
  flags.Field("--burstiness", field("arrival_burstiness"),
              "of arrivals: 0 a steady stream, 1 Poisson (default), more is burstier");
  flags.Field("--prefix-hit", field("prefix_cache_hit_ratio"),
              "share of prompt tokens that are cached: 30%; default 0");
  flags.Field("--max-batch", field("max_batch_size"), "most sequences resident per replica");
}

void AddTargetFlags(Flags& flags, const std::string& name, const std::string& when) {
  struct Words {
    const char* flag;
    const char* field;
    const char* what;
  };
  constexpr Words kLatencies[] = {{"--ttft", "ttft", "time to the first token, queueing included"},
                                  {"--tpot", "tpot", "time per output token after the first"},
                                  {"--e2e", "end_to_end", "time to the last token"}};
  constexpr Words kLevels[] = {{"-mean", "mean_seconds", "mean"},
                               {"-p50", "p50_seconds", "median"},
                               {"-p95", "p95_seconds", "95th percentile"},
                               {"-p99", "p99_seconds", "99th percentile"}};
  flags.Group(absl::StrCat("Targets", when.empty() ? "" : " ", when, " (most that a latency may be, 1s or 40ms)"));
  for (const Words& latency : kLatencies) {
    bool first = true;
    for (const Words& level : kLevels) {
      flags.Field(absl::StrCat(latency.flag, level.flag), absl::StrCat(name, ".", latency.field, ".", level.field),
                  first ? absl::StrCat(latency.what, ": ", level.what) : level.what);
      first = false;
    }
  }
}

void AddEngineFlags(Flags& flags, const std::string& name, const ServingWorkloadOf& workload, const std::string& when) {
  const auto field = [&name](absl::string_view part) { return absl::StrCat(name, ".", part); };
  flags.Group(absl::StrCat("Formats and engine", when.empty() ? "" : " ", when));
  flags.Field("--weights", field("precision.weights"), "format of the weights (default as the config stores them)");
  flags.Field("--kv", field("precision.kv_cache"), "format of the KV cache (default bf16)");
  flags.Field("--activations", field("precision.activations"), "format between operations (default bf16)");
  flags.Field("--compute", field("precision.compute"),
              "operands of matmuls (default as engines have them: fp8 and fp4 where the chip has units, else bf16)");
  flags.Field("--chunk", field("prefill_chunk_tokens"), "tokens of a prefill chunk; default: the profile's");
  flags.Field("--block", field("kv_block_tokens"), "tokens of a KV block; default 16");
  flags.Field("--hbm-utilization", field("hbm_utilization_ratio"),
              "share of HBM that the engine takes: 90%; default: the profile's");
  flags.Field("--kv-split", field("kv_cache_split"), "the cache when tensor exceeds the KV heads");
  flags.Field("--windowed-kv", field("windowed_kv_policy"), "what layers with a window keep");
  flags.Field("--max-context", field("max_context_tokens"),
              "longest context that the engine is started for; default: the longest request");
  flags.Field("--prompt-logprobs", field("prompt_logprobs"), "return log-probabilities of prompts");
  flags.Field("--load-imbalance", field("expert_load_imbalance_ratio"), "of experts; default: the model's");
  flags.Field("--draft-tokens", field("speculative.draft_tokens"), "speculative decoding: tokens drafted per step");
  flags.Field("--acceptance", field("speculative.acceptance_ratio"), "chance that a drafted token is accepted: 70%");
  flags.Field("--draft-cost", field("speculative.draft_cost_ratio"),
              "time of a drafted token in decode steps: 5%; default 0");
  flags.Custom("--draft-model", field("speculative.draft_model"), "NAME|FILE", "the model that drafts, as --model",
               [&flags, workload](const std::string& text) {
                 return ReadModel(text, flags.in(), workload()->mutable_speculative()->mutable_draft_model());
               });
}

}  // namespace sliceplan::cli
