// SHA-256 (FIPS 180-4), by OpenSSL.
#ifndef SLICEPLAN_SERVER_RPC_SHA256_H_
#define SLICEPLAN_SERVER_RPC_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace sliceplan::rpc {

inline constexpr size_t kSha256Bytes = 32;
using Sha256Digest = std::array<uint8_t, kSha256Bytes>;

Sha256Digest Sha256(absl::string_view bytes);

// 64 hexadecimal digits, written in lower case, read in either.
std::string ToHex(const Sha256Digest& digest);
std::optional<Sha256Digest> Sha256FromHex(absl::string_view hex);

// In a time that does not depend on where they differ.
bool EqualInConstantTime(const Sha256Digest& a, const Sha256Digest& b);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_SHA256_H_
