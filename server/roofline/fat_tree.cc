#include "server/roofline/fat_tree.h"

#include <algorithm>

#include "server/roofline/collective.h"

namespace sliceplan::roofline {
namespace {

int64_t ChipsUnderChild(absl::Span<const FatTreeLevel> levels, size_t index) {
  return index == 0 ? 1 : ChipsUnder(levels, index - 1);
}

template <typename SecondsOfLevel>
FatTreeTime Slowest(absl::Span<const FatTreeLevel> levels, SecondsOfLevel seconds_of_level) {
  FatTreeTime slowest;
  for (size_t i = 0; i < levels.size(); ++i) {
    const double seconds = seconds_of_level(i);
    if (seconds > slowest.seconds) slowest = {seconds, static_cast<int32_t>(i)};
  }
  return slowest;
}

double OthersShare(const FatTreeLevel& level) {
  return static_cast<double>(level.child_count - 1) / static_cast<double>(level.child_count);
}

}  // namespace

double LevelBytesPerSecond(const FatTreeLevel& level) { return level.child_count * level.child_bytes_per_second; }

double NodeBytesPerSecond(int32_t switch_count, int32_t ports_per_switch, double port_bytes_per_second,
                          int32_t gpu_count, double gpu_bytes_per_second) {
  return std::min(static_cast<double>(switch_count) * ports_per_switch * port_bytes_per_second,
                  gpu_count * gpu_bytes_per_second);
}

int64_t ChipsUnder(absl::Span<const FatTreeLevel> levels, size_t index) {
  int64_t chips = 1;
  for (size_t i = 0; i <= index && i < levels.size(); ++i) chips *= levels[i].child_count;
  return chips;
}

double ChipToChipBytesPerSecond(absl::Span<const FatTreeLevel> levels, size_t index) {
  return levels[index].child_bytes_per_second / static_cast<double>(ChipsUnderChild(levels, index));
}

double LevelGatherBytesPerSecond(const FatTreeLevel& level) {
  if (level.child_count <= 1) return level.child_bytes_per_second;
  return level.child_bytes_per_second / OthersShare(level);
}

FatTreeTime FatTreeGather(absl::Span<const FatTreeLevel> levels, double bytes) {
  return FatTreeGatherOfSharded(levels, bytes, 1);
}

FatTreeTime FatTreeInNetworkAllReduce(absl::Span<const FatTreeLevel> levels, double bytes) {
  return Slowest(levels,
                 [&](size_t i) { return levels[i].child_count > 1 ? bytes / levels[i].child_bytes_per_second : 0; });
}

FatTreeTime FatTreeGatherOfSharded(absl::Span<const FatTreeLevel> levels, double bytes, int64_t inner_shards) {
  return Slowest(levels, [&](size_t i) {
    const double under_child = static_cast<double>(ChipsUnderChild(levels, i));
    const double spread = std::max(static_cast<double>(inner_shards), under_child) / under_child;
    return bytes * OthersShare(levels[i]) / (spread * levels[i].child_bytes_per_second);
  });
}

TwoLevelTime TwoLevelGatherOfSharded(double bytes, int64_t inner_shards, int32_t domain_size,
                                     double chip_bytes_per_second, double domain_bytes_per_second) {
  const double shards = static_cast<double>(inner_shards);
  const double domain = domain_size;
  return {bytes / (chip_bytes_per_second * std::min(shards, domain)),
          bytes * domain / (domain_bytes_per_second * std::max(shards, domain))};
}

double DomainAllToAllSeconds(double bytes, int32_t domain_size, double chip_bytes_per_second, double fill_ratio) {
  const double chips = domain_size;
  return LargeDomainAllToAllSeconds(bytes, domain_size, chip_bytes_per_second, fill_ratio) * (chips - 1) / chips;
}

double LargeDomainAllToAllSeconds(double bytes, int32_t domain_size, double chip_bytes_per_second, double fill_ratio) {
  return bytes * fill_ratio / (domain_size * chip_bytes_per_second);
}

double ExpertAllToAllSeconds(double bytes, double shard_count, double domain_size, double choices_per_token,
                             double domain_bytes_per_second) {
  if (shard_count <= domain_size) return 0;
  const double leaving = (shard_count - domain_size) / shard_count;
  return bytes * leaving / domain_bytes_per_second * RaggedFillRatio(domain_size * choices_per_token, shard_count);
}

SwitchTraffic GatherThroughSwitch(double bytes, int32_t child_count) { return {bytes, bytes * child_count}; }

SwitchTraffic GatherThroughTopSwitch(double bytes, int32_t child_count) { return {bytes, bytes * (child_count - 1)}; }

SwitchTraffic InNetworkAllReduceThroughSwitch(double bytes, int32_t child_count) {
  return {bytes * child_count, bytes * child_count};
}

}  // namespace sliceplan::roofline
