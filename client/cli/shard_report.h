// The tables of `sliceplan shard`, and what that of training and that of serving share.
#ifndef SLICEPLAN_CLIENT_CLI_SHARD_REPORT_H_
#define SLICEPLAN_CLIENT_CLI_SHARD_REPORT_H_

#include <string>

#include "client/cli/flags.h"
#include "client/cli/report.h"
#include "proto/sliceplan/v1/sharding.pb.h"

namespace sliceplan::cli {

// Lines of a frontier that are shown.
inline constexpr int kFrontierRows = 12;

// The reply for people; `model` names what was asked about.
void PrintProposals(const v1::ProposeShardingRequest& request, const v1::ProposeShardingResponse& response,
                    const std::string& model, const Flags& flags, Report& report);
// The same with `request.serving`.
void PrintServingProposals(const v1::ProposeShardingRequest& request, const v1::ProposeShardingResponse& response,
                           const std::string& model, const Flags& flags, Report& report);

// "2 x tpu-v5p 16x16x16".
std::string SliceName(const v1::SliceUsed& slice);
// Its name, or else where it is; empty without either.
std::string PoolText(const v1::ProposedPool& pool);
// Whether a proposal uses a pool that has a text.
bool InPools(const v1::ProposeShardingResponse& response);

// Section "Why in this order"; nothing without a reason.
void PrintReasons(const v1::ProposeShardingResponse& response, Report& report);
// Rows "zone" and "written for".
void PrintWhereAndFor(const v1::Proposal& proposal, Report& report);
// "and 7 more" plans of the frontier; nothing when all are shown.
void PrintHiddenRows(int hidden, Report& report);
// The headline when there is no proposal, and what the nearest plan misses by how much. `job`: "serving llama-3-8b".
void PrintNoPlan(const v1::ProposeShardingResponse& response, const std::string& job, Report& report);
// Section "Nearly"; `pace` says what `expected_seconds` of a plan are: "step".
void PrintNearMisses(const v1::ProposeShardingResponse& response, const std::string& pace, const Flags& flags,
                     Report& report);

// What a search calls its counts.
struct SearchWords {
  std::string evaluated;      // "evaluated"
  std::string compute_floor;  // plans left out as COMPUTE_FLOOR
  std::string exhaustive;     // nothing was left to look at
};
// Optima by formula, the search, assumptions, warnings and versions.
void PrintSearch(const v1::ProposeShardingResponse& response, const SearchWords& words, const Flags& flags,
                 Report& report);

}  // namespace sliceplan::cli

#endif  // SLICEPLAN_CLIENT_CLI_SHARD_REPORT_H_
