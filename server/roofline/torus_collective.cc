#include "server/roofline/torus_collective.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace sliceplan::roofline {
namespace {

using hardware::GroupPiece;
using hardware::TorusAxis;

// All pieces of one axis, read from the inside.
struct AxisPieces {
  int64_t members = 1;
  int64_t outer_factor = 1;
  int64_t outer_stride = 1;
  int64_t inner_span = 0;  // sum of stride x (factor - 1) of all but the outermost piece
  bool single = true;

  int64_t Cell() const { return outer_factor * outer_stride; }
  int64_t Span() const { return inner_span + outer_stride * (outer_factor - 1); }
};

// The shapes that are built twisted: every wrap link of an axis of length k also shifts all axes of length 2k by k.
struct Twist {
  int64_t short_size = 0;
  int short_count = 0;
  int long_count = 0;
};

constexpr int64_t kSmallestTwistedAxis = 4;

bool RingsShut(const TorusAxis& axis) { return axis.wraps && axis.size > 2; }

absl::Status TwistOf(absl::Span<const TorusAxis> axes, Twist& twist) {
  int64_t shortest = axes.empty() ? 0 : axes[0].size;
  bool all_wrap = true;
  for (const TorusAxis& axis : axes) {
    shortest = std::min<int64_t>(shortest, axis.size);
    all_wrap = all_wrap && RingsShut(axis);
  }
  twist.short_size = shortest;
  bool legal =
      all_wrap && axes.size() >= 2 && axes.size() <= 3 && shortest >= kSmallestTwistedAxis && shortest % 2 == 0;
  for (const TorusAxis& axis : axes) {
    if (axis.size == shortest) {
      ++twist.short_count;
    } else if (axis.size == 2 * shortest) {
      ++twist.long_count;
    } else {
      legal = false;
    }
  }
  if (legal && twist.long_count > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a twisted torus has the shape k x 2k, k x k x 2k or k x 2k x 2k with k even, at least 4, and every axis "
      "wrapping");
}

absl::Status CheckPiece(const GroupPiece& piece, absl::Span<const TorusAxis> axes) {
  if (piece.axis < 0 || static_cast<size_t>(piece.axis) >= axes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", piece.axis, " is outside the ", axes.size(), " axes of the slice"));
  }
  if (piece.factor < 1 || piece.stride < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("factor ", piece.factor, " and stride ", piece.stride, " must both be at least 1"));
  }
  const int64_t cell = static_cast<int64_t>(piece.factor) * piece.stride;
  const int32_t size = axes[piece.axis].size;
  if (cell > size || size % cell != 0) {
    return absl::InvalidArgumentError(absl::StrCat("factor ", piece.factor, " x stride ", piece.stride,
                                                   " does not divide axis ", piece.axis, " of size ", size));
  }
  return absl::OkStatus();
}

// Merges the pieces of one axis, smallest stride first.
absl::Status MergeAxis(absl::Span<const GroupPiece> pieces, int32_t axis, AxisPieces& merged) {
  uint64_t used = 0;
  for (;;) {
    int next = -1;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].axis != axis || pieces[i].factor == 1 || (used >> i & 1) != 0) continue;
      if (next < 0 || pieces[i].stride < pieces[next].stride) next = static_cast<int>(i);
    }
    if (next < 0) return absl::OkStatus();
    used |= uint64_t{1} << next;
    const GroupPiece& piece = pieces[next];
    if (merged.members == 1) {
      merged.outer_factor = piece.factor;
      merged.outer_stride = piece.stride;
    } else if (piece.stride % merged.Cell() != 0) {
      return absl::InvalidArgumentError(absl::StrCat("two pieces of axis ", axis, " overlap: factor ",
                                                     merged.outer_factor, " x stride ", merged.outer_stride,
                                                     " and factor ", piece.factor, " x stride ", piece.stride));
    } else if (piece.stride == merged.Cell()) {
      merged.outer_factor *= piece.factor;
    } else {
      merged.inner_span += merged.outer_stride * (merged.outer_factor - 1);
      merged.outer_factor = piece.factor;
      merged.outer_stride = piece.stride;
      merged.single = false;
    }
    merged.members *= piece.factor;
  }
}

