#include "server/rpc/server.h"

#include <arpa/inet.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpc/grpc.h"
#include "grpcpp/ext/channelz_service_plugin.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/impl/server_builder_option.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "server/rpc/call_log.h"
#include "server/rpc/malformed_requests.h"
#include "server/rpc/services.h"
#include "server/rpc/tls.h"

namespace sliceplan::rpc {
namespace {

constexpr int kMaxPort = 65535;

// libgrpc++_reflection adds itself to every server by being linked; this takes it out again.
class WithoutReflection : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    const std::string reflection = grpc::reflection::ProtoServerReflectionPlugin().name();
    plugins->erase(std::remove_if(plugins->begin(), plugins->end(),
                                  [&](const auto& plugin) { return plugin->name() == reflection; }),
                   plugins->end());
  }
};

bool IsLoopback(const std::string& address) {
  if (address == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, address.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::Status Check(const ServerOptions& options) {
  if (options.port < 0 || options.port > kMaxPort) {
    return absl::InvalidArgumentError(absl::StrCat("--port must be 0 to ", kMaxPort, "; it is ", options.port));
  }
  if (options.http_port < -1 || options.http_port > kMaxPort) {
    return absl::InvalidArgumentError(
        absl::StrCat("--http_port must be -1 to ", kMaxPort, "; it is ", options.http_port));
  }
  if (options.tls.enabled()) {
    if (const auto end = CheckTlsFiles(options.tls, absl::Now()); !end.ok()) return end.status();
  } else if (!options.insecure_any_address && !IsLoopback(options.address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--address=", options.address,
                     " is reachable from other machines and this server speaks plaintext; give it --tls_cert and "
                     "--tls_key, or say --insecure_any_address if the network in front of it is trusted"));
  }
  if (options.channelz && !IsLoopback(options.address)) {
    return absl::InvalidArgumentError("--channelz shows peers and sockets to every caller: on loopback only");
  }
  if (options.max_message_bytes < 1 || options.max_metadata_bytes < 1 || options.max_concurrent_streams < 1 ||
      options.max_unread_reply_bytes < 1) {
    return absl::InvalidArgumentError("limits must be positive");
  }
  if (options.default_deadline <= absl::ZeroDuration() || options.max_deadline < options.default_deadline) {
    return absl::InvalidArgumentError("--default_deadline must be positive and at most --max_deadline");
  }
  return absl::OkStatus();
}

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(std::min<int64_t>(absl::ToInt64Milliseconds(duration), std::numeric_limits<int>::max()));
}

void ApplyLimits(const ServerOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  builder.SetMaxSendMessageSize(options.max_message_bytes);
  grpc::ResourceQuota quota("server");
  quota.Resize(options.memory_quota_bytes);
  builder.SetResourceQuota(quota);
  const std::pair<const char*, int> arguments[] = {
      // A second server on the same port fails at start instead of taking half of the calls.
      {GRPC_ARG_ALLOW_REUSEPORT, 0},
      {GRPC_ARG_MAX_METADATA_SIZE, options.max_metadata_bytes},
      {GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_concurrent_streams},
      {GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keepalive_time)},
      {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(options.keepalive_timeout)},
      {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
      {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, Milliseconds(options.min_ping_interval)},
      {GRPC_ARG_MAX_CONNECTION_AGE_MS, Milliseconds(options.max_connection_age)},
      {GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, Milliseconds(options.max_connection_age_grace)},
  };
  for (const auto& [key, value] : arguments) builder.AddChannelArgument(key, value);
}

WorkerPoolOptions PoolOptions(const ServerOptions& options) {
  WorkerPoolOptions pool;
  pool.thread_count = options.worker_threads > 0 ? options.worker_threads : UsableCpuCount();
  pool.target_wait = options.target_wait;
  return pool;
}

template <typename Count>
double SumOverLanes(Count count) {
  double sum = 0;
  for (const Lane lane : kLanes) sum += static_cast<double>(count(lane));
  return sum;
}

}  // namespace

Server::Server(const ServerOptions& options, const MethodTable* methods, const JsonLog* log,
               std::unique_ptr<TokenAuthority> tokens, std::unique_ptr<RequestLog> request_log)
    : log_(*log),
      metrics_(*methods),
      tokens_(std::move(tokens)),
      request_log_(std::move(request_log)),
      pool_(PoolOptions(options)),
      unread_replies_(options.max_unread_reply_bytes),
      dispatcher_(options, log, &metrics_, tokens_.get(), request_log_.get(), &pool_, &open_calls_, &unread_replies_),
      services_(MakeServices(*methods, dispatcher_)) {
  metrics_.AddGauge("sliceplan_queue_length", "Work that waits for a worker.",
                    [this] { return SumOverLanes([this](Lane lane) { return pool_.queue_length(lane); }); });
  metrics_.AddGauge("sliceplan_unread_reply_bytes", "Memory of gRPC replies that have been made and not yet been sent.",
                    [this] { return static_cast<double>(unread_replies_.bytes()); });
  metrics_.AddGauge("sliceplan_request_log_written_total", "Calls that the request log has noted.", [this] {
    return request_log_ == nullptr ? 0 : static_cast<double>(request_log_->counts().written);
  });
  metrics_.AddGauge("sliceplan_request_log_lost_total",
                    "Calls that the request log lost: its file could not be written, or not fast enough.", [this] {
                      return request_log_ == nullptr ? 0 : static_cast<double>(request_log_->counts().lost());
                    });
  metrics_.AddGauge("sliceplan_queue_limit", "Work that may wait for a worker at the pace measured so far.",
                    [this] { return SumOverLanes([this](Lane lane) { return pool_.queue_limit(lane); }); });
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options, const MethodTable* methods,
                                                      const JsonLog* log) {
  if (const absl::Status status = Check(options); !status.ok()) return status;
  std::unique_ptr<TokenAuthority> tokens;
  if (!options.token_file.empty()) {
    auto opened = TokenAuthority::Open(options.token_file);
    if (!opened.ok()) return opened.status();
    tokens = *std::move(opened);
  }
  std::unique_ptr<RequestLog> request_log;
  if (!options.request_log.path.empty()) {
    auto opened = RequestLog::Open(options.request_log, log);
    if (!opened.ok()) return opened.status();
    request_log = *std::move(opened);
  }
  std::unique_ptr<Server> server(new Server(options, methods, log, std::move(tokens), std::move(request_log)));
  if (const absl::Status status = server->Listen(options, *methods); !status.ok()) return status;
  server->WatchFiles(options);
  return server;
}

