// How arrays are split over a mesh: A[I_X, J_YZ] in the notation of "How To Scale Your Model", chapter 3. Mesh axes are
// indices here; names live in MeshAxis.
#ifndef SLICEPLAN_SERVER_ROOFLINE_SHARDING_H_
#define SLICEPLAN_SERVER_ROOFLINE_SHARDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/hardware/violation.h"
#include "server/roofline/mesh_placement.h"

namespace sliceplan::roofline {

// Mesh axes of each dimension of an array, slowest first: {{0}, {}, {1, 2}}.
using Sharding = std::vector<std::vector<int>>;

// One entry of a request: a dimension and the names of the axes that split it.
struct DimensionSharding {
  std::string dimension;
  std::vector<std::string> axes;
};

// Resolves names. `dimensions` names those of the array in order ("m", "k"), `shape` their sizes. Appends a violation
// of `field`[i] for an unknown dimension or axis, a dimension named twice, an axis used twice in the array, or a size
// that the axes do not divide. Dimensions not named are whole.
Sharding ResolveSharding(const std::vector<DimensionSharding>& entries, absl::Span<const std::string> dimensions,
                         absl::Span<const int64_t> shape, const std::vector<MeshAxis>& mesh, absl::string_view field,
                         std::vector<hardware::Violation>& violations);

// An array on a mesh. Requires as many entries in `sharding` as in `shape`.
struct ShardedArray {
  std::vector<int64_t> shape;  // global
  Sharding sharding;
  double bytes_per_element = 2;
};

// The shard of one chip. INVALID_ARGUMENT: an axis out of range or used twice, or a size that its axes do not divide.
absl::StatusOr<std::vector<int64_t>> LocalShape(const ShardedArray& array, absl::Span<const int64_t> mesh_sizes);
// Bytes of one chip's shard.
absl::StatusOr<double> LocalBytes(const ShardedArray& array, absl::Span<const int64_t> mesh_sizes);
// Chips that hold the same shard: the product of the axes that the array does not use.
absl::StatusOr<double> CopyCount(const ShardedArray& array, absl::Span<const int64_t> mesh_sizes);
// Bytes of all chips together, copies included.
absl::StatusOr<double> TotalBytes(const ShardedArray& array, absl::Span<const int64_t> mesh_sizes);
// Shards along each dimension: the shape of one number per shard.
absl::StatusOr<std::vector<int64_t>> ShardCounts(const ShardedArray& array, absl::Span<const int64_t> mesh_sizes);
// The other way: the global shape of shards of `local_shape`, each dimension split over axes of `sharding`.
std::vector<int64_t> GlobalShape(absl::Span<const int64_t> local_shape, const Sharding& sharding,
                                 absl::Span<const int64_t> mesh_sizes);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_SHARDING_H_
