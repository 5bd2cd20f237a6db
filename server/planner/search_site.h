// One candidate of a search with everything that is worked out once for it.
#ifndef SLICEPLAN_SERVER_PLANNER_SEARCH_SITE_H_
#define SLICEPLAN_SERVER_PLANNER_SEARCH_SITE_H_

#include <cstddef>

#include "server/planner/plan_bound.h"
#include "server/planner/plan_evaluator.h"
#include "server/planner/sharding_search.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

struct SearchSite {
  // All three must outlive it.
  SearchSite(const ShardingQuestion& question, size_t index, MappingCache& mappings)
      : index(index),
        job(JobOf(question, index)),
        ideal(job.slice, job.allow_idle_chips),
        evaluator(job, mappings, &loads) {}
  SearchSite(const SearchSite&) = delete;
  SearchSite& operator=(const SearchSite&) = delete;

  const size_t index;  // of the candidate
  const TrainingJob job;
  IdealLaws ideal;
  StepLoadCache loads;
  PlanEvaluator evaluator;
};

// A slice whose chips would need this many times their memory for the job's state alone is no near miss.
inline constexpr double kHopeless = 2;

// Parameters and optimizer state of one chip with everything sharded over all chips.
double LeastStateBytes(const TrainingJob& job);

// No plan takes less: all matmuls of the model at the chip's rate. 0 where experts may drop tokens.
double FloorSeconds(const TrainingJob& job);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SEARCH_SITE_H_