// docs/collectives.md section 2 (one piece) and section 4 (pieces of one axis with a gap between them).
void FillSpan(const AxisPieces& pieces, int64_t size, bool closing, AxisSpan& span) {
  const double members = static_cast<double>(pieces.members);
  const double factor = static_cast<double>(pieces.outer_factor);
  const double stride = static_cast<double>(pieces.outer_stride);
  const double links = closing ? 2 : 1;
  span.members = members;
  span.closing = closing;
  span.whole = pieces.members == size;
  span.gather = stride * (factor - 1) / links + static_cast<double>(pieces.inner_span);
  span.permute = static_cast<double>(pieces.Cell()) / members;
  span.permute_optimum = closing ? span.permute * (members - 1) / members : span.permute;
  if (pieces.single) {
    span.half_axes = links / stride;
    span.reduce_axes = (closing ? 1 : (factor - 1) / factor) / stride;
    span.exchange = stride * std::floor(factor * factor / 4) / factor / links;
    span.gather_hops = pieces.outer_stride * (closing ? pieces.outer_factor / 2 : pieces.outer_factor - 1);
    span.permute_hops = pieces.outer_stride * (closing ? 1 : pieces.outer_factor - 1);
    // Two chips opposite to each other on a ring are equally far both ways round.
    if (closing && pieces.outer_factor == 2) span.permute = span.permute_optimum;
    return;
  }
  span.half_axes = (members - 1) / span.gather;
  span.reduce_axes = span.half_axes / 2;
  span.exchange = static_cast<double>(pieces.Cell()) / 4 / links;
  if (closing) {
    span.gather_hops = std::min(size / 2, pieces.outer_stride * (pieces.outer_factor / 2) + pieces.inner_span);
    const int64_t around = size - pieces.Span();
    span.permute_hops = std::min(around, size - around);
  } else {
    span.gather_hops = pieces.Span();
    span.permute_hops = pieces.Span();
  }
}

// Largest over the non-empty subsets of the axes of (members - 1) / sum of `width`: an axis that is crossed too
// expensively sets the time alone.
double LargestCut(const AxisSpans& spans, double AxisSpan::*width) {
  double largest = 0;
  for (unsigned subset = 1; subset < 1u << spans.count; ++subset) {
    double members = 1;
    double links = 0;
    for (int i = 0; i < spans.count; ++i) {
      if ((subset >> i & 1) == 0) continue;
      members *= spans.span[i].members;
      links += spans.span[i].*width;
    }
    largest = std::max(largest, (members - 1) / links);
  }
  return largest;
}

bool IsWholeTwistedTorus(absl::Span<const TorusAxis> axes, const Twist& twist, const AxisSpans& spans,
                         int& short_count) {
  short_count = 0;
  int long_count = 0;
  for (int i = 0; i < spans.count; ++i) {
    if (!spans.span[i].whole || !spans.span[i].closing) return false;
    (axes[spans.span[i].axis].size == twist.short_size ? short_count : long_count) += 1;
  }
  return short_count > 0 && long_count == twist.long_count;
}

// Shortest-path fits to the link-level optimum. docs/collectives.md section 5.
double TwistedExchange(double k, int short_count, int long_count) {
  if (long_count == 2) return 35 * k / 192 - 1 / (24 * k);
  if (short_count == 2) return (7 * k * k - 2) / (48 * k);
  return (4 * k * k - 1) / (24 * k);
}

int64_t TwistedDiameter(int64_t k, int axis_count) { return axis_count == 2 ? k : 3 * k / 2; }

}  // namespace

