#include "server/hardware/price_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sliceplan::hardware {
namespace {

using testing::HasSubstr;

PriceRow Row(const char* provider, const char* region, PriceModel model, double usd, const char* as_of,
             const char* accelerator = "chip") {
  return {provider, accelerator, region, model, usd, as_of, "a page"};
}

const PriceTable& Table() {
  static const PriceTable& table = *new PriceTable({
      Row("gcp", "us-east5", PriceModel::kOnDemand, 4.20, "2026-08"),
      Row("gcp", "us-east5", PriceModel::kOnDemand, 3.90, "2026-08-07"),
      Row("gcp", "us-east5", PriceModel::kOnDemand, 5.00, "2025-01-01"),
      Row("gcp", "us-central1", PriceModel::kOnDemand, 4.00, "2026-08"),
      Row("gcp", "europe-west4", PriceModel::kOnDemand, 1.00, "2026-08"),
      Row("azure", "eastus2", PriceModel::kOnDemand, 4.50, "2026-08"),
      Row("lambda", "all", PriceModel::kOnDemand, 2.00, "2026-08"),
      Row("gcp", "europe-west4", PriceModel::kSpot, 0.50, "2026-08"),
      Row("lambda", "all", PriceModel::kSpot, 0.90, "2026-08"),
      Row("gcp", "europe-west4", PriceModel::kCommitted3Y, 1.89, "2026-08"),
      Row("gcp", "europe-west1", PriceModel::kCommitted3Y, 1.99, "2026-08"),
      Row("gcp", "unspecified", PriceModel::kCalendar, 2.50, "2026-08"),
      Row("gcp", "us-east5", PriceModel::kOnDemand, 0.01, "2026-08", "other"),
  });
  return table;
}

struct ResolveCase {
  const char* name;
  PriceQuery query;
  double usd;  // 0: no public price
};

PriceQuery Query(absl::string_view region, PriceModel model = PriceModel::kOnDemand, absl::string_view as_of = "",
                 absl::string_view provider = "") {
  return {"chip", provider, region, model, as_of};
}

class ResolveTest : public testing::TestWithParam<ResolveCase> {};

TEST_P(ResolveTest, FindsTheRow) {
  const PriceAnswer answer = Table().Resolve(GetParam().query);
  if (GetParam().usd == 0) {
    EXPECT_EQ(answer.row, nullptr);
    EXPECT_THAT(answer.sentence, HasSubstr("No public price"));
  } else {
    ASSERT_NE(answer.row, nullptr) << answer.sentence;
    EXPECT_EQ(answer.row->usd_per_chip_hour, GetParam().usd);
    EXPECT_TRUE(answer.alternatives.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Questions, ResolveTest,
    testing::Values(
        // A price of every region holds in the United States; 1.00 is Europe's.
        ResolveCase{"cheapest_of_the_us_and_of_every_region", Query(""), 2.00},
        // Newest of us-east5 is 3.90, below us-central1.
        ResolveCase{"cheapest_us_region_newest_row", Query("", PriceModel::kOnDemand, "", "gcp"), 3.90},
        ResolveCase{"region", Query("us-central1"), 4.00},
        ResolveCase{"region_without_case", Query("US-Central1"), 4.00},
        ResolveCase{"region_before_every_region", Query("us-east5"), 3.90},
        ResolveCase{"price_that_holds_everywhere", Query("asia-south1"), 2.00},
        ResolveCase{"provider", Query("", PriceModel::kOnDemand, "", "azure"), 4.50},
        ResolveCase{"date_before_the_newest", Query("us-east5", PriceModel::kOnDemand, "2026-08-06"), 4.20},
        ResolveCase{"date_of_a_month", Query("us-east5", PriceModel::kOnDemand, "2026-07"), 5.00},
        ResolveCase{"date_before_all", Query("us-east5", PriceModel::kOnDemand, "2024-12-31"), 0},
        ResolveCase{"every_region_before_foreign", Query("", PriceModel::kSpot), 0.90},
        ResolveCase{"only_foreign", Query("", PriceModel::kCommitted3Y), 1.89},
        ResolveCase{"unnamed_region", Query("", PriceModel::kCalendar), 2.50},
        ResolveCase{"unnamed_region_is_nowhere", Query("us-east5", PriceModel::kCalendar), 0},
        ResolveCase{"terms_not_sold", Query("", PriceModel::kFlexStart), 0},
        ResolveCase{"region_not_listed", Query("us-west9", PriceModel::kCommitted3Y), 0}),
    [](const auto& info) { return info.param.name; });

TEST(PriceTableTest, AMissingRowOffersTheNearest) {
  // Same terms elsewhere first, cheapest first; then other terms.
  const PriceAnswer answer = Table().Resolve(Query("us-west9", PriceModel::kCommitted3Y));
  ASSERT_EQ(answer.alternatives.size(), kMaxPriceAlternatives);
  EXPECT_EQ(answer.alternatives[0]->usd_per_chip_hour, 1.89);
  EXPECT_EQ(answer.alternatives[1]->usd_per_chip_hour, 1.99);
  EXPECT_EQ(answer.alternatives[2]->usd_per_chip_hour, 0.50);
  for (const PriceRow* row : answer.alternatives) EXPECT_EQ(row->accelerator, "chip");
  EXPECT_THAT(answer.sentence, HasSubstr("$1.89, committed for 3 years, gcp europe-west4"));
}

TEST(PriceTableTest, ADateBeforeAllRowsOffersNewerOnes) {
  const PriceAnswer answer = Table().Resolve(Query("us-east5", PriceModel::kOnDemand, "2024-12-31"));
  EXPECT_EQ(answer.row, nullptr);
  EXPECT_FALSE(answer.alternatives.empty());
}

TEST(PriceTableTest, AnUnknownChipHasNoPriceAndNoAlternatives) {
  PriceQuery query;
  query.accelerator = "no such chip";
  const PriceAnswer answer = Table().Resolve(query);
  EXPECT_EQ(answer.row, nullptr);
  EXPECT_TRUE(answer.alternatives.empty());
  EXPECT_EQ(answer.sentence, "No public price of no such chip, on demand.");
}

TEST(PriceTableTest, TheSentenceNamesTheRow) {
  EXPECT_EQ(Table().Resolve(Query("")).sentence,
            "Price: $2 per chip-hour, on demand, lambda, every region, the cheapest listed US region, as of 2026-08.");
  EXPECT_EQ(Table().Resolve(Query("", PriceModel::kOnDemand, "", "gcp")).sentence,
            "Price: $3.9 per chip-hour, on demand, gcp us-east5, the cheapest listed US region, as of 2026-08-07.");
}

TEST(PriceTableTest, TheOrderOfTheRowsChangesNothing) {
  std::vector<PriceRow> rows(Table().rows().begin(), Table().rows().end());
  std::reverse(rows.begin(), rows.end());
  const PriceTable reversed(std::move(rows));
  for (const PriceQuery& query : {Query(""), Query("us-east5"), Query("", PriceModel::kCommitted3Y)}) {
    EXPECT_EQ(reversed.Resolve(query).sentence, Table().Resolve(query).sentence);
  }
}

TEST(IsUsRegionTest, ByTheNamesOfTheClouds) {
  for (const char* region :
       {"us-east5", "us-east-1", "us-central1", "US-West-2", "eastus", "eastus2", "westus3", "centralus"}) {
    EXPECT_TRUE(IsUsRegion(region)) << region;
  }
  for (const char* region : {"", "all", "unspecified", "europe-west4", "eu-west-1", "northamerica-northeast1",
                             "ca-central-1", "westeurope", "asia-us-1", "australiaeast"}) {
    EXPECT_FALSE(IsUsRegion(region)) << region;
  }
}

TEST(IsPriceDateTest, DaysAndMonthsThatExist) {
  for (const char* date : {"2026-08-22", "2026-08", "2024-02-29", "2000-02-29", "2026-12-31"})
    EXPECT_TRUE(IsPriceDate(date)) << date;
  for (const char* date : {"", "2026", "2026-13", "2026-00", "2026-8-1", "2026-02-29", "1900-02-29", "2026-04-31",
                           "2026-08-00", "2026/08/01", "22-08-2026", "2026-08-22 "}) {
    EXPECT_FALSE(IsPriceDate(date)) << date;
  }
}

}  // namespace
}  // namespace sliceplan::hardware
