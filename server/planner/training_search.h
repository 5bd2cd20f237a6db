// Which plans of a slice are worth evaluating when the caller names none.
#ifndef SLICEPLAN_SERVER_PLANNER_TRAINING_SEARCH_H_
#define SLICEPLAN_SERVER_PLANNER_TRAINING_SEARCH_H_

#include <vector>

#include "server/planner/parallelism.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// Every legal split of the slice's chips over data, FSDP, tensor, context, expert and pipeline, slices joined by data
// (or FSDP, or pipeline stages), simplest first: fewer axes, then smaller tensor, context, expert and pipeline degrees.
// Tensor, context and pipeline degrees end at kLargestTensorDegree and the like: beyond them no published run goes.
std::vector<Parallelism> EnumeratePlans(const TrainingJob& job);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_TRAINING_SEARCH_H_
