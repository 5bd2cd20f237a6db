#include "server/planner/placement_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace sliceplan::planner {
namespace {

using hardware::GroupPiece;
using hardware::TorusAxis;
using roofline::AxisSpan;
using roofline::AxisSpans;
using roofline::CollectiveKind;

constexpr size_t kMostWays = size_t{1} << 15;
// Axes of factors that are remembered before all are forgotten.
constexpr size_t kMostRemembered = size_t{1} << 13;
// Rounding must not let a bound pass the time that it bounds.
constexpr double kSlack = 1 - 1e-9;

AxisSpan SpanOf(const TorusAxis& axis, absl::Span<const GroupPiece> pieces) {
  AxisSpans spans;
  // The pieces come from an enumeration: they are legal.
  roofline::SpansOf(absl::MakeConstSpan(&axis, 1), /*twisted=*/false, pieces, spans).IgnoreError();
  return spans.count > 0 ? spans.span[0] : AxisSpan();
}

bool NowhereSlower(const AxisSpan& a, const AxisSpan& b) {
  return a.half_axes >= b.half_axes && a.exchange <= b.exchange && a.permute <= b.permute &&
         a.gather_hops <= b.gather_hops && a.permute_hops <= b.permute_hops;
}

void CopyGathers(PlanLaws& laws) {
  laws.weights_scatter = laws.weights_gather;
  laws.weights_scatter_with_expert = laws.weights_gather_with_expert;
  laws.tensor_scatter = laws.tensor_gather;
  laws.context_scatter = laws.context_gather;
}

}  // namespace

PlacementSearch::PlacementSearch(const hardware::Slice& slice, bool allow_idle_chips)
    : slice_(slice), allow_idle_chips_(allow_idle_chips) {}

bool PlacementSearch::Covers(const hardware::Slice& slice) {
  return slice.accelerator.fabric == hardware::FabricKind::kTorus && !slice.twisted &&
         slice.axes.size() <= roofline::kMaxTorusAxes && !slice.axes.empty();
}

PlacementSearch::AxisKey PlacementSearch::KeyOf(const TorusAxis& axis,
                                                const std::array<int32_t, kLogicalAxisCount>& factors) const {
  AxisKey key;
  std::copy(factors.begin(), factors.end(), key.begin());
  key[kLogicalAxisCount] = axis.wraps ? axis.size : -axis.size;
  key[kLogicalAxisCount + 1] = 0;
  // Data and context belong to one group or another.
  const auto& weights = group_axes_[static_cast<size_t>(PlanGroup::kWeights)];
  for (size_t i = 0; i < weights.size(); ++i) key[kLogicalAxisCount + 1] |= weights[i] ? 1 << i : 0;
  return key;
}

const PlacementSearch::OfGroups& PlacementSearch::InnermostSpans(
    const TorusAxis& axis, const std::array<int32_t, kLogicalAxisCount>& factors) {
  std::unique_ptr<OfGroups>& spans = innermost_[KeyOf(axis, factors)];
  if (spans != nullptr) return *spans;
  spans = std::make_unique<OfGroups>();
  for (size_t g = 0; g < kPlanGroupCount; ++g) {
    GroupPiece piece;
    for (size_t i = 0; i < factors.size(); ++i) piece.factor *= group_axes_[g][i] ? factors[i] : 1;
    (*spans)[g] = SpanOf(axis, absl::MakeConstSpan(&piece, 1));
  }
  return *spans;
}

const std::vector<PlacementSearch::OrderedSpans>& PlacementSearch::OrdersOn(
    const TorusAxis& axis, const std::array<int32_t, kLogicalAxisCount>& factors) {
  std::unique_ptr<std::vector<OrderedSpans>>& kept = orders_[KeyOf(axis, factors)];
  if (kept != nullptr) return *kept;
  kept = std::make_unique<std::vector<OrderedSpans>>();
  std::array<bool, kLogicalAxisCount> present = {};
  for (size_t i = 0; i < factors.size(); ++i) present[i] = factors[i] > 1;
  std::vector<GroupPiece> pieces;
  for (AxisOrder& order : OrdersOf(present)) {
    OrderedSpans ordered;
    for (size_t g = 0; g < kPlanGroupCount; ++g) {
      pieces.clear();
      int32_t stride = 1;
      for (LogicalAxis logical : order) {
        const int32_t factor = factors[static_cast<size_t>(logical)];
        if (group_axes_[g][static_cast<size_t>(logical)]) pieces.push_back({0, factor, stride});
        stride *= factor;
      }
      ordered.spans[g] = SpanOf(axis, pieces);
    }
    // An order that another beats or equals in every group is never needed.
    const auto beats = [&](const OrderedSpans& other) {
      return std::equal(other.spans.begin(), other.spans.end(), ordered.spans.begin(), NowhereSlower);
    };
    if (std::any_of(kept->begin(), kept->end(), beats)) continue;
    ordered.order = std::move(order);
    kept->push_back(std::move(ordered));
  }
  return *kept;
}

