// Time of one collective over a group of chips of a slice, every group of the logical axis running at once.
// "How To Scale Your Model" chapters 3 and 18 (GPUs); split, strided and shared axes as derived in docs/collectives.md.
#ifndef SLICEPLAN_SERVER_ROOFLINE_COLLECTIVE_H_
#define SLICEPLAN_SERVER_ROOFLINE_COLLECTIVE_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "server/hardware/slice.h"

namespace sliceplan::roofline {

enum class CollectiveKind { kAllGather, kReduceScatter, kAllReduce, kAllToAll, kCollectivePermute };
inline constexpr int kCollectiveKindCount = 5;

// The network that carries the bytes of a collective.
enum class Tier { kNone, kIci, kScaleUp, kScaleOut, kDcn };

// Latency of one hop of a torus where the accelerator's own is not public. Book, chapter 3: about 1 us per hop.
inline constexpr double kDefaultHopSeconds = 1e-6;
// Of one crossing of a scale-up domain, and of the network outside, where the accelerator's own are not known. NCCL's
// own model of a step of a low-latency ring: 0.47 us over NVLink, 2.7 us over the network (NVIDIA/nccl,
// src/graph/tuning.cc @01afd20a).
inline constexpr double kDefaultScaleUpSeconds = 0.47e-6;
inline constexpr double kDefaultNetworkSeconds = 2.7e-6;

// Every collective here is linear in its bytes above a latency floor, so the law of a group is computed once and then
// applied to many messages. `bytes`: the full array of one group (all-gather, reduce-scatter, all-reduce), held by the
// whole group (all-to-all), or sent by each chip (permute).
struct CollectiveLaw {
  // Seconds per byte on each network; the phases on different networks follow each other.
  double ici_seconds_per_byte = 0;
  double scale_up_seconds_per_byte = 0;
  double scale_out_seconds_per_byte = 0;
  double dcn_seconds_per_byte = 0;
  // Pipelined: phases on different networks overlap (the slowest decides). docs/collectives.md section 6.
  double pipelined_seconds_per_byte = 0;
  double latency_seconds = 0;
  // Links of a torus, or crossings of switches, that the last message passes in turn; data-centre hops are not counted.
  int64_t hops = 0;
  Tier slowest_tier = Tier::kNone;

  double BandwidthSeconds(double bytes) const { return bytes * pipelined_seconds_per_byte; }
  // Phases on different networks one after the other: what an unpipelined schedule takes.
  double SequentialBandwidthSeconds(double bytes) const {
    return bytes *
           (ici_seconds_per_byte + scale_up_seconds_per_byte + scale_out_seconds_per_byte + dcn_seconds_per_byte);
  }
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
  // Permute on a torus: false (default) shortest routes; true: a part goes the long way round each ring.
  bool optimal_permute = false;
  // Switched systems: reduce inside the switches. Book chapter 18 (SHARP).
  bool in_network_reduction = false;
  // Switched systems: GPUs reach only the same place of other domains outside, so all-to-all forwards inside.
  bool rail_only_network = false;
  // Share of an all-to-all that is not empty (ragged, mixture of experts): 1 is dense, 0 sends nothing.
  double all_to_all_fill_ratio = 1;
};

// Requires legal pieces: axis within the slice, factor x stride divides the axis, no two pieces overlap, and slices of
// the group that divide those of the job; INVALID_ARGUMENT says which is not.
// FAILED_PRECONDITION names the missing network figure when the group needs one that the accelerator lacks.
absl::StatusOr<CollectiveLaw> LawOf(CollectiveKind kind, const hardware::Slice& slice, const hardware::Group& group,
                                    const CollectiveOptions& options = {});

// All kinds of one group at the price of one: laws[static_cast<size_t>(kind)].
using CollectiveLaws = std::array<CollectiveLaw, kCollectiveKindCount>;
absl::StatusOr<CollectiveLaws> LawsOfGroup(const hardware::Slice& slice, const hardware::Group& group,
                                           const CollectiveOptions& options = {});

// The law of a group on an untwisted torus whose spans (torus_collective.h) are known: LawOf without reading the
// pieces.
struct AxisSpans;
absl::Status LawOfSpans(CollectiveKind kind, const hardware::Slice& slice, const AxisSpans& spans, int32_t slice_count,
                        const CollectiveOptions& options, CollectiveLaw& law);

// The same collective if every physical axis of the group were a closed ring of just its members (a 2-long one stays a
// line): what a naive reading of the topology promises. Torus slices only (UNIMPLEMENTED otherwise).
absl::StatusOr<CollectiveLaw> RingIdealLawOf(CollectiveKind kind, const hardware::Slice& slice,
                                             const hardware::Group& group, const CollectiveOptions& options = {});

// Share of a dense all-to-all that top-k routing over `shard_count` shards leaves. Book chapter 18: min(k / Z, 1) when
// the choices of a token fall on different shards.
double RaggedFillRatio(double choices_per_token, double shard_count);
// The same for choices at random, two of which may fall on one shard: 1 - ((Z - 1) / Z)^k.
double RandomRoutingFillRatio(double choices_per_token, double shard_count);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_COLLECTIVE_H_
