// Quantities as people type them.
#include "client/cli/quantity.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sliceplan::cli {
namespace {

using ::testing::HasSubstr;

TEST(QuantityTest, Counts) {
  struct Case {
    const char* text;
    int64_t count;
  };
  for (const Case& c : {
           Case{"0", 0},
           Case{"4194304", 4194304},
           Case{"15T", 15'000'000'000'000},
           Case{"15B", 15'000'000'000},
           Case{"15G", 15'000'000'000},
           Case{"4M", 4'000'000},
           Case{"4k", 4'000},
           Case{"4K", 4'000},
           Case{"4Ki", 4 * 1024},
           Case{"4Mi", 4 * 1024 * 1024},
           Case{"1.5Gi", 3 * 512 * 1024 * 1024LL},
           Case{"2Ti", 2LL << 40},
           Case{"1.5e13", 15'000'000'000'000},
           Case{"1.5E+3", 1500},
           Case{"150e-1", 15},
           Case{"0.25K", 250},
           Case{"1.4T", 1'400'000'000'000},
           Case{"9223372036854775807", INT64_MAX},
       }) {
    const absl::StatusOr<int64_t> count = ParseCount(c.text);
    ASSERT_TRUE(count.ok()) << c.text << ": " << count.status();
    EXPECT_EQ(*count, c.count) << c.text;
  }
}

TEST(QuantityTest, WhatIsNoCount) {
  for (const char* text : {"",        "M",     "-1",       "+1",         "1.5",
                           "0.0001K", "4X",    "4 M",      "1e",         "e5",
                           ".",       "1.2.3", "inf",      "nan",        "9223372036854775808",
                           "10P1",    "1e19",  "9000000P", "16777216Ti", "1e99",
                           "0x10",    "4MB"}) {
    const absl::StatusOr<int64_t> count = ParseCount(text);
    EXPECT_EQ(count.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(count.status().message()), HasSubstr("write")) << text;
  }
}

TEST(QuantityTest, Bytes) {
  EXPECT_EQ(*ParseBytes("64Mi"), 64 << 20);
  EXPECT_EQ(*ParseBytes("64MiB"), 64 << 20);
  EXPECT_EQ(*ParseBytes("64MB"), 64'000'000);
  EXPECT_EQ(*ParseBytes("64M"), 64'000'000);
  EXPECT_EQ(*ParseBytes("512B"), 512);
  EXPECT_FALSE(ParseBytes("B").ok());
  EXPECT_FALSE(ParseBytes("64Mib").ok());
}

TEST(QuantityTest, Numbers) {
  EXPECT_DOUBLE_EQ(*ParseNumber("0.4"), 0.4);
  EXPECT_DOUBLE_EQ(*ParseNumber("40%"), 0.4);
  EXPECT_DOUBLE_EQ(*ParseNumber("5M"), 5e6);
  EXPECT_DOUBLE_EQ(*ParseNumber("$4.20"), 4.2);
  EXPECT_DOUBLE_EQ(*ParseNumber("3.3T"), 3.3e12);
  EXPECT_DOUBLE_EQ(*ParseNumber("-1e-3"), -1e-3);
  for (const char* text : {"", "%", "nan", "inf", "1e999", "0x1p3", "4 5", "five"}) {
    EXPECT_FALSE(ParseNumber(text).ok()) << text;
  }
}

TEST(QuantityTest, Times) {
  struct Case {
    const char* text;
    double seconds;
  };
  for (const Case& c :
       {Case{"30d", 30 * 86400.0}, Case{"1d12h", 1.5 * 86400}, Case{"2h", 7200}, Case{"45m", 2700}, Case{"45min", 2700},
        Case{"90s", 90}, Case{"90", 90}, Case{"250ms", 0.25}, Case{"2us", 2e-6}, Case{"5ns", 5e-9}, Case{"1.5h", 5400},
        Case{"1w", 7 * 86400.0}, Case{"1.5e6", 1.5e6}, Case{"0", 0}}) {
    const absl::StatusOr<double> seconds = ParseSeconds(c.text);
    ASSERT_TRUE(seconds.ok()) << c.text << ": " << seconds.status();
    EXPECT_DOUBLE_EQ(*seconds, c.seconds) << c.text;
  }
  for (const char* text : {"", "d", "-1d", "30x", "30dd", "1d 2h", "nan", "1d2", "inf"}) {
    EXPECT_FALSE(ParseSeconds(text).ok()) << text;
  }
}

// 4M tokens of 4,096-token sequences are 1,024 sequences: 2^22 tokens.
TEST(QuantityTest, BatchTokens) {
  struct Case {
    const char* text;
    int64_t sequence_length;
    int64_t tokens;
    bool noted;
  };
  for (const Case& c : {
           Case{"4M", 4096, 4 << 20, true},
           Case{"4M", 0, 4 << 20, true},
           Case{"4Mi", 4096, 4 << 20, false},
           Case{"512K", 8192, 512 << 10, true},
           Case{"1.5M", 4096, 3 << 19, true},
           Case{"4M", 2000, 4'000'000, true},
           Case{"4M", 4097, 4 << 20, true},
           Case{"4000000", 4096, 4'000'000, false},
           Case{"1.6e7", 4096, 16'000'000, false},
       }) {
    const absl::StatusOr<BatchTokens> batch = ParseBatchTokens(c.text, c.sequence_length);
    ASSERT_TRUE(batch.ok()) << c.text << ": " << batch.status();
    EXPECT_EQ(batch->tokens, c.tokens) << c.text << " of " << c.sequence_length;
    EXPECT_EQ(!batch->note.empty(), c.noted) << batch->note;
  }
  EXPECT_THAT(ParseBatchTokens("4M", 4096)->note, HasSubstr("4,194,304"));
  EXPECT_FALSE(ParseBatchTokens("four", 4096).ok());
  EXPECT_FALSE(ParseBatchTokens("90000000000G", 4096).ok());
}

TEST(QuantityTest, Assignments) {
  const auto assignments = ParseAssignments("fsdp=512, dcn.data=2,x=a=b");
  ASSERT_TRUE(assignments.ok());
  ASSERT_EQ(assignments->size(), 3u);
  EXPECT_EQ((*assignments)[0].name, "fsdp");
  EXPECT_EQ((*assignments)[1].name, "dcn.data");
  EXPECT_EQ((*assignments)[1].value, "2");
  EXPECT_EQ((*assignments)[2].value, "a=b");
  for (const char* text : {"", "fsdp", "fsdp=", "=512", "fsdp=512,", ","})
    EXPECT_FALSE(ParseAssignments(text).ok()) << text;
}

}  // namespace
}  // namespace sliceplan::cli
