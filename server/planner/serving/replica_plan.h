// One way to spread a replica over its chips, with everything that an estimate asks of it.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_PLAN_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_PLAN_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/planner/mapping.h"
#include "server/planner/serving/replica_load.h"
#include "server/planner/serving/replica_timer.h"
#include "server/planner/serving/serving_memory.h"

namespace sliceplan::planner {

// Adds a violation for everything that is wrong with the plan of a pool, at `prefix` + "parallelism...", and a note for
// everything that is uneven, copied or padded.
void CheckServingPlan(const ServingJob& job, const ServingPool& pool, const Parallelism& parallelism,
                      const std::string& prefix, std::vector<hardware::Violation>& violations,
                      std::vector<std::string>& notes, std::vector<Padding>* paddings);

// Whether CheckServingPlan would find nothing wrong.
bool IsLegalServingPlan(const ServingJob& job, const ServingPool& pool, const Parallelism& parallelism);

// Times decode steps with drafting: what a step costs to draft is added to checking it.
class DraftingTimer : public StepTimer {
 public:
  // The timers must outlive it; `draft` nullptr: a drafted token costs `ratio` plain steps.
  DraftingTimer(const ReplicaTimer& target, const ReplicaTimer* draft, int64_t draft_tokens, double ratio)
      : target_(target), draft_(draft), draft_tokens_(draft_tokens), ratio_(ratio) {}
  double Seconds(const StepShape& shape) const override;
  // Of drafting for `sequences` at that context.
  double DraftSeconds(int64_t sequences, double context_tokens) const;

 private:
  const ReplicaTimer& target_;
  const ReplicaTimer* draft_;
  int64_t draft_tokens_;
  double ratio_;
};

// Times steps of prompts alone in the chunks that they are read in.
class ChunkingTimer : public StepTimer {
 public:
  // Both must outlive it; `chunk_tokens` above 0.
  ChunkingTimer(const StepTimer& steps, const ReplicaTimer& prompts, double chunk_tokens)
      : steps_(steps), prompts_(prompts), chunk_tokens_(chunk_tokens) {}
  double Seconds(const StepShape& shape) const override;

 private:
  const StepTimer& steps_;
  const ReplicaTimer& prompts_;
  double chunk_tokens_;
};

// Times steps of one of several groups of data ranks that run without each other: all do the same at once.
class GroupTimer : public StepTimer {
 public:
  // `replica` must outlive it; `groups` at least 1.
  GroupTimer(const StepTimer& replica, int64_t groups) : replica_(replica), groups_(groups) {}
  double Seconds(const StepShape& shape) const override;

 private:
  const StepTimer& replica_;
  int64_t groups_;
};

// Not movable: its parts point at each other.
class ReplicaPlan {
 public:
  // Requires a legal plan. INVALID_ARGUMENT: the degrees cannot be placed. FAILED_PRECONDITION: a network figure is not
  // public. Of several placements, the one with the fastest step at `batch_size`. The job must outlive the plan.
  static absl::StatusOr<std::unique_ptr<ReplicaPlan>> Make(const ServingJob& job, const ServingPool& pool,
                                                           const Parallelism& parallelism, int64_t batch_size,
                                                           MappingCache& mappings);
  ReplicaPlan(const ReplicaPlan&) = delete;
  ReplicaPlan& operator=(const ReplicaPlan&) = delete;

  const Parallelism& parallelism() const { return parallelism_; }
  const ServingPolicy& policy() const { return policy_; }
  const ReplicaLoad& load() const { return load_; }
  const ReplicaTimer& timer() const { return *timer_; }
  const ReplicaMemory& memory() const { return *memory_; }
  const MappedAxes& mapping() const { return mappings_->mappings[mapping_index_]; }
  const PlanLaws& laws() const { return mappings_->laws[mapping_index_]; }
  const ServingPool& pool() const { return pool_; }
  int64_t chip_count() const { return pool_.slice.TotalChips(); }

  // Steps as the load sees them: drafting included.
  const StepTimer& steps() const;
  // Data ranks that exchange nothing with each other schedule their steps alone: ranks of one expert group step
  // together.
  int64_t group_count() const { return static_cast<int64_t>(load_.data_ranks / load_.expert_ranks); }
  // Of one such group.
  const StepTimer& group_steps() const { return *group_steps_; }
  int64_t tokens_per_sequence() const { return 1 + draft_tokens_; }
  // Tokens that one step writes per sequence on average.
  double tokens_per_step() const { return tokens_per_step_; }
  // Seconds per output token and sequence when `sequences` are resident at that context.
  double TokenSeconds(int64_t sequences, double context_tokens) const;
  // Of `prompts` together, cached prefixes skipped, chunks as the policy has them.
  double PrefillSeconds(int64_t prompts) const;
  // What one prompt adds to the next token of the others, `sequences` of them.
  double InterferenceSeconds(int64_t sequences, double context_tokens) const;
  // Taking requests in and sending first tokens out; 0 in ROOFLINE mode.
  double RequestSeconds() const;

 private:
  ReplicaPlan(const ServingJob& job, const ServingPool& pool, const Parallelism& parallelism);

  const ServingJob& job_;
  const ServingPool& pool_;
  Parallelism parallelism_;
  ServingPolicy policy_;
  ReplicaLoad load_;
  std::shared_ptr<const MappingSet> mappings_;
  size_t mapping_index_ = 0;
  std::optional<ReplicaTimer> timer_;
  std::optional<ReplicaMemory> memory_;
  // Speculation.
  int64_t draft_tokens_ = 0;
  double tokens_per_step_ = 1;
  ReplicaLoad draft_load_;
  std::optional<ReplicaTimer> draft_timer_;
  std::optional<DraftingTimer> drafting_;
  std::optional<ChunkingTimer> chunking_;
  std::optional<GroupTimer> group_steps_;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_PLAN_H_
