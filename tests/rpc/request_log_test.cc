#include "server/rpc/request_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/sliceplan/v1/model_description.pb.h"
#include "proto/sliceplan/v1/sharding.pb.h"
#include "server/rpc/errors.h"
#include "server/rpc/file_watch.h"
#include "server/rpc/reply_digest.h"
#include "server/rpc/rotating_file.h"
#include "server/rpc/sha256.h"
#include "server/rpc/version.h"
#include "tests/rpc/files.h"
#include "tests/rpc/testing.h"

namespace sliceplan::rpc {
namespace {

class Lines : public LogSink {
 public:
  void Write(absl::string_view line, bool) override {
    const std::lock_guard lock(mutex_);
    lines_.push_back(nlohmann::json::parse(std::string(line)));
  }
  std::vector<nlohmann::json> Get() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<nlohmann::json> lines_;
};

// ---- The file ----

TEST(RotatingFileTest, RotatesBeforeALineThatDoesNotFit) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("log");
  RotatingFile file(path, /*max_bytes=*/10, /*file_count=*/3);
  for (const char* line : {"aaaa\n", "bbbb\n", "cccc\n", "dddddddddddddd\n", "eeee\n", "ffff\n"}) {
    ASSERT_TRUE(file.Append(line).ok());
  }
  // The second oldest holds one line above the size, which no file can hold better.
  EXPECT_EQ(ReadFile(path), "eeee\nffff\n");
  EXPECT_EQ(ReadFile(path + ".1"), "dddddddddddddd\n");
  EXPECT_EQ(ReadFile(path + ".2"), "cccc\n");
  EXPECT_NE(access((path + ".3").c_str(), F_OK), 0);
  ASSERT_TRUE(file.Append("gggg\n").ok());
  EXPECT_EQ(ReadFile(path + ".2"), "dddddddddddddd\n");
}

TEST(RotatingFileTest, OneFileBeginsAnew) {
  const TemporaryDirectory directory;
  RotatingFile file(directory.Path("log"), 10, 1);
  for (const char* line : {"aaaa\n", "bbbb\n", "cccc\n"}) ASSERT_TRUE(file.Append(line).ok());
  EXPECT_EQ(ReadFile(directory.Path("log")), "cccc\n");
  EXPECT_NE(access(directory.Path("log.1").c_str(), F_OK), 0);
}

TEST(RotatingFileTest, GoesOnAfterARestartAndEndsABrokenLine) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("log");
  WriteFile(path, "aaaa\nbb");
  RotatingFile file(path, 100, 2);
  ASSERT_TRUE(file.Append("cccc\n").ok());
  EXPECT_EQ(ReadFile(path), "aaaa\nbb\ncccc\n");
}

