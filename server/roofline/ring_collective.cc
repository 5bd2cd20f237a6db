#include "server/roofline/ring_collective.h"

#include <algorithm>
#include <cstdlib>

namespace sliceplan::roofline {
namespace {

struct Distance {
  int32_t hops = 0;
  bool both_ways = false;
};

Distance DistanceOnAxis(const hardware::TorusAxis& axis, int32_t from, int32_t to) {
  const int32_t direct = std::abs(from - to);
  if (!axis.wraps || axis.size <= 2) return {direct, false};
  return {std::min(direct, axis.size - direct), direct != 0 && 2 * direct == axis.size};
}

}  // namespace

double LongRingGatherSeconds(double bytes, int ring_count, double axis_bytes_per_second) {
  return bytes / (ring_count * axis_bytes_per_second);
}

double LongRingAllToAllSeconds(double bytes, absl::Span<const int32_t> ring_sizes, double axis_bytes_per_second) {
  double chips = 1;
  double longest = 1;
  for (int32_t size : ring_sizes) {
    chips *= size;
    longest = std::max<double>(longest, size);
  }
  return bytes * longest / (4 * chips * axis_bytes_per_second);
}

double OneWayGatherSeconds(double bytes, int32_t size, double link_bytes_per_second) {
  return OneWayGatherLinkLoad(bytes, size) / link_bytes_per_second;
}

int64_t OneWayGatherHops(int32_t size) { return int64_t{size} - 1; }

double HopByHopSeconds(int64_t hops, double shard_bytes, double link_bytes_per_second, double hop_seconds) {
  return static_cast<double>(hops) * std::max(hop_seconds, shard_bytes / link_bytes_per_second);
}

double LatencyBoundShardBytes(double link_bytes_per_second, double hop_seconds) {
  return link_bytes_per_second * hop_seconds;
}

double PointToPointSeconds(double bytes, int64_t hops, int port_count, double link_bytes_per_second,
                           double hop_seconds) {
  return static_cast<double>(hops) * hop_seconds + bytes / (port_count * link_bytes_per_second);
}

int64_t HopsBetween(absl::Span<const hardware::TorusAxis> axes, absl::Span<const int32_t> from,
                    absl::Span<const int32_t> to) {
  int64_t hops = 0;
  for (size_t i = 0; i < std::min({axes.size(), from.size(), to.size()}); ++i) {
    hops += DistanceOnAxis(axes[i], from[i], to[i]).hops;
  }
  return hops;
}

int PortsTowards(absl::Span<const hardware::TorusAxis> axes, absl::Span<const int32_t> from,
                 absl::Span<const int32_t> to) {
  int ports = 0;
  for (size_t i = 0; i < std::min({axes.size(), from.size(), to.size()}); ++i) {
    const Distance distance = DistanceOnAxis(axes[i], from[i], to[i]);
    if (distance.hops > 0) ports += distance.both_ways ? 2 : 1;
  }
  return ports;
}

double OneWayGatherLinkLoad(double total, int32_t size) { return total * (size - 1) / size; }

double TwoWayGatherLinkLoad(double total) { return total / 2; }

double OneWayAllToAllLinkLoad(double total, int32_t size) { return OneWayGatherLinkLoad(total, size) / 2; }

double TwoWayAllToAllLinkLoad(double total, int32_t size) {
  const double half = size / 2.0;
  return total / size / size * half * (half + 1) / 2;
}

}  // namespace sliceplan::roofline
