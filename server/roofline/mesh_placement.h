// Which chips each logical axis of a mesh joins. Whole physical axes where they match, as JAX lays meshes out, else
// factors of axes with later mesh axes inside. "How To Scale Your Model", chapters 3 and 10; docs/collectives.md
// section 1.
#ifndef SLICEPLAN_SERVER_ROOFLINE_MESH_PLACEMENT_H_
#define SLICEPLAN_SERVER_ROOFLINE_MESH_PLACEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/hardware/slice.h"
#include "server/hardware/violation.h"

namespace sliceplan::roofline {

inline constexpr size_t kMaxMeshAxes = 16;

struct MeshAxis {
  std::string name;
  int32_t size = 1;
  // Explicit place: pieces of physical axes, slowest first, whose factors multiply to `size`. Empty: chosen. Given for
  // all axes longer than 1 or for none.
  std::vector<hardware::GroupPiece> pieces;
};

// One group per mesh axis. The sizes multiply to the chips of all slices or to a divisor, which then repeats over the
// rest. The first axes span the slices. Appends violations of "mesh_axes..." (names unique and not empty, sizes at
// least 1, at most kMaxMeshAxes, a product that does not divide the chips, factors that no physical axes have) and then
// returns nothing.
std::vector<hardware::Group> PlaceMesh(const hardware::Slice& slice, const std::vector<MeshAxis>& axes,
                                       std::vector<hardware::Violation>& violations);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_MESH_PLACEMENT_H_
