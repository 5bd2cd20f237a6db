#include "server/planner/words.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"

namespace sliceplan::planner {
namespace {

TEST(WordsTest, CountsHaveCommas) {
  EXPECT_EQ(CountWords(0), "0");
  EXPECT_EQ(CountWords(999), "999");
  EXPECT_EQ(CountWords(8192), "8,192");
  EXPECT_EQ(CountWords(-1234567), "-1,234,567");
  EXPECT_EQ(CountWords(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(CountWords(std::numeric_limits<int64_t>::max()), "9,223,372,036,854,775,807");
}

TEST(WordsTest, NumbersHaveThreeDigits) {
  EXPECT_EQ(NumberWords(0), "0");
  EXPECT_EQ(NumberWords(849.9), "850");
  EXPECT_EQ(NumberWords(113.4), "113");
  EXPECT_EQ(NumberWords(99.96), "100");
  EXPECT_EQ(NumberWords(45.67), "45.7");
  EXPECT_EQ(NumberWords(9.996), "10");
  EXPECT_EQ(NumberWords(1.5), "1.5");
  EXPECT_EQ(NumberWords(-1.234), "-1.23");
  EXPECT_EQ(NumberWords(0.4), "0.4");
  EXPECT_EQ(NumberWords(0.1234), "0.123");
  EXPECT_EQ(NumberWords(0.01234), "0.0123");
  EXPECT_EQ(NumberWords(12345.6), "12,346");
  EXPECT_EQ(NumberWords(1.25e20), "1.25e+20");
  EXPECT_EQ(NumberWords(std::numeric_limits<double>::quiet_NaN()), "unknown");
  EXPECT_EQ(NumberWords(std::numeric_limits<double>::infinity()), "unknown");
}

TEST(WordsTest, UnitsFitTheSize) {
  EXPECT_EQ(PercentWords(0.1754), "18%");
  EXPECT_EQ(PercentWords(0.0254), "2.5%");
  EXPECT_EQ(PercentWords(0.0004), "0.04%");
  EXPECT_EQ(PercentWords(0), "0%");
  EXPECT_EQ(PercentWords(1), "100%");
  EXPECT_EQ(BytesWords(512), "512 B");
  EXPECT_EQ(BytesWords(40.12e9), "37.4 GiB");
  EXPECT_EQ(BytesWords(-1.5e12), "-1.36 TiB");
  EXPECT_EQ(SecondsWords(0), "0 s");
  EXPECT_EQ(SecondsWords(12.34e-6), "12.3 us");
  EXPECT_EQ(SecondsWords(0.0123), "12.3 ms");
  EXPECT_EQ(SecondsWords(4.2), "4.2 s");
  EXPECT_EQ(SecondsWords(450), "7.5 min");
  EXPECT_EQ(SecondsWords(3.1 * 3600), "3.1 h");
  EXPECT_EQ(SecondsWords(44 * 86400.0), "44 days");
  EXPECT_EQ(UsdWords(0.042), "$0.042");
  EXPECT_EQ(UsdWords(1.23e6), "$1.23 million");
  EXPECT_EQ(UsdWords(-5), "-$5");
  EXPECT_EQ(FlopsWords(1.2e15), "1.2 PFLOP");
}

TEST(WordsTest, NumbersReadBackWithinHalfOfTheThirdDigit) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-12, 22);
  for (int round = 0; round < 100000; ++round) {
    const double value = (round % 2 == 0 ? 1 : -1) * std::pow(10.0, exponent(random));
    double parsed = 0;
    const std::string words = NumberWords(value);
    ASSERT_TRUE(absl::SimpleAtod(absl::StrReplaceAll(words, {{",", ""}}), &parsed)) << words;
    ASSERT_NEAR(parsed / value, 1, 0.00501) << words;
  }
}

}  // namespace
}  // namespace sliceplan::planner
