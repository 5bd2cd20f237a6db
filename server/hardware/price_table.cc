#include "server/hardware/price_table.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace sliceplan::hardware {
namespace {

constexpr absl::string_view kEveryRegion = "all";
constexpr absl::string_view kUnnamedRegion = "unspecified";

// 20260822. A month alone counts as its first day, so that a later day of the same month is newer.
// Digits only: at most ten of them, whatever the text.
int64_t DateNumber(absl::string_view as_of) {
  int64_t number = 0;
  for (char c : as_of.substr(0, 10)) {
    if (c >= '0' && c <= '9') number = number * 10 + (c - '0');
  }
  return as_of.size() == 7 ? number * 100 + 1 : number;
}

// How far a region is from "the United States", when the caller names none.
int RegionRank(const PriceRow& row) {
  if (IsUsRegion(row.region) || row.region == kEveryRegion) return 0;
  return row.region == kUnnamedRegion ? 1 : 2;
}

bool IsInRegion(const PriceRow& row, absl::string_view region) {
  return absl::EqualsIgnoreCase(row.region, region) || row.region == kEveryRegion;
}

bool IsFromProvider(const PriceRow& row, absl::string_view provider) {
  return provider.empty() || absl::EqualsIgnoreCase(row.provider, provider);
}

bool IsSameOffer(const PriceRow& a, const PriceRow& b) {
  return a.price_model == b.price_model && a.provider == b.provider && a.region == b.region;
}

std::string Dollars(double usd) { return absl::StrCat("$", usd); }

std::string Place(const PriceRow& row) {
  if (row.region == kEveryRegion) return absl::StrCat(row.provider, ", every region");
  if (row.region == kUnnamedRegion) return absl::StrCat(row.provider, ", region not stated");
  return absl::StrCat(row.provider, " ", row.region);
}

std::string ChosenSentence(const PriceRow& row, const PriceQuery& query) {
  std::string why;
  if (query.region.empty()) {
    switch (RegionRank(row)) {
      case 0: why = "the cheapest listed US region"; break;
      case 1: why = "no US region is listed"; break;
      default: why = "no US region is listed; this is the cheapest elsewhere"; break;
    }
  } else if (!absl::EqualsIgnoreCase(row.region, query.region)) {
    why = absl::StrCat(query.region, " is not listed by itself");
  }
  return absl::StrCat("Price: ", Dollars(row.usd_per_chip_hour), " per chip-hour, ", PriceModelName(row.price_model),
                      ", ", Place(row), why.empty() ? "" : ", ", why, ", as of ", row.as_of, ".");
}

std::string MissingSentence(const PriceQuery& query, const std::vector<const PriceRow*>& alternatives) {
  std::string sentence =
      absl::StrCat("No public price of ", query.accelerator, ", ", PriceModelName(query.price_model));
  if (!query.provider.empty()) absl::StrAppend(&sentence, ", from ", query.provider);
  if (!query.region.empty()) absl::StrAppend(&sentence, ", in ", query.region);
  if (!query.as_of.empty()) absl::StrAppend(&sentence, ", not newer than ", query.as_of);
  if (alternatives.empty()) return absl::StrCat(sentence, ".");
  const PriceRow& nearest = *alternatives.front();
  return absl::StrCat(sentence, "; the nearest listed: ", Dollars(nearest.usd_per_chip_hour), ", ",
                      PriceModelName(nearest.price_model), ", ", Place(nearest), ", as of ", nearest.as_of, ".");
}

}  // namespace

absl::string_view PriceModelName(PriceModel model) {
  switch (model) {
    case PriceModel::kOnDemand: return "on demand";
    case PriceModel::kSpot: return "spot";
    case PriceModel::kCommitted1Y: return "committed for 1 year";
    case PriceModel::kCommitted3Y: return "committed for 3 years";
    case PriceModel::kFlexStart: return "flex-start";
    case PriceModel::kCalendar: return "calendar";
  }
  return "";
}

bool IsUsRegion(absl::string_view region) {
  if (absl::StartsWithIgnoreCase(region, "us-")) return true;
  // "eastus", "westus3": the name ends in "us" and perhaps a digit, and has no hyphen.
  if (absl::StrContains(region, '-') || region.empty()) return false;
  if (region.back() >= '0' && region.back() <= '9') region.remove_suffix(1);
  return absl::EndsWithIgnoreCase(region, "us");
}

