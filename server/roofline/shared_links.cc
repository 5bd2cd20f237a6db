#include "server/roofline/shared_links.h"

#include <algorithm>

namespace sliceplan::roofline {

bool ShareTorusLinks(const hardware::Group& a, const hardware::Group& b) {
  for (const hardware::GroupPiece& first : a.pieces) {
    if (first.factor == 1) continue;
    for (const hardware::GroupPiece& second : b.pieces) {
      if (second.factor > 1 && second.axis == first.axis) return true;
    }
  }
  return false;
}

double ConcurrentSeconds(const hardware::Slice& slice, const RunningCollective& a, const RunningCollective& b) {
  const double a_bytes = std::max(a.bytes, 0.0);
  const double b_bytes = std::max(b.bytes, 0.0);
  const auto added = [&](double CollectiveLaw::*network) {
    return a_bytes * a.law.*network + b_bytes * b.law.*network;
  };
  const bool shares_torus = slice.accelerator.fabric == hardware::FabricKind::kTorus && a.group != nullptr &&
                            b.group != nullptr && ShareTorusLinks(*a.group, *b.group);
  const double ici = shares_torus
                         ? added(&CollectiveLaw::ici_seconds_per_byte)
                         : std::max(a_bytes * a.law.ici_seconds_per_byte, b_bytes * b.law.ici_seconds_per_byte);
  return std::max({a.law.Seconds(a_bytes), b.law.Seconds(b_bytes), ici,
                   added(&CollectiveLaw::scale_up_seconds_per_byte), added(&CollectiveLaw::scale_out_seconds_per_byte),
                   added(&CollectiveLaw::dcn_seconds_per_byte)});
}

}  // namespace sliceplan::roofline
