#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/calibrate/cases.h"
#include "client/calibrate/serving_model.h"
#include "client/calibrate/serving_words.h"

namespace sliceplan::calibrate {
namespace {

constexpr double kSecondsPerMillisecond = 1e-3;

// How a row loads the engine.
enum class Loading {
  kStaticBatch,  // one batch from start to end
  kUsers,        // in a closed loop
  kRate,         // requests arrive
  kAsManyAsFit,  // all requests at once, and the engine takes what fits
};

struct Layout {
  v1::AxisDegrees degrees;  // of a replica; empty: not stated
  int32_t chips = 1;        // of a replica
  int32_t replicas = 1;
};

Loading LoadingOf(const Row& row) {
  const absl::string_view notes = row.Text("notes");
  if (absl::StrContains(row.Text("framework"), "FasterTransformer") || absl::StrContains(notes, "static batch"))
    return Loading::kStaticBatch;
  if (NumberAfter(notes, "offered QPS")) return Loading::kRate;
  if (row.Count("batch_or_concurrency") && !absl::StrContains(notes, "max batch")) return Loading::kUsers;
  return Loading::kAsManyAsFit;
}

// Degrees count chips: where a table counts TensorCores, tensor is what the chips leave. `dp` with an expert degree
// means ranks of the attention inside a replica, without one whole replicas.
absl::StatusOr<Layout> LayoutOf(const Row& row, int64_t chips) {
  const int64_t pipeline = row.Count("pp").value_or(1);
  const std::optional<int64_t> tensor = row.Count("tp");
  const int64_t expert = row.Count("ep").value_or(1);
  const std::optional<int64_t> data = row.Count("dp");
  Layout layout;
  layout.chips = static_cast<int32_t>(chips);
  if (!tensor && !data && expert == 1 && pipeline == 1) return layout;
  const bool data_attention =
      absl::StrContains(row.Text("notes"), "DP attention") || (expert > 1 && (data.value_or(1) > 1 || !tensor));
  int64_t replicas = data_attention ? 1 : data.value_or(1);
  if (chips % (replicas * pipeline) != 0) return absl::InvalidArgumentError("the degrees do not multiply to the chips");
  int64_t left = chips / replicas / pipeline;
  if (data_attention) {
    layout.degrees.set_expert(static_cast<int32_t>(std::min(left, std::max(expert, data.value_or(left)))));
    left /= layout.degrees.expert();
  } else if (tensor && *tensor < left) {
    // Engines beside each other.
    if (left % *tensor != 0) return absl::InvalidArgumentError("the degrees do not multiply to the chips");
    replicas *= left / *tensor;
    left = *tensor;
  }
  layout.degrees.set_tensor(static_cast<int32_t>(left));
  layout.degrees.set_pipeline(static_cast<int32_t>(pipeline));
  layout.chips = static_cast<int32_t>(chips / replicas);
  layout.replicas = static_cast<int32_t>(replicas);
  if (int64_t{layout.degrees.tensor()} * std::max(1, layout.degrees.expert()) * pipeline != layout.chips)
    return absl::InvalidArgumentError("the degrees do not multiply to the chips");
  return layout;
}

void SetSlices(const Row& row, const Layout& layout, const std::string& accelerator,
               v1::EstimateServingRequest& request) {
  v1::Slice slice;
  slice.set_accelerator(accelerator);
  slice.set_chip_count(layout.chips);
  v1::Parallelism plan;
  *plan.mutable_ici() = layout.degrees;
  const bool stated = layout.degrees.ByteSizeLong() > 0;
  const bool decodes_alone = row.Text("phase") == "decode";
  if (layout.replicas == 1 && !decodes_alone) {
    *request.mutable_slice() = slice;
    if (stated) *request.mutable_parallelism() = plan;
    return;
  }
  v1::Pool& pool = *request.add_pools();
  *pool.mutable_slice() = slice;
  if (stated) *pool.mutable_parallelism() = plan;
  pool.set_replica_count(layout.replicas);
  // Where the engine chooses the plan, it is one for steps, not for the prompts before them.
  if (decodes_alone) pool.set_role(v1::POOL_ROLE_DECODE);
}

void SetFormats(const Row& row, v1::ServingPrecision& precision) {
  const v1::DataType weights = DataTypeNamed(row.Text("weight_dtype"));
  if (!IsPublishedIn(row.Text("model"), weights)) precision.set_weights(weights);
  v1::DataType cache = DataTypeNamed(row.Text("kv_dtype"));
  // TensorRT-LLM's recipes keep an eight-bit cache beside eight-bit weights and activations.
  const bool eight_bits = weights == v1::DATA_TYPE_FP8 && DataTypeNamed(row.Text("activation_dtype")) == weights;
  if (row.Text("kv_dtype").empty() && eight_bits && absl::StrContains(row.Text("framework"), "TensorRT-LLM"))
    cache = v1::DATA_TYPE_FP8;
  precision.set_kv_cache(cache);
}

void SetLengths(const Row& row, double prompt, double output, v1::ServingWorkload& workload) {
  if (const std::optional<double> ratio = NumberAfter(row.Text("notes"), "length range ratio")) {
    *workload.mutable_prompt_distribution() = DrawnLengths(prompt, *ratio);
    *workload.mutable_output_distribution() = DrawnLengths(output, *ratio);
    return;
  }
  workload.mutable_prompt_distribution()->mutable_moments()->set_mean_tokens(std::max(1.0, prompt));
  workload.mutable_output_distribution()->mutable_moments()->set_mean_tokens(std::max(1.0, output));
}

void Judge(const Row& row, Case& made) {
  const absl::string_view notes = row.Text("notes");
  for (const absl::string_view words : {"exceeds", "contradict", "disagree", "inconsistent"}) {
    if (!absl::StrContains(notes, words)) continue;
    made.standing = Standing::kInconsistent;
    made.remark = std::string(notes);
    return;
  }
  for (const absl::string_view words :
       {"simulated", "ambiguous", "do not use", "low confidence", "ONE transformer layer", "production"}) {
    if (!absl::StrContains(notes, words)) continue;
    made.standing = Standing::kInformative;
    made.remark = std::string(notes);
  }
}

void Measure(Metric metric, std::optional<double> value, Case& made) {
  if (value && *value > 0) made.measured.push_back({metric, *value});
}

std::optional<double> Seconds(std::optional<double> milliseconds) {
  if (!milliseconds) return std::nullopt;
  return *milliseconds * kSecondsPerMillisecond;
}

// Of one prompt, or of a batch that starts together; in a closed loop that writes one token, the wait for it.
absl::Status AskPrefill(const Row& row, Case& made, v1::ServingWorkload& workload) {
  const std::optional<double> prompt = row.Number("input_len");
  const std::optional<int64_t> batch = row.Count("batch_or_concurrency");
  if (!prompt) return absl::InvalidArgumentError("input_len is blank");
  if (!batch) return absl::InvalidArgumentError("the batch is not stated");
  const std::optional<double> measured =
      row.Number("metric_prefill_s") ? row.Number("metric_prefill_s") : row.Number("metric_ttft_s");
  SetLengths(row, *prompt, 1, workload);
  made.groups.push_back("prefill");
  if (absl::StrContains(row.Text("notes"), "closed loop")) {
    workload.set_concurrency(static_cast<int32_t>(*batch));
    Measure(Metric::kTimeToFirstToken, measured, made);
  } else {
    workload.set_batch_size(static_cast<int32_t>(*batch));
    Measure(*batch == 1 ? Metric::kPrefillSeconds : Metric::kTimeToFirstToken, measured, made);
  }
  return absl::OkStatus();
}

absl::Status AskDecode(const Row& row, Case& made, v1::ServingWorkload& workload) {
  const std::optional<int64_t> batch = row.Count("batch_or_concurrency");
  const std::optional<double> context = row.Number("context_len") ? row.Number("context_len") : row.Number("input_len");
  if (!batch) return absl::InvalidArgumentError("the batch is not stated");
  if (!context) return absl::InvalidArgumentError("the context is not stated");
  SetLengths(row, *context, row.Number("output_len").value_or(1), workload);
  workload.set_batch_size(static_cast<int32_t>(*batch));
  std::optional<double> step = Seconds(row.Number("metric_step_ms_or_tpot_ms"));
  const std::optional<double> rate = row.Number("metric_output_tokens_per_s_total");
  if (!step && rate && *rate > 0 && made.standing == Standing::kScored) step = static_cast<double>(*batch) / *rate;
  made.groups.push_back("decode");
  Measure(Metric::kDecodeStepSeconds, step, made);
  return absl::OkStatus();
}

absl::Status AskWhole(const Row& row, Case& made, v1::ServingWorkload& workload) {
  const std::optional<double> prompt = row.Number("input_len");
  const std::optional<double> output = row.Number("output_len");
  const std::optional<double> rate = row.Number("metric_output_tokens_per_s_total");
  const std::optional<int64_t> users = row.Count("batch_or_concurrency");
  if (!prompt) return absl::InvalidArgumentError("input_len is blank");
  if (!output) return absl::InvalidArgumentError("output_len is blank");
  SetLengths(row, *prompt, *output, workload);
  const Loading loading = LoadingOf(row);
  if (loading == Loading::kStaticBatch) {
    if (!users) return absl::InvalidArgumentError("the batch is not stated");
    workload.set_batch_size(static_cast<int32_t>(*users));
    made.groups.push_back("static-batch");
    if (rate && *rate > 0) Measure(Metric::kBatchLatencySeconds, static_cast<double>(*users) * *output / *rate, made);
    return absl::OkStatus();
  }
  if (const std::optional<double> most = NumberAfter(row.Text("notes"), "max_num_seqs")) {
    const int64_t ranks = absl::StrContains(row.Text("notes"), "per DP rank") ? row.Count("ep").value_or(1) : 1;
    workload.set_max_batch_size(static_cast<int32_t>(*most * static_cast<double>(ranks)));
  }
  Measure(Metric::kOutputTokensPerSecond, rate, made);
  if (loading == Loading::kAsManyAsFit) {
    made.standing = Standing::kInformative;
    made.remark = "all requests at once: the batch that the engine took is not published";
    return absl::OkStatus();
  }
  Measure(Metric::kTimePerOutputToken, Seconds(row.Number("metric_step_ms_or_tpot_ms")), made);
  if (loading == Loading::kRate) {
    workload.set_requests_per_second(*NumberAfter(row.Text("notes"), "offered QPS"));
    Measure(Metric::kTimeToFirstToken, row.Number("metric_ttft_s"), made);
    made.groups.push_back("open-loop");
    return absl::OkStatus();
  }
  // The time to the first token of another run is not this load's.
  if (!absl::StrContains(row.Text("notes"), "TTFT from"))
    Measure(Metric::kTimeToFirstToken, row.Number("metric_ttft_s"), made);
  workload.set_concurrency(static_cast<int32_t>(*users));
  made.groups.push_back("continuous");
  return absl::OkStatus();
}

absl::StatusOr<Case> CaseOf(const Row& row, const catalog::Catalog& catalog) {
  const std::optional<int64_t> chips = row.Count("chips");
  if (row.Text("accelerator").empty())
    return absl::InvalidArgumentError(absl::StrCat("no catalog id for its chip: ", row.Text("chip")));
  if (!chips || *chips < 1) return absl::InvalidArgumentError("a whole number of chips is not stated");
  absl::StatusOr<v1::ModelSpec> model = ModelOfServingRow(row, catalog);
  if (!model.ok()) return model.status();
  const absl::StatusOr<Layout> layout = LayoutOf(row, *chips);
  if (!layout.ok()) return layout.status();

  Case made;
  made.id = std::string(row.Text("id"));
  made.source = SourceOf(made.id);
  made.model = std::string(row.Text("model"));
  made.accelerator = ChipOf(row.Text("accelerator"), catalog);
  made.sweep = absl::StrCat(made.source, " ", made.model, " ", made.accelerator, " ", row.Text("phase"));
  Judge(row, made);
  v1::EstimateServingRequest request;
  *request.mutable_model() = *std::move(model);
  SetSlices(row, *layout, made.accelerator, request);
  v1::ServingWorkload& workload = *request.mutable_workload();
  SetFormats(row, *workload.mutable_precision());
  request.set_calibration_profile(ProfileOf(row.Text("framework"), made.accelerator));
  const absl::string_view phase = row.Text("phase");
  const absl::Status asked = phase == "prefill"  ? AskPrefill(row, made, workload)
                             : phase == "decode" ? AskDecode(row, made, workload)
                             : phase == "e2e"    ? AskWhole(row, made, workload)
                                                 : absl::InvalidArgumentError(absl::StrCat("phase ", phase));
  if (!asked.ok()) return asked;
  if (made.measured.empty()) return absl::InvalidArgumentError("no figure that the service predicts");
  made.job = absl::StrCat(made.source, "/", row.Text("framework"), "/", row.Text("phase"), "/", JobOf(request));
  made.question = std::move(request);
  return made;
}

}  // namespace

CaseTable ServingCases(const Table& table, const catalog::Catalog& catalog) {
  CaseTable cases;
  for (const Row& row : table.rows()) {
    absl::StatusOr<Case> made = CaseOf(row, catalog);
    if (made.ok()) {
      cases.cases.push_back(*std::move(made));
    } else {
      AddUnmapped(row, SourceOf(row.Text("id")), std::string(made.status().message()), cases);
    }
  }
  return cases;
}

}  // namespace sliceplan::calibrate
