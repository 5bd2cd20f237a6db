// One legal plan of one slice for a serving load, judged in the mean (saturation.h).
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_JUDGE_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_JUDGE_H_

#include <limits>
#include <optional>
#include <tuple>

#include "server/planner/serving/load_result.h"
#include "server/planner/serving/replica_plan.h"
#include "server/planner/serving/serving_search.h"

namespace sliceplan::planner {

struct JudgedPlan {
  ServingSummary summary;
  bool meets_targets = true;
  double key = 0;  // of the objective, smaller is better

  auto Order() const {
    return std::make_tuple(!meets_targets, key, summary.tpot_seconds, summary.chip_count, summary.candidate);
  }
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
  // What proposals are ordered by.
  double KeyOf(const ServingSummary& summary) const;
  // Sequences that must fit at least.
  int64_t LeastBatch() const;
  // Fills `judged`, or says why the plan is left out. `job` is JobOf(candidate, kBoth).
  std::optional<PruneReason> Judge(size_t candidate, const ServingJob& job, const ReplicaPlan& plan,
                                   JudgedPlan& judged) const;

 private:
  bool HasHeadroom(const ServingMemory& memory) const;
  double JudgeBatch(const ServingJob& job, const ReplicaPlan& plan, int64_t batch, ServingSummary& summary) const;
  // Replicas, each with a batch that keeps the target on tokens.
  double JudgeRate(const ServingJob& job, const ReplicaPlan& plan, int64_t most, JudgedPlan& judged) const;

  const ServingQuestion& question_;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_JUDGE_H_
