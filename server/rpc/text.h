// Text that is safe to send: valid UTF-8 without control characters, cut to a length.
#ifndef SLICEPLAN_SERVER_RPC_TEXT_H_
#define SLICEPLAN_SERVER_RPC_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace sliceplan::rpc {

// At most `max_bytes` of `text` (at least 3). Longer text ends in "..."; nothing is cut inside a character; control
// characters and bytes that are not UTF-8 become '?'.
std::string Printable(absl::string_view text, size_t max_bytes);

// `text` in single quotes, Printable to 64 bytes: how messages repeat what the caller wrote.
std::string Quoted(absl::string_view text);

// Length of the UTF-8 character at the start of `text`, 1 to 4; 0 when there is none.
size_t Utf8CharacterLength(absl::string_view text);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_TEXT_H_
