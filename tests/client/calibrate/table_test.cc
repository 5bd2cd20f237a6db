#include "client/calibrate/table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sliceplan::calibrate {
namespace {

using ::testing::HasSubstr;

TEST(Table, FieldsByColumn) {
  const absl::StatusOr<Table> table = Table::Parse(
      "# a remark before the header\n"
      "id, chips ,notes\n"
      "A-1, 16 ,\"one, two\"\n"
      "# a remark between rows\n"
      "A-2,1e3,\"says \"\"no\"\"\"\n");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->rows().size(), 2U);
  const Row& first = table->rows()[0];
  EXPECT_EQ(first.Text("id"), "A-1");
  EXPECT_EQ(first.Count("chips"), 16);
  EXPECT_EQ(first.Text("notes"), "one, two");
  EXPECT_EQ(first.Text("no such column"), "");
  EXPECT_FALSE(first.Number("no such column").has_value());
  EXPECT_EQ(table->rows()[1].Number("chips"), 1000);
  EXPECT_EQ(table->rows()[1].Text("notes"), "says \"no\"");
  EXPECT_TRUE(table->Has("chips"));
  EXPECT_FALSE(table->Has("chip"));
}

TEST(Table, LinesAreThoseOfTheFile) {
  const absl::StatusOr<Table> table = Table::Parse(
      "# don't \"quote\n"
      "a,b\n"
      "\n"
      "1,\"two\n"
      "# lines\"\n"
      "# a remark\n"
      "3,4");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->rows().size(), 2U);
  EXPECT_EQ(table->rows()[0].line(), 4U);
  EXPECT_EQ(table->rows()[0].Text("b"), "two\n# lines");
  EXPECT_EQ(table->rows()[1].line(), 7U);
  EXPECT_EQ(table->rows()[1].Count("b"), 4);
}

TEST(Table, ALineMayEndInCarriageReturns) {
  const absl::StatusOr<Table> table = Table::Parse("a,b\r\n1,2\r\n");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->rows().at(0).Count("b"), 2);
}

TEST(Row, NumbersThatAreNone) {
  const absl::StatusOr<Table> table = Table::Parse("a,b,c,d,e\n1.5,nan,inf,x,\n");
  ASSERT_TRUE(table.ok());
  const Row& row = table->rows()[0];
  EXPECT_EQ(row.Number("a"), 1.5);
  EXPECT_FALSE(row.Count("a").has_value());
  for (const char* column : {"b", "c", "d", "e"}) EXPECT_FALSE(row.Number(column).has_value()) << column;
}

TEST(Row, Tokens) {
  const absl::StatusOr<Table> table = Table::Parse("notes\nconv=6N; peak_tflops = 989 ;flag;eq=a=b\n");
  ASSERT_TRUE(table.ok());
  const Row& row = table->rows()[0];
  EXPECT_EQ(row.Token("notes", "conv"), "6N");
  EXPECT_EQ(row.Token("notes", "peak_tflops"), "989");
  EXPECT_EQ(row.Token("notes", "flag"), "");
  EXPECT_EQ(row.Token("notes", "eq"), "a=b");
  EXPECT_FALSE(row.Token("notes", "con").has_value());
}

struct BrokenTable {
  const char* name;
  const char* text;
  const char* message;
};

TEST(Table, Broken) {
  const BrokenTable kCases[] = {
      {"empty", "", "no header"},
      {"remarks alone", "# nothing\n", "no header"},
      {"a column twice", "a,b,a\n1,2,3\n", "column a is there twice"},
      {"too few fields", "a,b\n1,2\n3\n", "Line 3 has 1 fields, the header 2"},
      {"too many fields", "a,b\n# remark\n1,2,3\n", "Line 3 has 3 fields, the header 2"},
      {"an open quote", "a,b\n1,\"2\n3,4\n", "Line 2: a quote that opens here is never closed"},
      {"a quote within", "a,b\n1,\"2\n3,\"4\"\n", "Line 2: at line 3 a quote is neither doubled"},
  };
  for (const BrokenTable& c : kCases) {
    const absl::StatusOr<Table> table = Table::Parse(c.text);
    ASSERT_FALSE(table.ok()) << c.name;
    EXPECT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument) << c.name;
    EXPECT_THAT(std::string(table.status().message()), HasSubstr(c.message)) << c.name;
  }
}

}  // namespace
}  // namespace sliceplan::calibrate
