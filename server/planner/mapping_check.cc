// Whether degrees can be placed on a slice, and whether a placement that a request gives is one.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/planner/mapping.h"
#include "server/planner/mapping_enumeration.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

using hardware::FabricKind;
using hardware::GroupPiece;
using hardware::Slice;
using hardware::TorusAxis;
using hardware::Violation;

// Degrees above and below an impossible one that are tried for a suggestion.
constexpr int64_t kSuggestionReach = 64;

using Axes = absl::InlinedVector<int32_t, 3>;

// Sizes of the physical axes; of a switched slice, its GPUs.
Axes PhysicalAxes(const Slice& slice) {
  if (slice.accelerator.fabric == FabricKind::kSwitched) return {static_cast<int32_t>(slice.chip_count)};
  Axes axes;
  for (const TorusAxis& axis : slice.axes) axes.push_back(axis.size);
  return axes;
}

std::string AxesWords(const Slice& slice) {
  const Axes axes = PhysicalAxes(slice);
  if (slice.accelerator.fabric == FabricKind::kSwitched) return absl::StrCat(CountWords(axes[0]), " GPUs");
  return absl::StrCat(axes.size() == 1 ? "axis " : "axes ", absl::StrJoin(axes, ", "));
}

std::string DegreesWords(const AxisDegrees& degrees) {
  std::string words;
  for (LogicalAxis axis : kLogicalAxes) {
    if (degrees[axis] > 1) {
      absl::StrAppend(&words, words.empty() ? "" : ", ", LogicalAxisName(axis), " ", CountWords(degrees[axis]));
    }
  }
  return words;
}

// Whether `degree` is a product of one factor per axis: a divisor of it, or with idle chips anything up to it.
bool FitsAlone(int64_t degree, absl::Span<const int32_t> axes, bool allow_idle_chips) {
  if (axes.empty()) return degree == 1;
  if (!allow_idle_chips) {
    // Taking the greatest common divisor with each axis in turn never takes what another axis would need: a prime that
    // is left over is one that no axis has any more.
    for (int32_t size : axes) degree /= std::gcd(degree, static_cast<int64_t>(size));
    return degree == 1;
  }
  if (degree <= axes[0]) return true;
  if (axes.size() == 1) return false;
  const auto first_takes = [&](int64_t factor) {
    return factor <= axes[0] && FitsAlone(degree / factor, axes.subspan(1), true);
  };
  for (int64_t low = 1; low * low <= degree; ++low) {
    if (degree % low == 0 && (first_takes(low) || first_takes(degree / low))) return true;
  }
  return false;
}

std::string Suggestion(int64_t degree, const Axes& axes, bool allow_idle_chips, int64_t chips) {
  std::vector<std::string> fitting;
  for (int64_t d = degree - 1; d >= 1 && d >= degree - kSuggestionReach; --d) {
    if (!FitsAlone(d, axes, allow_idle_chips)) continue;
    fitting.push_back(CountWords(d));
    break;
  }
  for (int64_t d = degree + 1; d <= chips && d <= degree + kSuggestionReach; ++d) {
    if (!FitsAlone(d, axes, allow_idle_chips)) continue;
    fitting.push_back(CountWords(d));
    break;
  }
  return fitting.empty() ? "" : absl::StrCat("; ", absl::StrJoin(fitting, " or "), " can be placed");
}

Violation Invalid(std::string field, std::string description, absl::string_view reason) {
  return {std::move(field), std::move(description), std::string(reason), Violation::Kind::kInvalid};
}

// Assignments of one physical axis, innermost first, with their places in the request.
struct Placed {
  size_t index = 0;
  AxisAssignment assignment;
};

std::vector<Placed> OnAxis(const std::vector<AxisAssignment>& mapping, int32_t physical) {
  std::vector<Placed> placed;
  for (size_t i = 0; i < mapping.size(); ++i) {
    if (mapping[i].physical_axis == physical && mapping[i].factor > 1) placed.push_back({i, mapping[i]});
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const Placed& a, const Placed& b) { return a.assignment.stride < b.assignment.stride; });
  return placed;
}

