#include "server/roofline/bound.h"

#include <array>

namespace sliceplan::roofline {
namespace {

constexpr std::array<Resource, 9> kResources = {Resource::kMatrixUnit, Resource::kVectorUnit, Resource::kVmem,
                                                Resource::kHbm,        Resource::kIci,        Resource::kScaleUp,
                                                Resource::kScaleOut,   Resource::kDcn,        Resource::kPcie};

}  // namespace

absl::string_view ResourceName(Resource resource) {
  switch (resource) {
    case Resource::kNone: return "none";
    case Resource::kMatrixUnit: return "matrix_unit";
    case Resource::kVectorUnit: return "vector_unit";
    case Resource::kVmem: return "vmem";
    case Resource::kHbm: return "hbm";
    case Resource::kIci: return "ici";
    case Resource::kScaleUp: return "scale_up";
    case Resource::kScaleOut: return "scale_out";
    case Resource::kDcn: return "dcn";
    case Resource::kPcie: return "pcie";
  }
  return "";
}

double ResourceSeconds::Of(Resource resource) const {
  switch (resource) {
    case Resource::kNone: return 0;
    case Resource::kMatrixUnit: return matrix_unit;
    case Resource::kVectorUnit: return vector_unit;
    case Resource::kVmem: return vmem;
    case Resource::kHbm: return hbm;
    case Resource::kIci: return ici;
    case Resource::kScaleUp: return scale_up;
    case Resource::kScaleOut: return scale_out;
    case Resource::kDcn: return dcn;
    case Resource::kPcie: return pcie;
  }
  return 0;
}

ResourceSeconds& ResourceSeconds::operator+=(const ResourceSeconds& other) {
  matrix_unit += other.matrix_unit;
  vector_unit += other.vector_unit;
  vmem += other.vmem;
  hbm += other.hbm;
  ici += other.ici;
  scale_up += other.scale_up;
  scale_out += other.scale_out;
  dcn += other.dcn;
  pcie += other.pcie;
  return *this;
}

Bound BoundOf(const ResourceSeconds& seconds) {
  Bound bound;
  for (const Resource resource : kResources) {
    const double busy_seconds = seconds.Of(resource);
    bound.upper_seconds += busy_seconds;
    if (busy_seconds > bound.lower_seconds) {
      bound.lower_seconds = busy_seconds;
      bound.binding = resource;
    }
  }
  return bound;
}

}  // namespace sliceplan::roofline
