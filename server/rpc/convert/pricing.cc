#include "server/rpc/convert/pricing.h"

#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/ranges.h"
#include "server/rpc/text.h"

namespace sliceplan::rpc {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr size_t kMaxDateBytes = 10;

}  // namespace

void ToProto(const hardware::PriceRow& row, v1::Price* price) {
  price->set_provider(row.provider);
  price->set_accelerator(row.accelerator);
  price->set_region(row.region);
  price->set_price_model(ToProto(kPriceModels, row.price_model));
  price->set_usd_per_chip_hour(row.usd_per_chip_hour);
  price->set_as_of(row.as_of);
  price->set_source(row.source);
}

void ResolvePrice(const v1::Pricing& pricing, const std::string& accelerator_id, const catalog::Catalog& catalog,
                  const FieldPath& path, Violations& violations, v1::PriceUsed* used) {
  hardware::PriceQuery query;
  query.accelerator = accelerator_id;
  if (CheckLength(pricing.provider(), kMaxNameBytes, FieldPath(path, "provider"), violations)) {
    query.provider = pricing.provider();
  }
  if (CheckLength(pricing.region(), kMaxNameBytes, FieldPath(path, "region"), violations)) {
    query.region = pricing.region();
  }
  if (const auto model = FromProto(kPriceModels, pricing.price_model(), FieldPath(path, "price_model"), violations)) {
    query.price_model = *model;
  }
  if (!pricing.as_of().empty()) {
    if (pricing.as_of().size() <= kMaxDateBytes && hardware::IsPriceDate(pricing.as_of())) {
      query.as_of = pricing.as_of();
    } else {
      violations.Add(FieldPath(path, "as_of"),
                     absl::StrCat(Quoted(pricing.as_of()), " is not a date; write \"2026-08-22\" or \"2026-08\"."),
                     "MALFORMED_DATE");
    }
  }
  if (pricing.has_usd_per_chip_hour()) {
    used->set_usd_per_chip_hour(pricing.usd_per_chip_hour());
    used->set_sentence("The price of the request.");
    return;
  }
  if (accelerator_id.empty()) {
    used->set_sentence("A custom chip has no public price; set pricing.usd_per_chip_hour to have costs.");
    return;
  }
  const hardware::PriceAnswer answer = catalog.prices().Resolve(query);
  used->set_sentence(answer.sentence);
  if (answer.row != nullptr) {
    used->set_usd_per_chip_hour(answer.row->usd_per_chip_hour);
    ToProto(*answer.row, used->mutable_row());
  }
  for (const hardware::PriceRow* row : answer.alternatives) ToProto(*row, used->add_alternatives());
}

}  // namespace sliceplan::rpc
