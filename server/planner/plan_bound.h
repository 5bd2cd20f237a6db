// Network laws that no placement of a plan can beat, for lower bounds on its step time. docs/search.md section 2.
#ifndef SLICEPLAN_SERVER_PLANNER_PLAN_BOUND_H_
#define SLICEPLAN_SERVER_PLANNER_PLAN_BOUND_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

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

  // The same for a plan whose data and FSDP degrees are not chosen yet: nothing for weights and their gradients, whose
  // larger groups may have more links than smaller ones.
  absl::StatusOr<PlanLaws> OfShape(const Parallelism& parallelism);

  // Behind switches groups compete for the places in a domain. Fills `ways` with the laws of every way to share them
  // out: each placement of the plan has one of them. Empty on a torus, where degrees or domains are no powers of two,
  // and where chips may idle: then nothing more is known.
  void InSharedDomains(const Parallelism& parallelism, std::vector<PlanLaws>& ways);
  void ShapeInSharedDomains(const Parallelism& parallelism, std::vector<PlanLaws>& ways);

 private:
  using AxisMembers = std::array<int64_t, kLogicalAxisCount>;
  void AddWays(const Parallelism& parallelism, const PlanGroupAxes& axes, size_t axis, int64_t places, bool partial,
               AxisMembers& in_domain, std::vector<PlanLaws>& ways);
  const absl::StatusOr<roofline::CollectiveLaws>& OfSpreadGroup(int64_t in_domain, int64_t domains, int32_t slices);
  // `in_slice` members in each of `slices` slices.
  const absl::StatusOr<roofline::CollectiveLaws>& OfGroup(int64_t in_slice, int32_t slices);

  const hardware::Slice& slice_;
  const bool allow_idle_chips_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<absl::StatusOr<roofline::CollectiveLaws>>> remembered_, spread_;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_PLAN_BOUND_H_
