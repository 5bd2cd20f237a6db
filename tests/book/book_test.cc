// Every worked case of the book, put to the engine. Each id is answered, or listed as a fact, or as pending: never two.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/book/book_case.h"

namespace sliceplan::book {
namespace {

constexpr size_t kCaseCount = 254;

const std::vector<Answers>& Chapters() {
  static const std::vector<Answers> chapters = {
      RooflineAnswers(),        TpuAnswers(),       ShardingAnswers(),         TransformerAnswers(), TrainingAnswers(),
      AppliedTrainingAnswers(), InferenceAnswers(), AppliedInferenceAnswers(), ProfilingAnswers(),   GpuAnswers(),
      GpuNetworkAnswers()};
  return chapters;
}

const Answers& AllAnswers() {
  static const Answers all = [] {
    Answers merged;
    for (const Answers& chapter : Chapters()) merged.insert(chapter.begin(), chapter.end());
    return merged;
  }();
  return all;
}

void ExpectSame(const std::string& key, const Json& expected, const Json& actual, double tolerance) {
  if (expected.is_array()) {
    ASSERT_TRUE(actual.is_array()) << key;
    ASSERT_EQ(actual.size(), expected.size()) << key;
    for (size_t i = 0; i < expected.size(); ++i) {
      ExpectSame(key + "[" + std::to_string(i) + "]", expected[i], actual[i], tolerance);
    }
  } else if (expected.is_number()) {
    ASSERT_TRUE(actual.is_number()) << key << " is " << actual;
    const double wanted = expected.get<double>();
    const double found = actual.get<double>();
    EXPECT_TRUE(std::isfinite(found)) << key;
    // The cases print seven digits.
    constexpr double kPrinted = 1e-6;
    EXPECT_NEAR(found, wanted, std::abs(wanted) * std::max(tolerance, kPrinted)) << key;
  } else {
    EXPECT_EQ(actual, expected) << key;
  }
}

class BookTest : public testing::TestWithParam<BookCase> {};

TEST_P(BookTest, EngineAgrees) {
  const BookCase& book_case = GetParam();
  const Json actual = AllAnswers().at(book_case.id)(book_case.given);
  std::set<std::string> expected_keys;
  for (const auto& [key, value] : book_case.expect.items()) {
    expected_keys.insert(key);
    ASSERT_TRUE(actual.contains(key)) << "no answer for " << key;
    ExpectSame(key, value, actual.at(key), book_case.tolerance);
  }
  for (const auto& [key, value] : actual.items()) EXPECT_THAT(expected_keys, testing::Contains(key)) << "not asked";
}

std::vector<BookCase> AnsweredCases() {
  std::vector<BookCase> cases;
  for (const BookCase& book_case : AllCases()) {
    if (AllAnswers().count(book_case.id) != 0) cases.push_back(book_case);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Chapters, BookTest, testing::ValuesIn(AnsweredCases()),
                         [](const testing::TestParamInfo<BookCase>& info) {
                           std::string name = info.param.id;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

TEST(BookAccountTest, EveryCaseIsInExactlyOneList) {
  ASSERT_EQ(AllCases().size(), kCaseCount);
  std::set<std::string> ids;
  for (const BookCase& book_case : AllCases()) {
    EXPECT_TRUE(ids.insert(book_case.id).second) << book_case.id << " is there twice";
    const size_t lists = AllAnswers().count(book_case.id) + Facts().count(book_case.id) + Pending().count(book_case.id);
    EXPECT_EQ(lists, 1U) << book_case.id;
  }
  size_t answers = 0;
  for (const Answers& chapter : Chapters()) answers += chapter.size();
  EXPECT_EQ(answers, AllAnswers().size()) << "two chapters answer one case";
  for (const auto& [id, answer] : AllAnswers()) EXPECT_THAT(ids, testing::Contains(id));
  for (const auto& [id, reason] : Facts()) {
    EXPECT_THAT(ids, testing::Contains(id));
    EXPECT_FALSE(reason.empty()) << id;
  }
  for (const auto& [id, issue] : Pending()) EXPECT_THAT(ids, testing::Contains(id));
  EXPECT_EQ(AllAnswers().size() + Facts().size() + Pending().size(), kCaseCount);
}

}  // namespace
}  // namespace sliceplan::book
