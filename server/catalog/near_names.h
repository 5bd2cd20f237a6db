// Names that a misspelt one may have meant.
#ifndef SLICEPLAN_SERVER_CATALOG_NEAR_NAMES_H_
#define SLICEPLAN_SERVER_CATALOG_NEAR_NAMES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sliceplan::catalog {

// Lower case, blanks and underscores as hyphens: how names are compared.
std::string NormalizeName(absl::string_view name);

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal string alignment), or
// `limit` + 1 when there are more than `limit`.
size_t EditDistance(absl::string_view a, absl::string_view b, size_t limit);

// At most `max_count` of `names`, nearest first: by edit distance of the normalised names, at most a third of the
// longer one, then those that contain `name` or are contained in it. Equal ranks in the order of `names`.
std::vector<std::string> NearNames(absl::string_view name, absl::Span<const absl::string_view> names,
                                   size_t max_count = 3);

// "; did you mean \"a\", \"b\" or \"c\"?", or nothing when `near_names` is empty.
std::string DidYouMean(absl::Span<const std::string> near_names);

// The name in quotes for a message, cut when it is long: a request may hold a megabyte.
std::string Quoted(absl::string_view name);

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_NEAR_NAMES_H_
