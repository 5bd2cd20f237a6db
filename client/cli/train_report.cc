// The table of `sliceplan train`.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/breakdown_report.h"
#include "client/cli/choices.h"
#include "client/cli/estimate_text.h"
#include "client/cli/text.h"
#include "client/cli/train.h"

namespace sliceplan::cli {
namespace {

std::string StepTimeText(const v1::TrainingEstimate& estimate) {
  const v1::StepTime& time = estimate.step_time();
  if (time.assumed()) return absl::StrCat(Seconds(time.expected_seconds()), ", from the assumed MFU");
  const std::string bounds = absl::StrCat("roofline ", Seconds(time.roofline_lower_seconds()), " with full overlap, ",
                                          Seconds(time.roofline_upper_seconds()), " with none");
  if (!time.has_p05_seconds()) return absl::StrCat(Seconds(time.expected_seconds()), "  (", bounds, ")");
  return absl::StrCat(Seconds(time.expected_seconds()), " expected, ", Seconds(time.p05_seconds()), " to ",
                      Seconds(time.p95_seconds()), " in 9 of 10 runs  (", bounds, ")");
}

std::string ThroughputText(const v1::TrainingEstimate& estimate) {
  return absl::StrCat(Short(estimate.tokens_per_second()), " tokens/s, ", Short(estimate.tokens_per_second_per_chip()),
                      " per chip; ", Grouped(estimate.tokens_per_step()), " tokens a step");
}

std::string UtilizationText(const v1::TrainingEstimate& estimate) {
  std::string text = absl::StrCat("MFU ", Percent(estimate.mfu_ratio()));
  // Without recompute they are the same.
  const bool recomputes = estimate.hardware_flops_per_step() > estimate.model_flops_per_step();
  if (estimate.has_hfu_ratio() && recomputes)
    absl::StrAppend(&text, ", with recompute ", Percent(estimate.hfu_ratio()));
  const v1::FlopsConvention& convention = estimate.flops_convention();
  absl::StrAppend(&text, " of ", WithUnit(convention.peak_flops_per_second_per_chip(), "FLOP/s"), " ",
                  convention.peak_format());
  if (!convention.name().empty()) absl::StrAppend(&text, "  (", convention.name(), ")");
  return text;
}

std::string DurationText(const v1::TrainingEstimate& estimate) {
  std::string text =
      absl::StrCat(Seconds(estimate.time_to_train_seconds()), " for ", Plural(estimate.step_count(), "step"));
  if (estimate.has_total_model_flops()) {
    absl::StrAppend(&text, ", ", Short(estimate.total_model_flops()), " useful FLOPs");
  }
  if (estimate.has_wall_seconds() && estimate.has_goodput()) {
    absl::StrAppend(&text, "; ", Seconds(estimate.wall_seconds()), " with failures (goodput ",
                    Percent(estimate.goodput_ratio()), ")");
  }
  return text;
}

std::string CostText(const v1::TrainingEstimate& estimate) {
  const v1::TrainingCost& cost = estimate.cost();
  if (!cost.has_usd_per_chip_hour()) return cost.price().sentence();
  std::vector<std::string> parts;
  if (cost.has_total_usd()) parts.push_back(absl::StrCat(Dollars(cost.total_usd()), " in all"));
  if (cost.has_usd_per_million_tokens()) {
    parts.push_back(absl::StrCat(Dollars(cost.usd_per_million_tokens()), " per million tokens"));
  }
  if (cost.has_usd_per_hour()) parts.push_back(absl::StrCat(Dollars(cost.usd_per_hour()), " an hour"));
  std::string text =
      absl::StrCat(absl::StrJoin(parts, ", "), " at ", Dollars(cost.usd_per_chip_hour()), " per chip-hour");
  if (cost.price().has_row()) absl::StrAppend(&text, "  (", PriceText(cost.price().row()), ")");
  return text;
}

void PrintSummary(const v1::TrainingEstimate& estimate, Report& report) {
  if (estimate.has_step_time()) report.Row("step time", StepTimeText(estimate));
  if (estimate.has_mfu_ratio()) report.Row("utilisation", UtilizationText(estimate));
  if (estimate.has_tokens_per_second()) report.Row("throughput", ThroughputText(estimate));
  if (estimate.has_time_to_train_seconds()) report.Row("training", DurationText(estimate));
  if (estimate.has_cost()) report.Row("cost", CostText(estimate));
  if (estimate.has_memory())
    report.Row("memory", MemoryText(estimate.memory().used_bytes(), estimate.memory().capacity_bytes()));
  if (estimate.has_bottleneck()) report.Row("bottleneck", estimate.bottleneck().sentence());
  if (estimate.has_parallelism()) report.Row("plan", PlanText(estimate));
  if (!estimate.mapping().empty()) report.Row("mapping", MappingText(estimate.mapping()));
  if (estimate.idle_chip_count() > 0) report.Row("idle", Plural(estimate.idle_chip_count(), "chip"));
  if (estimate.has_energy() && estimate.energy().has_total_kilowatt_hours()) {
    report.Row("energy",
               absl::StrCat(Short(estimate.energy().total_kilowatt_hours()), " kWh. ", estimate.energy().sentence()));
  }
}

void PrintMemory(const v1::TrainingMemory& memory, int stage_count, Report& report) {
  std::string heading = "Memory of the fullest chip";
  if (stage_count > 1) absl::StrAppend(&heading, ", pipeline stage ", memory.stage_index() + 1, " of ", stage_count);
  report.Section(heading);
  if (!memory.moment().empty()) report.Sentence(absl::StrCat("At its worst: ", memory.moment(), "."));
  if (memory.attention_score_bytes() > 0) {
    report.Sentence(absl::StrCat("Attention scores of one layer take ",
                                 Bytes(static_cast<double>(memory.attention_score_bytes())),
                                 " in fp32, in the workspace; a flash kernel needs none of it."));
  }
  std::vector<std::vector<std::string>> host;
  if (memory.host_bytes() > 0) host.push_back({"host memory", Bytes(static_cast<double>(memory.host_bytes())), ""});
  PrintMemoryClasses({{"parameters", memory.parameters_bytes()},
                      {"gradients", memory.gradients_bytes()},
                      {"optimizer state", memory.optimizer_bytes()},
                      {"saved activations", memory.activations_bytes()},
                      {"gathered weights", memory.gathered_weights_bytes()},
                      {"logits and loss", memory.logits_bytes()},
                      {"workspace", memory.workspace_bytes()},
                      {"collective buffers", memory.buffers_bytes()},
                      {"runtime reserve", memory.reserve_bytes()},
                      {"not at the same time", -memory.not_coexisting_bytes()}},
                     memory.used_bytes(), memory.capacity_bytes(), host, report);
}

void PrintThresholds(const v1::TrainingThresholds& thresholds, Report& report) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const char* strategy, bool applies, double needed, double given) {
    if (!applies) return;
    rows.push_back(
        {strategy, Short(needed), Short(given), given >= needed ? "enough" : "too few: bound by the network"});
  };
  add("data or FSDP alone, per chip", thresholds.has_data_tokens_per_chip(), thresholds.data_tokens_per_chip(),
      thresholds.tokens_per_chip());
  add("FSDP with the best tensor degree, per chip", thresholds.has_fsdp_tensor_tokens_per_chip(),
      thresholds.fsdp_tensor_tokens_per_chip(), thresholds.tokens_per_chip());
  add("FSDP at this tensor and pipeline degree, per chip", thresholds.has_own_split_tokens_per_chip(),
      thresholds.own_split_tokens_per_chip(), thresholds.tokens_per_chip());
  add("data across slices, per slice", thresholds.has_dcn_tokens_per_slice(), thresholds.dcn_tokens_per_slice(),
      thresholds.tokens_per_slice());
  if (rows.empty() && thresholds.sentence().empty()) return;
  report.Section("Tokens that a strategy needs to be bound by compute");
  if (!thresholds.sentence().empty()) report.Sentence(thresholds.sentence());
  if (!rows.empty()) {
    report.Table({{"strategy", false}, {"needs", true}, {"has", true}, {"", false}}, rows);
  }
  if (thresholds.has_tensor_degree_limit()) {
    report.Sentence(
        absl::StrCat("Tensor degrees up to ", Significant(thresholds.tensor_degree_limit()), " are bound by compute."));
  }
}

}  // namespace

