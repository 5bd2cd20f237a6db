#include "client/cli/text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sliceplan::cli {
namespace {

constexpr int kDigits = 3;
constexpr double kMinute = 60;
constexpr double kHour = 3600;
constexpr double kDay = 86400;

struct Prefix {
  double scale;
  const char* text;
};

// The largest prefix that leaves at least 1; the smallest where none does.
const Prefix& PrefixFor(double magnitude, const std::vector<Prefix>& largest_first) {
  for (const Prefix& prefix : largest_first) {
    // What rounds up to 1000 belongs to the next prefix.
    if (magnitude >= prefix.scale * 0.9995) return prefix;
  }
  return largest_first.back();
}

const std::vector<Prefix>& ThousandPrefixes() {
  static const auto* const prefixes =
      new std::vector<Prefix>{{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};
  return *prefixes;
}

// Beyond the largest prefix.
constexpr double kExponentFrom = 1e18;

// "6.30e24".
std::string Exponential(double value) { return absl::StrReplaceAll(absl::StrFormat("%.2e", value), {{"e+", "e"}}); }

int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 0; i < a.size(); ++i) {
    int diagonal = std::exchange(row[0], static_cast<int>(i) + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const int substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string Grouped(int64_t value) {
  std::string digits = absl::StrCat(value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::string Significant(double value) {
  if (value == 0 || !std::isfinite(value)) return absl::StrFormat("%g", value);
  // Of the rounded value: 9.999 has the digits of 10.0.
  const std::string rounded = absl::StrFormat("%.*e", kDigits - 1, value);
  int magnitude = 0;
  if (!absl::SimpleAtoi(absl::StripPrefix(absl::string_view(rounded).substr(rounded.find('e') + 1), "+"), &magnitude)) {
    return rounded;
  }
  return absl::StrFormat("%.*f", std::max(0, kDigits - 1 - magnitude), value);
}

std::string Short(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= kExponentFrom) return Exponential(value);
  const Prefix& prefix = PrefixFor(magnitude, ThousandPrefixes());
  if (prefix.scale == 1 && value == std::floor(value)) return absl::StrFormat("%.0f", value);
  return absl::StrCat(Significant(value / prefix.scale), prefix.text);
}

std::string Seconds(double seconds) {
  const double magnitude = std::abs(seconds);
  if (seconds == 0) return "0 s";
  if (magnitude < 1) {
    static const auto* const prefixes = new std::vector<Prefix>{{1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
    const Prefix& prefix = PrefixFor(magnitude, *prefixes);
    return absl::StrCat(Significant(seconds / prefix.scale), " ", prefix.text);
  }
  if (magnitude < 3 * kMinute) return absl::StrCat(Significant(seconds), " s");
  if (magnitude < 3 * kHour) return absl::StrCat(Significant(seconds / kMinute), " min");
  if (magnitude < 3 * kDay) return absl::StrCat(Significant(seconds / kHour), " h");
  return absl::StrCat(Significant(seconds / kDay), " days");
}

std::string Bytes(double bytes) {
  static const auto* const prefixes =
      new std::vector<Prefix>{{0x1p40, " TiB"}, {0x1p30, " GiB"}, {0x1p20, " MiB"}, {0x1p10, " KiB"}, {1, " B"}};
  const Prefix& prefix = PrefixFor(std::abs(bytes), *prefixes);
  if (prefix.scale == 1) return absl::StrFormat("%.0f B", bytes);
  return absl::StrCat(Significant(bytes / prefix.scale), prefix.text);
}

std::string Dollars(double usd) {
  if (usd < 0) return absl::StrCat("-", Dollars(-usd));
  if (usd >= 1000) return absl::StrCat("$", Short(usd));
  if (usd >= 1 || usd == 0) return absl::StrFormat("$%.2f", usd);
  return absl::StrCat("$", Significant(usd));
}

std::string Percent(double ratio) { return absl::StrFormat("%.1f%%", 100 * ratio); }

std::string WithUnit(double value, absl::string_view unit) {
  const double magnitude = std::abs(value);
  if (magnitude >= kExponentFrom) return absl::StrCat(Exponential(value), " ", unit);
  const Prefix& prefix = PrefixFor(magnitude, ThousandPrefixes());
  return absl::StrCat(Significant(value / prefix.scale), " ", prefix.text, unit);
}

std::string Plural(int64_t count, absl::string_view noun) {
  const bool hisses = absl::EndsWith(noun, "ch") || absl::EndsWith(noun, "s");
  return absl::StrCat(Grouped(count), " ", noun, count == 1 ? "" : hisses ? "es" : "s");
}

std::vector<std::string> Wrap(absl::string_view text, size_t width) {
  std::vector<std::string> lines(1);
  for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    absl::StrAppend(&lines.back(), word);
  }
  return lines;
}

std::vector<std::string> NearNames(absl::string_view name, const std::vector<std::string>& known) {
  constexpr size_t kMost = 3;
  std::vector<std::pair<int, std::string>> near;
  for (const std::string& candidate : known) {
    const int distance = EditDistance(name, candidate);
    const size_t longer = std::max(name.size(), candidate.size());
    // A slip or two in a short name, a third of a long one.
    if (static_cast<size_t>(distance) <= (longer + 1) / 3) near.emplace_back(distance, candidate);
  }
  std::sort(near.begin(), near.end());
  if (near.size() > kMost) near.resize(kMost);
  std::vector<std::string> names;
  for (auto& [distance, candidate] : near) names.push_back(std::move(candidate));
  return names;
}

std::string Suggestion(absl::string_view name, const std::vector<std::string>& known) {
  const std::vector<std::string> near = NearNames(name, known);
  return near.empty() ? absl::StrCat("; known are ", absl::StrJoin(known, ", "))
                      : absl::StrCat("; did you mean ", absl::StrJoin(near, " or "), "?");
}

}  // namespace sliceplan::cli
