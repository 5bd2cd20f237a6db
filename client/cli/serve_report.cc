// The table of `sliceplan serve`.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/breakdown_report.h"
#include "client/cli/choices.h"
#include "client/cli/estimate_text.h"
#include "client/cli/frontier_plot.h"
#include "client/cli/serve.h"
#include "client/cli/text.h"

namespace sliceplan::cli {
namespace {

constexpr size_t kPlotRows = 12;
constexpr size_t kPlotColumns = 72;

// "2 x tpu-v5e 4x4 (16 chips)", or "prefill 1 x ..., decode 3 x ...".
std::string ReplicasText(const v1::ServingEstimate& estimate) {
  std::vector<std::string> texts;
  for (const v1::PoolEstimate& pool : estimate.pools()) {
    std::string text = pool.role() == v1::POOL_ROLE_BOTH ? "" : absl::StrCat(ChoiceName(pool.role()), " ");
    if (pool.replica_count() > 1) absl::StrAppend(&text, Plural(pool.replica_count(), "replica"), " of ");
    texts.push_back(absl::StrCat(text, SliceText(pool.slice())));
  }
  return absl::StrJoin(texts, ", ");
}

std::string LengthText(bool is_count, int32_t tokens, const v1::TokenDistribution& distribution) {
  if (is_count) return Grouped(tokens);
  if (distribution.has_moments()) return absl::StrCat("about ", Short(distribution.moments().mean_tokens()));
  double weight = 0;
  double sum = 0;
  for (const v1::TokenBin& bin : distribution.histogram().bins()) {
    weight += bin.weight();
    sum += bin.weight() * bin.tokens();
  }
  return weight > 0 ? absl::StrCat("about ", Short(sum / weight)) : "";
}

std::string LoadText(const v1::ServingEstimate& estimate) {
  const v1::ServingWorkload& load = estimate.workload();
  std::string text = absl::StrCat(
      LengthText(load.has_prompt_tokens(), load.prompt_tokens(), load.prompt_distribution()), " tokens in, ",
      LengthText(load.has_output_tokens(), load.output_tokens(), load.output_distribution()), " out");
  if (load.has_requests_per_second()) {
    absl::StrAppend(&text, ", ", Significant(load.requests_per_second()), " requests/s");
  }
  if (load.has_concurrency()) absl::StrAppend(&text, ", ", Plural(load.concurrency(), "user"));
  return text;
}

std::string BatchText(const v1::ServingEstimate& estimate) {
  std::string text = absl::StrCat(Plural(estimate.batch_size(), "sequence"), " per replica; at most ",
                                  Grouped(estimate.max_batch_size()), " fit");
  if (estimate.has_critical_batch_size()) {
    absl::StrAppend(&text, "; bound by compute from ", Significant(estimate.critical_batch_size()));
  }
  return text;
}

std::string LatencyText(const v1::LatencyEstimate& latency) {
  return absl::StrCat("p50 ", Seconds(latency.p50_seconds()), ", p95 ", Seconds(latency.p95_seconds()), ", p99 ",
                      Seconds(latency.p99_seconds()));
}

std::string ThroughputText(const v1::ServingThroughput& throughput) {
  std::string text = absl::StrCat(Short(throughput.output_tokens_per_second()), " output tokens/s, ");
  if (throughput.has_output_tokens_per_second_p05()) {
    absl::StrAppend(&text, Short(throughput.output_tokens_per_second_p05()), " to ",
                    Short(throughput.output_tokens_per_second_p95()), " in 9 of 10 runs, ");
  }
  absl::StrAppend(&text, Short(throughput.output_tokens_per_second_per_chip()), " per chip; ",
                  Significant(throughput.requests_per_second()), " requests/s");
  if (throughput.saturation_requests_per_second() > 0) {
    absl::StrAppend(&text, ", saturated at ", Significant(throughput.saturation_requests_per_second()));
  }
  if (throughput.has_goodput_requests_per_second()) {
    absl::StrAppend(&text, ", ", Significant(throughput.goodput_requests_per_second()), " within all targets");
  }
  return text;
}

std::string CostText(const v1::ServingCost& cost) {
  if (!cost.has_usd_per_hour()) return cost.prices().empty() ? "" : cost.prices(0).sentence();
  std::vector<std::string> parts;
  const auto add = [&](bool known, double usd, absl::string_view what) {
    if (known && usd > 0) parts.push_back(absl::StrCat(Dollars(usd), what));
  };
  add(cost.has_usd_per_million_output_tokens(), cost.usd_per_million_output_tokens(), " per million output tokens");
  add(cost.has_usd_per_million_input_tokens(), cost.usd_per_million_input_tokens(), " input");
  add(cost.has_usd_per_million_cached_input_tokens(), cost.usd_per_million_cached_input_tokens(), " cached input");
  parts.push_back(absl::StrCat(Dollars(cost.usd_per_hour()), " an hour"));
  std::string text = absl::StrJoin(parts, ", ");
  if (cost.has_usd_per_chip_hour()) absl::StrAppend(&text, " at ", Dollars(cost.usd_per_chip_hour()), " per chip-hour");
  if (!cost.prices().empty() && cost.prices(0).has_row()) {
    absl::StrAppend(&text, "  (", PriceText(cost.prices(0).row()), ")");
  }
  return text;
}

std::string BoundText(const v1::ServingEstimate& estimate) {
  std::vector<std::string> parts;
  if (estimate.has_decode()) parts.push_back(absl::StrCat("decode by ", ResourceText(estimate.decode().bound())));
  if (estimate.has_prefill()) parts.push_back(absl::StrCat("prefill by ", ResourceText(estimate.prefill().bound())));
  return absl::StrJoin(parts, ", ");
}

std::string PlanText(const v1::ServingEstimate& estimate) {
  std::vector<std::string> texts;
  for (const v1::PoolEstimate& pool : estimate.pools()) {
    if (!pool.has_parallelism()) continue;
    std::string text = pool.role() == v1::POOL_ROLE_BOTH ? "" : absl::StrCat(ChoiceName(pool.role()), ": ");
    absl::StrAppend(&text, DegreesText(pool.parallelism().ici()));
    if (pool.slice().slice_count() > 1) {
      absl::StrAppend(&text, ", ", DegreesText(pool.parallelism().dcn()), " across slices");
    }
    if (pool.idle_chip_count() > 0) absl::StrAppend(&text, ", ", Plural(pool.idle_chip_count(), "chip"), " idle");
    if (pool.has_busy_ratio()) absl::StrAppend(&text, ", busy ", Percent(pool.busy_ratio()));
    texts.push_back(std::move(text));
  }
  std::string text = absl::StrJoin(texts, "; ");
  if (estimate.has_tensor_degree_limit()) {
    absl::StrAppend(&text, "; tensor collectives hide up to ", Significant(estimate.tensor_degree_limit()));
  }
  return text;
}

std::string TransferText(const v1::Disaggregation& apart) {
  return absl::StrCat(Significant(apart.prefill_per_decode_ratio()), " prefill replicas per decode replica keep both ",
                      "busy; a prompt's cache of ", Bytes(static_cast<double>(apart.kv_transfer_bytes())), " takes ",
                      Seconds(apart.kv_transfer_seconds()), " to hand over");
}

void PrintLatencies(const v1::ServingEstimate& estimate, Report& report) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const char* name, bool known, const v1::LatencyEstimate& latency) {
    if (!known) return;
    const std::string interval =
        latency.has_mean_p05_seconds()
            ? absl::StrCat(Seconds(latency.mean_p05_seconds()), " to ", Seconds(latency.mean_p95_seconds()))
            : "";
    rows.push_back({name, Seconds(latency.mean_seconds()), interval, Seconds(latency.p50_seconds()),
                    Seconds(latency.p95_seconds()), Seconds(latency.p99_seconds())});
  };
  add("first token (TTFT)", estimate.has_ttft(), estimate.ttft());
  add("per output token (TPOT)", estimate.has_tpot(), estimate.tpot());
  add("between tokens (ITL)", estimate.has_inter_token_latency(), estimate.inter_token_latency());
  add("whole request", estimate.has_end_to_end(), estimate.end_to_end());
  add("whole request / output token", estimate.has_normalized_time_per_output_token(),
      estimate.normalized_time_per_output_token());
  if (rows.empty()) return;
  report.Section("Latency");
  report.Table({{"", false}, {"mean", true}, {"in 9 of 10 runs", true}, {"p50", true}, {"p95", true}, {"p99", true}},
               rows);
}

