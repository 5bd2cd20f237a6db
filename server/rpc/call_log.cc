#include "server/rpc/call_log.h"

#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "server/rpc/request_id.h"

namespace sliceplan::rpc {
namespace {

namespace experimental = grpc::experimental;

// By the number of the code.
constexpr std::array<absl::string_view, 17> kCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

absl::string_view CodeName(grpc::StatusCode code) {
  const auto index = static_cast<size_t>(code);
  return index < kCodeNames.size() ? kCodeNames[index] : "UNKNOWN";
}

// What the operator must look at is an error, what shows a server at its limits a warning.
Severity SeverityOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::DATA_LOSS: return Severity::kError;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED: return Severity::kWarning;
    default: return Severity::kInfo;
  }
}

absl::string_view Metadata(const grpc::ServerContextBase& context, const char* key) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(key);
  return found == metadata.end() ? absl::string_view() : absl::string_view(found->second.data(), found->second.size());
}

// "00-<32 hex digits>-<16>-<2>": the second part.
absl::string_view TraceId(absl::string_view traceparent) {
  const std::vector<absl::string_view> parts = absl::StrSplit(traceparent, '-');
  constexpr size_t kTraceIdDigits = 32;
  return parts.size() >= 4 && parts[1].size() == kTraceIdDigits ? parts[1] : absl::string_view();
}

class CallLog : public experimental::Interceptor {
 public:
  CallLog(experimental::ServerRpcInfo* info, const JsonLog* log) : info_(*info), log_(*log), start_(absl::Now()) {}

  void Intercept(experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(experimental::InterceptionHookPoints::PRE_SEND_STATUS)) {
      WriteLine(methods->GetSendStatus(), methods->GetSendTrailingMetadata());
    }
    methods->Proceed();
  }

 private:
  // gRPC answers UNIMPLEMENTED, without a word, to a call that ended before its request was read, and its health
  // service (1.51) UNKNOWN to a watch whose client has left. Nobody receives these: the caller has its own status.
  static grpc::Status AsTheCallerSawIt(const grpc::Status& status, const grpc::ServerContextBase& context) {
    if (status.error_code() == grpc::StatusCode::UNKNOWN && status.error_message() == "OnCancel()") {
      return {grpc::StatusCode::CANCELLED, "the watching client left"};
    }
    if (status.error_code() != grpc::StatusCode::UNIMPLEMENTED || !status.error_message().empty()) return status;
    if (context.deadline() <= std::chrono::system_clock::now()) {
      return {grpc::StatusCode::DEADLINE_EXCEEDED, "the deadline passed before the request was read"};
    }
    if (context.IsCancelled()) return {grpc::StatusCode::CANCELLED, "the caller left before the request was read"};
    return status;
  }

  void WriteLine(const grpc::Status& sent, const std::multimap<std::string, std::string>* trailers) const {
    const grpc::Status status = AsTheCallerSawIt(sent, *info_.server_context());
    const absl::string_view method = absl::StripPrefix(info_.method(), "/");
    // Probes and tools: clients ask for the newest reflection first and fall back by themselves.
    const bool usual = status.ok() || status.error_code() == grpc::StatusCode::UNIMPLEMENTED ||
                       status.error_code() == grpc::StatusCode::CANCELLED;
    const bool background = absl::StartsWith(method, "grpc.") && usual;
    const Severity severity = background ? Severity::kDebug : SeverityOf(status.error_code());
    if (!log_.Wants(severity)) return;
    const grpc::ServerContextBase& context = *info_.server_context();
    LogLine line = log_.Line(severity, "call");
    line.Text("method", method).Text("code", CodeName(status.error_code())).Seconds("latency_s", absl::Now() - start_);
    if (const auto deadline = context.deadline(); deadline != std::chrono::system_clock::time_point::max()) {
      line.Seconds("deadline_s", absl::FromChrono(deadline) - start_);
    }
    line.Text("peer", context.peer());
    if (trailers != nullptr) {
      if (const auto id = trailers->find(kRequestIdKey); id != trailers->end()) line.Text("request_id", id->second);
    }
    if (const absl::string_view trace_id = TraceId(Metadata(context, "traceparent")); !trace_id.empty()) {
      line.Text("trace_id", trace_id);
    }
    if (!status.ok()) line.Text("error", status.error_message());
    log_.Write(std::move(line));
  }

  experimental::ServerRpcInfo& info_;
  const JsonLog& log_;
  const absl::Time start_;
};

class CallLogFactory : public experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallLogFactory(const JsonLog* log) : log_(log) {}
  experimental::Interceptor* CreateServerInterceptor(experimental::ServerRpcInfo* info) override {
    return new CallLog(info, log_);  // gRPC takes it
  }

 private:
  const JsonLog* const log_;
};

}  // namespace

std::unique_ptr<experimental::ServerInterceptorFactoryInterface> MakeCallLog(const JsonLog* log) {
  return std::make_unique<CallLogFactory>(log);
}

}  // namespace sliceplan::rpc
