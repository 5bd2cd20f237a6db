#include "server/calibration/svg_chart.h"

#include <cctype>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace sliceplan::calibration {
namespace {

// What keeps a reader of XML from taking `text`, as far as these pictures go: tags that do not nest, quotes and
// ampersands out of place. Empty when nothing does.
std::string FaultOfXml(absl::string_view text) {
  std::vector<std::string> open;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '&') {
      const absl::string_view rest = text.substr(at);
      if (!absl::StartsWith(rest, "&amp;") && !absl::StartsWith(rest, "&lt;") && !absl::StartsWith(rest, "&gt;") &&
          !absl::StartsWith(rest, "&quot;")) {
        return absl::StrCat("a bare ampersand at ", at);
      }
    }
    if (text[at] == '>') return absl::StrCat("a bare > at ", at);
    if (text[at] != '<') continue;
    const size_t end = text.find('>', at);
    if (end == absl::string_view::npos) return "an open tag";
    absl::string_view tag = text.substr(at + 1, end - at - 1);
    at = end;
    if (absl::StartsWith(tag, "/")) {
      if (open.empty() || open.back() != tag.substr(1)) return absl::StrCat("closes ", tag);
      open.pop_back();
      continue;
    }
    size_t quotes = 0;
    for (const char c : tag) quotes += c == '"' ? 1 : 0;
    if (quotes % 2 != 0) return absl::StrCat("quotes of ", tag);
    if (absl::EndsWith(tag, "/")) continue;
    open.emplace_back(tag.substr(0, tag.find(' ')));
  }
  return open.empty() ? "" : absl::StrCat("never closed: ", open.back());
}

int CountOf(absl::string_view text, absl::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != absl::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Chart SomeChart() {
  Chart chart;
  chart.title = "Runs <of> \"A&B\"";
  chart.quantity = "step time, seconds";
  for (int i = 0; i < 12; ++i) {
    chart.points.push_back({.measured = 0.01 * (i + 1),
                            .predicted = 0.011 * (i + 1),
                            .series = absl::StrCat("chip ", i % 10),
                            .row = i % 2 == 0 ? "even" : "odd & more",
                            .label = absl::StrCat("run ", i)});
  }
  return chart;
}

TEST(Charts, AreWellFormed) {
  for (const std::string& svg : {PredictedAgainstMeasuredSvg(SomeChart()), ResidualsSvg(SomeChart())}) {
    EXPECT_EQ(FaultOfXml(svg), "");
    EXPECT_TRUE(absl::StartsWith(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\""));
    EXPECT_TRUE(absl::StrContains(svg, "<title>Runs &lt;of&gt; &quot;A&amp;B&quot;</title>"));
    EXPECT_FALSE(absl::StrContains(svg, "nan"));
    EXPECT_FALSE(absl::StrContains(svg, "inf"));
  }
}

TEST(Charts, SayWhatTheyShow) {
  const std::string scatter = PredictedAgainstMeasuredSvg(SomeChart());
  EXPECT_TRUE(absl::StrContains(scatter, "Measured step time, seconds"));
  EXPECT_TRUE(absl::StrContains(scatter, "Predicted step time, seconds"));
  EXPECT_TRUE(absl::StrContains(scatter, "run 3: measured 0.04, predicted 0.044"));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(absl::StrContains(scatter, absl::StrCat(">chip ", i, "<"))) << i;
  // A mark per point and one per line of the legend.
  EXPECT_EQ(CountOf(scatter, "fill-opacity"), 12 + 10);
  const std::string strips = ResidualsSvg(SomeChart());
  EXPECT_TRUE(absl::StrContains(strips, ">even (6)<"));
  EXPECT_TRUE(absl::StrContains(strips, ">odd &amp; more (6)<"));
  EXPECT_EQ(CountOf(strips, "fill-opacity"), 12 + 10);
}

TEST(Charts, AreTheSameEveryTime) {
  EXPECT_EQ(PredictedAgainstMeasuredSvg(SomeChart()), PredictedAgainstMeasuredSvg(SomeChart()));
  EXPECT_EQ(ResidualsSvg(SomeChart()), ResidualsSvg(SomeChart()));
}

TEST(Charts, ExtremesStayInThePicture) {
  Chart chart = SomeChart();
  chart.points = {{.measured = 1e-6, .predicted = 1e6, .series = "a", .row = "b", .label = "far"}};
  for (const std::string& svg : {PredictedAgainstMeasuredSvg(chart), ResidualsSvg(chart)}) {
    EXPECT_EQ(FaultOfXml(svg), "");
    EXPECT_FALSE(absl::StrContains(svg, "nan"));
  }
  chart.points[0].predicted = chart.points[0].measured;
  EXPECT_FALSE(absl::StrContains(PredictedAgainstMeasuredSvg(chart), "nan"));
  EXPECT_FALSE(absl::StrContains(ResidualsSvg(chart), "nan"));
}

TEST(Charts, NothingWithoutPoints) {
  Chart chart = SomeChart();
  chart.points.clear();
  EXPECT_EQ(PredictedAgainstMeasuredSvg(chart), "");
  EXPECT_EQ(ResidualsSvg(chart), "");
}

}  // namespace
}  // namespace sliceplan::calibration
