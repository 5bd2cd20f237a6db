#include "client/sliceplan/connection.h"

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/sliceplan/grpc_connection.h"
#include "client/sliceplan/service_config.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace sliceplan {
namespace {

constexpr char kUserAgent[] = "sliceplan-client/" SLICEPLAN_VERSION;

// A replica that died without a word is noticed after at most the sum. Servers allow pings every 20 s.
constexpr absl::Duration kKeepaliveTime = absl::Seconds(30);
constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(10);
// gRPC's own limit of two minutes leaves a restarted server idle for long.
constexpr absl::Duration kMaxReconnectBackoff = absl::Seconds(10);
// More attempts are cut to this by gRPC (gRFC A6).
constexpr int kMaxAttempts = 5;

absl::Status CheckOptions(const ClientOptions& options) {
  const auto refuse = [](const char* what) {
    return absl::InvalidArgumentError(absl::StrCat("ClientOptions: ", what));
  };
  if (options.target.empty()) return refuse("target is empty");
  for (const absl::Duration deadline :
       {options.deadlines.estimate, options.deadlines.search, options.deadlines.analysis, options.deadlines.catalog}) {
    if (deadline <= absl::ZeroDuration()) return refuse("a deadline is not above zero");
  }
  const RetryOptions& retry = options.retry;
  if (retry.max_attempts < 1 || retry.max_attempts > kMaxAttempts) return refuse("max_attempts is not 1 to 5");
  for (const absl::Duration backoff : {retry.initial_backoff, retry.max_backoff}) {
    if (backoff <= absl::ZeroDuration() || backoff > absl::Hours(1)) return refuse("a backoff is not up to an hour");
  }
  if (!(retry.backoff_multiplier >= 1 && retry.backoff_multiplier <= 100)) {
    return refuse("backoff_multiplier is not 1 to 100");
  }
  if (options.max_reply_bytes < 1) return refuse("max_reply_bytes is not above 0");
  if (options.tls.client_certificate_file.empty() != options.tls.client_key_file.empty()) {
    return refuse("client certificate and key: one is given without the other");
  }
  return absl::OkStatus();
}

// Empty for an empty path.
absl::StatusOr<std::string> ReadFile(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || !text || text.str().empty()) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  return text.str();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(const ClientOptions& options) {
  if (options.credentials != nullptr) return options.credentials;
  if (options.security == TransportSecurity::kPlaintext) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions pem;
  for (const auto& [path, text] : {std::pair(options.tls.root_certificates_file, &pem.pem_root_certs),
                                   std::pair(options.tls.client_certificate_file, &pem.pem_cert_chain),
                                   std::pair(options.tls.client_key_file, &pem.pem_private_key)}) {
    absl::StatusOr<std::string> read = ReadFile(path);
    if (!read.ok()) return read.status();
    *text = *std::move(read);
  }
  return grpc::SslCredentials(pem);
}

int Milliseconds(absl::Duration duration) { return static_cast<int>(absl::ToInt64Milliseconds(duration)); }

}  // namespace

absl::StatusOr<std::shared_ptr<Connection>> MakeConnection(const ClientOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> credentials = MakeCredentials(options);
  if (!credentials.ok()) return credentials.status();

  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(ServiceConfigJson(options));
  arguments.SetUserAgentPrefix(options.user_agent.empty() ? kUserAgent
                                                          : absl::StrCat(options.user_agent, " ", kUserAgent));
  arguments.SetMaxReceiveMessageSize(options.max_reply_bytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(kKeepaliveTime));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kKeepaliveTimeout));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, Milliseconds(kMaxReconnectBackoff));
  return MakeConnection(grpc::CreateCustomChannel(options.target, *credentials, arguments), options);
}

absl::StatusOr<std::shared_ptr<Connection>> MakeConnection(std::shared_ptr<grpc::Channel> channel,
                                                           const ClientOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  return GrpcConnection::Make(std::move(channel), options);
}

}  // namespace sliceplan
