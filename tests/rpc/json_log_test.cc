#include "server/rpc/json_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace sliceplan::rpc {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

class MemorySink : public LogSink {
 public:
  void Write(absl::string_view line, bool urgent) override {
    lines.emplace_back(line);
    urgency.push_back(urgent);
  }
  std::vector<std::string> lines;
  std::vector<bool> urgency;
};

absl::Time SomeTime() { return absl::FromUnixMicros(1'795'962'611'000'042); }

TEST(LogLineTest, IsOneJsonObject) {
  LogLine line(SomeTime(), Severity::kWarning, "a \"call\"");
  line.Text("method", "a.B/C").Integer("count", -3).Seconds("latency_s", absl::Microseconds(1500));
  line.Seconds("never_s", absl::InfiniteDuration());
  const std::string text = std::move(line).Finish();
  ASSERT_EQ(text.back(), '\n');
  const json parsed = json::parse(text);
  EXPECT_EQ(parsed["time"], "2026-11-29T14:30:11.000042Z");
  EXPECT_EQ(parsed["severity"], "WARNING");
  EXPECT_EQ(parsed["message"], "a \"call\"");
  EXPECT_EQ(parsed["method"], "a.B/C");
  EXPECT_EQ(parsed["count"], -3);
  EXPECT_DOUBLE_EQ(parsed["latency_s"].get<double>(), 0.0015);
  EXPECT_TRUE(parsed["never_s"].is_null());
}

TEST(LogLineTest, NothingInTextBreaksTheLine) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  LogLine line(SomeTime(), Severity::kInfo, "x");
  line.Text("value", all);
  const std::string text = std::move(line).Finish();
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const json parsed = json::parse(text);
  const std::string value = parsed["value"];
  // What is ASCII comes back as it was; the rest is no UTF-8 here.
  EXPECT_EQ(value.substr(0, 128), all.substr(0, 128));
  EXPECT_EQ(value.substr(128, 3), "\xEF\xBF\xBD");
}

TEST(LogLineTest, TimesOfDifferentSecondsDiffer) {
  LogLine first(absl::FromUnixMicros(999'999), Severity::kInfo, "");
  LogLine second(absl::FromUnixMicros(1'000'000), Severity::kInfo, "");
  EXPECT_EQ(json::parse(std::move(first).Finish())["time"], "1970-01-01T00:00:00.999999Z");
  EXPECT_EQ(json::parse(std::move(second).Finish())["time"], "1970-01-01T00:00:01.000000Z");
}

TEST(JsonLogTest, WritesWhatIsSevereEnough) {
  MemorySink sink;
  const JsonLog log(&sink, Severity::kWarning, [] { return SomeTime(); });
  EXPECT_FALSE(log.Wants(Severity::kInfo));
  for (const Severity severity : {Severity::kDebug, Severity::kInfo, Severity::kWarning, Severity::kError}) {
    log.Write(log.Line(severity, "m"));
  }
  ASSERT_EQ(sink.lines.size(), 2u);
  EXPECT_EQ(json::parse(sink.lines[0])["severity"], "WARNING");
  EXPECT_EQ(json::parse(sink.lines[1])["severity"], "ERROR");
  EXPECT_THAT(sink.urgency, ElementsAre(false, true));
}

TEST(ParseSeverityTest, Names) {
  EXPECT_EQ(ParseSeverity("debug"), Severity::kDebug);
  EXPECT_EQ(ParseSeverity("error"), Severity::kError);
  EXPECT_EQ(ParseSeverity("INFO"), std::nullopt);
  EXPECT_EQ(ParseSeverity(""), std::nullopt);
}

class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_), 0); }
  ~Pipe() {
    close(ends_[0]);
    CloseInput();
  }
  int input() const { return ends_[1]; }
  void CloseInput() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  std::string ReadAll() {
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = read(ends_[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(n));
    return text;
  }

 private:
  int ends_[2] = {-1, -1};
};

TEST(BufferedSinkTest, LosesNothingAtTheEnd) {
  Pipe pipe;
  {
    BufferedSink sink(pipe.input());
    for (int i = 0; i < 100; ++i) sink.Write("line\n", /*urgent=*/false);
  }
  pipe.CloseInput();
  std::string expected;
  for (int i = 0; i < 100; ++i) expected += "line\n";
  EXPECT_EQ(pipe.ReadAll(), expected);
}

TEST(BufferedSinkTest, LinesOfThreadsStayWhole) {
  Pipe pipe;
  std::string text;
  std::thread reader([&] { text = pipe.ReadAll(); });
  {
    BufferedSink sink(pipe.input());
    std::vector<std::thread> writers;
    for (const char* line : {"aaaaaaaaaa\n", "bbbbbbbbbb\n", "cccccccccc\n"}) {
      writers.emplace_back([&sink, line] {
        for (int i = 0; i < 200; ++i) sink.Write(line, /*urgent=*/i % 50 == 0);
      });
    }
    for (std::thread& writer : writers) writer.join();
    sink.Flush();
  }
  pipe.CloseInput();
  reader.join();
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  EXPECT_EQ(lines.size(), 600u);
  for (const std::string& line : lines) EXPECT_EQ(line, std::string(10, line[0]));
}

// A reader that does not read: lines beyond the limit are dropped and counted, and nobody waits.
TEST(BufferedSinkTest, SlowReaderCostsLinesAndNotTime) {
  Pipe pipe;
  ASSERT_GE(fcntl(pipe.input(), F_SETPIPE_SZ, 4096), 0);
  std::string text;
  const std::string line(1 << 20, 'x');
  {
    BufferedSink sink(pipe.input());
    for (int i = 0; i < 40; ++i) sink.Write(line + "\n", /*urgent=*/false);
    std::thread reader([&] { text = pipe.ReadAll(); });
    sink.Flush();
    pipe.CloseInput();
    reader.join();
  }
  EXPECT_NE(text.find("log lines dropped"), std::string::npos);
}

}  // namespace
}  // namespace sliceplan::rpc
