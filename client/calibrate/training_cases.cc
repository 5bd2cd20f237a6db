#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/calibrate/cases.h"
#include "client/calibrate/training_formats.h"
#include "client/calibrate/training_model.h"
#include "client/calibrate/training_notes.h"
#include "client/calibrate/training_plan.h"

namespace sliceplan::calibrate {
namespace {

constexpr double kGibibyte = 1073741824;
constexpr double kGigabyte = 1e9;

std::string SourceOf(absl::string_view id) { return std::string(id.substr(0, id.rfind('-'))); }

// Seconds of a step: as printed, from the throughput, or from an MFU whose convention the notes name.
std::optional<double> StepSecondsOf(const Row& row, std::vector<std::string>& unknown) {
  if (const auto seconds = row.Number("metric_step_time_s"); seconds && *seconds > 0) return seconds;
  const auto rate = row.Number("metric_tokens_per_s_per_chip");
  const auto tokens = row.Number("tokens_per_step");
  const auto chips = row.Number("chips");
  if (rate && tokens && chips && *rate > 0) return *tokens / (*rate * *chips);
  if (const std::vector<double> implied = NotedNumbers(row, R"(implied_step_s=([\d.]+))"); !implied.empty()) {
    const absl::string_view convention = row.Token("notes", "conv").value_or("");
    if (convention.empty() || absl::StrContains(convention, "unstated")) {
      unknown.emplace_back("what its MFU counts");
    }
    return implied[0];
  }
  return std::nullopt;
}

// Tokens per second without a batch: of the batch that the service takes where none is given.
std::optional<double> StepSecondsOfDefaultBatch(const Row& row, double tokens) {
  const auto rate = row.Number("metric_tokens_per_s_per_chip");
  const auto chips = row.Number("chips");
  if (!rate || !chips || *rate <= 0) return std::nullopt;
  return tokens / (*rate * *chips);
}

void AddMemory(const Row& row, std::vector<Measured>& measured) {
  const auto memory = row.Number("memory_gb_per_chip");
  if (!memory || *memory <= 0) return;
  const Metric metric =
      Mentions(row, "notes", "max allocated") ? Metric::kAllocatedMemoryBytes : Metric::kPeakMemoryBytes;
  measured.push_back({metric, *memory * (Mentions(row, "notes", "GiB") ? kGibibyte : kGigabyte)});
}

std::vector<std::string> GroupsOf(const Row& row, bool has_experts) {
  const Stack stack = StackOf(row);
  const char* kind = has_experts ? "moe" : "dense";
  std::vector<std::string> groups;
  if (const auto named = row.Token("notes", "group")) {
    groups = {std::string(*named)};  // a machine that is known to be unlike others
  } else if (stack == Stack::kTpu) {
    groups = {"tpu-all", absl::StrCat("tpu-", kind)};
  } else {
    groups = {"gpu-all", absl::StrCat("gpu-", kind)};
    if (!has_experts) groups.emplace_back(IsVendorStack(stack) ? "gpu-vendor-dense" : "gpu-torch-dense");
    if (absl::StartsWith(ProfileOf(row), "megatron-202")) groups.emplace_back("megatron-a100");
  }
  if (row.Token("notes", "val")) {
    for (size_t i = 0, count = groups.size(); i < count; ++i) groups.push_back(absl::StrCat(groups[i], " val=1"));
  }
  return groups;
}

// The question without its plan: degrees, microbatches, recompute, offload.
std::string JobOf(const Row& row, absl::string_view source, v1::EstimateTrainingRequest request) {
  request.clear_parallelism();
  v1::TrainingWorkload& workload = *request.mutable_workload();
  workload.clear_remat_policy();
  workload.clear_custom_remat();
  workload.clear_gradient_accumulation();
  workload.clear_optimizer_offload();
  return absl::StrCat(source, "/", row.Text("framework"), "/", request.SerializeAsString());
}

// Tokens per step that the service takes where the request has none.
constexpr double kDefaultBatchTokens = 4194304;

absl::StatusOr<Case> CaseOf(const Row& row, const catalog::Catalog& catalog) {
  Case made;
  made.id = std::string(row.Text("id"));
  made.source = SourceOf(made.id);
  made.model = std::string(row.Text("model"));
  absl::StatusOr<RowModel> model = ModelOfRow(row, catalog);
  if (!model.ok()) return model.status();
  absl::StatusOr<RowPlan> plan = PlanOfRow(row, catalog);
  if (!plan.ok()) return plan.status();
  std::vector<std::string> unknown = plan->unknown;
  std::vector<std::string> taken = plan->taken;
  if (!model->remark.empty()) taken.push_back(model->remark);

  v1::EstimateTrainingRequest request;
  *request.mutable_model() = model->spec;
  *request.mutable_slice() = plan->slice;
  if (plan->parallelism) *request.mutable_parallelism() = *plan->parallelism;
  request.set_calibration_profile(ProfileOf(row));
  v1::TrainingWorkload& workload = *request.mutable_workload();
  absl::StatusOr<std::string> remat = SetRemat(row, workload);
  if (!remat.ok()) return remat.status();
  if (!remat->empty()) taken.push_back(*remat);
  if (const absl::Status formats = SetFormats(row, workload); !formats.ok()) return formats;
  if (plan->gradient_accumulation) workload.set_gradient_accumulation(*plan->gradient_accumulation);
  if (const auto sequence = row.Count("seq_len")) {
    workload.set_sequence_length(static_cast<int32_t>(*sequence));
  } else {
    unknown.emplace_back("sequence length");
  }
  if (const std::vector<double> factor = NotedNumbers(row, R"(capacity factor ([\d.]+))"); !factor.empty()) {
    workload.set_expert_capacity_factor(factor[0]);
  }
  if (row.Token("notes", "fused_attention_backward")) {
    workload.set_attention_kernel(v1::ATTENTION_KERNEL_FLASH_FUSED_BACKWARD);
  } else if (row.Token("notes", "attention") == "materialized") {
    workload.set_attention_kernel(v1::ATTENTION_KERNEL_MATERIALIZED);
  }
  std::optional<double> seconds;
  if (const auto batch = row.Count("global_batch_seqs")) {
    workload.set_global_batch_size(*batch);
    seconds = StepSecondsOf(row, unknown);
  } else if (row.Text("metric_step_time_s").empty()) {
    seconds = StepSecondsOfDefaultBatch(row, kDefaultBatchTokens);
  }
  if (seconds) made.measured.push_back({Metric::kStepSeconds, *seconds});
  AddMemory(row, made.measured);
  if (made.measured.empty()) return absl::InvalidArgumentError("no time and no memory whose batch is known");
  if (Mentions(row, "optimizer", "on CPU")) unknown.emplace_back("how long the host's processors take for the update");
  if (row.Token("notes", "tier") == "approx") unknown.emplace_back("the exact figure");
  if (row.Token("notes", "superseded_by_later_log")) unknown.emplace_back("its settings: a later log replaced it");
  if (row.Text("remat").empty() && StackOf(row) == Stack::kTpu && row.Token("notes", "tier") == "extra") {
    unknown.emplace_back("recompute");
  }

  made.accelerator = plan->accelerator;
  made.job = JobOf(row, made.source, request);
  made.question = std::move(request);
  if (!unknown.empty()) {
    made.standing = Standing::kInformative;
    taken.insert(taken.begin(), absl::StrCat("not published: ", absl::StrJoin(unknown, ", ")));
  }
  if (const auto flag = row.Token("notes", "flag")) {
    made.standing = Standing::kInconsistent;
    taken.insert(taken.begin(), std::string(*flag));
  }
  made.remark = absl::StrJoin(taken, "; ");
  made.groups = GroupsOf(row, model->has_experts);
  made.sweep = absl::StrJoin(
      {std::string(made.source), made.model, std::string(row.Text("seq_len")),
       std::string(row.Text("global_batch_seqs")), std::string(row.Text("chips")), std::string(row.Text("precision"))},
      "/");
  return made;
}

}  // namespace

CaseTable TrainingCases(const Table& table, const catalog::Catalog& catalog) {
  CaseTable all;
  for (const Row& row : table.rows()) {
    absl::StatusOr<Case> made = CaseOf(row, catalog);
    if (made.ok()) {
      all.cases.push_back(*std::move(made));
    } else {
      const std::string id(row.Text("id"));
      all.unmapped.push_back({id, SourceOf(id), std::string(made.status().message())});
    }
  }
  return all;
}

}  // namespace sliceplan::calibrate
