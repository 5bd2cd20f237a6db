// How a client reaches the service. Every default is stated here; client/sliceplan/service_config.cc turns them into
// what gRPC reads.
#ifndef SLICEPLAN_CLIENT_SLICEPLAN_OPTIONS_H_
#define SLICEPLAN_CLIENT_SLICEPLAN_OPTIONS_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace grpc {
class ChannelCredentials;
}  // namespace grpc

namespace sliceplan {

// PEM files, read again when they change: new connections use the newest.
struct TlsOptions {
  // Who may sign the server's certificate. Empty: the authorities that gRPC trusts.
  std::string root_certificates_file;
  // The client's own certificate and key, for servers that ask for one. Both or neither.
  std::string client_certificate_file;
  std::string client_key_file;
};

enum class TransportSecurity { kTls, kPlaintext };

// How long a call may take, over all of its tries, unless its CallOptions say otherwise. Above zero;
// absl::InfiniteDuration() means no deadline, and the server then applies its own.
struct Deadlines {
  absl::Duration estimate = absl::Seconds(30);  // EstimateTraining, EstimateServing
  absl::Duration search = absl::Minutes(2);     // ProposeSharding
  absl::Duration analysis = absl::Seconds(10);  // AnalysisService
  absl::Duration catalog = absl::Seconds(10);   // CatalogService
};

// Calls that fail with UNAVAILABLE or RESOURCE_EXHAUSTED are tried again: every RPC is free of side effects. Waits grow
// from `initial_backoff` by `backoff_multiplier` up to `max_backoff`, each shortened at random; a server that sheds
// load sets them itself (grpc-retry-pushback-ms). When a target fails a lot, retries stop by themselves: of 1,000
// tokens each failure takes one, each success gives 0.1 back, and there are no retries below 500.
struct RetryOptions {
  int max_attempts = 4;  // the first try included; 1 means no retries. 1 to 5, the most that gRPC allows.
  absl::Duration initial_backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(1);
  double backoff_multiplier = 2;  // 1 or more
};

struct ClientOptions {
  // A gRPC target. In Kubernetes name the headless service and the pods' port, "dns:///sliceplan-headless:8080", so
  // that calls go round all replicas. The default is a server with default flags on this machine.
  std::string target = "dns:///localhost:8080";

  // Plaintext must be asked for. It is what a server without certificates speaks.
  TransportSecurity security = TransportSecurity::kTls;
  TlsOptions tls;
  // Instead of `security` and `tls`: any credentials of gRPC.
  std::shared_ptr<grpc::ChannelCredentials> credentials;

  // Sent with every call as "authorization: Bearer ...", for servers with a token file. Visible ASCII. At most one of
  // the two; the file holds the token alone and is read again when it changes.
  std::string bearer_token;
  std::string bearer_token_file;
  // Over plaintext everybody on the way can read the token: allowed when asked for, for loopback and for networks that
  // encrypt.
  bool bearer_token_over_plaintext = false;

  Deadlines deadlines;
  RetryOptions retry;

  // Whether calls wait for a connection until their deadline. Off: they fail with UNAVAILABLE, after the retries, when
  // no replica can be reached.
  bool wait_for_ready = false;
  // Whether replicas that say NOT_SERVING get no calls. Servers without a health service count as healthy.
  bool health_checks = true;
  // Name and version of the application, "gang-scheduler/2.1"; goes before the library's own in the user agent.
  std::string user_agent;
  // Largest reply that is read. Above 0.
  int max_reply_bytes = 4 << 20;
};

// What one call wants to have different.
struct CallOptions {
  // Instead of the method's deadline. Above zero.
  std::optional<absl::Duration> timeout;
  std::optional<bool> wait_for_ready;
  // Instead of the client's, under the same rules: for programs that call on behalf of others.
  std::optional<std::string> bearer_token;
  // Sent as they are: names in lower case, {"x-request-id", "job-17"}.
  std::vector<std::pair<std::string, std::string>> metadata;
};

}  // namespace sliceplan

#endif  // SLICEPLAN_CLIENT_SLICEPLAN_OPTIONS_H_
