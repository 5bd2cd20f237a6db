// The bearer token of a client: as given, or from a file that may change. Internal to the library.
#ifndef SLICEPLAN_CLIENT_SLICEPLAN_TOKEN_SOURCE_H_
#define SLICEPLAN_CLIENT_SLICEPLAN_TOKEN_SOURCE_H_

#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace sliceplan {

// INVALID_ARGUMENT unless the token can be sent: 1 to 4,096 visible ASCII characters.
absl::Status CheckToken(const std::string& token);

// Thread-safe.
class TokenSource {
 public:
  // At most one of the two may be set. INVALID_ARGUMENT for a token that cannot be sent, NOT_FOUND for a file that
  // cannot be read.
  static absl::StatusOr<std::unique_ptr<TokenSource>> Make(const std::string& token, const std::string& file);

  // Empty: none. Looks at the file at most once a second, and keeps the last token when it can no longer be read.
  std::string Token();

 private:
  absl::Status Read();

  std::mutex mutex_;
  std::string token_;
  std::string file_;
  absl::Time looked_;
};

}  // namespace sliceplan

#endif  // SLICEPLAN_CLIENT_SLICEPLAN_TOKEN_SOURCE_H_
