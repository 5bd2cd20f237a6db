// What follows from a slice's shape and its accelerator: counts, hosts, wraps.
#ifndef SLICEPLAN_SERVER_CATALOG_SLICE_RECORD_H_
#define SLICEPLAN_SERVER_CATALOG_SLICE_RECORD_H_

#include "absl/types/span.h"
#include "proto/sliceplan/catalog/v1/catalog.pb.h"
#include "server/catalog/problems.h"
#include "server/hardware/accelerator.h"
#include "server/hardware/topology.h"

namespace sliceplan::catalog {

// Sets what `defaults` has and `record` leaves unset.
void ApplyDefaults(const v1::SliceRecord& defaults, v1::SliceRecord& record);

// Fills in the derived fields of `record`, whose `topology`, `chips_per_host` and `chips_per_host_bounds` must be set.
// Reports what is missing, out of range, or contradicts what the file states.
void CompleteSliceRecord(const hardware::AcceleratorSpec& spec, absl::Span<const int32_t> pod_shape,
                         v1::SliceRecord& record, RecordProblems& problems);

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_SLICE_RECORD_H_
