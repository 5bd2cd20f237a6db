#include "server/rpc/sha256.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "openssl/crypto.h"
#include "openssl/sha.h"

namespace sliceplan::rpc {

Sha256Digest Sha256(absl::string_view bytes) {
  static_assert(kSha256Bytes == SHA256_DIGEST_LENGTH);
  Sha256Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return digest;
}

std::string ToHex(const Sha256Digest& digest) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

std::optional<Sha256Digest> Sha256FromHex(absl::string_view hex) {
  if (hex.size() != 2 * kSha256Bytes || !std::all_of(hex.begin(), hex.end(), [](char c) {
        return absl::ascii_isxdigit(static_cast<unsigned char>(c));
      })) {
    return std::nullopt;
  }
  const std::string bytes = absl::HexStringToBytes(hex);
  Sha256Digest digest;
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

bool EqualInConstantTime(const Sha256Digest& a, const Sha256Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), kSha256Bytes) == 0;
}

}  // namespace sliceplan::rpc