absl::Status PlacementSearch::SetLaw(const PlanLawSlot& slot, size_t axis_count, const Spans& spans, PlanLaws& laws) {
  const size_t g = static_cast<size_t>(slot.group);
  AxisSpans& joined = joined_;
  joined.count = 0;
  joined.members = 1;
  for (size_t i = 0; i < axis_count; ++i) {
    const AxisSpan& span = (*spans[i])[g];
    if (span.members <= 1) continue;
    joined.span[joined.count] = span;
    joined.span[joined.count++].axis = static_cast<int32_t>(i);
    joined.members *= span.members;
  }
  if (joined.members * group_slices_[g] <= 1) return absl::OkStatus();
  return roofline::LawOfSpans(slot.kind, slice_, joined, group_slices_[g], {}, laws.*slot.law);
}

absl::Status PlacementSearch::LawsFrom(const Block& block, const Spans& spans, PlanLaws& laws) {
  laws = PlanLaws();
  for (const PlanLawSlot& slot : kPlanLawSlots) {
    // What one group gathers and scatters crosses the same links.
    if (slot.kind == CollectiveKind::kReduceScatter) continue;
    if (absl::Status status = SetLaw(slot, block.size(), spans, laws); !status.ok()) return status;
  }
  CopyGathers(laws);
  const auto shares = [&](PlanGroup group) {
    const size_t w = static_cast<size_t>(PlanGroup::kWeights);
    const size_t g = static_cast<size_t>(group);
    if (group_slices_[w] > 1 && group_slices_[g] > 1) return true;
    for (size_t i = 0; i < block.size(); ++i) {
      if ((*spans[i])[w].members > 1 && (*spans[i])[g].members > 1) return true;
    }
    return false;
  };
  laws.weights_share_tensor_links = shares(PlanGroup::kTensor);
  laws.weights_share_context_links = shares(PlanGroup::kContext);
  laws.weights_share_expert_links = shares(PlanGroup::kExpert);
  return absl::OkStatus();
}

