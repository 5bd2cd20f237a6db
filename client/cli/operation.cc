#include "client/cli/operation.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/choices.h"
#include "client/cli/estimate_text.h"
#include "client/cli/job_flags.h"
#include "client/cli/quantity.h"
#include "client/cli/slice_flags.h"
#include "client/cli/text.h"

namespace sliceplan::cli {
namespace {

// "x=4,y=8".
absl::Status ReadMesh(const std::string& text, v1::AnalyzeOperationRequest* request) {
  const absl::StatusOr<std::vector<Assignment>> axes = ParseAssignments(text);
  if (!axes.ok()) return axes.status();
  for (const auto& [name, size] : *axes) {
    v1::MeshAxis* const axis = request->add_mesh_axes();
    axis->set_name(name);
    if (absl::Status status = SetField(axis, "size", size); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// "m=x,k=y+z".
absl::Status ReadSharding(const std::string& text,
                          google::protobuf::RepeatedPtrField<v1::DimensionSharding>* shardings) {
  const absl::StatusOr<std::vector<Assignment>> dimensions = ParseAssignments(text);
  if (!dimensions.ok()) return dimensions.status();
  for (const auto& [dimension, axes] : *dimensions) {
    v1::DimensionSharding* const sharding = shardings->Add();
    sharding->set_dimension(dimension);
    for (const absl::string_view axis : absl::StrSplit(axes, '+')) sharding->add_axes(std::string(axis));
  }
  return absl::OkStatus();
}

absl::Status ReadBatchDims(const std::string& text, v1::MatmulOperation* matmul) {
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const absl::StatusOr<int64_t> dim = ParseCount(part);
    if (!dim.ok()) return dim.status();
    matmul->add_batch_dims(*dim);
  }
  return absl::OkStatus();
}

void AddMatmulFlags(Flags& flags, v1::AnalyzeOperationRequest* request) {
  const auto matmul = [request] { return request->mutable_matmul(); };
  flags.Field("--m", "matmul.m", "rows of the left side: the tokens");
  flags.Field("--k", "matmul.k", "the contracted dimension");
  flags.Field("--n", "matmul.n", "columns of the right side");
  flags.Custom("--batch", "matmul.batch_dims", "N,...", "batch dimensions",
               [matmul](const std::string& text) { return ReadBatchDims(text, matmul()); });
  flags.Custom("--dtype", "", "NAME",
               absl::StrCat("format of both sides and the result: ", AllChoices(*v1::DataType_descriptor())),
               [matmul](const std::string& text) {
                 const absl::StatusOr<int> dtype = ParseChoice(*v1::DataType_descriptor(), text);
                 if (!dtype.ok()) return dtype.status();
                 matmul()->set_lhs_dtype(static_cast<v1::DataType>(*dtype));
                 matmul()->set_rhs_dtype(static_cast<v1::DataType>(*dtype));
                 matmul()->set_output_dtype(static_cast<v1::DataType>(*dtype));
                 return absl::OkStatus();
               });
  flags.Field("--lhs", "matmul.lhs_dtype", "format of the left side");
  flags.Field("--rhs", "matmul.rhs_dtype", "format of the right side, the weights");
  flags.Field("--out", "matmul.output_dtype", "format of the result");
  flags.Field("--compute", "matmul.compute_dtype", "format of the multiplication");
  flags.Group("Sharding");
  flags.Custom("--mesh", "mesh_axes", "NAME=N,...", "logical axes, slowest first: x=4,y=8",
               [request](const std::string& text) { return ReadMesh(text, request); });
  flags.Custom("--lhs-sharding", "matmul.lhs_sharding", "DIM=AXIS,...", "of the left side: m=x,k=y; m=x+y is both axes",
               [matmul](const std::string& text) { return ReadSharding(text, matmul()->mutable_lhs_sharding()); });
  flags.Custom("--rhs-sharding", "matmul.rhs_sharding", "DIM=AXIS,...", "of the right side: k=y",
               [matmul](const std::string& text) { return ReadSharding(text, matmul()->mutable_rhs_sharding()); });
  flags.Custom("--out-sharding", "matmul.output_sharding", "DIM=AXIS,...", "that the result must have: m=x",
               [matmul](const std::string& text) { return ReadSharding(text, matmul()->mutable_output_sharding()); });
}

void AddAttentionFlags(Flags& flags) {
  flags.Field("--query-length", "attention.query_length", "queries per sequence");
  flags.Field("--key-length", "attention.key_length", "keys per sequence");
  flags.Field("--heads", "attention.query_head_count", "query heads");
  flags.Field("--kv-heads", "attention.kv_head_count", "key and value heads");
  flags.Field("--head-dim", "attention.head_dim", "size of a head");
  flags.Field("--batch", "attention.batch_size", "sequences; default 1");
  flags.Field("--mask", "attention.mask", "which keys a query sees; default causal");
  flags.Field("--kernel", "attention.kernel", "attention kernel; default flash");
  flags.Field("--dtype", "attention.dtype", "format of queries and result");
  flags.Field("--kv", "attention.kv_dtype", "format of keys and values; default: --dtype");
}

void AddElementwiseFlags(Flags& flags) {
  flags.Field("--elements", "elementwise.element_count", "elements of the result, all chips together");
  flags.Field("--inputs", "elementwise.input_count", "arrays of that size that are read; default 1");
  flags.Field("--flops-per-element", "elementwise.flops_per_element", "default 1");
  flags.Field("--dtype", "elementwise.dtype", "format of inputs and result");
}

std::string CollectiveText(const v1::InsertedCollective& collective) {
  return absl::StrCat(ChoiceName(collective.kind()), " of ", ChoiceName(collective.operand()), " over ",
                      absl::StrJoin(collective.axes(), "+"), ", ", Bytes(static_cast<double>(collective.bytes())), ", ",
                      Seconds(collective.seconds()));
}

}  // namespace

void OperationQuestion::AddFlags(Flags& flags) {
  v1::AnalyzeOperationRequest* const request = this->request();
  flags.Group("Operation");
  switch (kind_) {
    case Kind::kMatmul:
      request->mutable_matmul();
      AddMatmulFlags(flags, request);
      break;
    case Kind::kAttention:
      request->mutable_attention();
      AddAttentionFlags(flags);
      break;
    case Kind::kElementwise:
      request->mutable_elementwise();
      AddElementwiseFlags(flags);
      break;
  }
  flags.Group("Chips");
  AddSliceFlags(flags, [request] { return request->mutable_slice(); });
  flags.Require("slice");
  AddModeFlags(flags);
}

void OperationQuestion::Print(const Flags& flags, Report& report) const {
  const v1::AnalyzeOperationResponse& response = response_;
  report.Headline("", Tone::kPlain,
                  absl::StrCat(Seconds(response.expected_seconds()), " expected, bound by ",
                               ResourceText(response.bound()), ", on ", SliceText(response.slice())));
  report.Row("time", absl::StrCat(Seconds(response.roofline_lower_seconds()), " with full overlap, ",
                                  Seconds(response.roofline_upper_seconds()), " with none"));
  report.Row("one chip",
             absl::StrCat(Short(response.flops()), " FLOPs, ", Bytes(static_cast<double>(response.hbm_bytes())),
                          " of HBM traffic, ", Short(response.intensity_flops_per_byte()), " FLOPs per byte"));
  if (response.has_local_matmul()) {
    const v1::LocalMatmul& local = response.local_matmul();
    std::string shape = absl::StrCat("[", Grouped(local.m()), ", ", Grouped(local.k()), "] x [", Grouped(local.k()),
                                     ", ", Grouped(local.n()), "]");
    if (!local.batch_dims().empty()) absl::StrAppend(&shape, ", batch ", absl::StrJoin(local.batch_dims(), " x "));
    report.Row("", shape);
  }
  if (response.padding_ratio() > 0)
    report.Row("padding", absl::StrCat(Percent(response.padding_ratio()), " of the work"));
  if (response.has_critical_batch()) {
    std::string text = absl::StrCat("bound by compute from ", Short(response.critical_batch()), " rows per chip");
    if (response.has_exact_critical_batch()) {
      absl::StrAppend(&text, " (", Short(response.exact_critical_batch()), " with activations counted)");
    }
    report.Row("batch", text);
  }
  report.Section("Seconds of each resource at its peak");
  std::vector<std::vector<std::string>> rows;
  const double longest = response.roofline_upper_seconds();
  const auto add = [&](const char* name, double seconds) {
    if (seconds > 0) rows.push_back({name, Seconds(seconds), Report::Bar(longest > 0 ? seconds / longest : 0)});
  };
  add("matrix unit", response.matrix_seconds());
  add("vector unit", response.vector_seconds());
  add("HBM", response.hbm_seconds());
  add("network", response.network_seconds());
  report.Table({{"", false}, {"", true}, {"", false}}, rows);
  if (response.matmul_case() > 0) {
    report.Section(absl::StrCat("Collectives: case ", response.matmul_case(), " of sharded matmuls"));
    if (response.inserted_collectives().empty()) report.Sentence("none");
    for (const v1::InsertedCollective& collective : response.inserted_collectives()) {
      report.Item(CollectiveText(collective));
    }
    for (const v1::CollectiveAlternative& alternative : response.alternatives()) {
      report.Item(
          absl::StrCat("or ", alternative.sentence(), " (", Seconds(alternative.roofline_lower_seconds()), ")"));
    }
  }
  PrintAssumptions(response.assumptions(), flags, report);
  PrintWarnings(response.warnings(), flags, report);
  PrintVersions(response.engine_version(), response.catalog_version(), report);
}

}  // namespace sliceplan::cli
