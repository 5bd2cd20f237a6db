#include "client/cli/quantity.h"

#include <cmath>
#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/text.h"

namespace sliceplan::cli {
namespace {

constexpr int64_t kMaxCount = std::numeric_limits<int64_t>::max();
// Powers of ten beyond this overflow whatever they are multiplied with.
constexpr int kMaxExponent = 18;

absl::Status Refuse(absl::string_view text, absl::string_view what, absl::string_view examples) {
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not ", what, "; write ", examples));
}

struct Suffix {
  absl::string_view text;
  int power_of_ten = 0;
  int power_of_two = 0;
};
constexpr Suffix kSuffixes[] = {{"Ki", 0, 10}, {"Mi", 0, 20}, {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"k", 3, 0},
                                {"K", 3, 0},   {"M", 6, 0},   {"G", 9, 0},   {"T", 12, 0},  {"P", 15, 0}};
constexpr Suffix kBillion = {"B", 9, 0};

// Cuts a suffix off the end of `*text`.
Suffix TakeSuffix(absl::string_view* text) {
  for (const Suffix& suffix : kSuffixes) {
    if (absl::ConsumeSuffix(text, suffix.text)) return suffix;
  }
  return Suffix();
}

// A decimal number digit by digit: digits x 10^exponent.
struct Decimal {
  int64_t digits = 0;
  int exponent = 0;
};

std::optional<Decimal> ParseDecimal(absl::string_view text) {
  Decimal decimal;
  if (const size_t e = text.find_first_of("eE"); e != absl::string_view::npos) {
    if (!absl::SimpleAtoi(absl::StripPrefix(text.substr(e + 1), "+"), &decimal.exponent)) return std::nullopt;
    if (decimal.exponent < -kMaxExponent || decimal.exponent > kMaxExponent) return std::nullopt;
    text = text.substr(0, e);
  }
  const size_t point = text.find('.');
  std::string digits(text);
  if (point != absl::string_view::npos) {
    digits.erase(point, 1);
    decimal.exponent -= static_cast<int>(digits.size() - point);
  }
  if (digits.empty()) return std::nullopt;
  for (const char digit : digits) {
    if (!absl::ascii_isdigit(digit)) return std::nullopt;
  }
  while (digits.size() > 1 && digits.back() == '0') {
    digits.pop_back();
    ++decimal.exponent;
  }
  if (!absl::SimpleAtoi(digits, &decimal.digits)) return std::nullopt;
  return decimal;
}

// Fails on overflow and on what is no whole number.
std::optional<int64_t> Scale(const Decimal& decimal, const Suffix& suffix) {
  int64_t value = decimal.digits;
  if (value == 0) return 0;
  for (int i = 0; i < suffix.power_of_two; ++i) {
    if (value > kMaxCount / 2) return std::nullopt;
    value *= 2;
  }
  for (int exponent = decimal.exponent + suffix.power_of_ten; exponent != 0; exponent += exponent > 0 ? -1 : 1) {
    if (exponent > 0) {
      if (value > kMaxCount / 10) return std::nullopt;
      value *= 10;
    } else {
      if (value % 10 != 0) return std::nullopt;
      value /= 10;
    }
  }
  return value;
}

std::optional<int64_t> ScaledCount(absl::string_view number, const Suffix& suffix) {
  const std::optional<Decimal> decimal = ParseDecimal(number);
  return decimal.has_value() ? Scale(*decimal, suffix) : std::nullopt;
}

struct Unit {
  absl::string_view text;
  double seconds;
};
// Longer ones first where one ends in another.
constexpr Unit kUnits[] = {{"min", 60},    {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"w", 7 * 86400.0},
                           {"d", 86400.0}, {"h", 3600},  {"m", 60},    {"s", 1}};

}  // namespace

absl::StatusOr<int64_t> ParseCount(absl::string_view text) {
  absl::string_view number = text;
  const Suffix suffix = absl::ConsumeSuffix(&number, kBillion.text) ? kBillion : TakeSuffix(&number);
  if (const std::optional<int64_t> count = ScaledCount(number, suffix)) return *count;
  // Small letters are units of other things: m is a minute or a thousandth.
  if (const std::string upper = absl::AsciiStrToUpper(text); upper != text && ParseCount(upper).ok()) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a whole number; did you mean ", upper, "?"));
  }
  return Refuse(text, "a whole number", "4194304, 4Mi (x 2^20), 15T (x 10^12) or 1.5e13");
}

