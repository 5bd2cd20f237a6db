#include "server/catalog/gpu_domains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sliceplan::catalog {
namespace {

using testing::ElementsAre;

struct SplitCase {
  int64_t chips;
  int64_t domain;
  int64_t host;
  int64_t share;  // 0: none
};

TEST(SplitIntoDomainsTest, WholeDomainsWhereTheyFit) {
  const SplitCase kCases[] = {{1, 8, 8, 1},
                              {4, 8, 8, 4},
                              {8, 8, 8, 8},
                              {16, 8, 8, 8},
                              {12, 8, 8, 0},
                              {72, 72, 4, 72},
                              {144, 72, 4, 72},
                              {64, 72, 4, 64},
                              // Racks of 72 filled with 64 each, as published runs on 128 to 512 GPUs are.
                              {128, 72, 4, 64},
                              {256, 72, 4, 64},
                              {512, 72, 4, 64},
                              // 76 = 72 + 4: no two racks of whole hosts are filled alike.
                              {76, 72, 4, 0},
                              {3, 1, 1, 1}};
  for (const SplitCase& c : kCases) {
    EXPECT_EQ(SplitIntoDomains(c.chips, c.domain, c.host).domain_size, c.share) << c.chips << " of " << c.domain;
  }
}

TEST(SplitIntoDomainsTest, NearestCountsAreLegalThemselves) {
  EXPECT_THAT(SplitIntoDomains(12, 8, 8).nearest_counts, ElementsAre(8, 16));
  EXPECT_THAT(SplitIntoDomains(76, 72, 4).nearest_counts, ElementsAre(72, 80));
  for (int64_t chips = 1; chips < 2000; ++chips) {
    const DomainSplit split = SplitIntoDomains(chips, 72, 4);
    if (split.domain_size > 0) {
      EXPECT_EQ(chips % split.domain_size, 0);
      EXPECT_LE(split.domain_size, 72);
      continue;
    }
    for (int64_t near : split.nearest_counts) EXPECT_GT(SplitIntoDomains(near, 72, 4).domain_size, 0) << near;
  }
}

}  // namespace
}  // namespace sliceplan::catalog
