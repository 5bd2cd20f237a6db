// The command from its arguments to its streams and exit status, answering in process.
#include "client/cli/command.h"

#include <sstream>
#include <string>
#include <vector>

#include "client/cli/subcommands.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "proto/google/rpc/error_details.pb.h"
#include "proto/google/rpc/status.pb.h"
#include "proto/sliceplan/v1/catalog.pb.h"
#include "proto/sliceplan/v1/model_description.pb.h"
#include "proto/sliceplan/v1/sharding.pb.h"
#include "proto/sliceplan/v1/training.pb.h"

namespace sliceplan::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

struct Finished {
  int status = 0;
  std::string out;
  std::string err;
};

Finished RunWith(const std::vector<std::string>& arguments, const std::string& in = "") {
  std::istringstream input(in);
  std::ostringstream out;
  std::ostringstream err;
  const int status = RunCommand(arguments, {&input, &out, &err, Style()});
  return {status, out.str(), err.str()};
}

template <typename Message>
Message ReadJson(const std::string& json) {
  Message message;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &message).ok()) << json;
  return message;
}

TEST(CommandTest, HelpsEverywhere) {
  const Finished root = RunWith({"--help"});
  EXPECT_EQ(root.status, kAnswered);
  for (const char* word : {"train", "serve", "shard", "model", "op", "collective", "compare", "catalog", "call",
                           "version", "Exit status"}) {
    EXPECT_THAT(root.out, HasSubstr(word));
  }
  for (const Subcommand& subcommand : AllSubcommands()) {
    std::vector<std::string> arguments = {subcommand.name, "--help"};
    if (!subcommand.group.empty()) arguments.insert(arguments.begin(), subcommand.group);
    const Finished run = RunWith(arguments);
    EXPECT_EQ(run.status, kAnswered) << subcommand.name;
    EXPECT_THAT(run.out, HasSubstr(subcommand.description));
    EXPECT_THAT(run.out, HasSubstr(subcommand.examples));
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kMaxColumns + 10) << line;
  }
}

TEST(CommandTest, SaysWhatItCannotRead) {
  struct Case {
    std::vector<std::string> arguments;
    const char* message;
  };
  for (const Case& c : {
           Case{{"trian"}, "did you mean train"},
           Case{{"train", "--modle", "x"}, "'--modle' is not understood; did you mean --mode or --model?"},
           Case{{"train"}, "--model is missing"},
           Case{{"train", "--model"}, "--model"},
           Case{{"train", "--model", "m", "--slice", "c", "--format", "xml"}, "--format"},
           Case{{"train", "--model", "m", "--slice", "c", "--timeout", "soon"}, "--timeout"},
           Case{{"train", "--model", "m", "--slice", "c", "--remat", "half"}, "none of none, full"},
           Case{{"op"}, "subcommand"},
           Case{{"call"}, "method"},
           Case{{"call", "PlannerService/EstimateTrainin"}, "did you mean PlannerService/EstimateTraining"},
           Case{{"call", "PlannerService/EstimateTraining", "--request", "no/such/file"}, "cannot read the file"},
           Case{{"catalog", "models", "--catalog-dir", "no/such/directory"}, "no/such/directory"},
           Case{{"catalog", "models", "--server", "localhost:1", "--ca-file", "no/such/file"}, "no/such/file"},
       }) {
    const Finished run = RunWith(c.arguments);
    EXPECT_EQ(run.status, kUsageError) << c.message;
    EXPECT_THAT(run.err, HasSubstr(c.message));
    EXPECT_THAT(run.err, HasSubstr("--help"));
    EXPECT_THAT(run.out, IsEmpty());
  }
  EXPECT_EQ(RunWith({}).status, kUsageError);
}

