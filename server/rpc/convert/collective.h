// One collective over axes of a slice: contract to engine, and back.
#ifndef SLICEPLAN_SERVER_RPC_CONVERT_COLLECTIVE_H_
#define SLICEPLAN_SERVER_RPC_CONVERT_COLLECTIVE_H_

#include "absl/status/status.h"
#include "proto/sliceplan/v1/collective.pb.h"
#include "server/hardware/slice.h"
#include "server/roofline/collective.h"
#include "server/rpc/convert/assumptions.h"
#include "server/rpc/field_path.h"
#include "server/rpc/violations.h"

namespace sliceplan::rpc {

struct CollectiveQuestion {
  roofline::CollectiveKind kind = roofline::CollectiveKind::kAllGather;
  double bytes = 1;
  double copies = 1;  // of each byte that are sent
  hardware::Group group;
  roofline::CollectiveOptions options;
};

// The group, with all chips of all slices as default; pieces that are no part of the slice are violations. `slice` is
// nullptr when the request names none: the rest is checked all the same.
CollectiveQuestion ToCollective(const v1::AnalyzeCollectiveRequest& request, const hardware::Slice* slice,
                                const FieldPath& path, Violations& violations, Assumptions& assumptions);

// Fills the numbers; `network_ratio` is the share of the links' rate that a runtime reaches, in (0, 1].
// FAILED_PRECONDITION names a network figure that the chip lacks, INVALID_ARGUMENT a group that is none.
absl::Status AnalyzeCollective(const CollectiveQuestion& question, const hardware::Slice& slice, double network_ratio,
                               v1::AnalyzeCollectiveResponse* response);

}  // namespace sliceplan::rpc

#endif  // SLICEPLAN_SERVER_RPC_CONVERT_COLLECTIVE_H_