absl::Status SpansOf(absl::Span<const TorusAxis> axes, bool twisted, absl::Span<const GroupPiece> pieces,
                     AxisSpans& spans) {
  spans.count = 0;
  spans.members = 1;
  spans.fastest = 0;
  if (axes.size() > kMaxTorusAxes) {
    return absl::InvalidArgumentError(absl::StrCat("a torus of ", axes.size(), " axes; at most ", kMaxTorusAxes));
  }
  if (pieces.size() > kMaxGroupPieces) {
    return absl::InvalidArgumentError(absl::StrCat("a group of ", pieces.size(), " pieces; at most ", kMaxGroupPieces));
  }
  int32_t fastest_axis = -1;
  for (const GroupPiece& piece : pieces) {
    if (absl::Status status = CheckPiece(piece, axes); !status.ok()) return status;
    if (piece.factor > 1) fastest_axis = piece.axis;
  }
  Twist twist;
  if (twisted) {
    if (absl::Status status = TwistOf(axes, twist); !status.ok()) return status;
  }

  AxisPieces merged[kMaxTorusAxes];
  bool long_axes_hold_half_turn = true;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (absl::Status status = MergeAxis(pieces, static_cast<int32_t>(axis), merged[axis]); !status.ok()) return status;
    const bool reaches_round = merged[axis].Cell() == axes[axis].size && merged[axis].members > 1;
    if (twisted && axes[axis].size != twist.short_size && !(reaches_round && merged[axis].outer_factor % 2 == 0)) {
      long_axes_hold_half_turn = false;
    }
  }
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (merged[axis].members == 1) continue;
    bool closing = RingsShut(axes[axis]) && merged[axis].Cell() == axes[axis].size;
    // A wrap link of a short axis lands half way along the long axes: outside the group unless it has members there.
    if (twisted && axes[axis].size == twist.short_size && !long_axes_hold_half_turn) closing = false;
    AxisSpan& span = spans.span[spans.count];
    FillSpan(merged[axis], axes[axis].size, closing, span);
    span.axis = static_cast<int32_t>(axis);
    if (span.axis == fastest_axis) spans.fastest = spans.count;
    spans.members *= span.members;
    ++spans.count;
  }
  return absl::OkStatus();
}

TorusCost TorusCollective(CollectiveKind kind, absl::Span<const TorusAxis> axes, bool twisted, const AxisSpans& spans,
                          const CollectiveOptions& options) {
  TorusCost cost;
  if (spans.count == 0) return cost;
  for (int i = 0; i < spans.count; ++i) cost.hops += spans.span[i].gather_hops;

  Twist twist;
  int short_count = 0;
  const bool whole_twisted_torus =
      twisted && TwistOf(axes, twist).ok() && IsWholeTwistedTorus(axes, twist, spans, short_count);
  if (whole_twisted_torus) cost.hops = TwistedDiameter(twist.short_size, spans.count);

  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter: cost.units = LargestCut(spans, &AxisSpan::half_axes) / spans.members; break;
    case CollectiveKind::kAllReduce:
      cost.hops *= 2;
      cost.units = options.optimal_all_reduce ? LargestCut(spans, &AxisSpan::reduce_axes) / spans.members
                                              : 2 * LargestCut(spans, &AxisSpan::half_axes) / spans.members;
      break;
    case CollectiveKind::kAllToAll:
      if (whole_twisted_torus) {
        cost.units = TwistedExchange(static_cast<double>(twist.short_size), short_count, twist.long_count);
      } else {
        for (int i = 0; i < spans.count; ++i) cost.units = std::max(cost.units, spans.span[i].exchange);
      }
      cost.units *= options.all_to_all_fill_ratio / spans.members;
      break;
    case CollectiveKind::kCollectivePermute:
      cost.hops = 0;
      for (int i = 0; i < spans.count; ++i) {
        cost.hops += spans.span[i].permute_hops;
        cost.units = std::max(cost.units, spans.span[i].permute);
      }
      if (options.optimal_permute) cost.units = spans.span[spans.fastest].permute_optimum;
      break;
  }
  return cost;
}

}  // namespace sliceplan::roofline
