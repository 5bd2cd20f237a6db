#include "client/cli/backend.h"

namespace sliceplan::cli {

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const BackendOptions& options) {
  return options.server.empty() ? MakeLocalBackend(options) : MakeRemoteBackend(options);
}

}  // namespace sliceplan::cli