void Server::WatchFiles(const ServerOptions& options) {
  if (tokens_ != nullptr) {
    file_watches_.push_back(std::make_unique<FileWatch>(std::vector<std::string>{options.token_file},
                                                        options.token_file_interval, [this] { ReloadTokens(); }));
  }
  if (!options.tls.enabled()) return;
  const auto report = [this, tls = options.tls] {
    const absl::StatusOr<absl::Time> end = CheckTlsFiles(tls, absl::Now());
    LogLine line = log_.Line(end.ok() ? Severity::kInfo : Severity::kError,
                             end.ok() ? "certificate read" : "the new certificate is wrong: handshakes will fail");
    line.Text("certificate", tls.certificate);
    if (end.ok()) line.Text("not_after", absl::FormatTime(absl::RFC3339_sec, *end, absl::UTCTimeZone()));
    if (!end.ok()) line.Text("cause", end.status().message());
    log_.Write(std::move(line));
  };
  report();
  file_watches_.push_back(std::make_unique<FileWatch>(
      std::vector<std::string>{options.tls.certificate, options.tls.key, options.tls.client_authorities},
      options.tls.refresh, report));
}

void Server::ReloadTokens() {
  if (tokens_ == nullptr) return;
  const absl::Status status = tokens_->Reload();
  LogLine line = log_.Line(status.ok() ? Severity::kInfo : Severity::kError,
                           status.ok() ? "tokens read again" : "the new token file is wrong; the old tokens stay");
  if (status.ok()) line.Integer("token_count", static_cast<int64_t>(tokens_->token_count()));
  if (!status.ok()) line.Text("cause", status.message());
  log_.Write(std::move(line));
}

absl::Status Server::Listen(const ServerOptions& options, const MethodTable& methods) {
  grpc::EnableDefaultHealthCheckService(true);
  if (options.channelz) grpc::channelz::experimental::InitChannelzService();
  grpc::ServerBuilder builder;
  if (!options.reflection) builder.SetOption(std::make_unique<WithoutReflection>());
  ApplyLimits(options, builder);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(open_calls_.MakeInterceptorFactory());
  interceptors.push_back(MakeCallLog(&log_, &metrics_.calls()));
  interceptors.push_back(open_watches_.MakeInterceptorFactory());
  interceptors.push_back(MakeMalformedRequests());
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  for (const auto& service : services_) builder.RegisterService(service.get());
  const bool v6 = absl::StrContains(options.address, ":");
  const std::string target = absl::StrCat(v6 ? "[" : "", options.address, v6 ? "]" : "", ":", options.port);
  builder.AddListeningPort(
      target, options.tls.enabled() ? MakeTlsCredentials(options.tls) : grpc::InsecureServerCredentials(), &port_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port_ == 0) return absl::UnavailableError(absl::StrCat("cannot listen on ", target));
  grpc::HealthCheckServiceInterface* const health = server_->GetHealthCheckService();
  for (const std::string& service : methods.ServiceNames()) health->SetServingStatus(service, true);
  if (options.http_port < 0) return absl::OkStatus();
  // Calls, and the tokens in them, go over plaintext only where that was allowed.
  const bool answers_calls = options.insecure_any_address || IsLoopback(options.address);
  auto http = HttpServer::Start(options, answers_calls, &methods, &dispatcher_, &metrics_, &log_);
  if (!http.ok()) return http.status();
  http_ = *std::move(http);
  return absl::OkStatus();
}

Server::~Server() {
  file_watches_.clear();
  Shutdown(absl::ZeroDuration());
}

void Server::BeginDrain() {
  server_->GetHealthCheckService()->Shutdown();
  if (http_ != nullptr) http_->BeginDrain();
}

void Server::Shutdown(absl::Duration grace) {
  open_watches_.EndAll();
  const absl::Time end = absl::Now() + grace;
  std::thread http_drain([this, grace] {
    if (http_ != nullptr) http_->Drain(grace);
  });
  if (server_ != nullptr && grace > absl::ZeroDuration()) open_calls_.Close(port_, grace);
  if (server_ != nullptr) server_->Shutdown(absl::ToChronoTime(end));
  http_drain.join();
  // Ends every call that still waits, so that no thread of the HTTP port does.
  pool_.Stop();
  if (http_ != nullptr) http_->Stop();
}

}  // namespace sliceplan::rpc