absl::StatusOr<int64_t> ParseBytes(absl::string_view text) {
  absl::string_view number = absl::StripSuffix(text, "B");
  const Suffix suffix = TakeSuffix(&number);
  if (const std::optional<int64_t> count = ScaledCount(number, suffix)) return *count;
  return Refuse(text, "a number of bytes", "67108864, 64Mi, 64MiB (x 2^20) or 64MB (x 10^6)");
}

absl::StatusOr<double> ParseNumber(absl::string_view text) {
  absl::string_view number = absl::StripPrefix(text, "$");
  double scale = 1;
  if (absl::ConsumeSuffix(&number, "%")) {
    scale = 0.01;
  } else {
    const Suffix suffix = TakeSuffix(&number);
    scale = std::pow(10.0, suffix.power_of_ten) * std::exp2(suffix.power_of_two);
  }
  double value = 0;
  // SimpleAtod also reads "inf", "nan" and hexadecimal digits.
  const bool plain = !number.empty() && number.find_first_not_of("0123456789.eE+-") == absl::string_view::npos;
  if (plain && absl::SimpleAtod(number, &value) && std::isfinite(value * scale)) return value * scale;
  return Refuse(text, "a number", "0.4, 40%, 1.2e6 or 5M (x 10^6)");
}

absl::StatusOr<double> ParseSeconds(absl::string_view text) {
  constexpr absl::string_view kExamples = "30d, 1d12h, 45min, 90s, 250ms or a number of seconds";
  double total = 0;
  absl::string_view rest = text;
  do {
    size_t end = rest.find_first_not_of("0123456789.");
    // "1.5e6" is seconds; no unit begins with e.
    if (end != absl::string_view::npos && absl::StartsWithIgnoreCase(rest.substr(end), "e"))
      end = absl::string_view::npos;
    double value = 0;
    if (!absl::SimpleAtod(rest.substr(0, end), &value) || !std::isfinite(value))
      return Refuse(text, "a time", kExamples);
    rest = end == absl::string_view::npos ? absl::string_view() : rest.substr(end);
    double unit_seconds = 0;
    for (const Unit& unit : kUnits) {
      if (absl::ConsumePrefix(&rest, unit.text)) {
        unit_seconds = unit.seconds;
        break;
      }
    }
    if (unit_seconds == 0) {
      // Only a number that stands alone needs no unit.
      if (!rest.empty() || end != absl::string_view::npos || total != 0) return Refuse(text, "a time", kExamples);
      return value;
    }
    total += value * unit_seconds;
  } while (!rest.empty());
  return total;
}

absl::StatusOr<BatchTokens> ParseBatchTokens(absl::string_view text, int64_t sequence_length) {
  absl::string_view number = text;
  const Suffix suffix = TakeSuffix(&number);
  const bool ambiguous = suffix.power_of_ten == 3 || suffix.power_of_ten == 6 || suffix.power_of_ten == 9;
  if (!ambiguous) {
    const absl::StatusOr<int64_t> tokens = ParseCount(text);
    if (!tokens.ok()) return tokens.status();
    return BatchTokens{*tokens, ""};
  }
  const int power_of_two = suffix.power_of_ten / 3 * 10;
  const std::optional<int64_t> binary = ScaledCount(number, {suffix.text, 0, power_of_two});
  const std::optional<int64_t> decimal = ScaledCount(number, suffix);
  const auto fits = [&](const std::optional<int64_t>& tokens) {
    return tokens.has_value() && (sequence_length <= 0 || *tokens % sequence_length == 0);
  };
  if (fits(decimal) && !fits(binary)) {
    return BatchTokens{
        *decimal, absl::StrCat(text, " read as ", Grouped(*decimal), " tokens, a multiple of the sequence; ", number,
                               suffix.text, "i (x 2^", power_of_two, ") is none")};
  }
  if (!binary.has_value()) return Refuse(text, "a number of tokens", "4194304, 4M or 4Mi (both x 2^20)");
  return BatchTokens{
      *binary, absl::StrCat(text, " read as ", number, " x 2^", power_of_two, " = ", Grouped(*binary), " tokens")};
}

absl::StatusOr<std::vector<Assignment>> ParseAssignments(absl::string_view text) {
  std::vector<Assignment> assignments;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> sides = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(sides.first);
    const absl::string_view value = absl::StripAsciiWhitespace(sides.second);
    if (name.empty() || value.empty()) return Refuse(part, "name=value", "name=value,name=value");
    assignments.push_back({std::string(name), std::string(value)});
  }
  return assignments;
}

}  // namespace sliceplan::cli
