#include "server/roofline/mesh_network.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "server/roofline/ring_collective.h"

namespace sliceplan::roofline {

using hardware::Group;

SliceNetwork::SliceNetwork(const hardware::Slice& slice, std::vector<Group> groups)
    : slice_(slice), groups_(std::move(groups)) {}

absl::StatusOr<CollectiveLaw> SliceNetwork::LawOver(CollectiveKind kind, AxisSet axes) const {
  Group group;
  for (size_t i = 0; i < groups_.size(); ++i) {
    if ((axes >> i & 1U) == 0) continue;
    group.pieces.insert(group.pieces.end(), groups_[i].pieces.begin(), groups_[i].pieces.end());
    group.slice_count *= groups_[i].slice_count;
  }
  CollectiveOptions options;
  options.in_network_reduction = slice_.accelerator.in_network_reduction;
  return LawOf(kind, slice_, group, options);
}

LongRingNetwork::LongRingNetwork(std::vector<int32_t> axis_sizes, double axis_bytes_per_second, double hop_seconds)
    : axis_sizes_(std::move(axis_sizes)), axis_bytes_per_second_(axis_bytes_per_second), hop_seconds_(hop_seconds) {}

absl::StatusOr<CollectiveLaw> LongRingNetwork::LawOver(CollectiveKind kind, AxisSet axes) const {
  std::vector<int32_t> rings;
  CollectiveLaw law;
  for (size_t i = 0; i < axis_sizes_.size(); ++i) {
    if ((axes >> i & 1U) == 0 || axis_sizes_[i] <= 1) continue;
    rings.push_back(axis_sizes_[i]);
    law.hops += axis_sizes_[i] / 2;
  }
  if (rings.empty()) return law;
  const double gather = LongRingGatherSeconds(/*bytes=*/1, static_cast<int>(rings.size()), axis_bytes_per_second_);
  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter: law.ici_seconds_per_byte = gather; break;
    case CollectiveKind::kAllReduce:
      law.ici_seconds_per_byte = 2 * gather;
      law.hops *= 2;
      break;
    case CollectiveKind::kAllToAll:
      law.ici_seconds_per_byte = LongRingAllToAllSeconds(/*bytes=*/1, rings, axis_bytes_per_second_);
      break;
    case CollectiveKind::kCollectivePermute:
      return absl::UnimplementedError("the ideal rings of the book have no permute");
  }
  law.pipelined_seconds_per_byte = law.ici_seconds_per_byte;
  law.latency_seconds = static_cast<double>(law.hops) * hop_seconds_;
  law.slowest_tier = Tier::kIci;
  return law;
}

CollectiveKind BackwardOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllGather: return CollectiveKind::kReduceScatter;
    case CollectiveKind::kReduceScatter: return CollectiveKind::kAllGather;
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kCollectivePermute: return kind;
  }
  return kind;
}

}  // namespace sliceplan::roofline
