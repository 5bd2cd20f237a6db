// Flags that several questions have: how times are computed, what chips cost.
#ifndef SLICEPLAN_CLIENT_CLI_JOB_FLAGS_H_
#define SLICEPLAN_CLIENT_CLI_JOB_FLAGS_H_

#include "client/cli/flags.h"

namespace sliceplan::cli {

// --mode and --profile, for the fields `estimation_mode` and `calibration_profile`.
void AddModeFlags(Flags& flags);

// --price, --price-model, --region, --provider and --as-of, for the field `pricing`.
void AddPricingFlags(Flags& flags);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_JOB_FLAGS_H_
