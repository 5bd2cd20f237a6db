// Shapes of torus slices: their text, their order, which axes close into rings, which shapes can be twisted.
// "How To Scale Your Model", chapter 2 (TPU networking); the rules per generation are data of the catalog.
#ifndef SLICEPLAN_SERVER_HARDWARE_TOPOLOGY_H_
#define SLICEPLAN_SERVER_HARDWARE_TOPOLOGY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/hardware/accelerator.h"

namespace sliceplan::hardware {

// Chips along each axis, 1 to 3 axes, each 1 to kMaxAxisSize.
using Shape = absl::InlinedVector<int32_t, 3>;
using AxisWraps = absl::InlinedVector<bool, 3>;

inline constexpr size_t kMaxTorusDims = 3;
inline constexpr int32_t kMaxAxisSize = 1 << 20;
// Chips of one slice.
inline constexpr int64_t kMaxChipCount = 1 << 20;

// Reads "16", "8x16" or "8x8x16" (also with a capital X). nullopt for any other text, an axis out of range, or more
// than kMaxChipCount chips.
std::optional<Shape> ParseShape(absl::string_view text);

// "8x8x16".
std::string ShapeName(absl::Span<const int32_t> shape);

// The product of the axes, each within the range above.
int64_t ChipCount(absl::Span<const int32_t> shape);

// The order in which shapes are listed: ascending, but axes of one chip last in three dimensions ("2x2x1").
Shape CanonicalOrder(Shape shape);

// Which axes close. `pod_shape` is used by WrapRule::kFullPodOnly alone and may be empty. An axis of one or two chips
// never closes: its two links would join the same pair.
AxisWraps WrapsOf(WrapRule rule, absl::Span<const int32_t> shape, absl::Span<const int32_t> pod_shape);

// Whether the rule says anything about the shape: not for kNever, nor for less than the full pod under kFullPodOnly.
bool IsWrapKnown(WrapRule rule, absl::Span<const int32_t> shape, absl::Span<const int32_t> pod_shape);

// Whether the shape has the proportions of a twisted torus, k x 2k, k x k x 2k or k x 2k x 2k with k >= 2, axes
// ascending. Camara et al., "Twisted torus topologies for enhanced interconnection networks"; TPU v4 (ISCA 2023),
// section 2.
bool IsTwistable(absl::Span<const int32_t> shape);

// Whether `a` is nearer to a cube than `b`, of as many chips: less surface.
bool IsMoreCubic(absl::Span<const int32_t> a, absl::Span<const int32_t> b);

// Every shape of `chip_count` chips with `dims` ascending axes that are multiples of `unit`, most cubic first.
std::vector<Shape> ShapesOf(int64_t chip_count, size_t dims, int32_t unit);

}  // namespace sliceplan::hardware

#endif  // SLICEPLAN_SERVER_HARDWARE_TOPOLOGY_H_
