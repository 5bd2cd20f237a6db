#include "server/rpc/call_log.h"

#include <chrono>
#include <optional>
#include <string>

#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "server/rpc/call_record.h"
#include "server/rpc/request_id.h"
#include "server/rpc/stopwatch.h"

namespace sliceplan::rpc {
namespace {

namespace experimental = grpc::experimental;

absl::string_view Metadata(const grpc::ServerContextBase& context, const char* key) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(key);
  return found == metadata.end() ? absl::string_view() : absl::string_view(found->second.data(), found->second.size());
}

class CallLog : public experimental::Interceptor {
 public:
  CallLog(experimental::ServerRpcInfo* info, const JsonLog* log, const CallMetrics* metrics)
      : info_(*info),
        log_(*log),
        method_(absl::StripPrefix(info->method(), "/")),
        metrics_(metrics->Of(method_)),
        start_(absl::Now()) {
    metrics_.Started();
  }
  ~CallLog() override {
    if (!ended_) metrics_.Handled(absl::StatusCode::kCancelled, watch_.Elapsed());
  }

  void Intercept(experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(experimental::InterceptionHookPoints::PRE_SEND_STATUS)) {
      End(methods->GetSendStatus(), methods->GetSendTrailingMetadata());
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

  void End(const grpc::Status& sent, const std::multimap<std::string, std::string>* trailers) {
    const grpc::ServerContextBase& context = *info_.server_context();
    const grpc::Status status = AsTheCallerSawIt(sent, context);
    CallRecord record;
    record.method = method_;
    record.code = static_cast<absl::StatusCode>(status.error_code());
    record.latency = watch_.Elapsed();
    if (!ended_) metrics_.Handled(record.code, record.latency);
    ended_ = true;
    if (!log_.Wants(SeverityOf(record.method, record.code))) return;
    if (const auto deadline = context.deadline(); deadline != std::chrono::system_clock::time_point::max()) {
      record.deadline = absl::FromChrono(deadline) - start_;
    }
    const std::string peer = context.peer();
    record.peer = peer;
    if (trailers != nullptr) {
      if (const auto id = trailers->find(kRequestIdKey); id != trailers->end()) record.request_id = id->second;
    }
    record.traceparent = Metadata(context, "traceparent");
    const std::string error = status.error_message();
    record.error = error;
    WriteCallLine(log_, record);
  }

  experimental::ServerRpcInfo& info_;
  const JsonLog& log_;
  const absl::string_view method_;
  const CallMetrics::Method& metrics_;
  const absl::Time start_;
  const Stopwatch watch_;
  bool ended_ = false;
};

class CallLogFactory : public experimental::ServerInterceptorFactoryInterface {
 public:
  CallLogFactory(const JsonLog* log, const CallMetrics* metrics) : log_(log), metrics_(metrics) {}
  experimental::Interceptor* CreateServerInterceptor(experimental::ServerRpcInfo* info) override {
    return new CallLog(info, log_, metrics_);  // gRPC takes it
  }

 private:
  const JsonLog* const log_;
  const CallMetrics* const metrics_;
};

}  // namespace

std::unique_ptr<experimental::ServerInterceptorFactoryInterface> MakeCallLog(const JsonLog* log,
                                                                             const CallMetrics* metrics) {
  return std::make_unique<CallLogFactory>(log, metrics);
}

}  // namespace sliceplan::rpc
