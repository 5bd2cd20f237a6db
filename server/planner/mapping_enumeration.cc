#include "server/planner/mapping_enumeration.h"

#include <algorithm>
#include <utility>

namespace sliceplan::planner {
namespace {

using hardware::TorusAxis;

std::vector<int32_t> DivisorsOf(int32_t number) {
  std::vector<int32_t> low;
  std::vector<int32_t> high;
  for (int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    low.push_back(static_cast<int32_t>(d));
    if (d * d != number) high.push_back(static_cast<int32_t>(number / d));
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

int WholeAxes(const Block& block, absl::Span<const TorusAxis> axes) {
  int whole = 0;
  for (size_t i = 0; i < block.size(); ++i) whole += block[i].size == axes[i].size ? 1 : 0;
  return whole;
}

std::vector<std::pair<int32_t, bool>> SortedShape(const Block& block) {
  std::vector<std::pair<int32_t, bool>> shape;
  for (const TorusAxis& axis : block) shape.emplace_back(axis.size, axis.wraps);
  std::sort(shape.begin(), shape.end());
  return shape;
}

using Sizes = absl::InlinedVector<int32_t, 3>;

// Fills sizes[i..] so that all multiply to `chips`.
void SplitChips(absl::Span<const TorusAxis> axes, size_t i, int64_t chips, Sizes& sizes, std::vector<Sizes>& found) {
  if (i == axes.size()) {
    if (chips == 1) found.push_back(sizes);
    return;
  }
  for (int32_t size = static_cast<int32_t>(std::min<int64_t>(axes[i].size, chips)); size >= 1; --size) {
    if (chips % size != 0) continue;
    sizes[i] = size;
    SplitChips(axes, i + 1, chips / size, sizes, found);
  }
}

class FactorSearch {
 public:
  FactorSearch(absl::Span<const int32_t> sizes, absl::Span<const int> equal_before, const AxisDegrees& degrees,
               size_t limit)
      : sizes_(sizes), equal_before_(equal_before), limit_(limit), left_(degrees.degree) {
    factors_.resize(sizes.size());
    for (int32_t size : sizes) divisors_.push_back(DivisorsOf(size));
  }

  std::vector<Factors> Run(bool& truncated) {
    if (!sizes_.empty()) Fill(0, 0, sizes_[0]);
    truncated = truncated || full_;
    return std::move(ways_);
  }

 private:
  // Chooses factors of logical axes `logical`.. of size `physical`, of which `rest` is still to be filled.
  void Fill(size_t physical, size_t logical, int32_t rest) {
    if (full_) return;
    if (physical + 1 == sizes_.size()) {
      TakeWhatIsLeft(physical);
      return;
    }
    if (logical == kLogicalAxisCount) {
      if (rest != 1) return;
      if (IsSwapOfEarlier(physical)) return;
      Fill(physical + 1, 0, sizes_[physical + 1]);
      return;
    }
    for (int32_t factor : divisors_[physical]) {
      if (factor > left_[logical]) break;
      if (rest % factor != 0 || left_[logical] % factor != 0) continue;
      factors_[physical][logical] = factor;
      left_[logical] /= factor;
      Fill(physical, logical + 1, rest / factor);
      left_[logical] *= factor;
    }
  }

  bool IsSwapOfEarlier(size_t physical) const {
    const int earlier = equal_before_[physical];
    return earlier >= 0 && factors_[physical] < factors_[static_cast<size_t>(earlier)];
  }

  void TakeWhatIsLeft(size_t physical) {
    int64_t product = 1;
    for (int32_t factor : left_) product = std::min<int64_t>(product * factor, int64_t{sizes_[physical]} + 1);
    if (product != sizes_[physical]) return;
    factors_[physical] = left_;
    if (IsSwapOfEarlier(physical)) return;
    if (ways_.size() == limit_) {
      full_ = true;
      return;
    }
    ways_.push_back(factors_);
  }

  absl::Span<const int32_t> sizes_;
  absl::Span<const int> equal_before_;
  size_t limit_;
  std::array<int32_t, kLogicalAxisCount> left_;
  std::vector<std::vector<int32_t>> divisors_;
  Factors factors_;
  std::vector<Factors> ways_;
  bool full_ = false;
};

}  // namespace

int64_t ProductUpTo(const AxisDegrees& degrees, int64_t limit) {
  int64_t product = 1;
  for (int32_t degree : degrees.degree) {
    if (degree < 1) return limit + 1;
    product = product > limit / degree ? limit + 1 : product * degree;
  }
  return product;
}

Block BlockOf(absl::Span<const TorusAxis> axes, bool twisted, absl::Span<const int32_t> sizes) {
  Block block;
  for (size_t i = 0; i < axes.size(); ++i) block.push_back({sizes[i], axes[i].wraps && sizes[i] == axes[i].size});
  if (!twisted || axes.empty()) return block;
  int32_t shortest = axes[0].size;
  for (const TorusAxis& axis : axes) shortest = std::min(shortest, axis.size);
  bool long_axes_whole = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].size != shortest && sizes[i] != axes[i].size) long_axes_whole = false;
  }
  for (size_t i = 0; i < axes.size() && !long_axes_whole; ++i) {
    if (axes[i].size == shortest) block[i].wraps = false;
  }
  return block;
}

