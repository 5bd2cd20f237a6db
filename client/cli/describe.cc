#include "client/cli/describe.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/choices.h"
#include "client/cli/estimate_text.h"
#include "client/cli/model_flag.h"
#include "client/cli/text.h"

namespace sliceplan::cli {
namespace {

double Share(double part, double whole) { return whole > 0 ? part / whole : 0; }

void PrintParameters(const v1::ParameterCounts& parameters, Report& report) {
  report.Section("Parameters");
  const auto total = static_cast<double>(parameters.total_count());
  std::vector<std::vector<std::string>> rows;
  for (const v1::ComponentCount& component : parameters.components()) {
    // Not part of the total.
    if (component.component() == v1::COMPONENT_MTP) continue;
    const double share = Share(static_cast<double>(component.count()), total);
    rows.push_back(
        {ComponentText(component.component()), Grouped(component.count()), Percent(share), Report::Bar(share)});
  }
  rows.push_back({"total", Grouped(parameters.total_count()), "", ""});
  for (const v1::StoredExtra& extra : parameters.stored_extras()) {
    rows.push_back({absl::StrCat("also stored: ", extra.name()), Grouped(extra.count()), "", ""});
  }
  if (!parameters.stored_extras().empty()) {
    rows.push_back({"stored in the checkpoint", Grouped(parameters.stored_count()), "", ""});
  }
  report.Table({{"part", false}, {"count", true}, {"share", true}, {"", false}}, rows);
}

void PrintFlops(const v1::ModelFlops& flops, Report& report) {
  report.Section("FLOPs per token");
  std::vector<std::vector<std::string>> rows;
  for (const v1::ComponentFlops& component : flops.components()) {
    const double share = Share(component.forward_flops_per_token(), flops.forward_flops_per_token());
    rows.push_back({ComponentText(component.component()), Short(component.forward_flops_per_token()),
                    Short(component.training_flops_per_token()), Percent(share), Report::Bar(share)});
  }
  rows.push_back({"total", Short(flops.forward_flops_per_token()), Short(flops.training_flops_per_token()), "", ""});
  rows.push_back({"without attention scores", Short(flops.forward_flops_per_token_without_attention()),
                  Short(flops.training_flops_per_token_without_attention()), "", ""});
  report.Table({{"part", false}, {"forward", true}, {"training", true}, {"share", true}, {"", false}}, rows);
}

void PrintCache(const v1::KvCacheSize& cache, int sequence_length, Report& report) {
  const std::string context = absl::StrCat("at ", Grouped(sequence_length), " tokens");
  report.Section(absl::StrCat("Cache of one sequence, ", ChoiceName(cache.dtype())));
  report.Table({{"", false}, {"needed", true}, {"paged alike", true}},
               {{"per token", Bytes(static_cast<double>(cache.bytes_per_token())),
                 Bytes(static_cast<double>(cache.reserved_bytes_per_token()))},
                {context, Bytes(static_cast<double>(cache.bytes_at_context())),
                 Bytes(static_cast<double>(cache.reserved_bytes_at_context()))}});
  if (cache.window_layer_count() > 0 || cache.state_layer_count() > 0) {
    report.Sentence(absl::StrCat(Plural(cache.growing_layer_count(), "layer"), " grow, ",
                                 Grouped(cache.window_layer_count()), " stop at a window, ",
                                 Grouped(cache.state_layer_count()), " keep a state of fixed size."));
  }
}

void PrintTensors(const v1::DescribeModelResponse& response, Report& report) {
  if (response.largest_tensors().empty()) return;
  report.Section("Largest weights");
  std::vector<std::vector<std::string>> rows;
  for (const v1::TensorSize& tensor : response.largest_tensors()) {
    std::string shape = absl::StrCat(Grouped(tensor.rows()), " x ", Grouped(tensor.columns()));
    if (tensor.expert_count() > 1) shape = absl::StrCat(Grouped(tensor.expert_count()), " x ", shape);
    rows.push_back({tensor.name(), shape, tensor.layer_count() > 0 ? Grouped(tensor.layer_count()) : "",
                    Grouped(tensor.parameter_count())});
  }
  report.Table({{"name", false}, {"shape", true}, {"layers", true}, {"parameters", true}}, rows);
}

}  // namespace

void DescribeQuestion::AddFlags(Flags& flags) {
  flags.Group("Model");
  AddModelFlag(flags, "model,--model", [this] { return request_.mutable_model(); });
  flags.Field("--sequence", "sequence_length", "tokens of a sequence; default 8192, or the model's limit");
  flags.Field("--mask", "attention_mask", "which keys a query sees; default causal");
  flags.Field("--kv", "kv_cache_dtype", "format of the cache; default bf16");
}

void DescribeQuestion::Print(const Flags& flags, Report& report) const {
  const v1::DescribeModelResponse& response = response_;
  const v1::ParameterCounts& parameters = response.parameters();
  report.Headline("", Tone::kPlain,
                  absl::StrCat(response.name(), ": ", Grouped(parameters.total_count()), " parameters"));
  report.Row("layers", Grouped(response.layer_count()));
  report.Row("per token", absl::StrCat(Grouped(parameters.active_count()), " parameters are used"));
  report.Row("checkpoint", Bytes(static_cast<double>(parameters.weights_bytes())));
  if (parameters.mtp_count() > 0) {
    report.Row("beside it", absl::StrCat(Grouped(parameters.mtp_count()), " in multi-token-prediction layers"));
  }
  std::string attention = absl::StrCat(Percent(response.attention().flops_ratio()), " of the FLOPs at ",
                                       Grouped(response.sequence_length()), " tokens");
  if (response.attention().has_break_even_sequence_length()) {
    absl::StrAppend(&attention, "; as much as the matmuls with weights from ",
                    Grouped(static_cast<int64_t>(response.attention().break_even_sequence_length())));
  }
  report.Row("attention", attention);
  for (const v1::ExcludedPart& part : response.excluded_parts()) report.Row("left out", part.sentence());
  PrintParameters(parameters, report);
  PrintFlops(response.flops(), report);
  PrintCache(response.kv_cache(), response.sequence_length(), report);
  PrintTensors(response, report);
  PrintAssumptions(response.assumptions(), flags, report);
  PrintWarnings(response.warnings(), flags, report);
  PrintVersions(response.engine_version(), response.catalog_version(), report);
}

}  // namespace sliceplan::cli
