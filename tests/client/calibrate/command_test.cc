#include "client/calibrate/command.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sliceplan::calibrate {
namespace {

using ::testing::HasSubstr;

struct Ran {
  int status;
  std::string out;
  std::string err;
};

Ran RunTool(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const int status = RunCommand(arguments, out, err);
  return {status, out.str(), err.str()};
}

TEST(Command, Help) {
  const Ran ran = RunTool({"--help"});
  EXPECT_EQ(ran.status, kDone);
  for (const char* word : {"errors", "fit", "accuracy", "plots", "--catalog_dir"})
    EXPECT_THAT(ran.out, HasSubstr(word));
  EXPECT_THAT(RunTool({"fit", "--help"}).out, HasSubstr("--leave-out"));
}

struct WrongUse {
  const char* name;
  std::vector<std::string> arguments;
  int status;
  const char* message;
};

TEST(Command, WrongUse) {
  const std::string broken = (std::filesystem::path(::testing::TempDir()) / "broken_table.csv").string();
  std::ofstream(broken) << "id,chips\nA-1\n";
  const WrongUse kCases[] = {
      {"nothing asked", {}, kUsageError, "subcommand"},
      {"unknown flag", {"errors", "--no-such"}, kUsageError, "--no-such"},
      {"no such file", {"errors", "--training", "no/such.csv"}, kUsageError, "no/such.csv: cannot be read"},
      {"a broken table", {"errors", "--training", broken}, kUsageError, "Line 2 has 1 fields"},
      {"no such catalog", {"errors", "--catalog-dir", "no/such"}, kUsageError, "no/such"},
      {"no such fold", {"fit", "--leave-out", "day"}, kUsageError, "--leave-out"},
      {"no such profile", {"fit", "--profile", "no-such"}, kUsageError, "no profile no-such"},
      {"nothing to fit", {"fit"}, kNothingToDo, "no scored row"},
  };
  for (const WrongUse& c : kCases) {
    const Ran ran = RunTool(c.arguments);
    EXPECT_EQ(ran.status, c.status) << c.name;
    EXPECT_THAT(ran.err, HasSubstr(c.message)) << c.name;
  }
  std::filesystem::remove(broken);
}

TEST(Command, NothingPredictedIsSaid) {
  EXPECT_EQ(RunTool({"errors"}).status, kNothingToDo);
  const Ran ran = RunTool({"accuracy"});
  EXPECT_EQ(ran.status, kNothingToDo);
  EXPECT_THAT(ran.out, HasSubstr("kind,name,accelerator,metric,standing,rows,mean_percent"));
}

}  // namespace
}  // namespace sliceplan::calibrate
