#include "server/rpc/text.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace sliceplan::rpc {
namespace {

constexpr size_t kQuotedBytes = 64;
constexpr absl::string_view kCut = "...";

}  // namespace

// RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
size_t Utf8CharacterLength(absl::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const auto continues = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) > 0x9F;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool beyond = lead == 0xF4 && byte(1) > 0x8F;
    return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

std::string Printable(absl::string_view text, size_t max_bytes) {
  std::string out;
  size_t fits = 0;  // bytes of `out` that leave room for the cut mark
  while (!text.empty()) {
    const size_t length = Utf8CharacterLength(text);
    const bool control = length == 1 && (static_cast<uint8_t>(text[0]) < 0x20 || text[0] == 0x7F);
    const absl::string_view next = length == 0 || control ? absl::string_view("?") : text.substr(0, length);
    if (out.size() + next.size() > max_bytes) {
      out.resize(fits);
      absl::StrAppend(&out, kCut);
      return out;
    }
    absl::StrAppend(&out, next);
    if (out.size() + kCut.size() <= max_bytes) fits = out.size();
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string Quoted(absl::string_view text) { return absl::StrCat("'", Printable(text, kQuotedBytes), "'"); }

}  // namespace sliceplan::rpc
