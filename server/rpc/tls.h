// TLS of the listener: certificate, key and the authorities of clients from PEM files, read again when they change.
#ifndef SLICEPLAN_SERVER_RPC_TLS_H_
#define SLICEPLAN_SERVER_RPC_TLS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/security/server_credentials.h"

namespace sliceplan::rpc {

struct TlsFiles {
  // The chain, the server's own certificate first, and its key without a password. Both or neither.
  std::string certificate;
  std::string key;
  // Who may sign the certificates of clients. Given: clients must have one. Empty: clients need none.
  std::string client_authorities;
  // How often to look for new files. A second or more, in whole seconds.
  absl::Duration refresh = absl::Seconds(10);

  bool enabled() const { return !certificate.empty() || !key.empty() || !client_authorities.empty(); }
};

// Reads the files. When the certificate ends (not_after); INVALID_ARGUMENT for what is missing, cannot be read, does
// not fit together or has expired. Messages hold paths, never contents.
absl::StatusOr<absl::Time> CheckTlsFiles(const TlsFiles& files, absl::Time now);

// Requires files that pass the check. New handshakes use the newest files; open connections stay. While a certificate
// and a key that do not belong together stand there, handshakes fail: replace both at once, by renaming the directory
// or a symbolic link to it.
std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(const TlsFiles& files);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_TLS_H_
