// A request for proposals as the engine takes it, with everything that the search points to.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_SHARDING_REQUEST_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_SHARDING_REQUEST_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/sliceplan/v1/sharding.pb.h"
#include "server/catalog/catalog.h"
#include "server/planner/render/rendering.h"
#include "server/planner/sharding_search.h"
#include "server/rpc/convert/assumptions.h"
#include "server/rpc/convert/search_candidates.h"
#include "server/rpc/field_path.h"
#include "server/rpc/model_cache.h"
#include "server/rpc/profile_cache.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

// What candidates of one accelerator, in one pool, have in common.
struct CandidateTerms {
  v1::PriceUsed price;
  v1::PriceModel price_model = v1::PRICE_MODEL_UNSPECIFIED;  // that the price is for
  ProfileHandle profile;                                     // nullptr in ROOFLINE mode
  Assumptions assumptions;
};

// Neither copied nor moved: the search points into it.
struct SearchQuestion {
  SearchQuestion() = default;
  SearchQuestion(const SearchQuestion&) = delete;
  SearchQuestion& operator=(const SearchQuestion&) = delete;

  ModelHandle model;
  std::string model_name;
  std::optional<transformer::ModelOperations> edited_operations;  // when the request changes the experts' load
  // By index of search.candidates.
  std::vector<Candidate> candidates;
  std::vector<const CandidateTerms*> terms;
  std::vector<std::unique_ptr<CandidateTerms>> all_terms;
  planner::ShardingQuestion search;
  // Targets for every proposal; empty: all that suit the slice, for the first.
  std::vector<planner::RenderTarget> render;
  std::optional<absl::Duration> time_limit;
  Assumptions assumptions;  // of all candidates alike
  // Accelerators among the candidates that no price is public for, each once.
  std::vector<std::string> unpriced_accelerators;
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
