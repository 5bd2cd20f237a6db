// Plans that nearly serve a load, for the reply of a search.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_MISSES_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_MISSES_H_

#include <vector>

#include "server/planner/serving/replica_plan.h"
#include "server/planner/serving/serving_search.h"

namespace sliceplan::planner {

// Of each slice the plan that lacks the least memory, at most kMaxNearMisses slices, nearest first.
class TooLargePlans {
 public:
  // `plan` does not hold `sequences` of the load.
  void Add(const ServingSummary& summary, const ReplicaPlan& plan, const ServingWorkload& workload, int64_t sequences);
  const std::vector<ServingMiss>& plans() const { return plans_; }

 private:
  std::vector<ServingMiss> plans_;
};

// What an estimate that does not run as asked lacks. Requires a shortfall.
ServingMiss MissOf(const ServingProposal& proposal);

// One for each slice and reason, the first that comes, at most kMaxNearMisses.
void AddMiss(ServingMiss miss, std::vector<ServingMiss>& misses);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_MISSES_H_
