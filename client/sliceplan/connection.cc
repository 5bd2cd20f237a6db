#include "client/sliceplan/connection.h"

#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/sliceplan/grpc_connection.h"
#include "client/sliceplan/service_config.h"
#include "client/sliceplan/token_source.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "grpcpp/support/channel_arguments.h"

namespace sliceplan {
namespace {

constexpr char kUserAgent[] = "sliceplan-client/" SLICEPLAN_VERSION;

// A replica that died without a word is noticed after at most the sum. Servers allow pings every 20 s.
constexpr absl::Duration kKeepaliveTime = absl::Seconds(30);
constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(10);
// gRPC's own limit of two minutes leaves a restarted server idle for long.
constexpr absl::Duration kMaxReconnectBackoff = absl::Seconds(10);
// How often certificate files are looked at.
constexpr unsigned kCertificateRefreshSeconds = 10;
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
  const bool sends_token = !options.bearer_token.empty() || !options.bearer_token_file.empty();
  if (sends_token && options.security == TransportSecurity::kPlaintext && options.credentials == nullptr &&
      !options.bearer_token_over_plaintext) {
    return refuse("a token over plaintext needs bearer_token_over_plaintext");
  }
  return absl::OkStatus();
}

// NOT_FOUND for a file that is given and has nothing to read.
absl::Status CheckFile(const std::string& path) {
  if (path.empty() || std::ifstream(path, std::ios::binary).get() != std::ifstream::traits_type::eof()) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat("cannot read ", path));
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(const ClientOptions& options) {
  if (options.credentials != nullptr) return options.credentials;
  if (options.security == TransportSecurity::kPlaintext) return grpc::InsecureChannelCredentials();
  const TlsOptions& tls = options.tls;
  for (const std::string& path : {tls.root_certificates_file, tls.client_certificate_file, tls.client_key_file}) {
    if (absl::Status status = CheckFile(path); !status.ok()) return status;
  }
  grpc::experimental::TlsChannelCredentialsOptions credentials;
  if (!tls.root_certificates_file.empty() || !tls.client_certificate_file.empty()) {
    credentials.set_certificate_provider(std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
        tls.client_key_file, tls.client_certificate_file, tls.root_certificates_file, kCertificateRefreshSeconds));
  }
  if (!tls.root_certificates_file.empty()) credentials.watch_root_certs();
  if (!tls.client_certificate_file.empty()) credentials.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(credentials);
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
  absl::StatusOr<std::unique_ptr<TokenSource>> tokens =
      TokenSource::Make(options.bearer_token, options.bearer_token_file);
  if (!tokens.ok()) return tokens.status();
  return GrpcConnection::Make(std::move(channel), options, *std::move(tokens));
}

}  // namespace sliceplan
