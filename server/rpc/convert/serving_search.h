// A request for proposals of serving as the engine takes it, and its answer as a reply.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_SERVING_SEARCH_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_SERVING_SEARCH_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/sliceplan/v1/sharding.pb.h"
#include "server/catalog/catalog.h"
#include "server/planner/serving/serving_search.h"
#include "server/rpc/convert/search_terms.h"
#include "server/rpc/field_path.h"
#include "server/rpc/model_cache.h"
#include "server/rpc/profile_cache.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

struct ServingSearchQuestion : SearchBase {
  const v1::ServingWorkload* asked = nullptr;  // of the request
  ModelHandle draft_model;
  planner::ServingQuestion search;
};

// Fills `question`, or `violations` with everything that is wrong. `request`, which asks for serving, must outlive
// `question`.
void ToServingSearch(const v1::ProposeShardingRequest& request, const catalog::Catalog& catalog, ModelCache& models,
                     ProfileCache& profiles, const FieldPath& path, ServingSearchQuestion& question,
                     Violations& violations);

// The name in a request for proposals of a field of a request for one estimate: "serving.batch_size" for
// "workload.batch_size", "constraints.slo" for "slo".
std::string FieldOfServingSearch(absl::string_view field);

// Fills everything but the elapsed time and the versions.
void ToProto(const ServingSearchQuestion& question, const planner::ServingSearchAnswer& answer,
             v1::ProposeShardingResponse* response);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_SERVING_SEARCH_H_
