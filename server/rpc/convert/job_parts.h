// What an estimate and a search read alike from their requests.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_JOB_PARTS_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_JOB_PARTS_H_

#include <optional>

#include "proto/sliceplan/v1/training.pb.h"
#include "server/catalog/slice_resolver.h"
#include "server/planner/training_job.h"
#include "server/rpc/field_path.h"
#include "server/rpc/violations.h"
#include "server/transformer/operations.h"

namespace sliceplan::rpc {

// Whether defaults are those of TPUs.
bool IsTpu(const catalog::ResolvedSlice& slice);

// Ranges are the engine's (planner/workload_check.h), but for the checkpoint interval.
planner::Reliability ToReliability(const v1::Reliability& proto, const FieldPath& path, Violations& violations);

// The model with the experts' load that `workload` asks for; nullopt when that is the model's own, or out of range.
// `operations` is nullptr when the model is not known: ranges are checked all the same.
std::optional<transformer::ModelOperations> EditedExperts(const v1::TrainingWorkload& workload,
                                                          const transformer::ModelOperations* operations,
                                                          const FieldPath& path, Violations& violations);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_JOB_PARTS_H_
