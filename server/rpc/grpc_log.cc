#include "server/rpc/grpc_log.h"

#include <grpc/support/log.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "google/protobuf/stubs/logging.h"

namespace sliceplan::rpc {
namespace {

// gRPC takes a plain function, so the log is found through a global.
std::atomic<const JsonLog*> grpc_log{nullptr};

// gRPC 1.51 closes its listener for good when one accept fails, as it does without free file descriptors
// (grpc/grpc#20418). It says the same of a listener that the server itself has closed: "Invalid argument".
bool AcceptsNoMore(const gpr_log_func_args& arguments) {
  return arguments.severity == GPR_LOG_SEVERITY_ERROR && absl::StartsWith(arguments.message, "Failed accept4: ") &&
         !absl::StrContains(arguments.message, "Invalid argument");
}

void Forward(gpr_log_func_args* arguments) {
  const JsonLog* const log = grpc_log.load();
  if (log == nullptr) return;
  if (AcceptsNoMore(*arguments)) {
    // Once: a second signal would end it without a drain.
    static std::atomic_flag ending = ATOMIC_FLAG_INIT;
    if (!ending.test_and_set()) {
      log->Write(log->Line(Severity::kError, "no connection can be accepted any more: ending, to be started again"));
      kill(getpid(), SIGTERM);
    }
  }
  const Severity severity = arguments->severity == GPR_LOG_SEVERITY_ERROR  ? Severity::kWarning
                            : arguments->severity == GPR_LOG_SEVERITY_INFO ? Severity::kInfo
                                                                           : Severity::kDebug;
  if (!log->Wants(severity)) return;
  LogLine line = log->Line(severity, "grpc");
  line.Text("text", arguments->message);
  log->Write(std::move(line));
}

// Strings of requests that are no UTF-8, above all: what a caller sends is no error of the server.
void ForwardProtobuf(google::protobuf::LogLevel level, const char* /*file*/, int /*line*/, const std::string& message) {
  const JsonLog* const log = grpc_log.load();
  if (log == nullptr) return;
  const Severity severity = level == google::protobuf::LOGLEVEL_FATAL ? Severity::kError : Severity::kDebug;
  if (!log->Wants(severity)) return;
  LogLine line = log->Line(severity, "protobuf");
  line.Text("text", message);
  log->Write(std::move(line));
}

}  // namespace

void SendGrpcLogTo(const JsonLog* log) {
  grpc_log.store(log);
  gpr_set_log_function(&Forward);
  google::protobuf::SetLogHandler(&ForwardProtobuf);
}

}  // namespace sliceplan::rpc