void PrintStages(const v1::PoolEstimate& pool, Report& report) {
  std::vector<std::vector<std::string>> rows;
  for (const v1::ServingMemory& stage : pool.stages()) {
    rows.push_back({absl::StrCat(stage.stage_index() + 1), Grouped(stage.layer_count()),
                    Bytes(static_cast<double>(stage.weights_bytes())),
                    Bytes(static_cast<double>(stage.kv_pool_bytes())),
                    Bytes(static_cast<double>(stage.kv_bytes_per_token())), Grouped(stage.max_context_tokens())});
  }
  if (rows.empty()) return;
  report.Section("Pipeline stages, one chip each");
  report.Table({{"stage", true},
                {"layers", true},
                {"weights", true},
                {"KV pool", true},
                {"cache a token", true},
                {"longest context", true}},
               rows);
}

void PrintMemory(const v1::ServingEstimate& estimate, Report& report) {
  const v1::ServingMemory& memory = estimate.memory();
  report.Section("Memory of the fullest chip");
  std::vector<std::vector<std::string>> pool;
  if (memory.kv_pool_bytes() > 0) {
    pool.push_back({"KV pool", Bytes(static_cast<double>(memory.kv_pool_bytes())),
                    absl::StrCat("reserved by the engine: ", Grouped(memory.kv_pool_tokens()), " tokens a replica")});
  }
  PrintMemoryClasses({{"weights", memory.weights_bytes()},
                      {"KV cache", memory.kv_cache_bytes()},
                      {"activations", memory.activations_bytes()},
                      {"collective buffers", memory.buffers_bytes()},
                      {"runtime reserve", memory.reserve_bytes()}},
                     memory.used_bytes(), memory.capacity_bytes(), pool, report);
  if (estimate.max_context_tokens() > 0) {
    report.Sentence(absl::StrCat("One sequence alone may have ", Grouped(estimate.max_context_tokens()), " tokens."));
  }
  for (const v1::PoolEstimate& of_pool : estimate.pools()) PrintStages(of_pool, report);
}

