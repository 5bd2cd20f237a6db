// Collectives on GPUs in scale-up domains behind switches, joined by a full-bisection network: bytes that must enter
// and leave each GPU and each domain, nothing more. docs/collectives.md section 7; book chapter 18.
#ifndef SLICEPLAN_SERVER_ROOFLINE_SWITCHED_COLLECTIVE_H_
#define SLICEPLAN_SERVER_ROOFLINE_SWITCHED_COLLECTIVE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/hardware/slice.h"
#include "server/roofline/collective.h"

namespace sliceplan::roofline {

// How the groups of one logical axis fall onto the domains when all of them are active. On aligned groups every domain
// sees the same; where a group straddles domains unevenly these are the figures of the busiest domain.
struct DomainOccupancy {
  double members = 1;             // n of a group
  double members_per_domain = 1;  // r: the most members of one group in one domain
  double domains = 1;             // m: n / r when aligned
  // Per GPU of the domain: groups that touch it, over its GPUs; 1 / r when aligned.
  double groups_per_gpu = 1;
  // Mean over the GPUs of the domain of their own group's members in it, over n; r / n when aligned.
  double local_share = 1;
  bool leaves_domain = false;  // some group has members in several domains
};

// GPUs numbered domain by domain along one axis of `gpu_count`. INVALID_ARGUMENT: an axis other than 0, factor or
// stride below 1, factor x stride does not divide gpu_count, pieces that overlap, more than 64 pieces, domain_size
// below 1, or gpu_count outside 1 to 2^20.
absl::Status OccupancyOf(int64_t gpu_count, int32_t domain_size, absl::Span<const hardware::GroupPiece> pieces,
                         DomainOccupancy& occupancy);

struct SwitchedCost {
  double scale_up_units = 0;   // seconds x bytes per second of a GPU inside its domain / bytes
  double scale_out_units = 0;  // seconds x bytes per second of a GPU out of its domain / bytes
  // Crossings of the domain's switches and of the network outside that follow each other.
  int64_t scale_up_hops = 0;
  int64_t scale_out_hops = 0;
};

// One collective over a group of GPUs, all groups active and the domain's network shared evenly by its GPUs.
SwitchedCost SwitchedCollective(CollectiveKind kind, const DomainOccupancy& occupancy,
                                const CollectiveOptions& options);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_SWITCHED_COLLECTIVE_H_
