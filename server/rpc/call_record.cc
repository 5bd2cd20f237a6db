#include "server/rpc/call_record.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace sliceplan::rpc {
namespace {

// By the number of the code.
constexpr std::array<absl::string_view, 17> kCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

absl::string_view CodeName(absl::StatusCode code) {
  const auto index = static_cast<size_t>(code);
  return index < kCodeNames.size() ? kCodeNames[index] : "UNKNOWN";
}

bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); });
}

}  // namespace

absl::string_view TraceIdOf(absl::string_view traceparent) {
  if (traceparent.empty()) return traceparent;
  const std::vector<absl::string_view> parts = absl::StrSplit(traceparent, '-');
  constexpr size_t kTraceIdDigits = 32;
  return parts.size() >= 4 && parts[1].size() == kTraceIdDigits && IsHex(parts[1]) ? parts[1] : absl::string_view();
}

Severity SeverityOf(absl::string_view method, absl::StatusCode code) {
  // Probes and tools: clients ask for the newest reflection first and fall back by themselves.
  if (absl::StartsWith(method, "grpc.") && (code == absl::StatusCode::kOk || code == absl::StatusCode::kUnimplemented ||
                                            code == absl::StatusCode::kCancelled)) {
    return Severity::kDebug;
  }
  switch (code) {
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss: return Severity::kError;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded: return Severity::kWarning;
    default: return Severity::kInfo;
  }
}

void WriteCallLine(const JsonLog& log, const CallRecord& record) {
  const Severity severity = SeverityOf(record.method, record.code);
  if (!log.Wants(severity)) return;
  LogLine line = log.Line(severity, "call");
  line.Text("method", record.method).Text("code", CodeName(record.code)).Seconds("latency_s", record.latency);
  if (record.deadline.has_value()) line.Seconds("deadline_s", *record.deadline);
  line.Text("peer", record.peer);
  if (!record.request_id.empty()) line.Text("request_id", record.request_id);
  if (const absl::string_view id = TraceIdOf(record.traceparent); !id.empty()) line.Text("trace_id", id);
  if (record.code != absl::StatusCode::kOk) line.Text("error", record.error);
  log.Write(std::move(line));
}

}  // namespace sliceplan::rpc
