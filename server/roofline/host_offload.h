// Data that waits in host memory: over PCIe to the chips, over ICI to the one that needs it, or over the data-centre
// network to another slice. "How To Scale Your Model", chapter 2. Rates of one chip, positive.
#ifndef SLICEPLAN_SERVER_ROOFLINE_HOST_OFFLOAD_H_
#define SLICEPLAN_SERVER_ROOFLINE_HOST_OFFLOAD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/hardware/slice.h"
#include "server/roofline/bound.h"
#include "server/roofline/matmul.h"

namespace sliceplan::roofline {

// Links of the chip at `position`: one per neighbour. One coordinate per axis.
int LinkCountAt(absl::Span<const hardware::TorusAxis> axes, absl::Span<const int32_t> position);

// All chips read their share of rhs from the host at once, the chip at `position` gathers the shares over its links and
// multiplies. Each stage as if alone; they can overlap in pieces, so the slowest is the lower bound.
// FAILED_PRECONDITION names a missing rate.
absl::StatusOr<ResourceSeconds> OffloadedMatmulSeconds(const Matmul& matmul, const hardware::Slice& slice,
                                                       absl::Span<const int32_t> position);

// One chip to another through both hosts.
struct HostTransfer {
  double pcie_out_seconds = 0;
  double dcn_out_seconds = 0;
  double dcn_in_seconds = 0;
  double pcie_in_seconds = 0;
  double PipelinedSeconds() const;  // the slowest stage
  double StoreAndForwardSeconds() const;
};
absl::StatusOr<HostTransfer> HostTransferOf(double bytes, const hardware::AcceleratorSpec& accelerator);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_HOST_OFFLOAD_H_
