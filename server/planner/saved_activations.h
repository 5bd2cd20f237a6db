// What other recompute policies would keep and run again, relative to the one of an estimate.
#ifndef SLICEPLAN_SERVER_PLANNER_SAVED_ACTIVATIONS_H_
#define SLICEPLAN_SERVER_PLANNER_SAVED_ACTIVATIONS_H_

#include <cstdint>
#include <string>

#include "server/planner/remat.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// Of one token in all layers: elements kept on one chip of its tensor group, and FLOPs that the whole group runs again.
struct KeptPerToken {
  double elements = 0;
  double recompute_flops = 0;
};
KeptPerToken KeptBy(const TrainingJob& job, const RematPlan& plan, int64_t tensor_degree, bool sequence_parallel);

struct KeepingMore {
  bool found = false;
  RematPolicy policy = RematPolicy::kNone;
  double added_bytes = 0;      // of saved activations on the fullest chip
  double recompute_ratio = 1;  // of the recompute FLOPs, new over old
};
// The policy with the least recompute whose activations, scaled from the estimate's, fit its headroom; only those with
// less recompute than now.
KeepingMore CheapestPolicyWithin(const TrainingJob& job, const TrainingEstimate& estimate);

// "REMAT_POLICY_MINIMAL_FLASH", as requests spell it.
std::string RematPolicyField(RematPolicy policy);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SAVED_ACTIVATIONS_H_
