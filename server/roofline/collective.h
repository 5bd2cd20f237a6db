// Time of one collective over a group of chips of a slice, every group of the logical axis running at once.
// "How To Scale Your Model" chapters 3 and 18 (GPUs); split, strided and shared axes as derived in docs/collectives.md.
#ifndef SLICEPLAN_SERVER_ROOFLINE_COLLECTIVE_H_
#define SLICEPLAN_SERVER_ROOFLINE_COLLECTIVE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/hardware/slice.h"

namespace sliceplan::roofline {

enum class CollectiveKind { kAllGather, kReduceScatter, kAllReduce, kAllToAll, kCollectivePermute };

// The network that carries the bytes of a collective.
enum class Tier { kNone, kIci, kScaleUp, kScaleOut, kDcn };

// Every collective here is linear in its bytes above a latency floor, so the law of a group is computed once and then
// applied to many messages. `bytes`: the full array of one group (all-gather, reduce-scatter, all-reduce), held by the
// whole group (all-to-all), or sent by each chip (permute).
struct CollectiveLaw {
  // Seconds per byte on each network; the phases on different networks follow each other.
  double ici_seconds_per_byte = 0;
  double scale_up_seconds_per_byte = 0;
  double scale_out_seconds_per_byte = 0;
  double dcn_seconds_per_byte = 0;
  // Pipelined: phases on different networks overlap (the slowest decides). mesh-collectives section 9.
  double pipelined_seconds_per_byte = 0;
  double latency_seconds = 0;
  int64_t hops = 0;
  Tier slowest_tier = Tier::kNone;

  double BandwidthSeconds(double bytes) const { return bytes * pipelined_seconds_per_byte; }
  // The larger of bandwidth and latency; zero bytes cost nothing.
  double Seconds(double bytes) const {
    if (bytes <= 0) return 0;
    const double bandwidth_seconds = BandwidthSeconds(bytes);
    return bandwidth_seconds > latency_seconds ? bandwidth_seconds : latency_seconds;
  }
};

struct CollectiveOptions {
  // All-reduce: false (default) as a ring library does, reduce-scatter then all-gather; true: the optimum of the links.
  bool optimal_all_reduce = false;
  // Switched systems: reduce inside the switches. Book chapter 18 (SHARP).
  bool in_network_reduction = false;
  // Share of an all-to-all that is not empty (ragged, mixture of experts): 1 is dense.
  double all_to_all_fill_ratio = 1;
};

// Requires legal pieces: axis within the slice, factor x stride divides the axis, no two pieces overlap.
// FAILED_PRECONDITION names the missing network figure when the group needs one that the accelerator lacks.
absl::StatusOr<CollectiveLaw> LawOf(CollectiveKind kind, const hardware::Slice& slice, const hardware::Group& group,
                                    const CollectiveOptions& options = {});

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_COLLECTIVE_H_
