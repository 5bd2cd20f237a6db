#include "server/roofline/mesh_placement.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sliceplan::roofline {
namespace {

using hardware::Group;
using hardware::GroupPiece;
using hardware::Slice;
using hardware::Violation;

std::string Field(size_t index, const char* member) { return absl::StrCat("mesh_axes[", index, "].", member); }

// The shape that places a mesh: "16x16x16, 2 slices".
std::string ShapeOf(const Slice& slice) {
  std::string shape = absl::StrJoin(
      slice.axes, "x", [](std::string* out, const hardware::TorusAxis& axis) { absl::StrAppend(out, axis.size); });
  if (shape.empty()) shape = absl::StrCat(slice.chip_count);
  if (slice.slice_count > 1) absl::StrAppend(&shape, ", ", slice.slice_count, " slices");
  return shape;
}

void CheckNames(const std::vector<MeshAxis>& axes, std::vector<Violation>& violations) {
  std::set<std::string> seen;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].name.empty()) {
      violations.push_back({Field(i, "name"), "a mesh axis needs a name", "MESH_AXIS_NAME_MISSING"});
    } else if (!seen.insert(axes[i].name).second) {
      violations.push_back({Field(i, "name"), absl::StrCat("the mesh has two axes named '", axes[i].name, "'"),
                            "MESH_AXIS_NAME_REPEATED"});
    }
    if (axes[i].size < 1) {
      violations.push_back({Field(i, "size"), absl::StrCat("a mesh axis has at least 1 chip, not ", axes[i].size),
                            "MESH_AXIS_SIZE_OUT_OF_RANGE"});
    }
  }
}

// Chips that the mesh names, or nullopt when that is more than `limit`.
std::optional<int64_t> MeshChips(const std::vector<MeshAxis>& axes, int64_t limit) {
  int64_t chips = 1;
  for (const MeshAxis& axis : axes) {
    if (axis.size > limit / chips) return std::nullopt;
    chips *= axis.size;
  }
  return chips;
}

// Splits `sizes` (slowest first) so that their leading digits count the slices. False when they do not divide.
bool TakeSlices(int32_t slice_count, std::vector<int64_t>& sizes, std::vector<Group>& groups) {
  int64_t left = slice_count;
  for (size_t i = 0; i < sizes.size() && left > 1; ++i) {
    const int64_t taken = std::gcd(sizes[i], left);
    if (taken != sizes[i] && taken != left) return false;
    groups[i].slice_count = static_cast<int32_t>(taken);
    sizes[i] /= taken;
    left /= taken;
  }
  return left == 1;
}

// Whole physical axes for every mesh axis, the last mesh axis first and with as many axes as it can have.
bool PlaceWhole(const Slice& slice, const std::vector<int64_t>& sizes, size_t end, uint32_t used,
                std::vector<Group>& groups) {
  if (end == 0) return true;
  const size_t index = end - 1;
  const size_t axis_count = slice.axes.size();
  std::vector<uint32_t> subsets;
  for (uint32_t subset = 0; subset < (1U << axis_count); ++subset) {
    if ((subset & used) != 0) continue;
    int64_t product = 1;
    for (size_t axis = 0; axis < axis_count; ++axis) {
      if ((subset >> axis & 1U) == 0) continue;
      product *= slice.axes[axis].size;
      if (slice.axes[axis].size == 1) product = 0;  // nothing to place there
    }
    if (product == sizes[index]) subsets.push_back(subset);
  }
  std::stable_sort(subsets.begin(), subsets.end(),
                   [](uint32_t a, uint32_t b) { return __builtin_popcount(a) > __builtin_popcount(b); });
  for (const uint32_t subset : subsets) {
    if (!PlaceWhole(slice, sizes, index, used | subset, groups)) continue;
    groups[index].pieces.clear();
    for (size_t axis = 0; axis < axis_count; ++axis) {
      if ((subset >> axis & 1U) == 0) continue;
      groups[index].pieces.push_back({static_cast<int32_t>(axis), slice.axes[axis].size, 1});
    }
    return true;
  }
  return false;
}

