// Changes of a training job that may make it feasible, one field or two at a time, each with its words.
#ifndef SLICEPLAN_SERVER_PLANNER_FIX_CHANGES_H_
#define SLICEPLAN_SERVER_PLANNER_FIX_CHANGES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// A changed job and how to say what changed: "remat_policy full".
struct Change {
  TrainingJob job;
  Fix fix;
};

// Degree of an axis over both networks.
int64_t DegreeOf(const Parallelism& parallelism, LogicalAxis axis);

// What every change adds: words, a code (SEVERAL_CHANGES from the second on), fields of the request.
void Say(Change& change, absl::string_view words);
void Code(Change& change, absl::string_view code);
void SetField(Change& change, absl::string_view field, std::string value);

// Single changes. Each returns false, and changes nothing, when it does not apply. Those of the plan require one.
bool UsePolicy(Change& change, RematPolicy policy);
bool Accumulate(Change& change, int64_t accumulation);
bool ChunkLogits(Change& change, int64_t chunks);
bool OffloadOptimizer(Change& change);
bool OffloadActivations(Change& change);
bool KeepOffHost(Change& change);  // for a host that holds less than is offloaded to it
bool UseZeroStage(Change& change, ZeroStage stage);
bool ShardSequence(Change& change);
bool MoveDataToFsdp(Change& change);
bool NarrowOptimizerState(Change& change);
bool NarrowGradients(Change& change);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_FIX_CHANGES_H_
