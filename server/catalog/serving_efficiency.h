// The constants of a calibration profile of serving, from its record.
#ifndef SLICEPLAN_SERVER_CATALOG_SERVING_EFFICIENCY_H_
#define SLICEPLAN_SERVER_CATALOG_SERVING_EFFICIENCY_H_

#include "absl/strings/string_view.h"
#include "proto/sliceplan/catalog/v1/catalog.pb.h"
#include "server/catalog/problems.h"
#include "server/roofline/serving_efficiency.h"

namespace sliceplan::catalog {

// As EfficiencyOf, for records of serving.
roofline::ServingEfficiency ServingEfficiencyOf(const v1::CalibrationProfile& record, absl::string_view accelerator_id,
                                                RecordProblems& problems);

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_SERVING_EFFICIENCY_H_
