// One layer of an architecture: contract to engine, and back. Ranges are the engine's (transformer/validate.h); here
// only what the engine's structs cannot hold is refused.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_LAYER_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_LAYER_H_

#include <cstdint>

#include "proto/sliceplan/v1/model.pb.h"
#include "server/rpc/field_path.h"
#include "server/rpc/violations.h"
#include "server/transformer/architecture.h"

namespace sliceplan::rpc {

transformer::Layer ToLayer(const v1::Layer& proto, const FieldPath& path, Violations& violations);
transformer::Norms ToNorms(const v1::Norms& proto, int32_t default_count, const FieldPath& path,
                           Violations& violations);

void ToProto(const transformer::Layer& layer, v1::Layer* proto);
void ToProto(const transformer::Norms& norms, v1::Norms* proto);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_LAYER_H_
