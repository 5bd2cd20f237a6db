#include "server/catalog/slice_record.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/repeated_field.h"

namespace sliceplan::catalog {
namespace {

constexpr int kBoundsDims = 3;

template <typename Field, typename Element>
void DeriveList(absl::string_view name, const std::vector<Element>& derived, Field* field, RecordProblems& problems) {
  const std::vector<Element> stated(field->begin(), field->end());
  if (!stated.empty() && stated != derived) {
    problems.Add(name, absl::StrCat("[", absl::StrJoin(stated, ", "), "] contradicts the shape, which gives [",
                                    absl::StrJoin(derived, ", "), "]"));
  }
  field->Clear();
  field->Add(derived.begin(), derived.end());
}

// The value to set: `derived`.
int32_t Derive(absl::string_view name, int64_t derived, int32_t stated, RecordProblems& problems) {
  if (stated != 0 && stated != derived) {
    problems.Add(name, absl::StrCat(stated, " contradicts the shape, which gives ", derived));
  }
  return static_cast<int32_t>(derived);
}

}  // namespace

void ApplyDefaults(const v1::SliceRecord& defaults, v1::SliceRecord& record) {
  v1::SliceRecord merged = defaults;
  // Lists are replaced, not appended to.
  if (record.dims_size() > 0) merged.clear_dims();
  if (record.chips_per_host_bounds_size() > 0) merged.clear_chips_per_host_bounds();
  if (record.host_bounds_size() > 0) merged.clear_host_bounds();
  if (record.axis_wraps_size() > 0) merged.clear_axis_wraps();
  merged.MergeFrom(record);
  record.Swap(&merged);
}

void CompleteSliceRecord(const hardware::AcceleratorSpec& spec, absl::Span<const int32_t> pod_shape,
                         v1::SliceRecord& record, RecordProblems& problems) {
  problems.Require("source", !record.source().empty());
  problems.RequireDate("as_of", record.as_of());
  if (!record.slice_name().empty() && record.name_counts() == v1::NAME_COUNTS_UNSPECIFIED) {
    problems.Add("name_counts", "is required beside slice_name");
  }
  const std::optional<hardware::Shape> shape = hardware::ParseShape(record.topology());
  if (!shape.has_value()) {
    problems.Add("topology", absl::StrCat("\"", record.topology(), "\" is not a shape like 8x8x16"));
    return;
  }
  if (*shape != hardware::CanonicalOrder(*shape)) {
    problems.Add("topology", absl::StrCat(record.topology(), " is not in the catalog's order, ",
                                          hardware::ShapeName(hardware::CanonicalOrder(*shape))));
  }
  if (spec.ici_torus_dims.has_value() && shape->size() != static_cast<size_t>(*spec.ici_torus_dims)) {
    problems.Add("topology", absl::StrCat(record.topology(), " does not have ", *spec.ici_torus_dims, " dimensions"));
  }
  const int64_t chip_count = hardware::ChipCount(*shape);
  DeriveList("dims", std::vector<int32_t>(shape->begin(), shape->end()), record.mutable_dims(), problems);
  record.set_chip_count(Derive("chip_count", chip_count, record.chip_count(), problems));
  record.set_tensorcore_count(
      Derive("tensorcore_count", chip_count * spec.tensorcore_count.value_or(0), record.tensorcore_count(), problems));
  record.set_jax_device_count(
      Derive("jax_device_count", chip_count * spec.devices_per_chip, record.jax_device_count(), problems));

  const hardware::AxisWraps wraps = hardware::WrapsOf(spec.wrap_rule, *shape, pod_shape);
  DeriveList("axis_wraps", std::vector<bool>(wraps.begin(), wraps.end()), record.mutable_axis_wraps(), problems);
  if (!hardware::IsWrapKnown(spec.wrap_rule, *shape, pod_shape)) record.clear_axis_wraps();

  if (record.chips_per_host() < 1 || chip_count % record.chips_per_host() != 0) {
    problems.Add("chips_per_host", absl::StrCat(record.chips_per_host(), " does not divide ", chip_count, " chips"));
    return;
  }
  const int64_t host_count = chip_count / record.chips_per_host();
  record.set_host_count(Derive("host_count", host_count, record.host_count(), problems));
  if (record.has_multi_host() && record.multi_host() != (host_count > 1)) {
    problems.Add("multi_host", absl::StrCat("contradicts the ", host_count, " hosts of the shape"));
  }
  record.set_multi_host(host_count > 1);
  record.set_google_com_tpu_per_pod(
      Derive("google_com_tpu_per_pod", record.chips_per_host(), record.google_com_tpu_per_pod(), problems));
  if (record.gke_tpu_topology().empty() && !record.gke_tpu_accelerator().empty()) {
    record.set_gke_tpu_topology(record.topology());
  }

  if (record.chips_per_host_bounds_size() != kBoundsDims) {
    problems.Add("chips_per_host_bounds", "must be three numbers");
    return;
  }
  std::vector<int32_t> host_bounds;
  int64_t chips_per_host = 1;
  for (int i = 0; i < kBoundsDims; ++i) {
    const int32_t bound = record.chips_per_host_bounds(i);
    const int32_t size = static_cast<size_t>(i) < shape->size() ? (*shape)[i] : 1;
    if (bound < 1 || size % bound != 0) {
      problems.Add("chips_per_host_bounds",
                   absl::StrCat(bound, " does not divide axis ", i, " of ", record.topology()));
      return;
    }
    host_bounds.push_back(size / bound);
    chips_per_host *= bound;
  }
  if (chips_per_host != record.chips_per_host()) {
    problems.Add("chips_per_host_bounds", absl::StrCat("holds ", chips_per_host, " chips, not chips_per_host"));
  }
  DeriveList("host_bounds", host_bounds, record.mutable_host_bounds(), problems);
}

}  // namespace sliceplan::catalog
