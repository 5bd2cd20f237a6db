#include "client/cli/frontier_plot.h"

#include <string>
#include <vector>

#include "client/cli/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sliceplan::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Drawn(const std::vector<PlotPoint>& points) {
  return Plot(points, {"x", Short}, {"y", Short}, /*rows=*/3, /*columns=*/9);
}

TEST(PlotTest, PutsPointsWhereTheyBelong) {
  EXPECT_THAT(Drawn({{1, 50, '*'}, {2, 100, '@'}, {3, 100, '*'}}),
              ElementsAre("y",               //
                          "100 |    @   *",  //
                          " 50 |*",          //
                          "  0 |",           //
                          "    +---------",  //
                          "     1   x   3"));
}

TEST(PlotTest, DrawsNothingOfNothing) {
  EXPECT_THAT(Drawn({}), IsEmpty());
  EXPECT_THAT(Drawn({{1, 1, '*'}}), IsEmpty());
  EXPECT_THAT(Drawn({{1, 1, '*'}, {0, 1, '*'}}), IsEmpty());
}

}  // namespace
}  // namespace sliceplan::cli
