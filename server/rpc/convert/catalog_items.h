// Records of the catalog as list replies show them. Slices and prices are in slice.h and pricing.h.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_CATALOG_ITEMS_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_CATALOG_ITEMS_H_

#include "proto/sliceplan/v1/catalog.pb.h"
#include "server/catalog/catalog.h"
#include "server/rpc/model_cache.h"

namespace sliceplan::rpc {

void ToProto(const catalog::Accelerator& accelerator, v1::Accelerator* proto);
// `model`: nullptr when the config of an operator's overlay cannot be read; the counts then stay 0 and the note says
// why.
void ToProto(const catalog::v1::ModelRecord& record, const ParsedModel* model, v1::ModelPreset* proto);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_CATALOG_ITEMS_H_
