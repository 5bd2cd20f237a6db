// --slice and what belongs to it.
#ifndef SLICEPLAN_CLIENT_CLI_SLICE_FLAGS_H_
#define SLICEPLAN_CLIENT_CLI_SLICE_FLAGS_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "client/cli/flags.h"
#include "proto/sliceplan/v1/hardware.pb.h"

namespace sliceplan::cli {

// "tpu-v5p:16x16x16" is a chip and a topology, "h100:64" a chip and a count, "v5p-256" the cloud's name of a slice, and
// "tpu-v5e" a chip alone.
absl::Status ReadSlice(const std::string& text, v1::Slice* slice);

// Adds --slice, --slices, --chips, --machine-type, --twisted and --override for the field `slice` of a request.
void AddSliceFlags(Flags& flags, const std::function<v1::Slice*()>& slice);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_SLICE_FLAGS_H_
