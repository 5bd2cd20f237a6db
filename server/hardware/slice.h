// What a job runs on: identical slices, each a torus or a switched system, joined over the data-centre network.
#ifndef SLICEPLAN_SERVER_HARDWARE_SLICE_H_
#define SLICEPLAN_SERVER_HARDWARE_SLICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "server/hardware/accelerator.h"

namespace sliceplan::hardware {

// One physical axis. A 2-long axis is one link each way, so it never wraps.
struct TorusAxis {
  int32_t size = 1;
  bool wraps = false;
};

struct Slice {
  AcceleratorSpec accelerator;
  // Torus: its physical axes, in the catalog's order. Switched: one axis, the GPUs numbered domain by domain.
  absl::InlinedVector<TorusAxis, 3> axes;
  bool twisted = false;
  int64_t chip_count = 1;   // of one slice; the product of the axes
  int32_t domain_size = 1;  // chips per scale-up domain (switched)
  int32_t slice_count = 1;

  // What the catalog calls it; empty for a custom chip.
  std::string accelerator_id;
  std::string topology;          // "16x16x16"; "1024" for GPUs
  std::string accelerator_type;  // "v5p-8192"
  std::string machine_type;
  int32_t host_count = 0;  // of one slice; 0 when unknown
  int32_t chips_per_host = 0;
  std::optional<int64_t> host_memory_bytes;  // of one host
  bool listed = false;                       // the catalog lists it; otherwise it follows from its generation's rule
  bool schedulable = true;                   // sold as one slice

  int64_t TotalChips() const { return chip_count * slice_count; }
};

// Members at distance `stride` along a physical axis, `factor` of them. mesh-collectives section 1.
struct GroupPiece {
  int32_t axis = 0;
  int32_t factor = 1;
  int32_t stride = 1;
};

// The chips that exchange data: a product of pieces inside a slice, times `slice_count` slices at the same place.
// All groups of one logical axis run the same collective at once.
struct Group {
  absl::InlinedVector<GroupPiece, 4> pieces;  // slowest first
  int32_t slice_count = 1;

  int64_t SizeInSlice() const {
    int64_t size = 1;
    for (const GroupPiece& piece : pieces) size *= piece.factor;
    return size;
  }
  int64_t Size() const { return SizeInSlice() * slice_count; }
};

}  // namespace sliceplan::hardware

#endif  // SLICEPLAN_SERVER_HARDWARE_SLICE_H_
