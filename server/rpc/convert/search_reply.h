// What the replies of all searches have in common.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_SEARCH_REPLY_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_SEARCH_REPLY_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/sliceplan/v1/sharding.pb.h"
#include "server/planner/sharding_search.h"
#include "server/rpc/convert/search_terms.h"

namespace sliceplan::rpc {

// What could not be written, by its reason, with the ranks of the proposals.
using Unwritten = std::map<std::string, std::vector<int>>;

// By reason, in the order of their names.
void AddPruned(const std::array<int64_t, planner::kPruneReasonCount>& counts, v1::SearchReport* report);

// Whether a request for proposals has such a field: "serving.batch_size", "constraints.fixed_ici.tensor".
bool IsFieldOfSearch(absl::string_view field);
// A fix of fields that a request for proposals does not all have keeps its sentence alone.
void KeepFieldsOfSearch(v1::Fix* fix);

void AddClosedForm(const planner::ClosedFormOptimum& ours, v1::ProposeShardingResponse* response);

void AddSearchWarning(absl::string_view code, absl::string_view sentence, absl::string_view field,
                      v1::ProposeShardingResponse* response);
// About prices, candidates and renderings. Proposals and the report of the search are there already. `needs_price`:
// plans without one are left out.
void AddSearchWarnings(const SearchBase& question, bool needs_price, const Unwritten& unwritten,
                       v1::ProposeShardingResponse* response);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_SEARCH_REPLY_H_
