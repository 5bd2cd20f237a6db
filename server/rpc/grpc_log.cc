#include "server/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include <atomic>
#include <utility>

namespace sliceplan::rpc {
namespace {

// gRPC takes a plain function, so the log is found through a global.
std::atomic<const JsonLog*> grpc_log{nullptr};

void Forward(gpr_log_func_args* arguments) {
  const JsonLog* const log = grpc_log.load();
  if (log == nullptr) return;
  const Severity severity = arguments->severity == GPR_LOG_SEVERITY_ERROR  ? Severity::kWarning
                            : arguments->severity == GPR_LOG_SEVERITY_INFO ? Severity::kInfo
                                                                           : Severity::kDebug;
  if (!log->Wants(severity)) return;
  LogLine line = log->Line(severity, "grpc");
  line.Text("text", arguments->message);
  log->Write(std::move(line));
}

}  // namespace

void SendGrpcLogTo(const JsonLog* log) {
  grpc_log.store(log);
  gpr_set_log_function(&Forward);
}

}  // namespace sliceplan::rpc
