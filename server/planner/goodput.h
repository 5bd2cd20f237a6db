// What failures and preemptions leave of a job's time. Failures are a Poisson process that also hits restarts; work
// since the last checkpoint is lost.
//   J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974.
//   J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006.
#ifndef SLICEPLAN_SERVER_PLANNER_GOODPUT_H_
#define SLICEPLAN_SERVER_PLANNER_GOODPUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// Seconds of work between checkpoints that cost least: sqrt(2 d M) to third order, M when writing takes 2 M or more
// (Daly's optimum). `write_seconds` >= 0, `mean_seconds_between_failures` > 0 of the whole job.
double OptimalCheckpointInterval(double write_seconds, double mean_seconds_between_failures);

// Interruptions of the whole job per second: failures of any chip at work, and preemptions.
double InterruptionsPerSecond(const Reliability& reliability, int64_t chip_count);

// Useful seconds per second of wall time with `interval_seconds` of work between checkpoints: Daly's
// complete model, exact for a Poisson process.
double GoodputRatio(double interval_seconds, double write_seconds, double restart_seconds,
                    double interruptions_per_second);

// Checkpoints come at the interval of `reliability`, absent: at the optimal one, but at least a step and at most the
// whole job apart. The ratio and the four daily figures describe the same day: ratio x 86,400 + lost +
// restart + checkpoint seconds = 86,400. Without failures and preemptions the ratio is 1, and no checkpoints are
// assumed. When next to nothing is left, the job does not finish: wall_seconds is unset and a warning says why.
// Requires a legal reliability (workload_check.h), step_seconds > 0.
Goodput GoodputOf(const Reliability& reliability, int64_t chip_count, double step_seconds,
                  std::optional<double> time_to_train_seconds, std::vector<std::string>& warnings);

// Wall time of `time_to_train_seconds` of work: finite even for a job that does not finish.
double NeededSeconds(const Goodput& goodput, double time_to_train_seconds);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_GOODPUT_H_
