// Network laws that no placement of a plan can beat, for lower bounds on its step time. docs/search.md section 2.
#ifndef SLICEPLAN_SERVER_PLANNER_PLAN_BOUND_H_
#define SLICEPLAN_SERVER_PLANNER_PLAN_BOUND_H_

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "server/hardware/slice.h"
#include "server/planner/parallelism.h"
#include "server/planner/plan_laws.h"
#include "server/roofline/collective.h"

namespace sliceplan::planner {

// Of one slice, which must outlive it. Remembers each size of group. Not thread-safe.
class IdealLaws {
 public:
  explicit IdealLaws(const hardware::Slice& slice, bool allow_idle_chips = false)
      : slice_(slice), allow_idle_chips_(allow_idle_chips) {}

  // Each law of LawsOf at its best over all placements, as if each had the slice to itself: the group on
  // neighbours of every physical axis that it touches, a ring where they fill one (torus), or its members packed into
  // domains (switched); no two groups share links. FAILED_PRECONDITION names a network figure that is missing.
  absl::StatusOr<PlanLaws> Of(const Parallelism& parallelism);

 private:
  // `in_slice` members in each of `slices` slices.
  const absl::StatusOr<roofline::CollectiveLaws>& OfGroup(int64_t in_slice, int32_t slices);

  const hardware::Slice& slice_;
  const bool allow_idle_chips_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<absl::StatusOr<roofline::CollectiveLaws>>> remembered_;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_PLAN_BOUND_H_
