// Ranges of single fields, as the comments of the contract state them.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_RANGES_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_RANGES_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/rpc/field_path.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

inline constexpr int64_t kMaxExactInteger = int64_t{1} << 53;  // counted exactly by a double
inline constexpr double kLeastPositive = 1e-6;                 // what is divided by such a value stays finite
inline constexpr int32_t kMaxTokensOfSequence = 1 << 30;

// Each adds a violation when the value is out of range and says whether it was in.
bool CheckRange(int64_t value, int64_t least, int64_t greatest, const FieldPath& path, Violations& violations);
// NaN and the infinities are out of every range.
bool CheckRange(double value, double least, double greatest, const FieldPath& path, Violations& violations);
// kLeastPositive to `greatest`.
bool CheckPositive(double value, double greatest, const FieldPath& path, Violations& violations);
bool CheckLength(absl::string_view text, size_t greatest, const FieldPath& path, Violations& violations);
bool CheckCount(int count, int greatest, const FieldPath& path, Violations& violations);

// "Required.": the field or the choice is not set.
void AddRequired(absl::string_view what, const FieldPath& path, Violations& violations);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_RANGES_H_
