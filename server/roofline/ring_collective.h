// The book's own forms for one ring or line, for messages between two chips, and for the bytes that cross one link.
// "How To Scale Your Model", chapters 2 and 3. LawOf (collective.h) keeps what these leave out: the (n-1)/n of a ring,
// split axes, several tiers.
#ifndef SLICEPLAN_SERVER_ROOFLINE_RING_COLLECTIVE_H_
#define SLICEPLAN_SERVER_ROOFLINE_RING_COLLECTIVE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "server/hardware/slice.h"

namespace sliceplan::roofline {

// All rates are positive bytes per second, sizes at least 1, bytes and seconds not negative.

// All-gather or reduce-scatter on rings, large-ring limit: bytes / (rings x rate of both directions of an axis).
double LongRingGatherSeconds(double bytes, int ring_count, double axis_bytes_per_second);
// All-to-all on a ring (a quarter of an all-gather) or on several: bytes summed over the chips of the group.
// bytes x max(size) / (4 x chips x rate of both directions of an axis).
double LongRingAllToAllSeconds(double bytes, absl::Span<const int32_t> ring_sizes, double axis_bytes_per_second);

// All-gather or reduce-scatter that sends in one direction only: (n - 1) / n x bytes / rate of one direction.
double OneWayGatherSeconds(double bytes, int32_t size, double link_bytes_per_second);
// Links passed by the first shard: size - 1.
int64_t OneWayGatherHops(int32_t size);

// Hop by hop, as the book times small messages on a line: hops x max(hop latency, shard / link rate).
double HopByHopSeconds(int64_t hops, double shard_bytes, double link_bytes_per_second, double hop_seconds);
// Shard below which a hop takes its latency and not its bandwidth.
double LatencyBoundShardBytes(double link_bytes_per_second, double hop_seconds);

// One message between two chips: the first byte after `hops` latencies, the rest through `port_count` links at once.
double PointToPointSeconds(double bytes, int64_t hops, int port_count, double link_bytes_per_second,
                           double hop_seconds);
// Shortest way between two chips, wrap links used. Coordinates within the axes, one per axis.
int64_t HopsBetween(absl::Span<const hardware::TorusAxis> axes, absl::Span<const int32_t> from,
                    absl::Span<const int32_t> to);
// Links by which the first chip can send towards the second along shortest ways at once: one per axis in which they
// differ, two where both ways round are equally long.
int PortsTowards(absl::Span<const hardware::TorusAxis> axes, absl::Span<const int32_t> from,
                 absl::Span<const int32_t> to);

// Bytes (or elements) over the busiest directed link of a ring of `size` chips, `total` = the full array.
double OneWayGatherLinkLoad(double total, int32_t size);    // (n - 1) / n x total
double TwoWayGatherLinkLoad(double total);                  // total / 2, large-ring limit
double OneWayAllToAllLinkLoad(double total, int32_t size);  // half of the all-gather's
// Shortest ways, even size, the message to the opposite chip whole in one direction:
// total / n^2 x (n / 2)(n / 2 + 1) / 2.
double TwoWayAllToAllLinkLoad(double total, int32_t size);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_RING_COLLECTIVE_H_
