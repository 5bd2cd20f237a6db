// The flags of sliceplan-server.
#ifndef SLICEPLAN_SERVER_RPC_SERVER_FLAGS_H_
#define SLICEPLAN_SERVER_RPC_SERVER_FLAGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/rpc/json_log.h"
#include "server/rpc/lifetime.h"
#include "server/rpc/server_options.h"

namespace sliceplan::rpc {

struct ServerFlags {
  ServerOptions server;
  LifetimeOptions lifetime;
  std::string catalog_dir;
  Severity log_level = Severity::kInfo;
  // Instead of serving: hash the token on standard input for a token file.
  bool hash_token = false;
};

// Reads the command line: exits for --help, and for flags that do not exist. INVALID_ARGUMENT for values that make no
// sense and for arguments that are no flags.
absl::StatusOr<ServerFlags> ParseServerFlags(int argc, char** argv);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_SERVER_FLAGS_H_
