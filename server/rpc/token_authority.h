// Who may call: bearer tokens from a file (token_file.h), for any transport. Thread-safe.
#ifndef SLICEPLAN_SERVER_RPC_TOKEN_AUTHORITY_H_
#define SLICEPLAN_SERVER_RPC_TOKEN_AUTHORITY_H_

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/rpc/result.h"
#include "server/rpc/token_file.h"

namespace sliceplan::rpc {

// The answer to one call.
struct Authorization {
  // OK; UNAUTHENTICATED; PERMISSION_DENIED; RESOURCE_EXHAUSTED with RetryInfo. All with ErrorInfo, none with what the
  // caller sent.
  Result result;
  // The name of the token; empty when UNAUTHENTICATED.
  std::string client;
  // Of RESOURCE_EXHAUSTED: when the next call may come.
  std::optional<absl::Duration> retry_delay;
};

class TokenAuthority {
 public:
  // NOT_FOUND when the file cannot be read, INVALID_ARGUMENT when it is wrong.
  static absl::StatusOr<std::unique_ptr<TokenAuthority>> Open(
      std::string path, std::function<absl::Time()> now = [] { return absl::Now(); });

  // `header`: the value of "authorization", "Bearer <token>"; empty when there was none. `method`:
  // "sliceplan.v1.PlannerService/EstimateTraining". Takes one call from the rate of the token.
  Authorization Authorize(absl::string_view header, absl::string_view method);

  // Reads the file again. After an error the old tokens stay. Rates go on where they were.
  absl::Status Reload();

  size_t token_count() const;
  const std::string& path() const { return path_; }

 private:
  // One line of the file with what is left of its rate.
  struct Token {
    TokenEntry entry;
    double calls = 0;  // that it may make now
    absl::Time as_of;
  };

  TokenAuthority(std::string path, std::function<absl::Time()> now) : path_(std::move(path)), now_(std::move(now)) {}

  Token* FindLocked(absl::string_view header);
  // Zero when a call may be made, which it takes; else the time until the next.
  absl::Duration TakeLocked(Token& token) const;

  const std::string path_;
  const std::function<absl::Time()> now_;
  mutable std::mutex mutex_;
  std::vector<Token> tokens_;
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_TOKEN_AUTHORITY_H_