std::string BoundsText(const v1::StepTime& time) {
  std::string text = Seconds(time.expected_seconds());
  if (time.has_p05_seconds()) {
    absl::StrAppend(&text, " expected, ", Seconds(time.p05_seconds()), " to ", Seconds(time.p95_seconds()),
                    " in 9 of 10 runs");
  }
  return absl::StrCat(text, "; roofline ", Seconds(time.roofline_lower_seconds()), " with full overlap, ",
                      Seconds(time.roofline_upper_seconds()), " with none.");
}

void PrintPasses(const v1::ServingEstimate& estimate, Report& report) {
  if (estimate.has_decode()) {
    const v1::DecodeEstimate& decode = estimate.decode();
    report.Section("One decode step");
    report.Sentence(BoundsText(decode.step_time()));
    report.Sentence(absl::StrCat("At peak: cache ", Seconds(decode.kv_seconds()), ", weights ",
                                 Seconds(decode.weights_seconds()), ", matmuls ", Seconds(decode.compute_seconds()),
                                 ", network ", Seconds(decode.network_seconds()), "."));
    PrintBreakdown(decode.breakdown(), report);
  }
  if (!estimate.has_prefill()) return;
  const v1::PrefillEstimate& prefill = estimate.prefill();
  report.Section("Prefill of one prompt");
  report.Sentence(BoundsText(prefill.time()));
  report.Sentence(absl::StrCat("At peak: compute ", Seconds(prefill.compute_seconds()), ", HBM ",
                               Seconds(prefill.hbm_seconds()), ", network ", Seconds(prefill.network_seconds()),
                               prefill.has_mfu_ratio() ? absl::StrCat("; MFU ", Percent(prefill.mfu_ratio())) : "",
                               "."));
  PrintBreakdown(prefill.breakdown(), report);
}

// A point of the frontier in words.
std::string PointText(const v1::ServingPoint& point) {
  std::string text = absl::StrCat("batch ", Grouped(point.batch_size()), ", ", PlanFlag(point.parallelism()), ": ",
                                  Seconds(point.tpot_seconds()), " a token, ",
                                  Short(point.output_tokens_per_second_per_chip()), " tokens/s per chip");
  if (point.has_usd_per_million_output_tokens()) {
    absl::StrAppend(&text, ", ", Dollars(point.usd_per_million_output_tokens()), " per million");
  }
  return text;
}

