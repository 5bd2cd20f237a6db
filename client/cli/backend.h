// Where a question is answered: in this process, or by a server.
#ifndef SLICEPLAN_CLIENT_CLI_BACKEND_H_
#define SLICEPLAN_CLIENT_CLI_BACKEND_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "proto/google/rpc/status.pb.h"

namespace sliceplan::cli {

class Backend {
 public:
  virtual ~Backend() = default;

  // One call of "sliceplan.v1.PlannerService/EstimateTraining". The answer is OK (code 0, `*response` filled in) or the
  // error with its details.
  virtual google::rpc::Status Call(const std::string& method, const google::protobuf::Message& request,
                                   google::protobuf::Message* response) = 0;
};

struct BackendOptions {
  // "host:port" or a gRPC target; empty answers in this process.
  std::string server;
  // Of a server: TLS with the authorities in `ca_file`, or with those that gRPC trusts.
  bool tls = false;
  std::string ca_file;
  // PEM files of this program's own certificate and key, for servers that ask for one. Both or neither.
  std::string cert_file;
  std::string key_file;
  // Holds a bearer token, which goes over plaintext on this machine only.
  std::string token_file;
  // Most time for a call; absent means the client library's default for a server, and no limit in this process.
  std::optional<absl::Duration> timeout;
  // In this process: files that replace or add to the built-in catalog; empty means none.
  std::string catalog_dir;
};

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const BackendOptions& options);

// The handlers of the service without a socket.
absl::StatusOr<std::unique_ptr<Backend>> MakeLocalBackend(const BackendOptions& options);
// A server, through the client library.
absl::StatusOr<std::unique_ptr<Backend>> MakeRemoteBackend(const BackendOptions& options);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_BACKEND_H_
