// Time of collectives over the axes of a mesh: on the links of a slice, or on the book's ideal rings.
#ifndef SLICEPLAN_SERVER_ROOFLINE_MESH_NETWORK_H_
#define SLICEPLAN_SERVER_ROOFLINE_MESH_NETWORK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/hardware/slice.h"
#include "server/roofline/collective.h"

namespace sliceplan::roofline {

// A set of mesh axes: bit i is axis i, at most kMaxMeshAxes.
using AxisSet = uint32_t;

class MeshNetwork {
 public:
  virtual ~MeshNetwork() = default;
  // Law of one collective over all of `axes` together, every group at once.
  virtual absl::StatusOr<CollectiveLaw> LawOver(CollectiveKind kind, AxisSet axes) const = 0;
};

// Axes placed on the links of a slice (PlaceMesh): LawOf of their pieces together.
class SliceNetwork final : public MeshNetwork {
 public:
  SliceNetwork(const hardware::Slice& slice, std::vector<hardware::Group> groups);
  absl::StatusOr<CollectiveLaw> LawOver(CollectiveKind kind, AxisSet axes) const override;

 private:
  const hardware::Slice& slice_;
  std::vector<hardware::Group> groups_;
};

// Every mesh axis is a ring of its own, long enough that (n - 1) / n is 1. Book, chapter 3: V / (m W_ici), all-reduce
// twice that, all-to-all V max(A) / (4 n W_ici), at least half of each ring in hops. No permutes.
class LongRingNetwork final : public MeshNetwork {
 public:
  // `axis_bytes_per_second`: both directions of a ring, W_ici.
  LongRingNetwork(std::vector<int32_t> axis_sizes, double axis_bytes_per_second, double hop_seconds);
  absl::StatusOr<CollectiveLaw> LawOver(CollectiveKind kind, AxisSet axes) const override;

 private:
  std::vector<int32_t> axis_sizes_;
  double axis_bytes_per_second_;
  double hop_seconds_;
};

// What the backward pass runs where the forward pass ran `kind`: the transpose of a linear map. All-gather and
// reduce-scatter are each other's; the others are their own.
CollectiveKind BackwardOf(CollectiveKind kind);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_MESH_NETWORK_H_
