// Enums of serving, contract and engine side by side, beside those of enums.h.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_SERVING_ENUMS_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_SERVING_ENUMS_H_

#include "proto/sliceplan/v1/serving.pb.h"
#include "server/planner/serving/serving_estimate.h"
#include "server/planner/serving/serving_job.h"
#include "server/rpc/convert/enums.h"

namespace sliceplan::rpc {

inline constexpr EnumPair<v1::Outcome, planner::ServingOutcome> kServingOutcomes[] = {
    {v1::OUTCOME_FEASIBLE, planner::ServingOutcome::kFeasible},
    {v1::OUTCOME_NO_LEGAL_PLAN, planner::ServingOutcome::kNoLegalPlan},
    {v1::OUTCOME_OUT_OF_MEMORY, planner::ServingOutcome::kOutOfMemory},
    {v1::OUTCOME_UNSTABLE, planner::ServingOutcome::kUnstable},
    {v1::OUTCOME_MISSES_SLO, planner::ServingOutcome::kMissesSlo},
};

inline constexpr EnumPair<v1::PoolRole, planner::PoolRole> kPoolRoles[] = {
    {v1::POOL_ROLE_PREFILL, planner::PoolRole::kPrefill},
    {v1::POOL_ROLE_DECODE, planner::PoolRole::kDecode},
    {v1::POOL_ROLE_BOTH, planner::PoolRole::kBoth},
};

inline constexpr EnumPair<v1::KvCacheSplit, planner::KvCacheSplit> kKvCacheSplits[] = {
    {v1::KV_CACHE_SPLIT_COPIES, planner::KvCacheSplit::kCopies},
    {v1::KV_CACHE_SPLIT_BATCH, planner::KvCacheSplit::kBatch},
    {v1::KV_CACHE_SPLIT_SEQUENCE, planner::KvCacheSplit::kSequence},
};

inline constexpr EnumPair<v1::WindowedKvPolicy, planner::WindowedKvPolicy> kWindowedKvPolicies[] = {
    {v1::WINDOWED_KV_POLICY_FREE, planner::WindowedKvPolicy::kFree},
    {v1::WINDOWED_KV_POLICY_KEEP, planner::WindowedKvPolicy::kKeep},
};

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_SERVING_ENUMS_H_
