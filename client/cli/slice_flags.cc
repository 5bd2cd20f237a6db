#include "client/cli/slice_flags.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/quantity.h"
#include "client/cli/text.h"

namespace sliceplan::cli {
namespace {

bool AllDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// "v5p-256": clouds' names of slices end in a number; no chip's name does.
bool NamesSlice(absl::string_view text) {
  const size_t dash = text.rfind('-');
  return dash != absl::string_view::npos && dash > 0 && AllDigits(text.substr(dash + 1));
}

absl::Status ReadChips(const std::string& text, v1::Slice* slice) {
  const absl::StatusOr<int64_t> chips = ParseCount(text);
  if (!chips.ok()) return chips.status();
  if (*chips > std::numeric_limits<int32_t>::max())
    return absl::InvalidArgumentError(absl::StrCat(text, " are too many"));
  slice->set_chip_count(static_cast<int32_t>(*chips));
  return absl::OkStatus();
}

absl::Status ReadOverride(const std::string& text, v1::AcceleratorOverride* changed) {
  const absl::StatusOr<std::vector<Assignment>> assignments = ParseAssignments(text);
  if (!assignments.ok()) return assignments.status();
  for (const auto& [name, value] : *assignments) {
    const auto* const field = FindField(*changed->GetDescriptor(), name);
    if (field == nullptr || field->is_repeated()) {
      std::vector<std::string> names;
      for (int i = 0; i < changed->GetDescriptor()->field_count(); ++i) {
        if (!changed->GetDescriptor()->field(i)->is_repeated()) {
          names.push_back(changed->GetDescriptor()->field(i)->name());
        }
      }
      return absl::InvalidArgumentError(absl::StrCat("a chip has no '", name, "'", Suggestion(name, names)));
    }
    if (absl::Status status = SetField(changed, name, value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadSlice(const std::string& text, v1::Slice* slice) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) {
    if (NamesSlice(text)) {
      slice->set_accelerator_type(text);
    } else {
      slice->set_accelerator(text);
    }
    return absl::OkStatus();
  }
  const std::string shape = text.substr(colon + 1);
  if (colon == 0 || shape.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is no slice; write tpu-v5p:16x16x16, h100:64, v5p-256, or a chip and --chips"));
  }
  slice->set_accelerator(text.substr(0, colon));
  if (AllDigits(shape)) return ReadChips(shape, slice);
  slice->set_topology(shape);
  return absl::OkStatus();
}

void AddSliceFlags(Flags& flags, const std::function<v1::Slice*()>& slice) {
  flags.Custom("--slice", "slice", "SLICE",
               "tpu-v5p:16x16x16 (chip:topology), h100:64 (chip:count), v5p-256 (a cloud's name), or a chip",
               [slice](const std::string& text) { return ReadSlice(text, slice()); });
  flags.Field("--slices", "slice.slice_count", "identical slices joined over the data-centre network; default 1");
  flags.Custom("--chips", "slice.chip_count", "N", "chips of one slice, where --slice names only the chip",
               [slice](const std::string& text) -> absl::Status {
                 if (slice()->shape_case() != v1::Slice::SHAPE_NOT_SET) {
                   return absl::InvalidArgumentError("--slice already says how many");
                 }
                 return ReadChips(text, slice());
               });
  flags.Field("--machine-type", "slice.machine_type", "the cloud's name of the host, where one shape has several");
  flags.Field("--twisted", "slice.twisted", "a twisted torus");
  flags.Custom("--override", "slice.override", "NAME=VALUE,...",
               "constants of the chip changed: hbm_bytes_per_second=3.3T,hbm_bytes=192Gi",
               [slice](const std::string& text) { return ReadOverride(text, slice()->mutable_override()); });
}

}  // namespace sliceplan::cli
