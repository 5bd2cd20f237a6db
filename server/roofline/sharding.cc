#include "server/roofline/sharding.h"

#include <algorithm>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sliceplan::roofline {
namespace {

using hardware::Violation;

int IndexOf(absl::Span<const std::string> names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

int AxisIndex(const std::vector<MeshAxis>& mesh, const std::string& name) {
  for (size_t i = 0; i < mesh.size(); ++i) {
    if (mesh[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// Whether the product of the axes divides `size`, without overflow.
template <typename SizeOfAxis>
bool Divides(int64_t size, const std::vector<int>& axes, SizeOfAxis size_of_axis) {
  for (const int axis : axes) {
    const int64_t parts = size_of_axis(axis);
    if (parts < 1) continue;  // reported with the mesh
    if (size % parts != 0) return false;
    size /= parts;
  }
  return true;
}

absl::Status Check(const ShardedArray& array, absl::Span<const int64_t> mesh_sizes) {
  std::set<int> used;
  for (size_t i = 0; i < array.shape.size(); ++i) {
    for (const int axis : array.sharding[i]) {
      if (axis < 0 || static_cast<size_t>(axis) >= mesh_sizes.size()) {
        return absl::InvalidArgumentError(absl::StrCat("mesh axis ", axis, " does not exist"));
      }
      if (!used.insert(axis).second) {
        return absl::InvalidArgumentError(absl::StrCat("mesh axis ", axis, " shards the array twice"));
      }
    }
    if (!Divides(array.shape[i], array.sharding[i], [&](int axis) { return mesh_sizes[static_cast<size_t>(axis)]; })) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", i, " of size ", array.shape[i], " does not divide over its mesh axes"));
    }
  }
  return absl::OkStatus();
}

int64_t Parts(const std::vector<int>& axes, absl::Span<const int64_t> mesh_sizes) {
  int64_t parts = 1;
  for (const int axis : axes) parts *= mesh_sizes[static_cast<size_t>(axis)];
  return parts;
}

}  // namespace

Sharding ResolveSharding(const std::vector<DimensionSharding>& entries, absl::Span<const std::string> dimensions,
                         absl::Span<const int64_t> shape, const std::vector<MeshAxis>& mesh, absl::string_view field,
                         std::vector<Violation>& violations) {
  Sharding sharding(dimensions.size());
  std::set<int> named;
  std::set<int> used;
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string path = absl::StrCat(field, "[", i, "]");
    const int dimension = IndexOf(dimensions, entries[i].dimension);
    if (dimension < 0) {
      violations.push_back({path + ".dimension",
                            absl::StrCat("'", entries[i].dimension, "' is not a dimension of this operand, which has ",
                                         absl::StrJoin(dimensions, ", ")),
                            "UNKNOWN_DIMENSION"});
      continue;
    }
    if (!named.insert(dimension).second) {
      violations.push_back({path + ".dimension", absl::StrCat("dimension ", entries[i].dimension, " is named twice"),
                            "DIMENSION_REPEATED"});
      continue;
    }
    const size_t violations_before = violations.size();
    std::vector<int>& axes = sharding[static_cast<size_t>(dimension)];
    for (size_t j = 0; j < entries[i].axes.size(); ++j) {
      const std::string axis_path = absl::StrCat(path, ".axes[", j, "]");
      const int axis = AxisIndex(mesh, entries[i].axes[j]);
      if (axis < 0) {
        violations.push_back(
            {axis_path, absl::StrCat("the mesh has no axis '", entries[i].axes[j], "'"), "UNKNOWN_MESH_AXIS"});
      } else if (!used.insert(axis).second) {
        violations.push_back({axis_path,
                              absl::StrCat("mesh axis '", entries[i].axes[j],
                                           "' shards this operand twice: an axis may appear once in an array"),
                              "MESH_AXIS_REPEATED"});
      } else {
        axes.push_back(axis);
      }
    }
    if (violations.size() > violations_before) continue;
    const int64_t size = shape[static_cast<size_t>(dimension)];
    const auto size_of_axis = [&](int axis) { return int64_t{mesh[static_cast<size_t>(axis)].size}; };
    if (!Divides(size, axes, size_of_axis)) {
      violations.push_back({path,
                            absl::StrCat(entries[i].dimension, " = ", size, " does not divide over ",
                                         absl::StrJoin(axes, " x ",
                                                       [&](std::string* out, int axis) {
                                                         absl::StrAppend(out, mesh[static_cast<size_t>(axis)].name, "=",
                                                                         mesh[static_cast<size_t>(axis)].size);
                                                       })),
                            "DIMENSION_NOT_DIVISIBLE"});
    }
  }
  return sharding;
}

absl::StatusOr<std::vector<int64_t>> LocalShape(const ShardedArray& array, absl::Span<const int64_t> mesh_sizes) {
  if (absl::Status status = Check(array, mesh_sizes); !status.ok()) return status;
  std::vector<int64_t> local;
  for (size_t i = 0; i < array.shape.size(); ++i) {
    local.push_back(array.shape[i] / Parts(array.sharding[i], mesh_sizes));
  }
  return local;
}

absl::StatusOr<double> LocalBytes(const ShardedArray& array, absl::Span<const int64_t> mesh_sizes) {
  const absl::StatusOr<std::vector<int64_t>> local = LocalShape(array, mesh_sizes);
  if (!local.ok()) return local.status();
  double bytes = array.bytes_per_element;
  for (const int64_t dim : *local) bytes *= static_cast<double>(dim);
  return bytes;
}

absl::StatusOr<double> CopyCount(const ShardedArray& array, absl::Span<const int64_t> mesh_sizes) {
  if (absl::Status status = Check(array, mesh_sizes); !status.ok()) return status;
  double copies = 1;
  for (const int64_t size : mesh_sizes) copies *= static_cast<double>(size);
  for (const std::vector<int>& axes : array.sharding) copies /= static_cast<double>(Parts(axes, mesh_sizes));
  return copies;
}

absl::StatusOr<double> TotalBytes(const ShardedArray& array, absl::Span<const int64_t> mesh_sizes) {
  const absl::StatusOr<double> local = LocalBytes(array, mesh_sizes);
  if (!local.ok()) return local.status();
  double chips = 1;
  for (const int64_t size : mesh_sizes) chips *= static_cast<double>(size);
  return *local * chips;
}

absl::StatusOr<std::vector<int64_t>> ShardCounts(const ShardedArray& array, absl::Span<const int64_t> mesh_sizes) {
  if (absl::Status status = Check(array, mesh_sizes); !status.ok()) return status;
  std::vector<int64_t> counts;
  for (const std::vector<int>& axes : array.sharding) counts.push_back(Parts(axes, mesh_sizes));
  return counts;
}

std::vector<int64_t> GlobalShape(absl::Span<const int64_t> local_shape, const Sharding& sharding,
                                 absl::Span<const int64_t> mesh_sizes) {
  std::vector<int64_t> global;
  for (size_t i = 0; i < local_shape.size(); ++i) global.push_back(local_shape[i] * Parts(sharding[i], mesh_sizes));
  return global;
}

}  // namespace sliceplan::roofline