absl::Status PlacementSearch::Open(const Parallelism& parallelism) {
  ici_ = parallelism.ici;
  dcn_ = parallelism.dcn;
  group_axes_ = GroupAxesOf(parallelism);
  for (size_t g = 0; g < kPlanGroupCount; ++g) {
    group_slices_[g] = 1;
    for (size_t i = 0; i < kLogicalAxisCount; ++i) group_slices_[g] *= group_axes_[g][i] ? dcn_.degree[i] : 1;
  }
  if (innermost_.size() + orders_.size() > kMostRemembered) {
    innermost_.clear();
    orders_.clear();
  }
  ways_.clear();
  best_way_ = nullptr;
  truncated_ = false;
  const int64_t chips = ProductUpTo(ici_, slice_.chip_count);
  const bool fills = chips == slice_.chip_count || (allow_idle_chips_ && chips < slice_.chip_count);
  blocks_ = fills ? BlocksOf(slice_.axes, slice_.twisted, chips) : std::vector<Block>{};
  for (const Block& block : blocks_) {
    absl::InlinedVector<int32_t, 3> sizes;
    for (const TorusAxis& axis : block) sizes.push_back(axis.size);
    for (Factors& factors : FactorWays(sizes, EqualBefore(block), ici_, kMostWays, truncated_)) {
      Way& way = ways_.emplace_back();
      way.block = &block;
      way.factors = std::move(factors);
      Spans spans = {};
      for (size_t i = 0; i < block.size(); ++i) spans[i] = &InnermostSpans(block[i], way.factors[i]);
      const absl::Status status = LawsFrom(block, spans, way.laws);
      if (!status.ok()) return status;
    }
  }
  if (!ways_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("parallelism.ici: no way to place the degrees on the slice");
}

bool PlacementSearch::Find(Seconds floor, Seconds seconds, double limit) {
  limit_ = limit;
  found_ = false;
  // What was best for another choice of recompute is seldom far off.
  if (best_way_ != nullptr) {
    const double taken = seconds(best_laws_);
    if (taken < limit_) {
      limit_ = taken;
      found_ = true;
    }
  }
  for (Way& way : ways_) way.bound = floor(way.laws);
  by_bound_.resize(ways_.size());
  std::iota(by_bound_.begin(), by_bound_.end(), size_t{0});
  std::stable_sort(by_bound_.begin(), by_bound_.end(),
                   [this](size_t a, size_t b) { return ways_[a].bound < ways_[b].bound; });
  for (size_t index : by_bound_) {
    if (ways_[index].bound * kSlack >= limit_) break;
    SearchWay(ways_[index], floor, seconds);
  }
  return found_;
}

void PlacementSearch::SearchWay(const Way& way, Seconds floor, Seconds seconds) {
  const size_t axis_count = way.block->size();
  for (size_t i = 0; i < axis_count; ++i) {
    order_lists_[i] = &OrdersOn((*way.block)[i], way.factors[i]);
    innermost_spans_[i] = &InnermostSpans((*way.block)[i], way.factors[i]);
  }
  spans_ = innermost_spans_;
  laws_ = way.laws;
  // The axis whose best order costs most goes first: it cuts most.
  std::array<std::pair<double, size_t>, roofline::kMaxTorusAxes> costs;
  std::array<Choices, roofline::kMaxTorusAxes> choices;
  for (size_t i = 0; i < axis_count; ++i) {
    choices[i] = ChoicesOn(way, i, 0, floor);
    costs[i] = {-choices[i].front().first, i};
    if (choices[i].front().first * kSlack >= limit_) return;
  }
  std::sort(costs.begin(), costs.begin() + axis_count);
  for (size_t level = 0; level < axis_count; ++level) axis_at_[level] = costs[level].second;
  ChooseOrders(way, 0, choices[axis_at_[0]], floor, seconds);
}

void PlacementSearch::SetSpans(const Way& way, size_t physical, const OfGroups& spans) {
  spans_[physical] = &spans;
  for (const PlanLawSlot& slot : kPlanLawSlots) {
    if (slot.kind == CollectiveKind::kReduceScatter || spans[static_cast<size_t>(slot.group)].members <= 1) continue;
    // Figures that an order needs, its way needs too: the status was looked at then.
    SetLaw(slot, way.block->size(), spans_, laws_).IgnoreError();
  }
  CopyGathers(laws_);
}

PlacementSearch::Choices PlacementSearch::ChoicesOn(const Way& way, size_t physical, size_t first, Seconds floor) {
  const std::vector<OrderedSpans>& orders = *order_lists_[physical];
  Choices choices;
  if (orders.size() == 1) {
    // Its groups are innermost.
    choices.emplace_back(floor(laws_), 0);
    return choices;
  }
  for (size_t order = first; order < orders.size(); ++order) {
    SetSpans(way, physical, orders[order].spans);
    choices.emplace_back(floor(laws_), order);
  }
  SetSpans(way, physical, *innermost_spans_[physical]);
  std::sort(choices.begin(), choices.end());
  return choices;
}

void PlacementSearch::ChooseOrders(const Way& way, size_t level, const Choices& choices, Seconds floor,
                                   Seconds seconds) {
  const size_t axis_count = way.block->size();
  const size_t physical = axis_at_[level];
  const bool last = level + 1 == axis_count;
  for (const auto& [least, order] : choices) {
    if (least * kSlack >= limit_) break;
    chosen_[physical] = order;
    SetSpans(way, physical, (*order_lists_[physical])[order].spans);
    if (!last) {
      // Of two equal axes with equal factors the later one has the later order: their swap is the same placement.
      const size_t next = axis_at_[level + 1];
      size_t first = 0;
      for (size_t earlier = 0; earlier <= level; ++earlier) {
        const size_t other = axis_at_[earlier];
        const TorusAxis& a = (*way.block)[other];
        const TorusAxis& b = (*way.block)[next];
        const bool same = a.size == b.size && a.wraps == b.wraps && way.factors[other] == way.factors[next];
        if (same) first = chosen_[other];
      }
      ChooseOrders(way, level + 1, ChoicesOn(way, next, first, floor), floor, seconds);
      continue;
    }
    const double taken = seconds(laws_);
    if (taken >= limit_) continue;
    limit_ = taken;
    found_ = true;
    best_laws_ = laws_;
    best_way_ = &way;
    for (size_t i = 0; i < axis_count; ++i) best_orders_[i] = &(*order_lists_[i])[chosen_[i]].order;
  }
  SetSpans(way, physical, *innermost_spans_[physical]);
}

MappedAxes PlacementSearch::Mapping() const {
  MappedAxes mapped;
  mapped.block = *best_way_->block;
  mapped.domain_size = slice_.domain_size;
  for (LogicalAxis axis : kLogicalAxes) mapped.groups[static_cast<size_t>(axis)].slice_count = dcn_[axis];
  for (size_t i = 0; i < mapped.block.size(); ++i) {
    int32_t stride = 1;
    for (LogicalAxis axis : *best_orders_[i]) {
      const int32_t factor = best_way_->factors[i][static_cast<size_t>(axis)];
      mapped.groups[static_cast<size_t>(axis)].pieces.push_back({static_cast<int32_t>(i), factor, stride});
      stride *= factor;
    }
  }
  return mapped;
}

}  // namespace sliceplan::planner