TEST(RotatingFileTest, IsForItsOwnerOnly) {
  const TemporaryDirectory directory;
  RotatingFile file(directory.Path("log"), 100, 2);
  ASSERT_TRUE(file.Open().ok());
  struct stat status = {};
  ASSERT_EQ(stat(directory.Path("log").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST(RotatingFileTest, SaysWhatDoesNotWork) {
  const TemporaryDirectory directory;
  EXPECT_EQ(RotatingFile(directory.Path("none/log"), 10, 2).Append("a\n").code(), absl::StatusCode::kNotFound);
  // The disk that is always full.
  RotatingFile full("/dev/full", 10, 2);
  ASSERT_TRUE(full.Open().ok());
  EXPECT_EQ(full.Append("aaaaaaaaaaaaaaaa\n").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.Append("aaaaaaaaaaaaaaaa\n").code(), absl::StatusCode::kResourceExhausted);
}

// ---- The log ----

const Method& DescribeModel() { return *TestMethods().Find("AnalysisService/DescribeModel"); }

class RequestLogTest : public testing::Test {
 protected:
  std::unique_ptr<RequestLog> Open(double ratio = 1, int64_t max_bytes = 1 << 20, int file_count = 2) {
    auto opened = RequestLog::Open({path_, ratio, max_bytes, file_count}, &log_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }
  void Add(RequestLog& log, const v1::DescribeModelRequest& request, const std::string& id) {
    CallContext call;
    call.request_id = id;
    call.client = "token:scheduler";
    v1::DescribeModelResponse response;
    const Result result = DescribeModel().handle(request, &response, call);
    log.Add(DescribeModel(), request, result, response, call, absl::Milliseconds(3));
  }
  std::vector<nlohmann::json> Written() const {
    std::vector<nlohmann::json> lines;
    for (const std::string& line : ReadLines(path_)) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  const TemporaryDirectory directory_;
  std::string path_ = directory_.Path("requests.jsonl");
  Lines sink_;
  const JsonLog log_{&sink_, Severity::kDebug};
};

TEST_F(RequestLogTest, ALineSaysWhatWasAskedAndAnswered) {
  const auto request = FromText<v1::DescribeModelRequest>("model { preset: 'llama-3-8b' }");
  const auto wrong = FromText<v1::DescribeModelRequest>("model { preset: 'no-such-model' }");
  {
    const auto log = Open();
    Add(*log, request, "job-1");
    Add(*log, wrong, "job-2");
  }
  const auto lines = Written();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].at("method"), "sliceplan.v1.AnalysisService/DescribeModel");
  EXPECT_EQ(lines[0].at("request_id"), "job-1");
  EXPECT_EQ(lines[0].at("client"), "token:scheduler");
  EXPECT_EQ(lines[0].at("code"), "OK");
  EXPECT_EQ(lines[0].at("latency_s"), 0.003);
  EXPECT_EQ(lines[0].at("engine_version"), EngineVersion());
  EXPECT_EQ(lines[0].at("catalog_version"), TestEngine().catalogs.Snapshot()->version());
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(lines[0].at("request").get<std::string>(), &bytes));
  EXPECT_EQ(bytes, request.SerializeAsString());
  v1::DescribeModelResponse response;
  ASSERT_TRUE(Call("AnalysisService/DescribeModel", request, &response).ok());
  EXPECT_EQ(lines[0].at("reply_sha256"), ToHex(Sha256(DeterministicBytes(response))));
  EXPECT_EQ(lines[1].at("code"), "NOT_FOUND");
  const Result error = Call("AnalysisService/DescribeModel", wrong, &response);
  EXPECT_EQ(lines[1].at("reply_sha256"), ToHex(Sha256(DeterministicBytes(error.status()))));
}

TEST_F(RequestLogTest, SamplesByRatio) {
  const auto count = [&](double ratio) {
    std::filesystem::remove(path_);
    const auto log = Open(ratio);
    v1::DescribeModelResponse response;
    for (int i = 0; i < 2000; ++i) {
      log->Add(DescribeModel(), v1::DescribeModelRequest(), Result(), response, CallContext(), absl::ZeroDuration());
    }
    log->Flush();
    return static_cast<int>(ReadLines(path_).size());
  };
  EXPECT_EQ(count(0), 0);
  EXPECT_EQ(count(1), 2000);
  // 2,000 draws at 1/4: mean 500, standard deviation 19.4; eight of them.
  EXPECT_NEAR(count(0.25), 500, 155);
}

TEST_F(RequestLogTest, RotatesAndLosesNoLine) {
  {
    const auto log = Open(1, /*max_bytes=*/2000, /*file_count=*/100);
    for (int i = 0; i < 30; ++i) {
      Add(*log, FromText<v1::DescribeModelRequest>("model { preset: 'llama-3-8b' }"), absl::StrCat("job-", i));
    }
  }
  size_t lines = 0, files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_.Path(""))) {
    EXPECT_LE(entry.file_size(), 2000u);
    for (const std::string& line : ReadLines(entry.path())) {
      EXPECT_FALSE(nlohmann::json::parse(line, nullptr, false).is_discarded());
      ++lines;
    }
    ++files;
  }
  EXPECT_EQ(lines, 30u);
  EXPECT_GT(files, 3u);
}

