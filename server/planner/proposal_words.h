// What is said about proposals: why one ranks before the next, and the book's own optima beside the first.
#ifndef SLICEPLAN_SERVER_PLANNER_PROPOSAL_WORDS_H_
#define SLICEPLAN_SERVER_PLANNER_PROPOSAL_WORDS_H_

#include <string>
#include <vector>

#include "server/planner/sharding_search.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// "fsdp 512, tensor 4; data 2 across slices".
std::string DegreesWords(const Parallelism& parallelism);

// "3.2% shorter step (903 ms against 932 ms): 40 ms less exposed communication." Requires both estimates filled.
std::string BeatsBecause(const ShardingQuestion& question, const Proposal& proposal, const Proposal& next);

// Optima that apply to the job's slice, beside `first`: FSDP x tensor (book, chapter 5), the tensor limit, critical
// batches of FSDP alone and between slices.
std::vector<ClosedFormOptimum> ClosedForms(const TrainingJob& job, const Proposal& first);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_PROPOSAL_WORDS_H_