TEST(CommandTest, HelpIsAlsoAWord) {
  EXPECT_EQ(RunWith({"help"}).out, RunWith({"--help"}).out);
  EXPECT_EQ(RunWith({"help", "train"}).out, RunWith({"train", "--help"}).out);
  EXPECT_EQ(RunWith({"help", "op", "matmul"}).out, RunWith({"op", "matmul", "--help"}).out);
  const Finished run = RunWith({"help", "trian"});
  EXPECT_EQ(run.status, kUsageError);
  EXPECT_THAT(run.err, HasSubstr("'trian' is not understood; did you mean train?"));
}

TEST(CommandTest, ErrorsNameFlagsAlsoInTheirSentences) {
  const Finished run = RunWith({"train", "--model", "llama-3-8b", "--slice", "v5p-64", "--deadline", "30d"});
  EXPECT_EQ(run.status, kServiceError);
  EXPECT_THAT(run.err, HasSubstr("--deadline (job_deadline_seconds)"));
  EXPECT_THAT(run.err, HasSubstr("--tokens"));
  EXPECT_THAT(run.err, Not(HasSubstr("workload.total_tokens")));
}

TEST(CommandTest, PrintsItsVersions) {
  EXPECT_THAT(RunWith({"--version"}).out, testing::ContainsRegex("^[0-9]+\\.[0-9]+\\.[0-9]+"));
  const Finished run = RunWith({"version"});
  EXPECT_EQ(run.status, kAnswered);
  EXPECT_THAT(run.out, HasSubstr("engine "));
  EXPECT_THAT(run.out, HasSubstr("catalog "));
}

// 70,553,706,496: the total of the safetensors files (examples/llama-3-70b/README.md).
TEST(CommandTest, DescribesAModel) {
  const Finished table = RunWith({"model", "llama-3-70b"});
  EXPECT_EQ(table.status, kAnswered) << table.err;
  EXPECT_THAT(table.out, HasSubstr("70,553,706,496 parameters"));
  const Finished json = RunWith({"model", "llama-3-70b", "--format=json"});
  EXPECT_EQ(ReadJson<v1::DescribeModelResponse>(json.out).parameters().total_count(), 70553706496);
  EXPECT_THAT(json.out, HasSubstr("\"totalCount\""));
}

TEST(CommandTest, CallsInEitherSpelling) {
  const std::string camel = R"({"model": {"preset": "llama-3-70b"}, "sequenceLength": 4096})";
  const std::string snake = R"({"model": {"preset": "llama-3-70b"}, "sequence_length": 4096})";
  const Finished first = RunWith({"call", "AnalysisService/DescribeModel", "--request=-"}, camel);
  const Finished second = RunWith({"call", "sliceplan.v1.AnalysisService/DescribeModel", "--request=-"}, snake);
  const Finished third = RunWith({"call", "/sliceplan.v1.AnalysisService/DescribeModel", "--request", "-"}, snake);
  EXPECT_EQ(first.status, kAnswered) << first.err;
  EXPECT_EQ(first.out, second.out);
  EXPECT_EQ(first.out, third.out);
  EXPECT_EQ(ReadJson<v1::DescribeModelResponse>(first.out).sequence_length(), 4096);
  EXPECT_THAT(first.out, HasSubstr("\"kvCache\""));
  EXPECT_THAT(first.err, IsEmpty());
}

TEST(CommandTest, CallsWithoutARequest) {
  const Finished run = RunWith({"call", "CatalogService/ListAccelerators"});
  EXPECT_EQ(run.status, kAnswered) << run.err;
  EXPECT_GT(ReadJson<v1::ListAcceleratorsResponse>(run.out).total_count(), 0);
}