std::string EntryField(size_t index, absl::string_view member) {
  return absl::StrCat("parallelism.mapping[", index, "].", member);
}

// Ranges of single entries. False when one of them makes the rest meaningless.
bool CheckEntries(const Axes& axes, const std::vector<AxisAssignment>& mapping, bool allow_idle_chips,
                  std::vector<Violation>& violations) {
  const size_t before = violations.size();
  for (size_t i = 0; i < mapping.size(); ++i) {
    const AxisAssignment& entry = mapping[i];
    if (entry.physical_axis < 0 || static_cast<size_t>(entry.physical_axis) >= axes.size()) {
      violations.push_back(
          Invalid(EntryField(i, "physical_axis"),
                  absl::StrCat("axis ", entry.physical_axis, " does not exist: the slice has axes 0 to ",
                               static_cast<int64_t>(axes.size()) - 1),
                  "AXIS_OUT_OF_RANGE"));
      continue;
    }
    if (entry.factor < 1) {
      violations.push_back(Invalid(EntryField(i, "factor"), "must be at least 1", "FACTOR_OUT_OF_RANGE"));
      continue;
    }
    if (entry.stride < 1) {
      violations.push_back(Invalid(EntryField(i, "stride"), "must be at least 1", "STRIDE_OUT_OF_RANGE"));
      continue;
    }
    const int32_t size = axes[static_cast<size_t>(entry.physical_axis)];
    const int64_t cell = int64_t{entry.factor} * entry.stride;
    if (allow_idle_chips ? cell > size : size % cell != 0) {
      violations.push_back(
          Invalid(EntryField(i, "factor"),
                  absl::StrCat("factor ", CountWords(entry.factor), " x stride ", CountWords(entry.stride),
                               allow_idle_chips ? " is more than axis " : " does not divide axis ", entry.physical_axis,
                               ", which has ", CountWords(size), " chips"),
                  "FACTOR_NOT_DIVISOR"));
    }
  }
  return violations.size() == before;
}

// The entries of each axis must follow each other from the inside without gap or overlap, to its end.
void CheckCover(const Axes& axes, const std::vector<AxisAssignment>& mapping, bool allow_idle_chips,
                std::vector<Violation>& violations) {
  for (size_t physical = 0; physical < axes.size(); ++physical) {
    int64_t next_stride = 1;
    bool broken = false;
    for (const Placed& placed : OnAxis(mapping, static_cast<int32_t>(physical))) {
      const AxisAssignment& entry = placed.assignment;
      if (entry.stride != next_stride) {
        violations.push_back(Invalid(EntryField(placed.index, "stride"),
                                     absl::StrCat("stride ", CountWords(entry.stride),
                                                  entry.stride < next_stride ? " overlaps" : " leaves a gap after",
                                                  " what lies inside it on axis ", physical,
                                                  ": the next stride there is ", CountWords(next_stride)),
                                     entry.stride < next_stride ? "MAPPING_OVERLAPS" : "MAPPING_LEAVES_GAP"));
        broken = true;
      }
      next_stride = std::max(next_stride, int64_t{entry.stride} * entry.factor);
    }
    if (!broken && !allow_idle_chips && next_stride != axes[physical]) {
      violations.push_back(Invalid("parallelism.mapping",
                                   absl::StrCat("covers ", CountWords(next_stride), " of the ",
                                                CountWords(axes[physical]), " chips of axis ", physical),
                                   "MAPPING_INCOMPLETE"));
    }
  }
}

}  // namespace

