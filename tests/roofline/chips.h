// Chips for the tests of this room: round figures, no product.
#ifndef SLICEPLAN_TESTS_ROOFLINE_CHIPS_H_
#define SLICEPLAN_TESTS_ROOFLINE_CHIPS_H_

#include <cstdint>
#include <vector>

#include "server/hardware/accelerator.h"
#include "server/hardware/slice.h"

namespace sliceplan::roofline {

// 200 TFLOP/s, 1 TB/s, ridge at 200 FLOPs per byte; links of 50 GB/s each way.
inline hardware::AcceleratorSpec RoundChip() {
  hardware::AcceleratorSpec chip;
  chip.name = "round";
  chip.bf16_flops_per_second = 200e12;
  chip.int8_ops_per_second = 400e12;
  chip.vector_flops_per_second = 4e12;
  chip.hbm_bytes_per_second = 1e12;
  chip.hbm_bytes = int64_t{16'000'000'000};
  chip.mxu_dim = 128;
  chip.ici_torus_dims = 2;
  chip.ici_link_bytes_per_second = 50e9;
  chip.pcie_bytes_per_second = 10e9;
  chip.dcn_bytes_per_second = 5e9;
  return chip;
}

inline hardware::Slice TorusOf(const std::vector<int32_t>& sizes, bool wraps,
                               const hardware::AcceleratorSpec& chip = RoundChip()) {
  hardware::Slice slice;
  slice.accelerator = chip;
  for (const int32_t size : sizes) {
    slice.axes.push_back({size, wraps});
    slice.chip_count *= size;
  }
  return slice;
}

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_TESTS_ROOFLINE_CHIPS_H_
