// The smallest number that passes, where all after one that passes do and each question is dear.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_COUNT_SEARCH_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_COUNT_SEARCH_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"

namespace sliceplan::planner {

using PassesCount = absl::FunctionRef<bool(int64_t)>;

// Of (fails, passes]: halves.
inline int64_t FirstBetween(int64_t fails, int64_t passes_at, PassesCount passes) {
  while (passes_at - fails > 1) {
    const int64_t middle = fails + (passes_at - fails) / 2;
    (passes(middle) ? passes_at : fails) = middle;
  }
  return passes_at;
}

// Of (fails, most]: steps that double, then halves. Empty: not even `most`.
inline std::optional<int64_t> FirstAbove(int64_t fails, int64_t most, PassesCount passes) {
  for (int64_t step = 1; fails < most; step *= 2) {
    const int64_t next = std::min(most, fails + step);
    if (passes(next)) return FirstBetween(fails, next, passes);
    fails = next;
  }
  return std::nullopt;
}

// Of [least, passes_at]: steps that double, then halves.
inline int64_t FirstBelow(int64_t least, int64_t passes_at, PassesCount passes) {
  for (int64_t step = 1; passes_at > least; step *= 2) {
    const int64_t next = std::max(least, passes_at - step);
    if (!passes(next)) return FirstBetween(next, passes_at, passes);
    passes_at = next;
  }
  return passes_at;
}

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_COUNT_SEARCH_H_
