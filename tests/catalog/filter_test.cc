#include "server/catalog/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace sliceplan::catalog {
namespace {

using testing::HasSubstr;

// One record: chip_count 64, topology "4x4x4", multi_host true, regions us-east5 and europe-west4, nothing in `note`.
void Read(absl::string_view path, absl::FunctionRef<void(const FieldValue&)> value) {
  if (path == "chip_count") value(64.0);
  if (path == "topology") value(absl::string_view("4x4x4"));
  if (path == "accelerator") value(absl::string_view("tpu-v5p"));
  if (path == "multi_host") value(true);
  if (path == "as_of") value(absl::string_view("2026-08-22"));
  if (path == "spec.hbm_bytes") value(1e11);
  if (path == "empty") value(absl::string_view(""));
  if (path == "regions") {
    value(absl::string_view("us-east5"));
    value(absl::string_view("europe-west4"));
  }
}

struct MatchCase {
  const char* text;
  bool matches;
};

class FilterMatchTest : public testing::TestWithParam<MatchCase> {};

TEST_P(FilterMatchTest, Matches) {
  const absl::StatusOr<Filter> filter = Filter::Parse(GetParam().text);
  ASSERT_TRUE(filter.ok()) << filter.status();
  EXPECT_EQ(filter->Matches(Read), GetParam().matches) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Texts, FilterMatchTest,
    testing::Values(
        MatchCase{"", true}, MatchCase{"  ", true}, MatchCase{"accelerator=\"tpu-v5p\" AND topology=\"4x4x4\"", true},
        MatchCase{"accelerator='tpu-v5p'", true}, MatchCase{"accelerator = TPU-V5P", true},
        MatchCase{"accelerator!=\"tpu-v5p\"", false}, MatchCase{"accelerator=\"tpu-*\"", true},
        MatchCase{"accelerator=\"*5*\"", true}, MatchCase{"accelerator=\"*5\"", false},
        MatchCase{"accelerator!=tpu-*", false}, MatchCase{"accelerator:v5", true}, MatchCase{"accelerator:v6", false},
        MatchCase{"chip_count=64", true}, MatchCase{"chip_count=64.0", true}, MatchCase{"chip_count!=64", false},
        MatchCase{"chip_count<64", false}, MatchCase{"chip_count<=64", true}, MatchCase{"chip_count>63.5", true},
        MatchCase{"chip_count>=65", false}, MatchCase{"chip_count > -1", true},
        MatchCase{"spec.hbm_bytes >= 1e11", true}, MatchCase{"multi_host=true", true},
        MatchCase{"multi_host=false", false}, MatchCase{"multi_host!=false", true}, MatchCase{"as_of>=2026-08", true},
        MatchCase{"as_of<\"2026-08-22\"", false},
        // AIP-160: OR binds tighter than AND.
        MatchCase{"chip_count=1 AND chip_count=64 OR chip_count=64", false},
        MatchCase{"chip_count=64 OR chip_count=1 AND multi_host=true", true},
        MatchCase{"(chip_count=1 AND chip_count=2) OR chip_count=64", true},
        MatchCase{"chip_count=64 multi_host=false", false}, MatchCase{"chip_count=64 multi_host=true", true},
        MatchCase{"NOT chip_count=64", false}, MatchCase{"-chip_count=1", true},
        MatchCase{"NOT (chip_count=1 OR chip_count=2)", true}, MatchCase{"regions=\"europe-west4\"", true},
        MatchCase{"regions:us-east5", true}, MatchCase{"regions!=us-east5", false},
        MatchCase{"regions!=us-east1", true},
        // A field that is not set.
        MatchCase{"note=\"\"", false}, MatchCase{"note!=x", true}, MatchCase{"note:*", false},
        MatchCase{"NOT note:*", true}, MatchCase{"topology:*", true}, MatchCase{"empty:*", false},
        MatchCase{"empty=\"\"", true}, MatchCase{"regions:*", true}, MatchCase{"topology=\"4x4\\x4\"", true},
        MatchCase{"topology=\"a\\\"b\"", false},
        // A name that begins like a keyword is a name.
        MatchCase{"ANDROID!=1", true}));

class FilterSyntaxTest : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(FilterSyntaxTest, SaysWhatIsWrongAndWhere) {
  const absl::StatusOr<Filter> filter = Filter::Parse(GetParam().first);
  EXPECT_EQ(filter.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(filter.status().message()), HasSubstr(GetParam().second)) << GetParam().first;
}

using Syntax = std::pair<const char*, const char*>;
INSTANTIATE_TEST_SUITE_P(
    Texts, FilterSyntaxTest,
    testing::Values(Syntax{"chip_count", "character 11: expected =, !="},
                    Syntax{"chip_count=", "character 12: expected a value"},
                    Syntax{"=4", "character 1: expected a field"}, Syntax{"a=1 AND", "character 8: expected a field"},
                    Syntax{"AND a=1", "character 1: expected a field before AND"},
                    Syntax{"a=1 OR OR b=2", "expected a field before OR"}, Syntax{"(a=1", "character 5: expected )"},
                    Syntax{"a=1)", "character 4: expected the end"}, Syntax{"()", "expected a field"},
                    Syntax{"a=\"x", "the text is not closed"}, Syntax{"a='x\\", "the text is not closed"},
                    Syntax{"a==1", "expected a value"}, Syntax{"a=1, b=2", "expected a field"},
                    Syntax{"NOT", "expected a field"}, Syntax{"a ! b", "expected =, !="}));

TEST(FilterLimitsTest, Bounded) {
  EXPECT_TRUE(Filter::Parse(absl::StrCat("a=", std::string(kMaxFilterLength - 2, 'x'))).ok());
  EXPECT_FALSE(Filter::Parse(absl::StrCat("a=", std::string(kMaxFilterLength - 1, 'x'))).ok());
  const auto nested = [](size_t depth) {
    return absl::StrCat(std::string(depth, '('), "a=1", std::string(depth, ')'));
  };
  EXPECT_TRUE(Filter::Parse(nested(kMaxFilterDepth)).ok());
  EXPECT_FALSE(Filter::Parse(nested(kMaxFilterDepth + 1)).ok());
  std::string terms;
  for (size_t i = 0; i < kMaxFilterTerms; ++i) terms += "a=1 ";
  EXPECT_TRUE(Filter::Parse(terms).ok());
  EXPECT_FALSE(Filter::Parse(terms + "a=1").ok());
}

TEST(FilterCheckTest, FieldsAndTypes) {
  const auto check = [](absl::string_view text) {
    return Filter::Parse(text)->Check([](absl::string_view path, absl::string_view) -> absl::StatusOr<FieldType> {
      if (path == "chip_count") return FieldType::kNumber;
      if (path == "multi_host") return FieldType::kBool;
      if (path == "topology") return FieldType::kText;
      return absl::InvalidArgumentError(absl::StrCat("no field ", path));
    });
  };
  for (const char* text :
       {"", "chip_count>=4", "multi_host=true", "topology=4", "chip_count:* OR multi_host:*", "topology<\"4x4\""}) {
    EXPECT_TRUE(check(text).ok()) << text << ": " << check(text);
  }
  for (const char* text : {"chip_count=many", "chip_count=\"4\"", "multi_host=1", "multi_host>false",
                           "topology=a AND (chip_count=1 OR NOT other=1)"}) {
    EXPECT_EQ(check(text).code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

// Every prefix and every single changed character of a filter parses or is refused: nothing else happens.
TEST(FilterFuzzTest, NoInputCrashes) {
  const std::string text = "accelerator=\"tpu-v5p\" AND (chip_count>=64 OR topology:'2x2x1') AND NOT multi_host!=true";
  for (size_t i = 0; i <= text.size(); ++i) {
    if (const auto filter = Filter::Parse(text.substr(0, i)); filter.ok()) filter->Matches(Read);
    for (char c : {'(', ')', '"', '\'', '\\', '=', '-', '*', '\0', '\xff'}) {
      std::string changed = text;
      if (i < text.size()) changed[i] = c;
      if (const auto filter = Filter::Parse(changed); filter.ok()) filter->Matches(Read);
    }
  }
  EXPECT_TRUE(Filter::Parse(text).ok());
}

TEST(FilterPatternTest, ManyStarsStayFast) {
  const std::string pattern = absl::StrCat("topology=\"", std::string(1000, '*'), "z\"");
  EXPECT_FALSE(Filter::Parse(pattern)->Matches(Read));
}

}  // namespace
}  // namespace sliceplan::catalog
