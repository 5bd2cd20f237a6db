// Numbers for people.
#include "client/cli/text.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sliceplan::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TextTest, Numbers) {
  EXPECT_EQ(Grouped(3576279), "3,576,279");
  EXPECT_EQ(Grouped(512), "512");
  EXPECT_EQ(Grouped(-1234), "-1,234");
  EXPECT_EQ(Grouped(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(Significant(2.534), "2.53");
  EXPECT_EQ(Significant(105.4), "105");
  EXPECT_EQ(Significant(8192), "8192");
  EXPECT_EQ(Significant(0.001234), "0.00123");
  EXPECT_EQ(Significant(9.999), "10.0");
  EXPECT_EQ(Significant(0), "0");
  EXPECT_EQ(Short(1657321), "1.66M");
  EXPECT_EQ(Short(15e12), "15.0T");
  EXPECT_EQ(Short(6.3e24), "6.30e24");
  EXPECT_EQ(Short(512), "512");
  EXPECT_EQ(Short(999999), "1.00M");
  EXPECT_EQ(Short(0), "0");
  EXPECT_EQ(Short(-2500), "-2.50k");
  EXPECT_EQ(Percent(0.4312), "43.1%");
  EXPECT_EQ(WithUnit(459e12, "FLOP/s"), "459 TFLOP/s");
  EXPECT_EQ(WithUnit(9e10, "B/s"), "90.0 GB/s");
  EXPECT_EQ(Plural(1, "chip"), "1 chip");
  EXPECT_EQ(Plural(8192, "chip"), "8,192 chips");
}

TEST(TextTest, Times) {
  EXPECT_EQ(Seconds(0), "0 s");
  EXPECT_EQ(Seconds(2.534), "2.53 s");
  EXPECT_EQ(Seconds(0.000312), "312 us");
  EXPECT_EQ(Seconds(0.0312), "31.2 ms");
  EXPECT_EQ(Seconds(1e-9), "1.00 ns");
  EXPECT_EQ(Seconds(45.2 * 60), "45.2 min");
  EXPECT_EQ(Seconds(17.5 * 3600), "17.5 h");
  EXPECT_EQ(Seconds(105.4 * 86400), "105 days");
}

TEST(TextTest, BytesAndDollars) {
  EXPECT_EQ(Bytes(512), "512 B");
  EXPECT_EQ(Bytes(64.0 * (1 << 20)), "64.0 MiB");
  EXPECT_EQ(Bytes(61.2 * (1 << 30)), "61.2 GiB");
  EXPECT_EQ(Bytes(-3.0 * (1 << 30)), "-3.00 GiB");
  EXPECT_EQ(Bytes(0), "0 B");
  EXPECT_EQ(Dollars(86.5e6), "$86.5M");
  EXPECT_EQ(Dollars(4.2), "$4.20");
  EXPECT_EQ(Dollars(0.0123), "$0.0123");
  EXPECT_EQ(Dollars(0), "$0.00");
  EXPECT_EQ(Dollars(-4.2), "-$4.20");
}

TEST(TextTest, WrapsAtSpaces) {
  EXPECT_THAT(Wrap("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(Wrap("one", 2), ElementsAre("one"));
  EXPECT_THAT(Wrap("", 10), ElementsAre(""));
}

TEST(TextTest, FindsNearNames) {
  const std::vector<std::string> known = {"--model", "--slice", "--slices", "--mode"};
  EXPECT_THAT(NearNames("--modle", known), testing::Contains("--model"));
  EXPECT_THAT(NearNames("--slcie", known), testing::Contains("--slice"));
  EXPECT_THAT(NearNames("x", known), IsEmpty());
}

}  // namespace
}  // namespace sliceplan::cli
