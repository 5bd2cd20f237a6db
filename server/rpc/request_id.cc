#include "server/rpc/request_id.h"

#include <algorithm>
#include <cstdint>

#include "absl/random/random.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace sliceplan::rpc {
namespace {

constexpr size_t kMaxIdBytes = 64;

bool IsUsable(absl::string_view id) {
  return !id.empty() && id.size() <= kMaxIdBytes && std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' || c == ':';
  });
}

}  // namespace

std::string RequestIdFrom(absl::string_view callers_id) {
  if (IsUsable(callers_id)) return std::string(callers_id);
  thread_local absl::BitGen random;
  return absl::StrCat(absl::Hex(absl::Uniform<uint64_t>(random), absl::kZeroPad16));
}

}  // namespace sliceplan::rpc
