// The work of one operation, counted before it is timed: FLOPs per unit and bytes per path, of one chip.
#ifndef SLICEPLAN_SERVER_ROOFLINE_OP_COST_H_
#define SLICEPLAN_SERVER_ROOFLINE_OP_COST_H_

#include <array>
#include <cstddef>

#include "absl/status/statusor.h"
#include "server/hardware/accelerator.h"
#include "server/hardware/data_type.h"
#include "server/roofline/bound.h"

namespace sliceplan::roofline {

// All counts are finite and not negative.
struct OpCost {
  // By the type that the matrix unit multiplies in.
  std::array<double, 7> matrix_flops = {};
  double vector_flops = 0;
  double vmem_bytes = 0;
  double hbm_bytes = 0;
  double pcie_bytes = 0;
  // Leaving the chip, one way, on each network. A collective has a law of its own (collective.h); these are for plain
  // transfers and for volumes.
  double ici_bytes = 0;
  double scale_up_bytes = 0;
  double scale_out_bytes = 0;
  double dcn_bytes = 0;

  double& MatrixFlops(hardware::DataType compute) { return matrix_flops[static_cast<size_t>(compute)]; }
  double MatrixFlops(hardware::DataType compute) const { return matrix_flops[static_cast<size_t>(compute)]; }
  // FLOPs of both units.
  double TotalFlops() const;
  // FLOPs per byte of HBM; 0 when nothing moves.
  double Intensity() const { return hbm_bytes > 0 ? TotalFlops() / hbm_bytes : 0; }

  OpCost& operator+=(const OpCost& other);
  OpCost Times(double factor) const;
};

// Seconds of each resource at peak. A missing vector rate makes vector work free: it is bound by HBM. ICI bytes go over
// one link. FAILED_PRECONDITION names a missing rate that the cost needs.
absl::StatusOr<ResourceSeconds> SecondsOf(const OpCost& cost, const hardware::AcceleratorSpec& accelerator);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_OP_COST_H_
