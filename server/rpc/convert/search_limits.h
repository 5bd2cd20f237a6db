// What every search is bounded by: objective, constraints, number of proposals, time.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_SEARCH_LIMITS_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_SEARCH_LIMITS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "proto/sliceplan/v1/sharding.pb.h"
#include "server/planner/render/rendering.h"
#include "server/planner/sharding_search.h"
#include "server/rpc/convert/assumptions.h"
#include "server/rpc/field_path.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

struct SearchLimits {
  planner::Objective objective = planner::Objective::kMinStepTime;
  planner::EstimationMode mode = planner::EstimationMode::kCalibrated;
  size_t proposal_count = 5;
  // Targets for every proposal; empty: all that suit the slice, for the first.
  std::vector<planner::RenderTarget> render;
  std::optional<absl::Duration> time_limit;
};

// Objective and estimation mode.
void ReadMode(const v1::ProposeShardingRequest& request, const FieldPath& path, Violations& violations,
              Assumptions& assumptions, SearchLimits& limits);
// The rest of the limits.
void ReadLimits(const v1::ProposeShardingRequest& request, const FieldPath& path, Violations& violations,
                SearchLimits& limits);
// Constraints that training and serving share; deadline, budget and slo are left to the caller.
void ReadConstraints(const v1::Constraints& proto, const FieldPath& path, Violations& violations,
                     planner::SearchConstraints& constraints);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_SEARCH_LIMITS_H_