bool IsPriceDate(absl::string_view text) {
  if (text.size() != 7 && text.size() != 10) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool hyphen = i == 4 || i == 7;
    if (hyphen ? text[i] != '-' : text[i] < '0' || text[i] > '9') return false;
  }
  int year = 0;
  int month = 0;
  int day = 1;
  if (!absl::SimpleAtoi(text.substr(0, 4), &year) || !absl::SimpleAtoi(text.substr(5, 2), &month)) return false;
  if (text.size() == 10 && !absl::SimpleAtoi(text.substr(8, 2), &day)) return false;
  if (month < 1 || month > 12 || day < 1) return false;
  constexpr int kDaysOfMonth[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day <= kDaysOfMonth[month - 1] + (leap && month == 2 ? 1 : 0);
}

PriceTable::PriceTable(std::vector<PriceRow> rows) : rows_(std::move(rows)) {
  std::stable_sort(rows_.begin(), rows_.end(), [](const PriceRow& a, const PriceRow& b) {
    return std::make_tuple(std::cref(a.accelerator), std::cref(a.provider), std::cref(a.region), a.price_model,
                           DateNumber(a.as_of)) < std::make_tuple(std::cref(b.accelerator), std::cref(b.provider),
                                                                  std::cref(b.region), b.price_model,
                                                                  DateNumber(b.as_of));
  });
  for (size_t i = 0; i < rows_.size(); ++i) {
    Range& range = ranges_.try_emplace(rows_[i].accelerator, Range{i, i}).first->second;
    range.end = i + 1;
  }
}

absl::Span<const PriceRow> PriceTable::RowsOf(absl::string_view accelerator) const {
  const auto found = ranges_.find(accelerator);
  if (found == ranges_.end()) return {};
  return absl::MakeConstSpan(rows_).subspan(found->second.begin, found->second.end - found->second.begin);
}

PriceAnswer PriceTable::Resolve(const PriceQuery& query) const {
  const absl::Span<const PriceRow> rows = RowsOf(query.accelerator);
  const int64_t limit = query.as_of.empty() ? 0 : DateNumber(query.as_of);
  const auto is_old_enough = [limit](const PriceRow& row) { return limit == 0 || DateNumber(row.as_of) <= limit; };
  // Rows of one offer stand together, oldest first, so the last that is old enough is the newest.
  const auto is_newest = [&](size_t i) {
    if (!is_old_enough(rows[i])) return false;
    return i + 1 == rows.size() || !IsSameOffer(rows[i], rows[i + 1]) || !is_old_enough(rows[i + 1]);
  };

  PriceAnswer answer;
  int best_rank = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const PriceRow& row = rows[i];
    if (row.price_model != query.price_model || !IsFromProvider(row, query.provider) || !is_newest(i)) continue;
    int rank = 0;
    if (query.region.empty()) {
      rank = RegionRank(row);
    } else if (!IsInRegion(row, query.region)) {
      continue;
    } else {
      rank = row.region == kEveryRegion ? 1 : 0;
    }
    if (answer.row == nullptr ||
        std::make_pair(rank, row.usd_per_chip_hour) < std::make_pair(best_rank, answer.row->usd_per_chip_hour)) {
      answer.row = &row;
      best_rank = rank;
    }
  }
  if (answer.row != nullptr) {
    answer.sentence = ChosenSentence(*answer.row, query);
    return answer;
  }

  std::vector<std::pair<int, const PriceRow*>> others;
  for (size_t i = 0; i < rows.size(); ++i) {
    const PriceRow& row = rows[i];
    int distance = 0;
    if (is_newest(i)) {
      distance = row.price_model == query.price_model ? 0 : 1;
    } else if (!is_old_enough(row)) {
      distance = 2;
    } else {
      continue;  // superseded
    }
    others.emplace_back(distance, &row);
  }
  std::stable_sort(others.begin(), others.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.first, a.second->usd_per_chip_hour) < std::make_pair(b.first, b.second->usd_per_chip_hour);
  });
  if (others.size() > kMaxPriceAlternatives) others.resize(kMaxPriceAlternatives);
  for (const auto& [distance, row] : others) answer.alternatives.push_back(row);
  answer.sentence = MissingSentence(query, answer.alternatives);
  return answer;
}

}  // namespace sliceplan::hardware
