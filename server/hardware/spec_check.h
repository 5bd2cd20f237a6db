// Whether the constants of a chip make sense: a what-if chip, an override or a record of the catalog.
#ifndef SLICEPLAN_SERVER_HARDWARE_SPEC_CHECK_H_
#define SLICEPLAN_SERVER_HARDWARE_SPEC_CHECK_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "server/hardware/accelerator.h"
#include "server/hardware/violation.h"

namespace sliceplan::hardware {

// Appends one violation per constant out of range; absent constants are fine. Rates: above 0, at most 1e24. Bytes: 1 to
// 2^53. Counts: 1 to 1,048,576 (torus dimensions: 1 to 3). Latencies: 0 to 1 second. Usable memory at most the
// physical. Fields are named as in the API, after `prefix` ("custom.hbm_bytes" for the prefix "custom.").
void CheckSpec(const AcceleratorSpec& spec, absl::string_view prefix, std::vector<Violation>& violations);

}  // namespace sliceplan::hardware

#endif  // SLICEPLAN_SERVER_HARDWARE_SPEC_CHECK_H_
