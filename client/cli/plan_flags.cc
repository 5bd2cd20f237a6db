#include "client/cli/plan_flags.h"

#include <cstdint>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/choices.h"
#include "client/cli/quantity.h"
#include "client/cli/text.h"

namespace sliceplan::cli {
namespace {

struct ShortAxis {
  absl::string_view typed;
  absl::string_view axis;
};
constexpr ShortAxis kShortAxes[] = {
    {"dp", "data"}, {"tp", "tensor"}, {"cp", "context"}, {"ep", "expert"}, {"pp", "pipeline"}};

std::string AxisName(absl::string_view typed) {
  for (const ShortAxis& known : kShortAxes) {
    if (known.typed == typed) return std::string(known.axis);
  }
  return std::string(typed);
}

std::vector<std::string> AxisNames() {
  std::vector<std::string> names;
  for (int i = 0; i < v1::AxisDegrees::descriptor()->field_count(); ++i) {
    names.push_back(v1::AxisDegrees::descriptor()->field(i)->name());
  }
  return names;
}

absl::Status NotNumbers(absl::string_view text, absl::string_view examples) {
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' cannot be read; write ", examples));
}

// "2:4:1" -> {2, 4, 1}: `least` to three whole numbers.
bool ReadNumbers(absl::string_view text, size_t least, std::vector<int32_t>* numbers) {
  for (const absl::string_view part : absl::StrSplit(text, ':')) {
    if (!absl::SimpleAtoi(part, &numbers->emplace_back())) return false;
  }
  return numbers->size() >= least && numbers->size() <= 3;
}

}  // namespace

absl::Status ReadParallelism(const std::string& text, v1::Parallelism* parallelism) {
  const absl::StatusOr<std::vector<Assignment>> assignments = ParseAssignments(text);
  if (!assignments.ok()) return assignments.status();
  std::set<std::string> seen;
  for (const auto& [name, value] : *assignments) {
    absl::string_view typed = name;
    const bool across_slices = absl::ConsumePrefix(&typed, "dcn.");
    if (!across_slices) absl::ConsumePrefix(&typed, "ici.");
    const std::string axis = AxisName(typed);
    if (v1::AxisDegrees::descriptor()->FindFieldByName(axis) == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("no axis is called '", typed, "'", Suggestion(typed, AxisNames()),
                                                     " (dcn.data: across slices)"));
    }
    if (!seen.insert(absl::StrCat(across_slices ? "dcn." : "", axis)).second) {
      return absl::InvalidArgumentError(absl::StrCat(name, " is given twice"));
    }
    v1::AxisDegrees* const degrees = across_slices ? parallelism->mutable_dcn() : parallelism->mutable_ici();
    if (absl::Status status = SetField(degrees, axis, value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadMapping(const std::string& text, v1::Parallelism* parallelism) {
  const absl::StatusOr<std::vector<Assignment>> assignments = ParseAssignments(text);
  if (!assignments.ok()) return assignments.status();
  for (const auto& [name, value] : *assignments) {
    const absl::StatusOr<int> axis = ParseChoice(*v1::ParallelismAxis_descriptor(), AxisName(name));
    if (!axis.ok()) return axis.status();
    std::vector<int32_t> numbers;
    if (!ReadNumbers(value, /*least=*/2, &numbers)) {
      return NotNumbers(value, "tensor=2:4 (4 members of physical axis 2) or tensor=2:4:2 (at distance 2)");
    }
    v1::AxisAssignment* const piece = parallelism->add_mapping();
    piece->set_axis(static_cast<v1::ParallelismAxis>(*axis));
    piece->set_physical_axis(numbers[0]);
    piece->set_factor(numbers[1]);
    if (numbers.size() > 2) piece->set_stride(numbers[2]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::GroupPiece>> ReadPieces(const std::string& text) {
  std::vector<v1::GroupPiece> pieces;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    std::vector<int32_t> numbers;
    if (!ReadNumbers(part, /*least=*/1, &numbers)) {
      return NotNumbers(part, "0 (all of axis 0), 0:4 (4 members of it) or 0:4:2 (at distance 2)");
    }
    v1::GroupPiece& piece = pieces.emplace_back();
    piece.set_axis(numbers[0]);
    if (numbers.size() > 1) piece.set_factor(numbers[1]);
    if (numbers.size() > 2) piece.set_stride(numbers[2]);
  }
  return pieces;
}

void AddPlanFlags(Flags& flags, const std::string& example, const std::function<v1::Parallelism*()>& parallelism) {
  flags.Custom("--parallelism", "parallelism", "AXIS=N,...",
               absl::StrCat("degrees within a slice, and with dcn. across slices: ", example,
                            "; axes are data, fsdp, tensor, context, expert, pipeline; default: the best found"),
               [parallelism](const std::string& text) { return ReadParallelism(text, parallelism()); });
  flags.Pairs("--parallelism", "parallelism.ici", "");
  flags.Pairs("--parallelism", "parallelism.dcn", "dcn.");
  flags.Custom("--mapping", "parallelism.mapping", "AXIS=P:N,...",
               "where axes lie: tensor=2:4 puts 4 members on physical axis 2; default: the best found",
               [parallelism](const std::string& text) { return ReadMapping(text, parallelism()); });
  flags.Field("--microbatches", "parallelism.microbatch_count", "microbatches of one pass through the pipeline");
  flags.Field("--no-sequence-parallel", "parallelism.sequence_parallel",
              "activations outside the matmuls whole on every tensor rank");
  flags.Field("--allow-idle", "parallelism.allow_idle_chips", "allow plans that leave chips idle");
  flags.Field("--allow-padding", "parallelism.allow_padding", "allow heads or experts that divide unevenly, padded up");
}

void AddParallelismFlags(Flags& flags, const std::function<v1::Parallelism*()>& parallelism) {
  AddPlanFlags(flags, "fsdp=512,tensor=4,dcn.data=2", parallelism);
  flags.Field("--zero", "parallelism.data_zero_stage", "what the data axis shards");
  flags.Field("--schedule", "parallelism.schedule", "order of the pipeline");
  flags.Field("--virtual-stages", "parallelism.virtual_stage_count", "chunks of layers per pipeline stage; default 1");
}

}  // namespace sliceplan::cli