// Factors of physical axes, the last mesh axis innermost, walking the physical axes in `order` from its end.
bool PlaceFactors(const Slice& slice, const std::vector<int64_t>& sizes, const std::vector<int32_t>& order,
                  std::vector<Group>& groups) {
  size_t at = order.size();
  int64_t left = 1;  // of the physical axis being filled
  int32_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    groups[i].pieces.clear();
    int64_t need = sizes[i];
    while (need > 1) {
      if (left == 1) {
        if (at == 0) return false;
        left = slice.axes[static_cast<size_t>(order[--at])].size;
        stride = 1;
        continue;
      }
      const int32_t factor = static_cast<int32_t>(std::gcd(need, left));  // divides a physical axis
      if (factor != need && factor != left) return false;
      groups[i].pieces.insert(groups[i].pieces.begin(), {order[at], factor, stride});
      need /= factor;
      left /= factor;
      stride *= factor;
    }
  }
  return true;
}

bool PlaceInSlice(const Slice& slice, const std::vector<int64_t>& sizes, std::vector<Group>& groups) {
  if (PlaceWhole(slice, sizes, sizes.size(), 0, groups)) return true;
  std::vector<int32_t> order(slice.axes.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    if (PlaceFactors(slice, sizes, order, groups)) return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

std::vector<Group> PlaceExplicit(const Slice& slice, const std::vector<MeshAxis>& axes,
                                 std::vector<Violation>& violations) {
  std::vector<Group> groups(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    double product = 1;
    for (const GroupPiece& piece : axes[i].pieces) product *= piece.factor;
    const double slices = product > 0 ? axes[i].size / product : 0;
    const bool whole_slices = slices >= 1 && slices == static_cast<int32_t>(slices) && slices <= slice.slice_count;
    if (!whole_slices || (slices > 1 && slice.slice_count % static_cast<int32_t>(slices) != 0)) {
      violations.push_back({Field(i, "pieces"),
                            absl::StrCat("the factors of '", axes[i].name, "' multiply to ", product,
                                         ", not to its size ", axes[i].size),
                            "MESH_PIECES_SIZE_MISMATCH"});
      continue;
    }
    groups[i].slice_count = static_cast<int32_t>(slices);
    groups[i].pieces.assign(axes[i].pieces.begin(), axes[i].pieces.end());
  }
  return groups;
}

}  // namespace

std::vector<Group> PlaceMesh(const Slice& slice, const std::vector<MeshAxis>& axes,
                             std::vector<Violation>& violations) {
  const size_t violations_before = violations.size();
  if (axes.size() > kMaxMeshAxes) {
    violations.push_back(
        {"mesh_axes", absl::StrCat("at most ", kMaxMeshAxes, " mesh axes, not ", axes.size()), "TOO_MANY_MESH_AXES"});
    return {};
  }
  CheckNames(axes, violations);
  if (violations.size() > violations_before) return {};

  const int64_t total_chips = slice.TotalChips();
  const std::optional<int64_t> chips = MeshChips(axes, total_chips);
  if (!chips || total_chips % *chips != 0) {
    violations.push_back(
        {"mesh_axes",
         absl::StrCat("the sizes of the mesh must multiply to the ", total_chips, " chips of the slice or to a divisor",
                      chips ? absl::StrCat(", not to ", *chips) : ""),
         "MESH_SIZE_MISMATCH"});
    return {};
  }
  const bool is_explicit =
      std::any_of(axes.begin(), axes.end(), [](const MeshAxis& axis) { return !axis.pieces.empty(); });
  if (is_explicit) {
    std::vector<Group> groups = PlaceExplicit(slice, axes, violations);
    return violations.size() > violations_before ? std::vector<Group>{} : groups;
  }

  // Chips that the mesh does not name repeat it: one more axis, the slowest.
  std::vector<int64_t> sizes = {total_chips / *chips};
  for (const MeshAxis& axis : axes) sizes.push_back(axis.size);
  std::vector<Group> groups(sizes.size());
  if (!TakeSlices(slice.slice_count, sizes, groups) || !PlaceInSlice(slice, sizes, groups)) {
    const std::string mesh = absl::StrJoin(
        axes, " x ", [](std::string* out, const MeshAxis& axis) { absl::StrAppend(out, axis.name, "=", axis.size); });
    violations.push_back({"mesh_axes", absl::StrCat("a mesh of ", mesh, " does not factor the slice ", ShapeOf(slice)),
                          "MESH_DOES_NOT_FACTOR_SLICE"});
    return {};
  }
  groups.erase(groups.begin());
  return groups;
}

}  // namespace sliceplan::roofline
