// The replicas of a serving request: `slice` or `pools`, with prices and profiles.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_SERVING_POOLS_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_SERVING_POOLS_H_

#include <string>

#include "proto/sliceplan/v1/pricing.pb.h"
#include "proto/sliceplan/v1/serving.pb.h"
#include "server/catalog/catalog.h"
#include "server/rpc/convert/serving_job.h"
#include "server/rpc/field_path.h"
#include "server/rpc/profile_cache.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

// Fills `job.pools` and `slices`. One slice that has no meaning leaves its pool without a chip.
void ReadPools(const v1::EstimateServingRequest& request, const catalog::Catalog& catalog, const FieldPath& path,
               ServingQuestion& question, Violations& violations);

// One price for each pool.
void SetPrices(const v1::Pricing& pricing, const catalog::Catalog& catalog, const FieldPath& path,
               ServingQuestion& question, google::protobuf::RepeatedPtrField<v1::PriceUsed>* prices,
               Violations& violations);

// The profile of each pool in CALIBRATED mode; in ROOFLINE mode only the name is checked.
void SetProfiles(const std::string& name, const catalog::Catalog& catalog, ProfileCache& profiles,
                 const FieldPath& path, ServingQuestion& question, Violations& violations);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_SERVING_POOLS_H_
