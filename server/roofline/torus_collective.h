// Collectives on the direct links of a torus: rings, lines, factors of them, several axes at once, twisted wraps.
// docs/collectives.md sections 1 to 5 derive every formula. LawOf (collective.h) is the door to them.
#ifndef SLICEPLAN_SERVER_ROOFLINE_TORUS_COLLECTIVE_H_
#define SLICEPLAN_SERVER_ROOFLINE_TORUS_COLLECTIVE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/hardware/slice.h"
#include "server/roofline/collective.h"

namespace sliceplan::roofline {

inline constexpr int kMaxTorusAxes = 4;
inline constexpr int kMaxGroupPieces = 64;

// What the members of a group are on one physical axis, pieces merged. Times are in units of (group bytes / link rate /
// group size).
struct AxisSpan {
  int32_t axis = 0;
  double members = 1;
  double gather = 0;       // all-gather along this axis alone
  double half_axes = 0;    // (members - 1) / gather: links per chip into a cell; a whole ring has 2, a whole line 1
  double reduce_axes = 0;  // the same for an optimal all-reduce: 1 for a whole ring
  double exchange = 0;     // all-to-all
  // Permute, in units of (chip bytes / link rate): shortest routes, and with the long way round.
  double permute = 0;
  double permute_optimum = 0;
  int64_t gather_hops = 0;
  int64_t permute_hops = 0;
  bool closing = false;  // the outermost member reaches the first one over a wrap link
  bool whole = false;    // every chip of the axis
};

// The spans of a group, in the order of the physical axes. Fixed storage: a law needs no allocation.
struct AxisSpans {
  AxisSpan span[kMaxTorusAxes];
  int count = 0;
  double members = 1;
  int32_t fastest = 0;  // index in `span` of the axis of the last piece
};

// Checks the pieces and merges those that continue each other on one axis. INVALID_ARGUMENT: axis out of range, factor
// or stride below 1, factor x stride does not divide the axis, pieces overlap, more than kMaxTorusAxes axes or
// kMaxGroupPieces pieces, or `twisted` on a shape that has no twisted form (k x 2k, k x k x 2k, k x 2k x 2k with k even
// and at least 4, all axes wrapping).
absl::Status SpansOf(absl::Span<const hardware::TorusAxis> axes, bool twisted,
                     absl::Span<const hardware::GroupPiece> pieces, AxisSpans& spans);

struct TorusCost {
  // Seconds x link bytes per second / bytes: multiply by 1 / link rate.
  double units = 0;
  int64_t hops = 0;
};

// One collective over a group of a torus. Requires spans of SpansOf for the same axes.
TorusCost TorusCollective(CollectiveKind kind, absl::Span<const hardware::TorusAxis> axes, bool twisted,
                          const AxisSpans& spans, const CollectiveOptions& options);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_TORUS_COLLECTIVE_H_
