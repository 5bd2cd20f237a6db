// Why one way to serve is proposed before another.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_REASONS_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_REASONS_H_

#include <string>

#include "server/planner/serving/plan_merit.h"
#include "server/planner/serving/serving_search.h"

namespace sliceplan::planner {

// An estimate with its place.
struct RankedProposal {
  PlanRank rank;
  ServingProposal proposal;
};

// A sentence with the numbers of both: what the objective counts, and where that is the same the time of a request.
std::string ServingReason(Objective objective, const RankedProposal& first, const RankedProposal& next);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_REASONS_H_
