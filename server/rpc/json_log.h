// Logs as JSON, one object per line: {"time":"2026-11-29T14:30:11.123456Z","severity":"INFO","message":"...",...}.
// Lines go to a sink; the usual one collects them and writes from a thread of its own, so that a slow reader of
// standard error never holds up an answer.
#ifndef SLICEPLAN_SERVER_RPC_JSON_LOG_H_
#define SLICEPLAN_SERVER_RPC_JSON_LOG_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace sliceplan::rpc {

enum class Severity { kDebug, kInfo, kWarning, kError };

// "debug", "info", "warning" or "error"; nullopt for anything else.
std::optional<Severity> ParseSeverity(absl::string_view name);

// Where finished lines go, each with its newline. Thread-safe.
class LogSink {
 public:
  virtual ~LogSink() = default;
  // `urgent`: should be out before the process can end badly.
  virtual void Write(absl::string_view line, bool urgent) = 0;
};

// One line under construction.
class LogLine {
 public:
  LogLine(absl::Time time, Severity severity, absl::string_view message);

  // Names are literals of ours and not escaped; text is, and bytes that are not UTF-8 become U+FFFD. Numbers that are
  // not finite become null.
  LogLine& Text(absl::string_view name, absl::string_view value);
  LogLine& Integer(absl::string_view name, int64_t value);
  LogLine& Seconds(absl::string_view name, absl::Duration value);

  // The object with its newline. The line must not be used afterwards.
  std::string Finish() &&;
  Severity severity() const { return severity_; }

 private:
  Severity severity_;
  std::string line_;
};

// Thread-safe.
class JsonLog {
 public:
  // `sink` must outlive the log.
  JsonLog(
      LogSink* sink, Severity least, std::function<absl::Time()> now = [] { return absl::Now(); })
      : sink_(sink), least_(least), now_(std::move(now)) {}

  bool Wants(Severity severity) const { return severity >= least_; }
  LogLine Line(Severity severity, absl::string_view message) const { return LogLine(now_(), severity, message); }
  // Writes the line if its severity is wanted.
  void Write(LogLine line) const;

 private:
  LogSink* const sink_;
  const Severity least_;
  const std::function<absl::Time()> now_;
};

// Writes to a file descriptor from a thread of its own, at the latest `kDelay` after a line came, at once when urgent.
// Beyond kMaxBytes that wait, lines are dropped; a line says how many.
class BufferedSink : public LogSink {
 public:
  static constexpr absl::Duration kDelay = absl::Milliseconds(100);
  static constexpr size_t kMaxBytes = 4 << 20;

  explicit BufferedSink(int file_descriptor);
  // Writes what waits.
  ~BufferedSink() override;

  void Write(absl::string_view line, bool urgent) override;
  // Returns when everything written so far is out.
  void Flush();

 private:
  void RunThread();
  void WriteOut(absl::string_view text) const;

  const int file_descriptor_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable written_;
  std::string waiting_;
  int64_t dropped_count_ = 0;
  bool urgent_ = false;
  bool writing_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_JSON_LOG_H_
