// From the words of a request ("v5p-256", "8x8x16", 64 GPUs) to the slice that the engine plans for.
#ifndef SLICEPLAN_SERVER_CATALOG_SLICE_RESOLVER_H_
#define SLICEPLAN_SERVER_CATALOG_SLICE_RESOLVER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/catalog/catalog.h"
#include "server/hardware/accelerator.h"
#include "server/hardware/slice.h"
#include "server/hardware/violation.h"

namespace sliceplan::catalog {

inline constexpr int32_t kMaxSliceCount = 65536;
// Chips of all slices together.
inline constexpr int64_t kMaxTotalChipCount = int64_t{1} << 24;

// A request's `Slice`, field by field; empty text and nullopt mean "not given". At most one of `accelerator` and
// `custom`, and one of `topology`, `accelerator_type` and `chip_count`.
struct SliceQuery {
  absl::string_view accelerator;  // id or alias
  const hardware::AcceleratorSpec* custom = nullptr;
  // Sets single constants of a chip of the catalog; empty: none.
  std::function<void(hardware::AcceleratorSpec&)> override_fields;
  // `ici_axis_wraps` of the custom chip or of the override; empty: the rule of the chip.
  std::vector<bool> axis_wraps;
  absl::string_view topology;
  absl::string_view accelerator_type;
  std::optional<int32_t> chip_count;
  std::optional<int32_t> slice_count;
  absl::string_view machine_type;
  bool twisted = false;
  // Without a shape: true, one chip; false, a violation that lists the legal shapes.
  bool one_chip_without_shape = false;
};

struct ResolvedSlice {
  hardware::Slice slice;
  const Accelerator* accelerator = nullptr;           // nullptr for a custom chip
  const v1::SliceRecord* listed = nullptr;            // TPU, when the catalog lists the shape
  std::optional<v1::SliceRecord> derived;             // TPU, an unlisted shape that the rule allows
  const v1::GpuMachineRecord* gpu_machine = nullptr;  // GPU, when a machine was named or only one has that many GPUs
  // What was chosen for the caller; sentences for `assumptions`.
  std::vector<std::string> notes;

  // The names that schedulers need; nullptr for GPUs, custom chips and single chips.
  const v1::SliceRecord* record() const { return derived.has_value() ? &*derived : listed; }
};

// Exactly one of `resolved` and `violations` has content. Fields of violations are those of `Slice`: "accelerator",
// "topology", "custom.hbm_bytes", "slice_count", ...
struct SliceResolution {
  std::optional<ResolvedSlice> resolved;
  std::vector<hardware::Violation> violations;
};

SliceResolution ResolveSlice(const Catalog& catalog, const SliceQuery& query);

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_SLICE_RESOLVER_H_