std::string PlanText(const v1::TrainingEstimate& estimate) {
  const v1::Parallelism& plan = estimate.parallelism();
  const v1::TrainingWorkload& workload = estimate.workload();
  std::vector<std::string> parts = {DegreesText(plan.ici())};
  if (estimate.slice().slice_count() > 1) parts.push_back(absl::StrCat(DegreesText(plan.dcn()), " across slices"));
  if (plan.data_zero_stage() > v1::ZERO_STAGE_0) {
    parts.push_back(absl::StrCat("ZeRO stage ", plan.data_zero_stage() - v1::ZERO_STAGE_0, " over data"));
  }
  if (plan.ici().pipeline() > 1 || plan.dcn().pipeline() > 1) {
    parts.push_back(absl::StrCat(ChoiceName(plan.schedule()), " with ", Plural(plan.microbatch_count(), "microbatch"),
                                 ", bubble ", Percent(estimate.pipeline_bubble_ratio())));
  }
  if (workload.gradient_accumulation() > 1) {
    parts.push_back(absl::StrCat(workload.gradient_accumulation(), " accumulated passes"));
  }
  parts.push_back(workload.has_checkpoints_per_layer()
                      ? absl::StrCat(workload.checkpoints_per_layer(), " checkpoints per layer")
                      : absl::StrCat("remat ", ChoiceName(workload.remat_policy())));
  parts.push_back(ChoiceName(workload.optimizer()));
  if (estimate.evaluated_plan_count() > 1) {
    parts.push_back(absl::StrCat("the best of ", Plural(estimate.evaluated_plan_count(), "plan")));
  }
  return absl::StrJoin(parts, "; ");
}