std::vector<Block> BlocksOf(absl::Span<const TorusAxis> axes, bool twisted, int64_t chips) {
  int64_t all = 1;
  for (const TorusAxis& axis : axes) all *= axis.size;
  if (axes.empty()) return chips == 1 ? std::vector<Block>{{TorusAxis{1, false}}} : std::vector<Block>{};
  if (chips == all) return {Block(axes.begin(), axes.end())};
  std::vector<Block> distinct;
  if (chips < 1 || chips > all) return distinct;
  std::vector<Sizes> found;
  Sizes sizes(axes.size());
  SplitChips(axes, 0, chips, sizes, found);
  std::vector<Block> blocks;
  for (const Sizes& of_block : found) blocks.push_back(BlockOf(axes, twisted, of_block));
  std::stable_sort(blocks.begin(), blocks.end(),
                   [&](const Block& a, const Block& b) { return WholeAxes(a, axes) > WholeAxes(b, axes); });
  std::vector<std::vector<std::pair<int32_t, bool>>> shapes;
  for (const Block& block : blocks) {
    std::vector<std::pair<int32_t, bool>> shape = SortedShape(block);
    if (std::find(shapes.begin(), shapes.end(), shape) != shapes.end()) continue;
    shapes.push_back(std::move(shape));
    distinct.push_back(block);
    if (distinct.size() == kMaxBlocks) break;
  }
  return distinct;
}

absl::InlinedVector<int, 3> EqualBefore(const Block& block) {
  absl::InlinedVector<int, 3> equal_before(block.size(), -1);
  for (size_t i = 0; i < block.size(); ++i) {
    for (size_t earlier = 0; earlier < i; ++earlier) {
      if (block[earlier].size == block[i].size && block[earlier].wraps == block[i].wraps) {
        equal_before[i] = static_cast<int>(earlier);
      }
    }
  }
  return equal_before;
}

std::vector<Factors> FactorWays(absl::Span<const int32_t> sizes, absl::Span<const int> equal_before,
                                const AxisDegrees& degrees, size_t limit, bool& truncated) {
  return FactorSearch(sizes, equal_before, degrees, limit).Run(truncated);
}

std::vector<AxisOrder> OrdersOf(const std::array<bool, kLogicalAxisCount>& present) {
  AxisOrder usual;
  absl::InlinedVector<int, 6> ranks;
  for (LogicalAxis axis : kInnermostFirst) {
    if (!present[static_cast<size_t>(axis)]) continue;
    ranks.push_back(static_cast<int>(usual.size()));
    usual.push_back(axis);
  }
  std::vector<AxisOrder> orders = {usual};
  if (usual.size() < 2) return orders;
  const AxisOrder reverse(usual.rbegin(), usual.rend());
  orders.push_back(reverse);
  while (std::next_permutation(ranks.begin(), ranks.end())) {
    AxisOrder order;
    for (int rank : ranks) order.push_back(usual[static_cast<size_t>(rank)]);
    if (order != reverse) orders.push_back(order);
  }
  return orders;
}

}  // namespace sliceplan::planner
