// The file of bearer tokens: who may call what, and how often. One token a line, fields between blanks:
//
//   # name       SHA-256 of the token, in hex                       methods it may call      calls a second
//   scheduler    9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c…                           rate=200 burst=400
//   dashboard    60303ae22b998861bce3b28f33eec1be758a213c86c93c07…  methods=CatalogService/*,PlannerService/Estimate*
//
// `sliceplan-server --hash_token` hashes a token. A name may have several lines, so that a new token can come before
// the old one goes: they are one client to the worker pool, but each has its own rate.
#ifndef SLICEPLAN_SERVER_RPC_TOKEN_FILE_H_
#define SLICEPLAN_SERVER_RPC_TOKEN_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/rpc/sha256.h"

namespace sliceplan::rpc {

struct TokenEntry {
  // Letters, digits, '-', '_' and '.', 1 to 64.
  std::string name;
  Sha256Digest digest = {};
  // Of "PlannerService/EstimateTraining"; '*' stands for any text. Empty: every method.
  std::vector<std::string> methods;
  // Calls a second on average; 0: any number.
  double rate = 0;
  // Calls at once after a pause. At least 1; without `burst` one second's worth.
  double burst = 1;
};

// INVALID_ARGUMENT names the lines that are wrong and never repeats what stands there, which might be a secret.
absl::StatusOr<std::vector<TokenEntry>> ParseTokens(absl::string_view text);

// Whether `text` fits `pattern`, in which '*' stands for any text.
bool MatchesGlob(absl::string_view pattern, absl::string_view text);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_TOKEN_FILE_H_
