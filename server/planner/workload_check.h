// Ranges of a training job's numbers: those of proto/sliceplan/v1/training.proto.
#ifndef SLICEPLAN_SERVER_PLANNER_WORKLOAD_CHECK_H_
#define SLICEPLAN_SERVER_PLANNER_WORKLOAD_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/hardware/violation.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// Adds one violation for every number out of range or in conflict with another, NaN included, and to `warnings` what is
// legal but odd. Fields are relative to the request: "workload.sequence_length". `max_position_count`: context limit of
// the model, 0 when none is stated; a longer sequence is a warning.
void CheckWorkload(const TrainingJob& job, std::vector<hardware::Violation>& violations,
                   std::vector<std::string>& warnings, int64_t max_position_count = 0);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_WORKLOAD_CHECK_H_
