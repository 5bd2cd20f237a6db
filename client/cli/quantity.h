// Quantities as people type them. Errors are INVALID_ARGUMENT with a sentence that shows what would be right.
#ifndef SLICEPLAN_CLIENT_CLI_QUANTITY_H_
#define SLICEPLAN_CLIENT_CLI_QUANTITY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sliceplan::cli {

// "4194304", "15T", "1.5e13", "4Mi", "70B". k, K, M, G, T, P are powers of 1000, B is G; Ki, Mi, Gi, Ti, Pi are powers
// of 1024. Exact: refuses what is not a whole number of at most 2^63 - 1, and negative numbers.
absl::StatusOr<int64_t> ParseCount(absl::string_view text);

// As ParseCount, with or without a closing "B" for bytes: "64Mi", "64MiB", "64MB", "512".
absl::StatusOr<int64_t> ParseBytes(absl::string_view text);

// "0.4", "5M", "1.2e6", "$3.50": the suffixes of ParseCount but B. "40%" is 0.4. Finite.
absl::StatusOr<double> ParseNumber(absl::string_view text);

// Seconds: "30d", "1d12h", "2h", "45min", "90s", "250ms", "2us"; "m" is minutes, "w" weeks; a bare number is seconds.
absl::StatusOr<double> ParseSeconds(absl::string_view text);

// Tokens of a batch, which are powers of two in practice: K, M and G mean powers of 1024, unless only the power of 1000
// is a multiple of `sequence_length` (0: not known). Numbers without suffix, and Ki, Mi, Gi, are what they say.
struct BatchTokens {
  int64_t tokens = 0;
  std::string note;  // how a suffix was read; empty when there was none to choose about
};
absl::StatusOr<BatchTokens> ParseBatchTokens(absl::string_view text, int64_t sequence_length);

// "fsdp=512,tensor=4": names and values in order. Both sides of each "=" are there.
struct Assignment {
  std::string name;
  std::string value;
};
absl::StatusOr<std::vector<Assignment>> ParseAssignments(absl::string_view text);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_QUANTITY_H_
