#include "server/rpc/text.h"

#include <string>

#include "gtest/gtest.h"

namespace sliceplan::rpc {
namespace {

struct PrintableCase {
  const char* name;
  std::string text;
  size_t max_bytes;
  std::string expected;
};

const PrintableCase kCases[] = {
    {"fits", "v5p", 8, "v5p"},
    {"exactly fits", "12345678", 8, "12345678"},
    {"cut", "123456789", 8, "12345..."},
    {"two-byte character at the cut",
     "1234\xC3\xA9"
     "6789",
     8, "1234..."},
    {"two-byte character kept",
     "123\xC3\xA9"
     "6789",
     8, "123\xC3\xA9..."},
    {"line feed", "a\nb", 8, "a?b"},
    {"delete",
     "a\x7F"
     "b",
     8, "a?b"},
    {"no UTF-8",
     "a\xFF"
     "b",
     8, "a?b"},
    {"overlong slash", "\xC0\xAF", 8, "??"},
    {"surrogate", "\xED\xA0\x80", 8, "???"},
    {"beyond Unicode", "\xF4\x90\x80\x80", 8, "????"},
    {"four bytes", "\xF0\x9F\x98\x80", 8, "\xF0\x9F\x98\x80"},
    {"cut off in a character", "ab\xE2\x82", 8, "ab??"},
    {"empty", "", 8, ""},
};

TEST(PrintableTest, Table) {
  for (const PrintableCase& c : kCases) EXPECT_EQ(Printable(c.text, c.max_bytes), c.expected) << c.name;
}

TEST(PrintableTest, NeverLongerThanAsked) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += i % 3 == 0 ? "\xE2\x82\xAC" : i % 3 == 1 ? "x" : "\xC3\xA9";
  for (size_t max_bytes = 3; max_bytes < text.size() + 3; ++max_bytes) {
    const std::string printed = Printable(text, max_bytes);
    EXPECT_LE(printed.size(), max_bytes);
    for (absl::string_view rest = printed; !rest.empty();) {
      const size_t length = Utf8CharacterLength(rest);
      ASSERT_GT(length, 0u) << "cut inside a character at " << max_bytes;
      rest.remove_prefix(length);
    }
  }
}

TEST(QuotedTest, CutsLongNames) {
  EXPECT_EQ(Quoted("tpu-v9"), "'tpu-v9'");
  EXPECT_LE(Quoted(std::string(1000, 'x')).size(), 66u);
}

}  // namespace
}  // namespace sliceplan::rpc
