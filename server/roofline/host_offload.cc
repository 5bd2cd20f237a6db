#include "server/roofline/host_offload.h"

#include <algorithm>

#include "absl/status/status.h"
#include "server/roofline/op_cost.h"

namespace sliceplan::roofline {

int LinkCountAt(absl::Span<const hardware::TorusAxis> axes, absl::Span<const int32_t> position) {
  int links = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const hardware::TorusAxis& axis = axes[i];
    if (axis.size <= 1) continue;
    const bool closes = axis.wraps && axis.size > 2;
    if (closes || position[i] > 0) ++links;
    if (closes || position[i] + 1 < axis.size) ++links;
  }
  return links;
}

absl::StatusOr<ResourceSeconds> OffloadedMatmulSeconds(const Matmul& matmul, const hardware::Slice& slice,
                                                       absl::Span<const int32_t> position) {
  const double chips = static_cast<double>(slice.chip_count);
  const double bytes = BytesOf(matmul).rhs;
  OpCost cost = CostOf(matmul);
  cost.pcie_bytes = bytes / chips;
  const int links = LinkCountAt(slice.axes, position);
  if (links > 0) cost.ici_bytes = bytes * (chips - 1) / chips / links;
  return SecondsOf(cost, slice.accelerator);
}

double HostTransfer::PipelinedSeconds() const {
  return std::max({pcie_out_seconds, dcn_out_seconds, dcn_in_seconds, pcie_in_seconds});
}

double HostTransfer::StoreAndForwardSeconds() const {
  return pcie_out_seconds + dcn_out_seconds + dcn_in_seconds + pcie_in_seconds;
}

absl::StatusOr<HostTransfer> HostTransferOf(double bytes, const hardware::AcceleratorSpec& accelerator) {
  OpCost cost;
  cost.pcie_bytes = bytes;
  cost.dcn_bytes = bytes;
  const absl::StatusOr<ResourceSeconds> seconds = SecondsOf(cost, accelerator);
  if (!seconds.ok()) return seconds.status();
  return HostTransfer{seconds->pcie, seconds->dcn, seconds->dcn, seconds->pcie};
}

}  // namespace sliceplan::roofline
