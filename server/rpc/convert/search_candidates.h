// Where a search may run: the slices that a request names, or that its ranges and pools allow.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_SEARCH_CANDIDATES_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_SEARCH_CANDIDATES_H_

#include <cstddef>
#include <vector>

#include "proto/sliceplan/v1/sharding.pb.h"
#include "server/catalog/catalog.h"
#include "server/catalog/slice_resolver.h"
#include "server/rpc/convert/assumptions.h"
#include "server/rpc/field_path.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

// Of one search.
inline constexpr size_t kMaxCandidates = 4096;
// GPUs are sold by the machine without a largest cluster: where a request sets no end, clusters end here.
inline constexpr int64_t kLargestUnaskedCluster = 8192;

struct Candidate {
  catalog::ResolvedSlice slice;
  const v1::CapacityPool* pool = nullptr;  // of the request
};

// In the order of the request; of one accelerator by chips, then slices. Ranges and the entire catalog hold what is
// sold as one slice; GPUs come in machines and, where their network is public, in
// clusters of 1, 2, 4, 8, ... machines or scale-up domains (in ranges 3, 6, 12, ... as well). Everything that is wrong
// is reported under `path`; pools without a free slice are left out, which `assumptions` says. `twists`: slices of
// ranges and of the catalog are candidates twisted as well, where that is offered.
std::vector<Candidate> ToCandidates(const v1::ProposeShardingRequest& request, const catalog::Catalog& catalog,
                                    bool twists, const FieldPath& path, Violations& violations,
                                    Assumptions& assumptions);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_SEARCH_CANDIDATES_H_
