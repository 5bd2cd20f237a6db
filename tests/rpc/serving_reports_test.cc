// Questions that people asked in public about serving, caches and memory, and the logs of engines, answered through the
// handlers.
#include <cctype>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/rpc/testing.h"

namespace sliceplan::rpc {
namespace {

using nlohmann::json;

std::vector<json> ReadReports(bool explained) {
  std::ifstream stream(std::string(SLICEPLAN_TEST_DATA_DIR) + "/serving_reports.jsonl");
  EXPECT_TRUE(stream.good());
  std::vector<json> reports;
  for (std::string line; std::getline(stream, line);) {
    json report = json::parse(line);
    if (report.contains("explained") == explained) reports.push_back(std::move(report));
  }
  return reports;
}

// "estimate.pools.0.memory.weightsBytes"; a number, also where JSON writes it as text. Absent: NAN.
double FigureOf(const json& reply, const std::string& path) {
  const json* value = &reply;
  for (const absl::string_view part : absl::StrSplit(path, '.')) {
    const std::string step(part);
    size_t index = 0;
    if (value->is_array() && absl::SimpleAtoi(step, &index) && index < value->size()) {
      value = &(*value)[index];
    } else if (value->is_object() && value->contains(step)) {
      value = &(*value)[step];
    } else {
      return NAN;
    }
  }
  double number = NAN;
  if (value->is_number()) return value->get<double>();
  if (value->is_string() && !absl::SimpleAtod(value->get<std::string>(), &number)) return NAN;
  return number;
}

class ServingReportTest : public testing::TestWithParam<json> {};

TEST_P(ServingReportTest, IsAnswered) {
  const json& report = GetParam();
  const std::string source = report.at("source");
  const Method* const method = TestMethods().Find(report.at("method").get<std::string>());
  ASSERT_NE(method, nullptr) << source;
  std::string text;
  const Result result = CallWithJson(*method, report.at("question").dump(), &text, CallContext());
  // The legal form of a request that is refused is part of the refusal.
  if (!result.ok()) text = result.status().ShortDebugString();
  EXPECT_EQ(result.ok(), !report.value("refused", false)) << source << "\n" << text;
  for (const json& words : report.value("words", json::array())) {
    EXPECT_TRUE(absl::StrContains(text, words.get<std::string>())) << source << "\n" << words << " is not in\n" << text;
  }
  if (!result.ok()) return;
  const json reply = json::parse(text);
  for (const json& expected : report.value("expected", json::array())) {
    const std::string figure = expected.at("figure");
    const double value = expected.at("value").get<double>();
    EXPECT_NEAR(FigureOf(reply, figure), value, value * expected.at("tolerance").get<double>())
        << source << " " << figure;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ServingReportTest, testing::ValuesIn(ReadReports(/*explained=*/false)),
                         [](const testing::TestParamInfo<json>& info) {
                           std::string name = absl::StrCat(info.param.at("id").get<std::string>(), "_", info.index);
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

// What cannot come out of a plan is listed with the reason, and nothing is both.
TEST(ServingReportsTest, OthersAreExplained) {
  const std::vector<json> explained = ReadReports(/*explained=*/true);
  EXPECT_EQ(explained.size(), 24);
  for (const json& report : explained) {
    EXPECT_FALSE(report.contains("question")) << report;
    EXPECT_GT(report.at("explained").get<std::string>().size(), 20) << report;
    EXPECT_TRUE(report.contains("source")) << report;
  }
}

}  // namespace
}  // namespace sliceplan::rpc
