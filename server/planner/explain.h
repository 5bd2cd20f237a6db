// What holds a step back and what a job lacks, as sentences with numbers.
#ifndef SLICEPLAN_SERVER_PLANNER_EXPLAIN_H_
#define SLICEPLAN_SERVER_PLANNER_EXPLAIN_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// "the matrix unit", "ICI", ...
absl::string_view ResourceWords(StepResource resource);
// Whether it is a network between chips.
bool IsNetwork(StepResource resource);
// What the plan's weights and gradients need to hide behind compute, in tokens per chip: beside its own tensor degree
// when it has one. 0 when that is not known.
double NeededTokensPerChip(const TrainingEstimate& estimate);

// "Interconnect-bound: 512 tokens per chip where FSDP alone needs 850 on three axes; ICI is busy 100% of the ideal
// step, the matrix unit 62%." Requires bottleneck, thresholds and parallelism; empty when nothing was timed.
std::string ExplainBottleneck(const TrainingJob& job, const TrainingEstimate& estimate);

// "Stage 0 needs 112 GB of 95 GB, 17 GB too much, ..." by outcome; empty when feasible. Requires outcome,
// shortfall_amount, memory, cost and goodput.
std::string DescribeShortfall(const TrainingJob& job, const TrainingEstimate& estimate);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_EXPLAIN_H_
