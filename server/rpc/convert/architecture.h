// An architecture written out: contract to engine, and back.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_ARCHITECTURE_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_ARCHITECTURE_H_

#include "proto/sliceplan/v1/model.pb.h"
#include "server/rpc/field_path.h"
#include "server/rpc/violations.h"
#include "server/transformer/architecture.h"

namespace sliceplan::rpc {

// Reports everything that is wrong under `path`. Without new violations the result is valid (transformer/validate.h).
transformer::Architecture ToArchitecture(const v1::Architecture& proto, const FieldPath& path, Violations& violations);

void ToProto(const transformer::Architecture& architecture, v1::Architecture* proto);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_ARCHITECTURE_H_
