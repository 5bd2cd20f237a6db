#include "server/catalog/content_hash.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace sliceplan::catalog {
namespace {

constexpr absl::uint128 kPrime = absl::MakeUint128(0x0000000001000000, 0x000000000000013b);
constexpr int kDigits = 12;

}  // namespace

void ContentHash::AddByte(unsigned char byte) { state_ = (state_ ^ byte) * kPrime; }

void ContentHash::Add(absl::string_view text) {
  for (char c : text) AddByte(static_cast<unsigned char>(c));
  // The length ends the text.
  for (uint64_t length = text.size(), i = 0; i < sizeof(length); ++i) AddByte((length >> (8 * i)) & 0xff);
}

std::string ContentHash::Digits() const {
  return absl::StrCat(absl::Hex(absl::Uint128High64(state_), absl::kZeroPad16)).substr(0, kDigits);
}

}  // namespace sliceplan::catalog
