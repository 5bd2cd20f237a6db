#include "server/catalog/near_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sliceplan::catalog {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NormalizeNameTest, CaseBlanksAndUnderscores) {
  EXPECT_EQ(NormalizeName(" TPU v5_p "), "tpu-v5-p");
  EXPECT_EQ(NormalizeName(""), "");
}

struct DistanceCase {
  const char* a;
  const char* b;
  size_t distance;
};

TEST(EditDistanceTest, CountsChanges) {
  // kitten/sitting is Levenshtein's textbook pair; "ca"/"abc" tells optimal string alignment (3) from the full
  // Damerau distance (2).
  const DistanceCase kCases[] = {{"", "", 0},         {"abc", "", 3},   {"", "abc", 3},      {"kitten", "sitting", 3},
                                 {"abcd", "abdc", 1}, {"ca", "abc", 3}, {"same", "same", 0}, {"v5p", "v5e", 1}};
  for (const DistanceCase& c : kCases) {
    EXPECT_EQ(EditDistance(c.a, c.b, 10), c.distance) << c.a << " " << c.b;
    EXPECT_EQ(EditDistance(c.b, c.a, 10), c.distance) << c.a << " " << c.b;
  }
  EXPECT_EQ(EditDistance("kitten", "sitting", 2), 3u);
  EXPECT_EQ(EditDistance("a", "abcdefgh", 2), 3u);
}

TEST(NearNamesTest, NearestFirstThenContained) {
  const absl::string_view kNames[] = {"llama-3-70b", "llama-3-8b", "llama-2-70b", "nvidia-h100-sxm", "gpt-2"};
  EXPECT_THAT(NearNames("llama-3-70", kNames), ElementsAre("llama-3-70b", "llama-3-8b", "llama-2-70b"));
  EXPECT_THAT(NearNames("LLAMA 3 70B", kNames, 1), ElementsAre("llama-3-70b"));
  EXPECT_THAT(NearNames("h100", kNames), ElementsAre("nvidia-h100-sxm"));
  EXPECT_THAT(NearNames("zzzzzzzz", kNames), IsEmpty());
  EXPECT_THAT(NearNames("", kNames), IsEmpty());
  EXPECT_THAT(NearNames(std::string(100000, 'a'), kNames), IsEmpty());
}

TEST(DidYouMeanTest, Sentences) {
  EXPECT_EQ(DidYouMean({}), "");
  EXPECT_EQ(DidYouMean({"a"}), "; did you mean \"a\"?");
  EXPECT_EQ(DidYouMean({"a", "b"}), "; did you mean \"a\" or \"b\"?");
  EXPECT_EQ(DidYouMean({"a", "b", "c"}), "; did you mean \"a\", \"b\" or \"c\"?");
}

}  // namespace
}  // namespace sliceplan::catalog
