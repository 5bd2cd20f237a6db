// Public prices of chips, and how a question finds its row. A missing row means "no public price", never zero.
#ifndef SLICEPLAN_SERVER_HARDWARE_PRICE_TABLE_H_
#define SLICEPLAN_SERVER_HARDWARE_PRICE_TABLE_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sliceplan::hardware {

enum class PriceModel { kOnDemand, kSpot, kCommitted1Y, kCommitted3Y, kFlexStart, kCalendar };

// "on demand", "spot", "committed 1 year", ...
absl::string_view PriceModelName(PriceModel model);

struct PriceRow {
  std::string provider;     // lower case
  std::string accelerator;  // id
  std::string region;       // the provider's; "all": one price everywhere; "unspecified": the source names none
  PriceModel price_model = PriceModel::kOnDemand;
  double usd_per_chip_hour = 0;  // above 0
  std::string as_of;             // "2026-08-22", or "2026-08" which counts as that month's first day
  std::string source;
};

struct PriceQuery {
  absl::string_view accelerator;  // id
  absl::string_view provider;     // empty: any
  absl::string_view region;       // empty: the cheapest of the United States
  PriceModel price_model = PriceModel::kOnDemand;
  absl::string_view as_of;  // rows not newer than this date, see IsPriceDate; empty: the newest
};

// Pointers into the table that was asked.
struct PriceAnswer {
  const PriceRow* row = nullptr;  // nullptr: no public price
  // Without a row, at most kMaxPriceAlternatives others, nearest first: same terms in other regions or providers, then
  // other terms, then other dates; each group cheapest first.
  std::vector<const PriceRow*> alternatives;
  // Which row and why, or that there is none; a sentence for `assumptions`.
  std::string sentence;
};

inline constexpr size_t kMaxPriceAlternatives = 5;

// A region of the United States, by the naming of the large clouds: "us-east5", "us-east-1", "eastus2".
bool IsUsRegion(absl::string_view region);

// Whether `text` is a date as rows carry it, "2026-08-22" or "2026-08", of a month and day that exist.
bool IsPriceDate(absl::string_view text);

class PriceTable {
 public:
  PriceTable() = default;
  // Rows must be valid (see PriceRow) and unique by all fields but price and source.
  explicit PriceTable(std::vector<PriceRow> rows);

  // In the order (accelerator, provider, region, price model, date).
  absl::Span<const PriceRow> rows() const { return rows_; }

  // For each provider and region only the newest row counts, and the cheapest of those wins; ties go to the first in
  // the table's order. With `region` empty: regions of the United States and prices that hold in every region; when
  // none is listed, those whose source names no region, then the other regions. With `region` set: that region,
  // compared without case, before prices that hold in every region.
  PriceAnswer Resolve(const PriceQuery& query) const;

 private:
  absl::Span<const PriceRow> RowsOf(absl::string_view accelerator) const;

  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };
  std::vector<PriceRow> rows_;
  absl::flat_hash_map<std::string, Range> ranges_;  // by accelerator
};

}  // namespace sliceplan::hardware

#endif  // SLICEPLAN_SERVER_HARDWARE_PRICE_TABLE_H_
