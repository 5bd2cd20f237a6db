// What a search asks of its candidates, whatever the job: prices, profiles, names.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_SEARCH_TERMS_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_SEARCH_TERMS_H_

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "proto/sliceplan/v1/sharding.pb.h"
#include "server/catalog/catalog.h"
#include "server/planner/render/rendering.h"
#include "server/rpc/convert/assumptions.h"
#include "server/rpc/convert/search_candidates.h"
#include "server/rpc/convert/search_limits.h"
#include "server/rpc/field_path.h"
#include "server/rpc/model_cache.h"
#include "server/rpc/profile_cache.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

// What candidates of one accelerator, in one pool, have in common.
struct CandidateTerms {
  v1::PriceUsed price;
  v1::PriceModel price_model = v1::PRICE_MODEL_UNSPECIFIED;  // that the price is for
  ProfileHandle profile;                                     // of training; nullptr in ROOFLINE mode
  ServingProfileHandle serving_profile;                      // of serving; likewise
  Assumptions assumptions;
};

// What the questions of searches have in common. Neither copied nor moved: the search points into it.
struct SearchBase {
  SearchBase() = default;
  SearchBase(const SearchBase&) = delete;
  SearchBase& operator=(const SearchBase&) = delete;

  ModelHandle model;
  std::string model_name;
  SearchLimits limits;
  // By index of the engine's candidates.
  std::vector<Candidate> candidates;
  std::vector<const CandidateTerms*> terms;
  std::vector<std::unique_ptr<CandidateTerms>> all_terms;
  Assumptions assumptions;  // of all candidates alike
  // Accelerators among the candidates that no price is public for, each once.
  std::vector<std::string> unpriced_accelerators;
};

// Price and profile of each candidate, looked up once per accelerator and pool.
class TermsFinder {
 public:
  // Says what is wrong with the fields of the request. All must outlive it.
  TermsFinder(const v1::ProposeShardingRequest& request, const catalog::Catalog& catalog, ProfileCache& profiles,
              const FieldPath& path, SearchBase& question, Violations& violations);

  const CandidateTerms* TermsOf(const Candidate& candidate);

 private:
  void SetPrice(const Candidate& candidate, CandidateTerms& terms);
  void SetProfile(const Candidate& candidate, CandidateTerms& terms);

  const v1::ProposeShardingRequest& request_;
  const catalog::Catalog& catalog_;
  ProfileCache& profiles_;
  const FieldPath& path_;
  SearchBase& question_;
  Violations& violations_;
  bool profile_name_is_good_ = true;
  bool profile_is_reported_ = false;
  std::map<std::tuple<std::string, hardware::FabricKind, const v1::CapacityPool*>, CandidateTerms*> known_;
};

// A twist shortens all-to-alls alone, and those are between experts.
bool HasExperts(const transformer::ModelOperations* model);

// What clouds and schedulers call the slice of a candidate.
planner::SliceNames NamesOf(const Candidate& candidate, const CandidateTerms& terms);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_SEARCH_TERMS_H_
