// One legal plan of one slice in a search for serving: its place among the others, and what it looks like in a line.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_JUDGE_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_JUDGE_H_

#include <limits>
#include <optional>

#include "server/planner/serving/plan_merit.h"
#include "server/planner/serving/replica_plan.h"
#include "server/planner/serving/serving_search.h"

namespace sliceplan::planner {

struct JudgedPlan {
  ServingSummary summary;  // in the mean
  // With the fewest replicas that a rate needs: with targets a bound, as a replay may want more of them.
  PlanRank rank;
  int64_t replica_count = 1;
  bool is_bound = false;
  double floor_seconds = 0;  // per token, of a request alone
};

// Of one question, which must outlive it.
class ServingJudge {
 public:
  // Larger than every key.
  static constexpr double kWorst = std::numeric_limits<double>::max();

  explicit ServingJudge(const ServingQuestion& question) : question_(question) {}

  // One replica of a candidate in a role, its plan left open.
  ServingJob JobOf(size_t candidate, PoolRole role) const;
  // Whether the constraints allow its degrees.
  bool Allows(const Parallelism& plan) const;
  // Sequences that must fit at least.
  int64_t LeastBatch() const;
  // Whether plans are taken in the order of their ranks. Else estimates order them.
  bool OrderIsExact() const;
  // Fills `judged`, or says why the plan is left out. `job` is JobOf(candidate, kBoth).
  std::optional<PruneReason> Judge(size_t candidate, const ServingJob& job, const ReplicaPlan& plan,
                                   JudgedPlan& judged) const;
  // Of a judged plan, when it turns out to need at least so many replicas. False: more than there may be.
  bool SetReplicas(const ServingJob& job, const ReplicaPlan& plan, int64_t replica_count, JudgedPlan& judged) const;
  // What an estimate's figures are ordered by.
  double KeyOf(const ServingEstimate& estimate) const;

 private:
  bool HasHeadroom(const ServingMemory& memory) const;
  bool HasChips(size_t candidate, int64_t replica_count) const;
  void Rank(const PlanMerit& merit, const ReplicaPlan& plan, JudgedPlan& judged) const;
  void Summarize(const PlanMerit& merit, const ReplicaPlan& plan, JudgedPlan& judged) const;

  const ServingQuestion& question_;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_JUDGE_H_
