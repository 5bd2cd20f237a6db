// The fastest placement of a plan on an untwisted torus among all of them, by bounds: ways to factor the axes, then the
// order of the factors on one axis after the other. docs/search.md section 2.
#ifndef SLICEPLAN_SERVER_PLANNER_PLACEMENT_SEARCH_H_
#define SLICEPLAN_SERVER_PLANNER_PLACEMENT_SEARCH_H_

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/hardware/slice.h"
#include "server/planner/mapping.h"
#include "server/planner/mapping_enumeration.h"
#include "server/planner/plan_laws.h"
#include "server/roofline/torus_collective.h"

namespace sliceplan::planner {

// Of one slice, which must outlive it. Not thread-safe: remembers what the members of each group are on an axis.
class PlacementSearch {
 public:
  PlacementSearch(const hardware::Slice& slice, bool allow_idle_chips);

  // Torus slices whose wraps do not twist.
  static bool Covers(const hardware::Slice& slice);

  // Takes up a plan. INVALID_ARGUMENT: its degrees cannot be placed. FAILED_PRECONDITION: a network figure is missing.
  absl::Status Open(const Parallelism& parallelism);

  // Laws of groups of the sizes of the plan, as good as those of some of its placements or better.
  const PlanLaws& SomeLaws() const { return ways_.front().laws; }

  // Looks for the first placement with the fewest `seconds`, less than `limit`. Both times grow with every law, and
  // `floor` is never more than `seconds`. False when no placement is below the limit.
  using Seconds = absl::FunctionRef<double(const PlanLaws&)>;
  bool Find(Seconds floor, Seconds seconds, double limit);

  // What the last Find that was true found.
  const PlanLaws& laws() const { return best_laws_; }
  MappedAxes Mapping() const;
  // More ways to factor the axes exist than are looked at.
  bool truncated() const { return truncated_; }

 private:
  using OfGroups = std::array<roofline::AxisSpan, kPlanGroupCount>;  // on one physical axis
  struct OrderedSpans {
    AxisOrder order;
    OfGroups spans;
  };
  // One way to factor one block, with the laws of each group as if it were innermost everywhere.
  struct Way {
    const Block* block = nullptr;
    Factors factors;
    PlanLaws laws;
    double bound = 0;
  };
  using Spans = std::array<const OfGroups*, roofline::kMaxTorusAxes>;

  const OfGroups& InnermostSpans(const hardware::TorusAxis& axis,
                                 const std::array<int32_t, kLogicalAxisCount>& factors);
  const std::vector<OrderedSpans>& OrdersOn(const hardware::TorusAxis& axis,
                                            const std::array<int32_t, kLogicalAxisCount>& factors);
  absl::Status LawsFrom(const Block& block, const Spans& spans, PlanLaws& laws);
  absl::Status SetLaw(const PlanLawSlot& slot, size_t axis_count, const Spans& spans, PlanLaws& laws);
  // An order of one axis, with the floor when the axes not chosen yet have their groups innermost.
  using Choice = std::pair<double, size_t>;
  using Choices = absl::InlinedVector<Choice, 24>;
  Choices ChoicesOn(const Way& way, size_t physical, size_t first, Seconds floor);
  // Replaces the spans of an axis in spans_ and the laws of the groups on it in laws_.
  void SetSpans(const Way& way, size_t physical, const OfGroups& spans);
  void SearchWay(const Way& way, Seconds floor, Seconds seconds);
  // Chooses the orders of the axis of this level and of those after it.
  void ChooseOrders(const Way& way, size_t level, const Choices& choices, Seconds floor, Seconds seconds);

  const hardware::Slice& slice_;
  const bool allow_idle_chips_;
  AxisDegrees ici_;
  AxisDegrees dcn_;
  PlanGroupAxes group_axes_ = {};
  std::array<int32_t, kPlanGroupCount> group_slices_ = {};
  std::vector<Block> blocks_;
  std::vector<Way> ways_;
  std::vector<size_t> by_bound_;
  bool truncated_ = false;

  using AxisKey = std::array<int32_t, kLogicalAxisCount + 2>;
  AxisKey KeyOf(const hardware::TorusAxis& axis, const std::array<int32_t, kLogicalAxisCount>& factors) const;
  absl::flat_hash_map<AxisKey, std::unique_ptr<OfGroups>> innermost_;
  absl::flat_hash_map<AxisKey, std::unique_ptr<std::vector<OrderedSpans>>> orders_;

  // Of the search under way.
  std::array<const std::vector<OrderedSpans>*, roofline::kMaxTorusAxes> order_lists_ = {};
  std::array<size_t, roofline::kMaxTorusAxes> axis_at_ = {};  // by level: those that cost most first
  std::array<size_t, roofline::kMaxTorusAxes> chosen_ = {};   // by axis
  Spans innermost_spans_ = {};
  Spans spans_ = {};
  PlanLaws laws_;               // of spans_
  roofline::AxisSpans joined_;  // of one group
  double limit_ = 0;
  bool found_ = false;
  PlanLaws best_laws_;
  const Way* best_way_ = nullptr;
  std::array<const AxisOrder*, roofline::kMaxTorusAxes> best_orders_ = {};
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_PLACEMENT_SEARCH_H_
