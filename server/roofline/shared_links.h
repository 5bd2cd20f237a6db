// Two collectives of different logical axes at the same time: where they use the same links, their loads add.
// docs/collectives.md section 8.
#ifndef SLICEPLAN_SERVER_ROOFLINE_SHARED_LINKS_H_
#define SLICEPLAN_SERVER_ROOFLINE_SHARED_LINKS_H_

#include "server/hardware/slice.h"
#include "server/roofline/collective.h"

namespace sliceplan::roofline {

// One of the two: its group, the law of that group, and bytes as CollectiveLaw counts them.
struct RunningCollective {
  const hardware::Group* group = nullptr;
  CollectiveLaw law;
  double bytes = 0;
};

// Whether the groups have pieces on one physical axis of the torus.
bool ShareTorusLinks(const hardware::Group& a, const hardware::Group& b);

// Seconds until both are done: the loads of every network that both use added (links of a torus: only when they share
// an axis), then the slowest network, never less than the longer latency. Exact for an outer and an inner part of one
// ring; on a line the peaks lie on different links and the sum is up to a fifth too high.
double ConcurrentSeconds(const hardware::Slice& slice, const RunningCollective& a, const RunningCollective& b);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_SHARED_LINKS_H_