TEST(CommandTest, PrintsErrorsOfCallsAsJson) {
  const Finished run = RunWith({"call", "PlannerService/EstimateTraining", "--request=-"},
                               R"({"model": {"preset": "no-such-model"}, "slice": {"acceleratorType": "v5p-8"},
                              "workload": {"sequenceLength": -1}, "assumedMfuRatio": 2})");
  EXPECT_EQ(run.status, kServiceError);
  EXPECT_THAT(run.out, IsEmpty());
  const auto status = ReadJson<google::rpc::Status>(run.err);
  EXPECT_EQ(status.code(), 3);
  google::rpc::BadRequest bad_request;
  google::rpc::ErrorInfo info;
  bool has_bad_request = false;
  bool has_info = false;
  for (const auto& detail : status.details()) {
    has_bad_request = detail.UnpackTo(&bad_request) || has_bad_request;
    has_info = detail.UnpackTo(&info) || has_info;
  }
  ASSERT_TRUE(has_bad_request);
  ASSERT_TRUE(has_info);
  std::vector<std::string> fields;
  for (const auto& violation : bad_request.field_violations()) fields.push_back(violation.field());
  EXPECT_THAT(fields, testing::IsSupersetOf({"workload.sequence_length", "assumed_mfu_ratio"}));
}

TEST(CommandTest, PrintsJsonErrorsOfOtherSubcommandsWhenAsked) {
  const Finished run = RunWith({"model", "no-such-model", "--format=json"});
  EXPECT_EQ(run.status, kServiceError);
  EXPECT_EQ(ReadJson<google::rpc::Status>(run.err).code(), 5);
}

TEST(CommandTest, NamesTheFlagsOfErrors) {
  const Finished run =
      RunWith({"train", "--model", "llama-3-8b", "--slice", "v5p-8", "--sequence", "0", "--assumed-mfu", "2"});
  EXPECT_EQ(run.status, kServiceError);
  EXPECT_THAT(run.err, StartsWith("sliceplan train: the request was refused (INVALID_ARGUMENT)\n"));
  EXPECT_THAT(run.err, HasSubstr("--sequence (workload.sequence_length): "));
  EXPECT_THAT(run.err, HasSubstr("--assumed-mfu (assumed_mfu_ratio): "));
}

TEST(CommandTest, PassesOnWhatComesLater) {
  const Finished run = RunWith({"compare", "x"});
  EXPECT_EQ(run.status, kServiceError);
  EXPECT_THAT(run.err, HasSubstr("later release"));
  EXPECT_THAT(run.err, HasSubstr("UNIMPLEMENTED"));
}

TEST(CommandTest, ServesInThreeFormats) {
  const std::vector<std::string> question = {"serve",       "--model",       "llama-3-70b", "--slice",
                                             "tpu-v5e:4x4", "--weights",     "int8",        "--batch",
                                             "8",           "--parallelism", "tensor=16"};
  const Finished table = RunWith(question);
  EXPECT_EQ(table.status, kAnswered) << table.err;
  EXPECT_THAT(table.out, HasSubstr("serving llama-3-70b on tpu-v5e 4x4 (16 chips)"));
  for (const auto& [format, start] : {std::pair{"json", "{\n \"estimate\": {"}, {"csv", "batch_size,parallelism,"}}) {
    std::vector<std::string> other = question;
    other.insert(other.end(), {"--format", format});
    EXPECT_THAT(RunWith(other).out, StartsWith(start));
  }
  EXPECT_EQ(RunWith({"train", "--model", "gpt2", "--slice", "v5p-8", "--format", "csv"}).status, kUsageError);
}

TEST(CommandTest, ProposesWaysToServe) {
  const std::vector<std::string> question = {"shard",    "--serve", "--model", "llama-3-8b", "--prompt", "1000",
                                             "--output", "200",     "--rate",  "5",          "--slice",  "v5e:2x4"};
  const auto with = [&question](std::vector<std::string> more) {
    more.insert(more.begin(), question.begin(), question.end());
    return RunWith(more);
  };
  const Finished table = with({});
  EXPECT_EQ(table.status, kAnswered) << table.err;
  EXPECT_THAT(table.out, StartsWith("Serving llama-3-8b: the best of 1 slice, cheapest per hour first\n"));
  const Finished json = with({"--format=json"});
  EXPECT_TRUE(ReadJson<v1::ProposeShardingResponse>(json.out).proposals(0).has_serving());
  const Finished unwritten = with({"--emit", "jax"});
  EXPECT_EQ(unwritten.status, kServiceError);
  EXPECT_THAT(unwritten.out, IsEmpty());
  EXPECT_THAT(unwritten.err, HasSubstr("plans of serving are written for vLLM, GKE and Kueue"));
  EXPECT_EQ(with({"--tokens", "1T"}).status, kUsageError);
}

