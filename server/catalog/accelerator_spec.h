// From the readings of an accelerator's record to what the engine plans with.
#ifndef SLICEPLAN_SERVER_CATALOG_ACCELERATOR_SPEC_H_
#define SLICEPLAN_SERVER_CATALOG_ACCELERATOR_SPEC_H_

#include "proto/sliceplan/catalog/v1/catalog.pb.h"
#include "server/catalog/problems.h"
#include "server/hardware/accelerator.h"

namespace sliceplan::catalog {

// The chosen figures of `record`, its fabric and its wrap rule. Checks the whole record and reports to `problems`.
hardware::AcceleratorSpec ToAcceleratorSpec(const v1::AcceleratorRecord& record, RecordProblems& problems);

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_ACCELERATOR_SPEC_H_
