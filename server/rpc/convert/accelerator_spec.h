// The constants of one chip: contract to engine, and back. Ranges are checked where the slice is resolved
// (hardware/spec_check.h).
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_ACCELERATOR_SPEC_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_ACCELERATOR_SPEC_H_

#include "proto/sliceplan/v1/hardware.pb.h"
#include "server/hardware/accelerator.h"

namespace sliceplan::rpc {

// Sets what the message has; the rest of `spec` stays. Axis wraps belong to the slice and are left out.
void Apply(const v1::AcceleratorSpec& proto, hardware::AcceleratorSpec& spec);
void Apply(const v1::AcceleratorOverride& proto, hardware::AcceleratorSpec& spec);

void ToProto(const hardware::AcceleratorSpec& spec, v1::AcceleratorSpec* proto);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_ACCELERATOR_SPEC_H_