TEST(CommandTest, ProposesPlans) {
  const std::vector<std::string> question = {"shard",   "--model",       "llama-3-8b", "--sequence", "4096",
                                             "--slice", "tpu-v5p:4x4x4", "--slice",    "v5e:8x8"};
  const auto with = [&question](std::vector<std::string> more) {
    more.insert(more.begin(), question.begin(), question.end());
    return RunWith(more);
  };
  const Finished table = with({});
  EXPECT_EQ(table.status, kAnswered) << table.err;
  EXPECT_THAT(table.out, StartsWith("Training llama-3-8b: the best of 2 slices, shortest step first\n"));
  EXPECT_THAT(table.out, HasSubstr("proven best"));
  const Finished json = with({"--top", "2", "--format=json"});
  EXPECT_EQ(ReadJson<v1::ProposeShardingResponse>(json.out).proposals_size(), 2);
  const Finished text = with({"--emit", "jax"});
  EXPECT_EQ(text.status, kAnswered) << text.err;
  EXPECT_THAT(text.out, HasSubstr("import jax"));
  EXPECT_THAT(text.out, Not(HasSubstr("shortest step first")));
  const Finished unwritten = with({"--emit", "vllm"});
  EXPECT_EQ(unwritten.status, kServiceError);
  EXPECT_THAT(unwritten.out, IsEmpty());
  EXPECT_THAT(unwritten.err, HasSubstr("vLLM"));
}

TEST(CommandTest, ReportsServersThatCannotBeReached) {
  // Port 1 is reserved and nobody listens there.
  const Finished run = RunWith({"catalog", "models", "--server", "127.0.0.1:1", "--timeout", "5s"});
  EXPECT_EQ(run.status, kServiceError);
  EXPECT_THAT(run.err, HasSubstr("UNAVAILABLE"));
}

TEST(CommandTest, AnswersEverySubcommand) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"train", "--model", "llama-3-8b", "--slice", "v5p-128", "--parallelism", "fsdp=64", "--batch-tokens", "1M",
            "--tokens", "1T"},
           {"train", "--model", "llama-3-8b", "--slice", "h100:64", "--mode", "roofline"},
           {"op", "matmul", "--m", "64", "--k", "8192", "--n", "28672", "--slice", "tpu-v5e"},
           {"op", "attention", "--query-length", "8192", "--key-length", "8192", "--heads", "64", "--kv-heads", "8",
            "--head-dim", "128", "--slice", "tpu-v5p"},
           {"op", "elementwise", "--elements", "64Mi", "--inputs", "2", "--slice", "h100"},
           {"collective", "all-gather", "--bytes", "64Mi", "--slice", "tpu-v5p:8x8x8", "--axes", "0,1"},
           {"catalog", "accelerators"},
           {"catalog", "slices", "--filter", "accelerator=\"tpu-v5p\" AND chip_count<=64"},
           {"catalog", "prices", "--page-size", "5"},
           {"catalog", "models", "--filter", "name:llama"}}) {
    const Finished run = RunWith(arguments);
    EXPECT_EQ(run.status, kAnswered) << arguments[0] << " " << arguments[1] << ": " << run.err;
    EXPECT_THAT(run.out, HasSubstr("catalog ")) << arguments[0];
    EXPECT_THAT(run.out, Not(HasSubstr("nan"))) << arguments[0];
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kMaxColumns) << line;
  }
}

TEST(CommandTest, SaysHowTheBatchWasRead) {
  const Finished run =
      RunWith({"train", "--model", "llama-3-8b", "--slice", "v5p-128", "--batch-tokens", "4M", "--sequence", "4096"});
  EXPECT_THAT(run.out, HasSubstr("4M read as 4 x 2^20 = 4,194,304 tokens"));
}

}  // namespace
}  // namespace sliceplan::cli
