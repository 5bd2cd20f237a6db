// The placements of mapping.h before they have laws: blocks of a slice, factors of their axes, orders of the factors.
#ifndef SLICEPLAN_SERVER_PLANNER_MAPPING_ENUMERATION_H_
#define SLICEPLAN_SERVER_PLANNER_MAPPING_ENUMERATION_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "server/hardware/slice.h"
#include "server/planner/parallelism.h"

namespace sliceplan::planner {

// Innermost first. Tensor parallelism exchanges most and hides least.
inline constexpr std::array<LogicalAxis, kLogicalAxisCount> kInnermostFirst = {
    LogicalAxis::kTensor, LogicalAxis::kContext, LogicalAxis::kExpert,
    LogicalAxis::kFsdp,   LogicalAxis::kData,    LogicalAxis::kPipeline};

using Block = absl::InlinedVector<hardware::TorusAxis, 3>;

// Product of the degrees, or limit + 1 when it is larger: degrees of a request may overflow.
int64_t ProductUpTo(const AxisDegrees& degrees, int64_t limit);

// The block of a slice that has sizes[i] chips of axis i. Whole axes wrap as they do; parts do not. Nor does a short
// axis of a twisted torus beside part of a long one, because its wrap links lead half way along that one.
Block BlockOf(absl::Span<const hardware::TorusAxis> axes, bool twisted, absl::Span<const int32_t> sizes);

// All blocks of `chips` chips. Of one shape and wraps, one; most whole axes first; at most kMaxBlocks.
inline constexpr size_t kMaxBlocks = 64;
std::vector<Block> BlocksOf(absl::Span<const hardware::TorusAxis> axes, bool twisted, int64_t chips);

// Factors that the logical axes take of each physical axis: factors[physical][logical].
using Factors = absl::InlinedVector<std::array<int32_t, kLogicalAxisCount>, 3>;

// Every way to write each size as a product of factors whose products over the sizes are the degrees; where
// equal_before[i] names an axis like axis i, the factors of i are not before that one's, so that swaps appear once.
// Stops after `limit`.
std::vector<Factors> FactorWays(absl::Span<const int32_t> sizes, absl::Span<const int> equal_before,
                                const AxisDegrees& degrees, size_t limit, bool& truncated);
// For each axis the nearest earlier one of the same size and wrap, or -1.
absl::InlinedVector<int, 3> EqualBefore(const Block& block);

// Logical axes of one physical axis from the inside out.
using AxisOrder = absl::InlinedVector<LogicalAxis, 4>;
// All orders of the logical axes that `present` marks: kInnermostFirst, its reverse, then the others.
std::vector<AxisOrder> OrdersOf(const std::array<bool, kLogicalAxisCount>& present);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_MAPPING_ENUMERATION_H_