TEST_F(RequestLogTest, AFullDiskIsCountedAndSaidOnce) {
  path_ = "/dev/full";
  const auto log = Open();
  for (int i = 0; i < 20; ++i) Add(*log, v1::DescribeModelRequest(), "job");
  log->Flush();
  EXPECT_EQ(log->counts().failed, 20);
  EXPECT_EQ(log->counts().written, 0);
  ASSERT_EQ(sink_.Get().size(), 1u);
  EXPECT_EQ(sink_.Get()[0].at("severity"), "ERROR");
  EXPECT_THAT(sink_.Get()[0].at("cause").get<std::string>(), testing::HasSubstr("/dev/full"));
}

TEST_F(RequestLogTest, WorksAgainWhenTheDiskDoes) {
  const std::string target = directory_.Path("target");
  std::filesystem::create_directory(target);
  path_ = target + "/log";
  const auto log = Open(1, /*max_bytes=*/1);  // every line in a file of its own
  Add(*log, v1::DescribeModelRequest(), "a");
  log->Flush();
  std::filesystem::remove_all(target);
  Add(*log, v1::DescribeModelRequest(), "b");
  log->Flush();
  std::filesystem::create_directory(target);
  Add(*log, v1::DescribeModelRequest(), "c");
  log->Flush();
  EXPECT_EQ(log->counts().written, 2);
  EXPECT_EQ(log->counts().failed, 1);
  ASSERT_EQ(sink_.Get().size(), 2u);
  EXPECT_EQ(sink_.Get()[1].at("severity"), "INFO");
  EXPECT_EQ(Written()[0].at("request_id"), "c");
}

TEST_F(RequestLogTest, RefusesOptionsThatMakeNoSense) {
  const auto code = [&](RequestLogOptions options) { return RequestLog::Open(options, &log_).status().code(); };
  EXPECT_EQ(code({path_, -0.1, 1, 1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({path_, 1.1, 1, 1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({path_, 1, 0, 1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({path_, 1, 1, 0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({directory_.Path("none/log"), 1, 1, 1}), absl::StatusCode::kNotFound);
}

// ---- The digest ----

TEST(ReplyDigestTest, LeavesOutTheTimeThatASearchTook) {
  v1::ProposeShardingResponse a, b;
  a.mutable_search()->set_elapsed_seconds(1);
  b.mutable_search()->set_elapsed_seconds(2);
  EXPECT_EQ(DeterministicBytes(a), DeterministicBytes(b));
  b.mutable_search()->set_evaluated_count(1);
  EXPECT_NE(DeterministicBytes(a), DeterministicBytes(b));
}

TEST(ReplyDigestTest, DoesNotMindTheOrderOfDetails) {
  const google::rpc::Status error = InvalidArgument({{"a", "Wrong.", "R"}}).status();
  ASSERT_EQ(error.details_size(), 2);
  google::rpc::Status turned = error;
  turned.mutable_details()->SwapElements(0, 1);
  EXPECT_EQ(DeterministicBytes(error), DeterministicBytes(turned));
  turned.set_message("Other.");
  EXPECT_NE(DeterministicBytes(error), DeterministicBytes(turned));
}

// ---- The watch ----

TEST(FileWatchTest, NoticesWritesReplacementsAndRemovals) {
  const TemporaryDirectory directory;
  const std::string file = directory.Path("file");
  const std::string link = directory.Path("link");
  WriteFile(file, "one");
  std::filesystem::create_symlink("file", link);
  std::atomic<int> changes{0};
  const FileWatch watch({link}, absl::Milliseconds(1), [&] { ++changes; });
  int seen = 0;
  const auto wait = [&] {
    while (changes == seen) std::this_thread::yield();
    seen = changes;
  };
  WriteFile(file, "another");
  wait();
  WriteFile(directory.Path("second"), "one more");
  std::filesystem::create_symlink("second", directory.Path("next"));
  std::filesystem::rename(directory.Path("next"), link);
  wait();
  std::filesystem::remove(link);
  wait();
}

}  // namespace
}  // namespace sliceplan::rpc
