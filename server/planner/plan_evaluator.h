// One plan from its degrees to its time and memory: free choices (mapping, recompute, accumulation) made on the way.
// Single estimates and searches share this code.
#ifndef SLICEPLAN_SERVER_PLANNER_PLAN_EVALUATOR_H_
#define SLICEPLAN_SERVER_PLANNER_PLAN_EVALUATOR_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/planner/mapping.h"
#include "server/planner/placement_search.h"
#include "server/planner/plan_laws.h"
#include "server/planner/stage_split.h"
#include "server/planner/step_load.h"
#include "server/planner/step_time.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"
#include "server/planner/training_memory.h"

namespace sliceplan::planner {

struct EvaluatedPlan {
  StepPlan plan;
  std::shared_ptr<const MappingSet> mappings;  // of all placements searched, the best
  size_t mapping_index = 0;
  StepTimes times;
  MemoryUse memory;  // of the fullest stage
  bool fits = false;

  const PlanLaws& laws() const;
  const MappedAxes& mapping() const;
};

// Evaluates plans of one job, which must outlive it. Not thread-safe: holds the working memory of one evaluation.
class PlanEvaluator {
 public:
  // `loads`: counts shared by the plans of a search, which outlive it; null: each plan counts for itself.
  PlanEvaluator(const TrainingJob& job, MappingCache& mappings, StepLoadCache* loads = nullptr);

  // Requires a legal plan. Free choices: the mapping with the shortest step, then the recompute policy and accumulation
  // that give the shortest step of those that fit, simplest first among equals. When nothing fits, the choice with the
  // least shortfall. INVALID_ARGUMENT: the degrees cannot be placed on the slice, or the given mapping is wrong.
  // FAILED_PRECONDITION: a network figure that the plan needs is not public. `max_mappings`: placements looked at.
  absl::Status Evaluate(const Parallelism& parallelism, EvaluatedPlan& evaluated, size_t max_mappings = kMaxMappings);
  // The same among all placements, not only the kMaxMappings that are looked at closely; only plans below the limit are
  // of interest. True when there is one, and then it is the plan that Evaluate finds when it looks at them all.
  // `ideal`: laws at least as good as those of every placement.
  absl::StatusOr<bool> EvaluateBelow(double limit_seconds, const Parallelism& parallelism, const PlanLaws& ideal,
                                     EvaluatedPlan& evaluated);

  // No choice of recompute and accumulation that fits takes less, or none fits: nullopt. `ideal`: laws at least as good
  // as those of every placement; `ways`, unless empty: some of them are at least as good as those of a placement.
  std::optional<double> FloorSeconds(const Parallelism& parallelism, const PlanLaws& ideal,
                                     absl::Span<const PlanLaws> ways);

  // The job as a plan runs it: gradients that are accumulated may have a format of their own.
  const TrainingJob& JobOf(const StepPlan& plan) const;

  // A plan with these choices. microbatch_size 0: the batch does not divide.
  StepPlan PlanOf(Parallelism parallelism, RematPolicy policy, int32_t accumulation) const;

  // The memory of a legal plan with the free choices that hold least: full recompute, the most accumulation.
  MemoryUse LeastMemory(const Parallelism& parallelism);
  bool Fits(const MemoryUse& memory) const;

  // Counts, stages and times of the last evaluated plan once more, for its breakdown.
  void Recount(const EvaluatedPlan& evaluated);

  const StepLoad& load() const { return *load_; }
  const StageSplit& stages() const { return stages_; }
  const StepDetails& details() const { return details_; }
  int64_t evaluated_count() const { return evaluated_count_; }

 private:
  // What became of a choice of recompute and accumulation beside the best so far.
  enum class Trial { kNotBetter, kBetter, kUnclear };
  // The best choice so far. Not `below`: it fits and takes the limit of interest or longer, how long nobody asked.
  struct Choice {
    EvaluatedPlan evaluated;
    bool below = true;
  };
  // False when nothing below the limit fits.
  absl::StatusOr<bool> ChooseAll(const EvaluatedPlan& base, double limit_seconds, const PlanLaws* ideal,
                                 EvaluatedPlan& evaluated);
  // A step below `least_seconds` does not count.
  Trial TryPolicy(RematPolicy policy, int32_t accumulation, const EvaluatedPlan& base, double least_seconds,
                  double limit_seconds, const PlanLaws* ideal, std::optional<Choice>& best);
  // Whether the choice may take less than the limit with laws as good as these.
  bool CanBeBelow(const EvaluatedPlan& evaluated, double limit_seconds, const PlanLaws* ideal);
  // The placement with the shortest step, if that is below the limit.
  bool ChooseMapping(EvaluatedPlan& evaluated, double limit_seconds);
  bool SearchMapping(EvaluatedPlan& evaluated, double limit_seconds);
  void Count(const StepPlan& plan);
  // Whether saved activations on their way to the host or back held up the step that was timed last.
  bool WaitsForHost() const;

  const TrainingJob& job_;
  std::optional<TrainingJob> accumulating_job_;
  MappingCache& mappings_;
  PlacementSearch placements_;
  StepLoadCache* const loads_;
  StepLoad own_load_;
  const StepLoad* load_ = &own_load_;
  StageSplit stages_;
  StepDetails details_;
  int64_t evaluated_count_ = 0;
};

// Sequences of one microbatch on one data shard, or 0 when the batch does not divide.
int64_t MicrobatchSize(const TrainingWorkload& workload, const Parallelism& parallelism, int32_t accumulation,
                       int32_t microbatch_count);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_PLAN_EVALUATOR_H_
