// What bounds the time of one operation. Chapter 1 of "How To Scale Your Model".
#ifndef SLICEPLAN_SERVER_ROOFLINE_BOUND_H_
#define SLICEPLAN_SERVER_ROOFLINE_BOUND_H_

#include "absl/strings/string_view.h"

namespace sliceplan::roofline {

enum class Resource { kNone, kMatrixUnit, kVectorUnit, kVmem, kHbm, kIci, kScaleUp, kScaleOut, kDcn, kPcie };

// "matrix_unit", "hbm", ...; "none" for kNone.
absl::string_view ResourceName(Resource resource);

// Seconds that an operation would keep each resource busy if that resource were the only limit. All entries are finite
// and not negative.
struct ResourceSeconds {
  double matrix_unit = 0;
  double vector_unit = 0;
  double vmem = 0;
  double hbm = 0;
  double ici = 0;
  double scale_up = 0;
  double scale_out = 0;
  double dcn = 0;
  double pcie = 0;

  // Of one resource; 0 for kNone.
  double Of(Resource resource) const;
  ResourceSeconds& operator+=(const ResourceSeconds& other);
};

// Both ends of the truth: real runs lie between full overlap and none.
struct Bound {
  double lower_seconds = 0;            // everything overlaps: the slowest resource
  double upper_seconds = 0;            // nothing overlaps: the sum
  Resource binding = Resource::kNone;  // the resource that sets lower_seconds; kNone when there is no work
};

// Bounds one operation. Ties go to the resource listed first in `Resource`.
Bound BoundOf(const ResourceSeconds& seconds);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_BOUND_H_