void PrintTraining(const v1::EstimateTrainingResponse& response, const std::string& model, const Flags& flags,
                   Report& report) {
  const v1::TrainingEstimate& estimate = response.estimate();
  const bool feasible = estimate.outcome() == v1::OUTCOME_FEASIBLE;
  report.Headline(OutcomeText(estimate.outcome()), feasible ? Tone::kGood : Tone::kBad,
                  absl::StrCat("training ", model, " on ", SliceText(estimate.slice())));
  if (estimate.has_shortfall()) PrintShortfall(estimate.shortfall(), report);
  if (estimate.has_smallest_fix()) PrintFix(estimate.smallest_fix(), flags, report);
  PrintSummary(estimate, report);
  if (TotalSeconds(estimate.breakdown()) > 0) {
    report.Section("Where the step goes");
    report.Sentence(PhasesText(estimate.breakdown()));
    PrintBreakdown(estimate.breakdown(), report);
  }
  if (estimate.has_memory()) PrintMemory(estimate.memory(), estimate.stage_memory_size(), report);
  if (estimate.has_thresholds()) PrintThresholds(estimate.thresholds(), report);
  if (!estimate.paddings().empty()) {
    report.Section("Uneven");
    for (const v1::Padding& padding : estimate.paddings()) report.Item(padding.sentence());
  }
  PrintAdvice(estimate.advice(), flags, report);
  PrintAssumptions(estimate.assumptions(), flags, report);
  PrintWarnings(estimate.warnings(), flags, report);
  PrintVersions(response.engine_version(), response.catalog_version(), report);
}

}  // namespace sliceplan::cli
