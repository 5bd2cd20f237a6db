// A request for proposals as the engine takes it, with everything that the search points to.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_SHARDING_REQUEST_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_SHARDING_REQUEST_H_

#include <optional>
#include <string>
#include <vector>

#include "proto/sliceplan/v1/sharding.pb.h"
#include "server/catalog/catalog.h"
#include "server/planner/sharding_search.h"
#include "server/rpc/convert/search_terms.h"
#include "server/rpc/field_path.h"
#include "server/rpc/model_cache.h"
#include "server/rpc/profile_cache.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

struct SearchQuestion : SearchBase {
  std::optional<transformer::ModelOperations> edited_operations;  // when the request changes the experts' load
  planner::ShardingQuestion search;
};

// Fills `question`, or `violations` with everything that is wrong. `request` must outlive `question`, and must not ask
// for serving.
void ToSearchQuestion(const v1::ProposeShardingRequest& request, const catalog::Catalog& catalog, ModelCache& models,
                      ProfileCache& profiles, const FieldPath& path, SearchQuestion& question, Violations& violations);

// Adds what the engine found, in the names that the request uses, once per field.
void AddEngineViolations(const v1::ProposeShardingRequest& request, const FieldPath& path,
                         std::vector<hardware::Violation> found, Violations& violations);

// The name in a request for proposals of a field of a request for one estimate: "training.remat_policy" for
// "workload.remat_policy".
std::string FieldOfSearch(absl::string_view field);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_SHARDING_REQUEST_H_
