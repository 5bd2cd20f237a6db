// The constants of a calibration profile, from its record.
#ifndef SLICEPLAN_SERVER_CATALOG_EFFICIENCY_H_
#define SLICEPLAN_SERVER_CATALOG_EFFICIENCY_H_

#include "absl/strings/string_view.h"
#include "proto/sliceplan/catalog/v1/catalog.pb.h"
#include "server/catalog/problems.h"
#include "server/roofline/efficiency.h"

namespace sliceplan::catalog {

// The profile for one chip: the record's constants, overridden by those of the family that lists `accelerator_id`.
// Unknown names and values outside their range are added to `problems` and left out.
roofline::EfficiencyProfile EfficiencyOf(const v1::CalibrationProfile& record, absl::string_view accelerator_id,
                                         RecordProblems& problems);

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_EFFICIENCY_H_
