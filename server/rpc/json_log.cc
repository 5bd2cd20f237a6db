#include "server/rpc/json_log.h"

#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/rpc/text.h"

namespace sliceplan::rpc {
namespace {

constexpr std::array<absl::string_view, 4> kSeverityNames = {"debug", "info", "warning", "error"};
// As log collectors of the large clouds read it.
constexpr std::array<absl::string_view, 4> kSeverityLabels = {"DEBUG", "INFO", "WARNING", "ERROR"};

void AppendEscaped(std::string& out, absl::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8CharacterLength(text);
    const char c = text[0];
    if (length == 0) {
      out += "\\ufffd";
    } else if (length > 1) {
      out.append(text.data(), length);
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      out += c;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

// RFC 3339 in UTC with microseconds. The part down to seconds is kept for the next line of the thread.
void AppendTime(std::string& out, absl::Time time) {
  thread_local int64_t cached_second = -1;
  thread_local std::string cached_text;
  const int64_t microseconds = absl::ToUnixMicros(time);
  const int64_t second = absl::ToUnixSeconds(time);
  if (second != cached_second) {
    cached_text = absl::FormatTime("%Y-%m-%dT%H:%M:%S", absl::FromUnixSeconds(second), absl::UTCTimeZone());
    cached_second = second;
  }
  absl::StrAppend(&out, cached_text, ".", absl::Dec(microseconds - second * 1'000'000, absl::kZeroPad6), "Z");
}

}  // namespace

std::optional<Severity> ParseSeverity(absl::string_view name) {
  for (size_t i = 0; i < kSeverityNames.size(); ++i) {
    if (name == kSeverityNames[i]) return static_cast<Severity>(i);
  }
  return std::nullopt;
}

LogLine::LogLine(absl::Time time, Severity severity, absl::string_view message) : severity_(severity) {
  constexpr size_t kUsualBytes = 384;
  line_.reserve(kUsualBytes);
  line_ = "{\"time\":\"";
  AppendTime(line_, time);
  absl::StrAppend(&line_, "\",\"severity\":\"", kSeverityLabels[static_cast<size_t>(severity)], "\"");
  Text("message", message);
}

LogLine& LogLine::Text(absl::string_view name, absl::string_view value) {
  absl::StrAppend(&line_, ",\"", name, "\":\"");
  AppendEscaped(line_, value);
  line_ += '"';
  return *this;
}

LogLine& LogLine::Integer(absl::string_view name, int64_t value) {
  absl::StrAppend(&line_, ",\"", name, "\":", value);
  return *this;
}

LogLine& LogLine::Seconds(absl::string_view name, absl::Duration value) {
  const double seconds = absl::ToDoubleSeconds(value);
  absl::StrAppend(&line_, ",\"", name, "\":");
  if (std::isfinite(seconds)) {
    absl::StrAppend(&line_, seconds);
  } else {
    line_ += "null";
  }
  return *this;
}

std::string LogLine::Finish() && {
  line_ += "}\n";
  return std::move(line_);
}

void JsonLog::Write(LogLine line) const {
  if (!Wants(line.severity())) return;
  const bool urgent = line.severity() == Severity::kError;
  sink_->Write(std::move(line).Finish(), urgent);
}

}  // namespace sliceplan::rpc
