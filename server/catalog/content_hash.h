// A short name of some content: equal content, equal name, on every machine.
#ifndef SLICEPLAN_SERVER_CATALOG_CONTENT_HASH_H_
#define SLICEPLAN_SERVER_CATALOG_CONTENT_HASH_H_

#include <string>

#include "absl/numeric/int128.h"
#include "absl/strings/string_view.h"

namespace sliceplan::catalog {

// FNV-1a with 128 bits (Fowler, Noll, Vo; constants of draft-eastlake-fnv). Not meant against forgery.
class ContentHash {
 public:
  // Texts are told apart: Add("ab"), Add("c") differs from Add("a"), Add("bc").
  void Add(absl::string_view text);

  // The first twelve hexadecimal digits, lower case.
  std::string Digits() const;

 private:
  void AddByte(unsigned char byte);

  absl::uint128 state_ = absl::MakeUint128(0x6c62272e07bb0142, 0x62b821756295c58d);
};

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_CONTENT_HASH_H_
