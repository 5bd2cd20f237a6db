// Prices: which row of the catalog a request means, and how replies show it.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_PRICING_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_PRICING_H_

#include <string>

#include "proto/sliceplan/v1/pricing.pb.h"
#include "server/catalog/catalog.h"
#include "server/hardware/price_table.h"
#include "server/rpc/field_path.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

// Fills `used` with the price per chip-hour and its row, or without one with the sentence that says so and the nearest
// rows. `accelerator_id` is empty for a custom chip, which has no row. The range of `usd_per_chip_hour` is the caller's
// to check.
void ResolvePrice(const v1::Pricing& pricing, const std::string& accelerator_id, const catalog::Catalog& catalog,
                  const FieldPath& path, Violations& violations, v1::PriceUsed* used);

void ToProto(const hardware::PriceRow& row, v1::Price* price);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_PRICING_H_
