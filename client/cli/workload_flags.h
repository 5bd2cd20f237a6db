// Flags of a training workload, which a single estimate and a search share.
#ifndef SLICEPLAN_CLIENT_CLI_WORKLOAD_FLAGS_H_
#define SLICEPLAN_CLIENT_CLI_WORKLOAD_FLAGS_H_

#include <functional>
#include <string>

#include "client/cli/flags.h"
#include "proto/sliceplan/v1/training.pb.h"

namespace sliceplan::cli {

// `name` is the field of the request that holds the workload.
using WorkloadOf = std::function<v1::TrainingWorkload*()>;

// --sequence, --batch-tokens, --batch, --tokens and --steps, in the group that was begun.
void AddJobFlags(Flags& flags, const std::string& name, const WorkloadOf& workload);

// What is recomputed, offloaded, and in which formats, with a heading.
void AddArithmeticFlags(Flags& flags, const std::string& name, const WorkloadOf& workload);

// --mtbf and what belongs to it, for the field `reliability`, with a heading.
void AddReliabilityFlags(Flags& flags);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_WORKLOAD_FLAGS_H_
