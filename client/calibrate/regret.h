// What it costs to run the plan that the service ranks first, where several plans of one job were measured.
#ifndef SLICEPLAN_CLIENT_CALIBRATE_REGRET_H_
#define SLICEPLAN_CLIENT_CALIBRATE_REGRET_H_

#include <string>
#include <vector>

#include "client/calibrate/accuracy.h"

namespace sliceplan::calibrate {

// One line per job with at least two plans that were measured and predicted, and per source and group of the error
// table their mean ("kind" job, source, group): plans, the case that ranks first, the case that measured best, and the
// regret, measured cost of the first / of the best - 1 in percent; as the profiles are and with the constants of
// `left_out`, which has the cases of `answered` or none. The cost is the step time, the time of a batch, or under a
// number of users the inverse of the output tokens per second. Comma-separated with a header.
std::string RegretCsv(const std::vector<AnsweredCase>& answered, const std::vector<AnsweredCase>& left_out);

}  // namespace sliceplan::calibrate

#endif  // SLICEPLAN_CLIENT_CALIBRATE_REGRET_H_
