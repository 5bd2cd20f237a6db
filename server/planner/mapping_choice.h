// Which placements are worth a full look when there are too many: estimates of their traffic times, and the best under
// each of several mixes of traffic.
#ifndef SLICEPLAN_SERVER_PLANNER_MAPPING_CHOICE_H_
#define SLICEPLAN_SERVER_PLANNER_MAPPING_CHOICE_H_

#include <array>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "server/planner/mapping_enumeration.h"
#include "server/planner/parallelism.h"

namespace sliceplan::planner {

// Time per byte of every logical axis, of FSDP and context together (they share weights), and of data and expert
// together (they share gradients of dense weights), as multiples of a link's.
inline constexpr size_t kTrafficCount = kLogicalAxisCount + 2;
using TrafficTimes = std::array<float, kTrafficCount>;

// One physical axis of a placement: how the logical axes follow each other on it.
struct OrderedAxis {
  hardware::TorusAxis axis;
  const std::array<int32_t, kLogicalAxisCount>* factors = nullptr;
  const AxisOrder* order = nullptr;
};

// Closed forms of docs/collectives.md section 2 without the search for a binding subset: exact for most placements,
// never slower than exact.
TrafficTimes EstimateTraffic(absl::Span<const OrderedAxis> axes, const AxisDegrees& degrees);

// Indices, ascending, of at most `count` of the placements: under each mix in turn the fastest not taken yet. A mix
// weighs each kind of traffic by its time over the shortest that any placement gives it; the mixes give ten times the
// weight to one kind, to two of those that move every layer, or to none.
std::vector<size_t> ChooseByTraffic(absl::Span<const TrafficTimes> times, const AxisDegrees& degrees, size_t count);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_MAPPING_CHOICE_H_