void PrintFrontier(const v1::ServingEstimate& estimate, Report& report) {
  std::vector<PlotPoint> points;
  for (const v1::ServingPoint& point : estimate.frontier()) {
    points.push_back({point.tpot_seconds(), point.output_tokens_per_second_per_chip(), '*'});
  }
  if (estimate.has_best_point()) {
    points.push_back(
        {estimate.best_point().tpot_seconds(), estimate.best_point().output_tokens_per_second_per_chip(), '@'});
  }
  const std::vector<std::string> lines =
      Plot(points, {"time per output token", Seconds}, {"output tokens/s per chip", Short}, kPlotRows, kPlotColumns);
  if (lines.empty()) return;
  report.Section("Faster for each user or more of them: no other point is both");
  report.Lines(lines);
  report.Item(PointText(estimate.frontier(0)));
  report.Item(PointText(estimate.frontier(estimate.frontier_size() - 1)));
  if (estimate.has_best_point()) {
    const bool has_targets = estimate.throughput().has_goodput_requests_per_second();
    report.Item(absl::StrCat(has_targets ? "@ the most throughput within the targets: " : "@ the most throughput: ",
                             PointText(estimate.best_point())));
  }
}

}  // namespace

void PrintServingSummary(const v1::ServingEstimate& estimate, Report& report) {
  report.Row("load", LoadText(estimate));
  if (estimate.has_memory()) report.Row("batch", BatchText(estimate));
  if (estimate.has_ttft()) report.Row("first token", LatencyText(estimate.ttft()));
  if (estimate.has_tpot()) report.Row("each token", LatencyText(estimate.tpot()));
  if (estimate.has_throughput() && estimate.throughput().output_tokens_per_second() > 0) {
    report.Row("throughput", ThroughputText(estimate.throughput()));
  }
  if (const std::string cost = CostText(estimate.cost()); !cost.empty()) report.Row("cost", cost);
  if (estimate.has_replica_count()) {
    report.Row("replicas", absl::StrCat(Grouped(estimate.replica_count()), " for this rate"));
  }
  if (const std::string bound = BoundText(estimate); !bound.empty()) report.Row("bound", bound);
  if (const std::string plan = PlanText(estimate); !plan.empty()) report.Row("plan", plan);
  if (estimate.has_disaggregation()) report.Row("hand-over", TransferText(estimate.disaggregation()));
  if (estimate.has_kilowatt_hours_per_million_output_tokens()) {
    report.Row("energy", absl::StrCat(Significant(estimate.kilowatt_hours_per_million_output_tokens()),
                                      " kWh per million output tokens"));
  }
}

std::string FrontierCsv(const v1::ServingEstimate& estimate) {
  std::string csv =
      "batch_size,parallelism,tpot_seconds,ttft_seconds,output_tokens_per_second_per_chip,"
      "usd_per_million_output_tokens\n";
  for (const v1::ServingPoint& point : estimate.frontier()) {
    absl::StrAppend(&csv, point.batch_size(), ",\"", PlanFlag(point.parallelism()), "\",", point.tpot_seconds(), ",");
    if (point.has_ttft_seconds()) absl::StrAppend(&csv, point.ttft_seconds());
    absl::StrAppend(&csv, ",", point.output_tokens_per_second_per_chip(), ",");
    if (point.has_usd_per_million_output_tokens()) absl::StrAppend(&csv, point.usd_per_million_output_tokens());
    absl::StrAppend(&csv, "\n");
  }
  return csv;
}

void PrintServing(const v1::EstimateServingResponse& response, const std::string& model, const Flags& flags,
                  Report& report) {
  const v1::ServingEstimate& estimate = response.estimate();
  const bool feasible = estimate.outcome() == v1::OUTCOME_FEASIBLE;
  report.Headline(OutcomeText(estimate.outcome()), feasible ? Tone::kGood : Tone::kBad,
                  absl::StrCat("serving ", model, " on ", ReplicasText(estimate)));
  if (estimate.has_shortfall()) PrintShortfall(estimate.shortfall(), report);
  if (estimate.has_smallest_fix()) PrintFix(estimate.smallest_fix(), flags, report);
  PrintServingSummary(estimate, report);
  PrintLatencies(estimate, report);
  if (estimate.has_memory()) PrintMemory(estimate, report);
  PrintPasses(estimate, report);
  PrintFrontier(estimate, report);
  const bool uneven = std::any_of(estimate.pools().begin(), estimate.pools().end(),
                                  [](const v1::PoolEstimate& pool) { return !pool.paddings().empty(); });
  if (uneven) report.Section("Uneven");
  for (const v1::PoolEstimate& pool : estimate.pools()) {
    for (const v1::Padding& padding : pool.paddings()) report.Item(padding.sentence());
  }
  PrintAdvice(estimate.advice(), flags, report);
  PrintAssumptions(estimate.assumptions(), flags, report);
  PrintWarnings(estimate.warnings(), flags, report);
  PrintVersions(response.engine_version(), response.catalog_version(), report);
}

}  // namespace sliceplan::cli
