#include "server/rpc/convert/slice.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/rpc/convert/accelerator_spec.h"

namespace sliceplan::rpc {
namespace {

absl::string_view NameAsked(const v1::Slice& slice, const std::string& field) {
  if (field == "accelerator_type") return slice.accelerator_type();
  if (field == "machine_type") return slice.machine_type();
  return slice.accelerator();
}

}  // namespace

std::optional<catalog::ResolvedSlice> ToSlice(const v1::Slice& slice, const catalog::Catalog& catalog,
                                              MissingShape missing_shape, const FieldPath& path,
                                              Violations& violations) {
  catalog::SliceQuery query;
  hardware::AcceleratorSpec custom;
  if (slice.has_custom()) {
    Apply(slice.custom(), custom);
    query.custom = &custom;
    query.axis_wraps.assign(slice.custom().ici_axis_wraps().begin(), slice.custom().ici_axis_wraps().end());
  } else {
    query.accelerator = slice.accelerator();
  }
  if (slice.has_override()) {
    query.override_fields = [&](hardware::AcceleratorSpec& spec) { Apply(slice.override(), spec); };
    query.axis_wraps.assign(slice.override().ici_axis_wraps().begin(), slice.override().ici_axis_wraps().end());
  }
  query.topology = slice.topology();
  query.accelerator_type = slice.accelerator_type();
  if (slice.has_chip_count()) query.chip_count = slice.chip_count();
  if (slice.has_slice_count()) query.slice_count = slice.slice_count();
  query.machine_type = slice.machine_type();
  query.twisted = slice.twisted();
  query.one_chip_without_shape = missing_shape == MissingShape::kOneChip;

  catalog::SliceResolution resolution = catalog::ResolveSlice(catalog, query);
  for (const hardware::Violation& violation : resolution.violations) {
    violations.Add(path, violation, NameAsked(slice, violation.field));
  }
  return std::move(resolution.resolved);
}

void ToProto(const catalog::v1::SliceRecord& record, v1::SliceInfo* info) {
  info->set_accelerator(record.accelerator());
  info->set_topology(record.topology());
  *info->mutable_dims() = record.dims();
  *info->mutable_axis_wraps() = record.axis_wraps();
  info->set_chip_count(record.chip_count());
  info->set_host_count(record.host_count());
  info->set_chips_per_host(record.chips_per_host());
  info->set_accelerator_type(record.cloud_tpu_accelerator_type());
  info->set_machine_type(record.machine_type());
  info->set_slice_name(record.slice_name());
  info->set_tensorcore_count(record.tensorcore_count());
  info->set_jax_device_count(record.jax_device_count());
  info->set_multi_host(record.multi_host());
  info->set_gke_tpu_accelerator(record.gke_tpu_accelerator());
  info->set_gke_tpu_topology(record.gke_tpu_topology());
  info->set_google_com_tpu_per_pod(record.google_com_tpu_per_pod());
  if (record.has_gke_workload_policy_required()) {
    info->set_gke_workload_policy_required(record.gke_workload_policy_required());
  }
  *info->mutable_chips_per_host_bounds() = record.chips_per_host_bounds();
  *info->mutable_host_bounds() = record.host_bounds();
  info->set_xpk_device_type(record.xpk_device_type());
  info->set_maxtext_compile_topology(record.maxtext_compile_topology());
  if (record.has_twisted_torus_option()) info->set_twisted_torus_option(record.twisted_torus_option());
  if (record.has_single_slice_schedulable()) {
    info->set_single_slice_schedulable(record.single_slice_schedulable());
  }
  info->set_source(record.source());
  info->set_as_of(record.as_of());
  info->set_note(record.note());
}

void ToProto(const catalog::v1::GpuMachineRecord& record, v1::SliceInfo* info) {
  info->set_accelerator(record.accelerator());
  info->set_topology(absl::StrCat(record.gpu_count()));
  info->add_dims(record.gpu_count());
  info->set_chip_count(record.gpu_count());
  info->set_host_count(1);
  info->set_chips_per_host(record.gpu_count());
  info->set_jax_device_count(record.gpu_count());
  info->set_machine_type(record.machine_type());
  info->set_provider(record.provider());
  info->set_gke_accelerator(record.gke_accelerator());
  info->set_placement_topology(record.placement_topology());
  if (record.has_vcpu_count()) info->set_vcpu_count(record.vcpu_count());
  if (record.has_memory_gib()) info->set_memory_gib(record.memory_gib());
  info->set_source(record.source());
  info->set_as_of(record.as_of());
  info->set_note(record.note());
}

std::vector<hardware::Slice> LargerSlices(const catalog::Catalog& catalog, const hardware::Slice& slice) {
  // GPUs: up to 2^kDoublings times as many.
  constexpr int kDoublings = 10;
  std::vector<hardware::Slice> larger;
  const catalog::AcceleratorLookup found = catalog.FindAccelerator(slice.accelerator_id);
  if (found.accelerator == nullptr) return larger;
  const auto add = [&](catalog::SliceQuery query) {
    query.accelerator = slice.accelerator_id;
    query.slice_count = slice.slice_count;
    const catalog::SliceResolution resolution = catalog::ResolveSlice(catalog, query);
    if (!resolution.resolved.has_value() || resolution.resolved->slice.chip_count <= slice.chip_count) return;
    larger.push_back(resolution.resolved->slice);
    larger.back().accelerator = slice.accelerator;
  };
  for (const catalog::v1::SliceRecord* record : found.accelerator->slices) {
    catalog::SliceQuery query;
    query.topology = record->topology();
    add(query);
  }
  if (!found.accelerator->slices.empty()) return larger;
  int64_t chips = slice.chip_count;
  for (int i = 0; i < kDoublings; ++i) {
    chips *= 2;
    if (chips > std::numeric_limits<int32_t>::max()) break;
    catalog::SliceQuery query;
    query.chip_count = static_cast<int32_t>(chips);
    add(query);
  }
  return larger;
}

void ToProto(const catalog::ResolvedSlice& resolved, v1::SliceUsed* used) {
  const hardware::Slice& slice = resolved.slice;
  v1::SliceInfo* const info = used->mutable_slice();
  if (resolved.record() != nullptr) {
    ToProto(*resolved.record(), info);
  } else if (resolved.gpu_machine != nullptr) {
    ToProto(*resolved.gpu_machine, info);
  }
  // Of the slice as planned: what the record does not know (a custom chip), or counts per machine (GPUs).
  if (resolved.record() == nullptr) {
    info->set_accelerator(slice.accelerator_id.empty() ? slice.accelerator.name : slice.accelerator_id);
    info->set_topology(slice.topology);
    info->clear_dims();
    for (const hardware::TorusAxis& axis : slice.axes) info->add_dims(axis.size);
    info->set_chip_count(static_cast<int32_t>(slice.chip_count));
    info->set_host_count(slice.host_count);
    info->set_chips_per_host(slice.chips_per_host);
    info->set_jax_device_count(static_cast<int32_t>(slice.chip_count * slice.accelerator.devices_per_chip));
    info->set_multi_host(slice.host_count > 1);
    info->set_machine_type(slice.machine_type);
  }
  info->clear_axis_wraps();
  if (slice.accelerator.fabric == hardware::FabricKind::kTorus) {
    for (const hardware::TorusAxis& axis : slice.axes) info->add_axis_wraps(axis.wraps);
  }
  used->set_slice_count(slice.slice_count);
  used->set_total_chip_count(static_cast<int32_t>(slice.TotalChips()));
  used->set_twisted(slice.twisted);
  used->set_listed(slice.listed);
}

}  // namespace sliceplan::rpc
