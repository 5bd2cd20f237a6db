// What a server notes, and the command that asks it again.
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/backend.h"
#include "client/cli/command.h"
#include "client/cli/replay.h"
#include "client/sliceplan/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/server.h"
#include "tests/rpc/files.h"
#include "tests/rpc/testing.h"

namespace sliceplan::rpc {
namespace {

using ::testing::HasSubstr;

class NoSink : public LogSink {
 public:
  void Write(absl::string_view, bool) override {}
};

struct Finished {
  int status = 0;
  std::string out;
  std::string err;
};

Finished RunCommand(const std::vector<std::string>& arguments, const std::string& in = "") {
  std::istringstream input(in);
  std::ostringstream out, err;
  const int status = cli::RunCommand(arguments, {&input, &out, &err, cli::Style()});
  return {status, out.str(), err.str()};
}

class ReplayTest : public testing::Test {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.port = 0;
    options.request_log.path = path_;
    auto started = Server::Start(options, &TestMethods(), &log_);
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    ClientOptions client_options;
    client_options.target = absl::StrCat("localhost:", server_->port());
    client_options.security = TransportSecurity::kPlaintext;
    const auto client = Client::Create(client_options);
    ASSERT_TRUE(client.ok());
    EXPECT_TRUE(client->DescribeModel(FromText<v1::DescribeModelRequest>("model { preset: 'llama-3-8b' }")).ok());
    EXPECT_FALSE(client->DescribeModel(FromText<v1::DescribeModelRequest>("model { preset: 'no-model' }")).ok());
    EXPECT_TRUE(client->ListPrices(v1::ListPricesRequest()).ok());
    EXPECT_TRUE(client
                    ->ProposeSharding(FromText<v1::ProposeShardingRequest>(
                        "model { preset: 'llama-3-8b' } slices { slices { accelerator_type: 'v5p-128' } }"))
                    .ok());
  }
  // The log once the server has ended.
  std::string EndOfLog() {
    server_.reset();
    return ReadFile(path_);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.Path("requests");
  NoSink sink_;
  const JsonLog log_{&sink_, Severity::kError};
  std::unique_ptr<Server> server_;
};

TEST_F(ReplayTest, RepliesAreTheSameInThisProcessAndOfAnotherServer) {
  EndOfLog();
  ServerOptions options;
  options.port = 0;
  const auto other = Server::Start(options, &TestMethods(), &log_);
  ASSERT_TRUE(other.ok()) << other.status();
  const std::string address = absl::StrCat("localhost:", (*other)->port());
  for (const std::vector<std::string>& where : {std::vector<std::string>{}, {"--server", address}}) {
    std::vector<std::string> arguments = {"replay", path_};
    arguments.insert(arguments.end(), where.begin(), where.end());
    const Finished run = RunCommand(arguments);
    EXPECT_EQ(run.status, cli::kAnswered) << run.out << run.err;
    for (const char* words : {"EQUAL", "4 calls replayed", "sliceplan.v1.PlannerService/ProposeSharding"}) {
      EXPECT_THAT(run.out, HasSubstr(words));
    }
  }
}

// Answers what the log says, and writes the call into the same file, as the server does that is asked again.
class WritingBackend : public cli::Backend {
 public:
  WritingBackend(std::string path, std::string line) : path_(std::move(path)), line_(std::move(line)) {}

  google::rpc::Status Call(const std::string&, const google::protobuf::Message&, google::protobuf::Message*) override {
    ++calls_;
    std::ofstream(path_, std::ios::app) << line_ << '\n';
    google::rpc::Status status;
    status.set_code(calls_ > 100 ? static_cast<int>(absl::StatusCode::kInternal) : 0);
    return status;
  }
  int calls() const { return calls_; }

 private:
  const std::string path_, line_;
  int calls_ = 0;
};

TEST_F(ReplayTest, ALogThatGrowsMeanwhileIsReadToTheEndThatItHad) {
  const std::string log = EndOfLog();
  const std::vector<std::string> lines = absl::StrSplit(log, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4u);
  WritingBackend backend(path_, lines[0]);
  std::ifstream file(path_);
  const cli::ReplayResult result = cli::Replay(file, backend);
  EXPECT_EQ(backend.calls(), 4);
  EXPECT_EQ(result.Total().equal + result.Total().different, 4);
  EXPECT_EQ(result.unreadable_lines, 0);
}

TEST_F(ReplayTest, DifferencesAreListed) {
  const std::string log = EndOfLog();
  std::vector<std::string> lines = absl::StrSplit(log, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4u);
  // A digit of a digest, a code, and a version.
  const size_t digest = lines[0].find("reply_sha256\":\"") + 15;
  lines[0][digest] = lines[0][digest] == '0' ? '1' : '0';
  lines[1] = absl::StrReplaceAll(lines[1], {{"\"NOT_FOUND\"", "\"OUT_OF_RANGE\""}});
  const size_t later = lines[2].find("reply_sha256\":\"") + 15;
  lines[2][later] = lines[2][later] == '0' ? '1' : '0';
  lines[2] = absl::StrReplaceAll(lines[2], {{"\"engine_version\":\"", "\"engine_version\":\"0."}});
  // What need not end so again.
  lines[3] = absl::StrReplaceAll(lines[3], {{"\"code\":\"OK\"", "\"code\":\"RESOURCE_EXHAUSTED\""}});
  lines.push_back("not a line");
  const Finished run = RunCommand({"replay", "-"}, absl::StrJoin(lines, "\n"));
  EXPECT_EQ(run.status, cli::kDifferent) << run.err;
  for (const char* words : {"DIFFERENT", "3 with another reply", "other reply", "OUT_OF_RANGE, now NOT_FOUND",
                            "engine 0.", "1 line could not be read"}) {
    EXPECT_THAT(run.out, HasSubstr(words));
  }
}

TEST_F(ReplayTest, SaysWhatItCannotRead) {
  EXPECT_EQ(RunCommand({"replay", directory_.Path("none")}).status, cli::kUsageError);
  EXPECT_EQ(RunCommand({"replay", "-"}, "{}\n").status, cli::kUsageError);
  EXPECT_EQ(RunCommand({"replay"}).status, cli::kUsageError);
}

}  // namespace
}  // namespace sliceplan::rpc
