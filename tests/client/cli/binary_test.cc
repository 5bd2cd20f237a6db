// The program itself: exit status, which stream, and how fast it starts.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "proto/google/rpc/error_details.pb.h"
#include "proto/google/rpc/status.pb.h"
#include "proto/sliceplan/v1/training.pb.h"

namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Finished {
  int status = -1;
  std::string out;
  std::string err;
};

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Runs `sliceplan <arguments>` through a shell in the directory of examples: lines break where a checkout's path does
// not move them.
Finished RunProgram(const std::string& arguments) {
  const std::string errors = absl::StrCat(testing::TempDir(), "/sliceplan_binary_test.", getpid(), ".err");
  Finished run;
  FILE* const pipe = popen(
      absl::StrCat("cd \"" SLICEPLAN_EXAMPLES_DIR "\" && \"" SLICEPLAN_COMMAND "\" ", arguments, " 2>\"", errors, "\"")
          .c_str(),
      "r");
  if (pipe == nullptr) return run;
  std::array<char, 4096> buffer;
  for (size_t read = 0; (read = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) run.out.append(buffer.data(), read);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) run.status = WEXITSTATUS(status);
  run.err = ReadAll(errors);
  std::remove(errors.c_str());
  return run;
}

constexpr char kExample[] =
    "train --model llama-3-70b/config.json --slice tpu-v5p:16x16x16 --slices 2 --batch-tokens 4M --sequence 4096 "
    "--tokens 15T"
    " --parallelism fsdp=512,context=2,tensor=4,dcn.data=2";

TEST(BinaryTest, AnswersTheExampleOfMakeRun) {
  const auto start = std::chrono::steady_clock::now();
  const Finished run = RunProgram(absl::StrCat(kExample, " --format=json"));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, IsEmpty());
  sliceplan::v1::EstimateTrainingResponse response;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(run.out, &response).ok()) << run.out;
  EXPECT_EQ(response.estimate().outcome(), sliceplan::v1::OUTCOME_FEASIBLE);
  EXPECT_EQ(response.estimate().chip_count(), 8192);
  EXPECT_EQ(response.estimate().tokens_per_step(), 4 << 20);
  // A person does not notice half a second; ten times that allows for sanitizers and a busy machine.
  EXPECT_LT(seconds.count(), 5);
}

TEST(BinaryTest, PrintsNoColoursIntoAPipe) {
  const Finished run = RunProgram(kExample);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, testing::Not(HasSubstr("\033")));
  EXPECT_THAT(run.out, HasSubstr("2 x tpu-v5p 16x16x16 (8,192 chips)"));
}

TEST(BinaryTest, CallsFromStandardInput) {
  const Finished run = RunProgram("call PlannerService/EstimateTraining --request=- </dev/null");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.out, IsEmpty());
  // The details are packed: their types must be linked.
  ASSERT_NE(google::rpc::BadRequest::descriptor(), nullptr);
  google::rpc::Status status;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(run.err, &status).ok()) << run.err;
  EXPECT_EQ(status.code(), 3);
}

TEST(BinaryTest, UsageErrorsAreOne) {
  EXPECT_EQ(RunProgram("train --no-such-flag").status, 1);
  EXPECT_EQ(RunProgram("").status, 1);
  EXPECT_EQ(RunProgram("--help").status, 0);
}

}  // namespace