void CheckPlacement(const Slice& slice, const Parallelism& parallelism, bool allow_idle_chips,
                    std::vector<Violation>& violations) {
  const size_t before = violations.size();
  const Axes axes = PhysicalAxes(slice);
  for (LogicalAxis axis : kLogicalAxes) {
    const int32_t degree = parallelism.ici[axis];
    const std::string field = absl::StrCat("parallelism.ici.", LogicalAxisName(axis));
    if (degree < 1 || parallelism.dcn[axis] < 1) {
      violations.push_back(Invalid(degree < 1 ? field : absl::StrCat("parallelism.dcn.", LogicalAxisName(axis)),
                                   "must be at least 1", "DEGREE_OUT_OF_RANGE"));
      continue;
    }
    if (FitsAlone(degree, axes, allow_idle_chips)) continue;
    violations.push_back(
        Invalid(field,
                absl::StrCat("no way to place ", LogicalAxisName(axis), " ", CountWords(degree), " on ",
                             AxesWords(slice), Suggestion(degree, axes, allow_idle_chips, slice.chip_count)),
                "AXIS_NOT_PLACEABLE"));
  }
  if (violations.size() != before) return;
  const int64_t chips = ProductUpTo(parallelism.ici, slice.chip_count);
  if (chips == slice.chip_count) return;
  if (chips > slice.chip_count || !allow_idle_chips) {
    violations.push_back(Invalid("parallelism.ici",
                                 absl::StrCat("the degrees multiply to ", chips > slice.chip_count ? "more than " : "",
                                              CountWords(std::min(chips, slice.chip_count)), ", the slice has ",
                                              CountWords(slice.chip_count), " chips"),
                                 "DEGREES_NOT_CHIPS"));
    return;
  }
  if (slice.accelerator.fabric == FabricKind::kSwitched || !BlocksOf(slice.axes, slice.twisted, chips).empty()) return;
  violations.push_back(Invalid("parallelism.ici",
                               absl::StrCat("no way to place ", DegreesWords(parallelism.ici), " on ", AxesWords(slice),
                                            ": no block of them has ", CountWords(chips), " chips"),
                               "AXES_NOT_PLACEABLE"));
}

void CheckMapping(const Slice& slice, const Parallelism& parallelism, bool allow_idle_chips,
                  std::vector<Violation>& violations) {
  const Axes axes = PhysicalAxes(slice);
  if (!CheckEntries(axes, parallelism.mapping, allow_idle_chips, violations)) return;
  const size_t before = violations.size();
  CheckCover(axes, parallelism.mapping, allow_idle_chips, violations);
  if (violations.size() != before) return;  // no two entries overlap from here on: products stay below 2^63
  for (LogicalAxis axis : kLogicalAxes) {
    int64_t product = 1;
    for (const AxisAssignment& entry : parallelism.mapping) {
      if (entry.logical == axis) product *= entry.factor;
    }
    if (product == parallelism.ici[axis]) continue;
    violations.push_back(
        Invalid("parallelism.mapping",
                absl::StrCat("the factors of ", LogicalAxisName(axis), " multiply to ", CountWords(product),
                             ", its degree inside a slice is ", CountWords(parallelism.ici[axis])),
                "MAPPING_NOT_DEGREE"));
  }
}

MappedAxes MappingOf(const Slice& slice, const Parallelism& parallelism) {
  const Axes axes = PhysicalAxes(slice);
  MappedAxes mapped;
  mapped.domain_size = slice.domain_size;
  absl::InlinedVector<int32_t, 3> used(axes.size(), 1);
  for (size_t i = 0; i < kLogicalAxisCount; ++i) {
    hardware::Group& group = mapped.groups[i];
    group.slice_count = parallelism.dcn[static_cast<LogicalAxis>(i)];
    for (const AxisAssignment& entry : parallelism.mapping) {
      if (entry.logical != static_cast<LogicalAxis>(i) || entry.factor == 1) continue;
      group.pieces.push_back({entry.physical_axis, entry.factor, entry.stride});
      int32_t& size = used[static_cast<size_t>(entry.physical_axis)];
      size = std::max(size, entry.factor * entry.stride);
    }
    std::stable_sort(group.pieces.begin(), group.pieces.end(), [](const GroupPiece& a, const GroupPiece& b) {
      return a.axis != b.axis ? a.axis < b.axis : a.stride > b.stride;
    });
  }
  if (slice.accelerator.fabric == FabricKind::kSwitched) {
    mapped.block = {TorusAxis{used[0], false}};
  } else {
    mapped.block = BlockOf(slice.axes, slice.twisted, used);
  }
  return mapped;
}

}  // namespace sliceplan::planner
