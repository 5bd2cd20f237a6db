#include "server/hardware/topology.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace sliceplan::hardware {
namespace {

// Slices of three-dimensional tori are built from cubes of this many chips a side. Book, chapter 2.
constexpr int32_t kCubeSide = 4;
// Two-dimensional tori close only along axes of the full pod. Book, chapter 2.
constexpr int32_t kClosingAxisSize = 16;
// Shorter axes have one link between neighbours, not two.
constexpr int32_t kShortestRing = 3;

bool IsDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return '0' <= c && c <= '9'; });
}

int64_t HalfSurface(absl::Span<const int32_t> shape) {
  int64_t sum = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t face = 1;
    for (size_t j = 0; j < shape.size(); ++j) {
      if (j != i) face *= shape[j];
    }
    sum += face;
  }
  return sum;
}

// Appends to `shapes` every way to write `chip_count` as `dims` factors, ascending from `smallest`, multiples of
// `unit`.
void AppendShapes(int64_t chip_count, size_t dims, int32_t unit, int64_t smallest, Shape& prefix,
                  std::vector<Shape>& shapes) {
  if (dims == 1) {
    if (chip_count >= smallest && chip_count % unit == 0 && chip_count <= kMaxAxisSize) {
      prefix.push_back(static_cast<int32_t>(chip_count));
      shapes.push_back(prefix);
      prefix.pop_back();
    }
    return;
  }
  for (int64_t axis = smallest; axis <= chip_count / axis; axis += unit) {
    if (chip_count % axis != 0) continue;
    prefix.push_back(static_cast<int32_t>(axis));
    AppendShapes(chip_count / axis, dims - 1, unit, axis, prefix, shapes);
    prefix.pop_back();
  }
}

}  // namespace

std::optional<Shape> ParseShape(absl::string_view text) {
  Shape shape;
  int64_t chip_count = 1;
  for (absl::string_view part : absl::StrSplit(text, absl::ByAnyChar("xX"))) {
    int32_t size = 0;
    if (!IsDigits(part) || !absl::SimpleAtoi(part, &size) || size < 1 || size > kMaxAxisSize) return std::nullopt;
    if (shape.size() == kMaxTorusDims || chip_count > kMaxChipCount / size) return std::nullopt;
    shape.push_back(size);
    chip_count *= size;
  }
  if (shape.empty()) return std::nullopt;  // a view of nothing has no parts, where an empty text has one
  return shape;
}

std::string ShapeName(absl::Span<const int32_t> shape) { return absl::StrJoin(shape, "x"); }

int64_t ChipCount(absl::Span<const int32_t> shape) {
  int64_t product = 1;
  for (int32_t size : shape) product *= size;
  return product;
}

Shape CanonicalOrder(Shape shape) {
  std::sort(shape.begin(), shape.end());
  if (shape.size() == kMaxTorusDims) {
    std::rotate(shape.begin(), std::upper_bound(shape.begin(), shape.end(), 1), shape.end());
  }
  return shape;
}

AxisWraps WrapsOf(WrapRule rule, absl::Span<const int32_t> shape, absl::Span<const int32_t> pod_shape) {
  AxisWraps wraps(shape.size(), false);
  switch (rule) {
    case WrapRule::kNever: break;
    case WrapRule::kAxisOf16:
      for (size_t i = 0; i < shape.size(); ++i) wraps[i] = shape[i] == kClosingAxisSize;
      break;
    case WrapRule::kWholeCubes: {
      const bool whole = std::all_of(shape.begin(), shape.end(), [](int32_t size) { return size % kCubeSide == 0; });
      std::fill(wraps.begin(), wraps.end(), whole);
      break;
    }
    case WrapRule::kFullPodOnly: std::fill(wraps.begin(), wraps.end(), shape == pod_shape); break;
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < kShortestRing) wraps[i] = false;
  }
  return wraps;
}

bool IsWrapKnown(WrapRule rule, absl::Span<const int32_t> shape, absl::Span<const int32_t> pod_shape) {
  switch (rule) {
    case WrapRule::kAxisOf16:
    case WrapRule::kWholeCubes: return true;
    case WrapRule::kFullPodOnly: return shape == pod_shape;
    case WrapRule::kNever: return false;
  }
  return false;
}

bool IsTwistable(absl::Span<const int32_t> shape) {
  if (shape.size() < 2 || shape.size() > kMaxTorusDims || shape[0] < 2) return false;
  const int64_t k = shape[0];
  if (shape.back() != 2 * k) return false;
  return shape.size() == 2 || shape[1] == k || shape[1] == 2 * k;
}

bool IsMoreCubic(absl::Span<const int32_t> a, absl::Span<const int32_t> b) { return HalfSurface(a) < HalfSurface(b); }

std::vector<Shape> ShapesOf(int64_t chip_count, size_t dims, int32_t unit) {
  std::vector<Shape> shapes;
  if (chip_count < 1 || chip_count > kMaxChipCount || dims < 1 || dims > kMaxTorusDims || unit < 1) return shapes;
  Shape prefix;
  AppendShapes(chip_count, dims, unit, unit, prefix, shapes);
  std::stable_sort(shapes.begin(), shapes.end(), [](const Shape& a, const Shape& b) { return IsMoreCubic(a, b); });
  return shapes;
}

}  // namespace sliceplan::hardware
