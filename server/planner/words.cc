#include "server/planner/words.h"

#include <array>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sliceplan::planner {
namespace {

constexpr double kLargestPlain = 1e15;   // whole numbers below are printed digit by digit
constexpr double kSmallestPlain = 1e-3;  // below, an exponent reads better than zeros
constexpr int kGroup = 3;                // digits between commas

struct Unit {
  double size;
  absl::string_view name;
};

// As the tables of the command and the clouds count memory.
constexpr std::array<Unit, 7> kByteUnits = {{{0x1p60, " EiB"},
                                             {0x1p50, " PiB"},
                                             {0x1p40, " TiB"},
                                             {0x1p30, " GiB"},
                                             {0x1p20, " MiB"},
                                             {0x1p10, " KiB"},
                                             {1, " B"}}};
constexpr std::array<Unit, 8> kFlopsUnits = {{{1e24, " YFLOP"},
                                              {1e21, " ZFLOP"},
                                              {1e18, " EFLOP"},
                                              {1e15, " PFLOP"},
                                              {1e12, " TFLOP"},
                                              {1e9, " GFLOP"},
                                              {1e6, " MFLOP"},
                                              {1, " FLOP"}}};
constexpr std::array<Unit, 4> kUsdUnits = {{{1e12, " trillion"}, {1e9, " billion"}, {1e6, " million"}, {1, ""}}};
// The larger unit takes over at two of it, so that 90 minutes do not read "1.5 h".
constexpr double kMinute = 60, kHour = 3600, kDay = 86400;

std::string InUnits(double value, absl::Span<const Unit> units) {
  const double magnitude = std::abs(value);
  for (const Unit& unit : units) {
    if (magnitude >= unit.size) return absl::StrCat(NumberWords(value / unit.size), unit.name);
  }
  return absl::StrCat(NumberWords(value), units.back().name);
}

// `scaled` / 10^decimals without trailing zeros.
std::string Decimal(bool negative, int64_t scaled, int decimals) {
  while (decimals > 0 && scaled % 10 == 0) {
    scaled /= 10;
    --decimals;
  }
  std::array<char, 24> buffer;
  size_t position = buffer.size();
  int written = 0;
  while (scaled > 0 || written <= decimals) {
    buffer[--position] = static_cast<char>('0' + scaled % 10);
    scaled /= 10;
    if (++written == decimals) buffer[--position] = '.';
  }
  if (negative) buffer[--position] = '-';
  return std::string(&buffer[position], buffer.size() - position);
}

}  // namespace

std::string CountWords(int64_t count) {
  std::array<char, 32> buffer;
  size_t position = buffer.size();
  const bool negative = count < 0;
  uint64_t rest = negative ? uint64_t{0} - static_cast<uint64_t>(count) : static_cast<uint64_t>(count);
  int written = 0;
  do {
    if (written > 0 && written % kGroup == 0) buffer[--position] = ',';
    buffer[--position] = static_cast<char>('0' + rest % 10);
    rest /= 10;
    ++written;
  } while (rest > 0);
  if (negative) buffer[--position] = '-';
  return std::string(&buffer[position], buffer.size() - position);
}

std::string NumberWords(double value) {
  if (!std::isfinite(value)) return "unknown";
  const double magnitude = std::abs(value);
  if (magnitude == 0) return "0";
  if (magnitude >= kLargestPlain || magnitude < kSmallestPlain) return absl::StrFormat("%.3g", value);
  if (magnitude >= 100) return CountWords(std::llround(value));
  int decimals = 2;
  double scale = 100;
  // One more digit for each zero behind the point.
  while (magnitude * scale < 100) {
    ++decimals;
    scale *= 10;
  }
  if (magnitude >= 10) {
    decimals = 1;
    scale = 10;
  }
  return Decimal(value < 0, std::llround(magnitude * scale), decimals);
}

std::string PercentWords(double ratio) {
  const double percent = 100 * ratio;
  if (std::abs(percent) >= 10) return absl::StrCat(NumberWords(std::round(percent)), "%");
  return absl::StrCat(NumberWords(std::abs(percent) >= 1 ? std::round(10 * percent) / 10 : percent), "%");
}

std::string BytesWords(double bytes) { return InUnits(bytes, kByteUnits); }

std::string SecondsWords(double seconds) {
  const double magnitude = std::abs(seconds);
  if (magnitude >= 2 * kDay) return absl::StrCat(NumberWords(seconds / kDay), " days");
  if (magnitude >= 2 * kHour) return absl::StrCat(NumberWords(seconds / kHour), " h");
  if (magnitude >= 2 * kMinute) return absl::StrCat(NumberWords(seconds / kMinute), " min");
  if (magnitude >= 1 || magnitude == 0) return absl::StrCat(NumberWords(seconds), " s");
  if (magnitude >= 1e-3) return absl::StrCat(NumberWords(seconds * 1e3), " ms");
  return absl::StrCat(NumberWords(seconds * 1e6), " us");
}

std::string UsdWords(double usd) { return absl::StrCat(usd < 0 ? "-$" : "$", InUnits(std::abs(usd), kUsdUnits)); }

std::string FlopsWords(double flops) { return InUnits(flops, kFlopsUnits); }

}  // namespace sliceplan::planner
