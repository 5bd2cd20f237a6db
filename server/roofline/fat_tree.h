// Levels of switches as the book draws them (node, leaf, spine): what each level lets through, and what a collective
// over the whole tree costs. "How To Scale Your Model", chapter 18.
#ifndef SLICEPLAN_SERVER_ROOFLINE_FAT_TREE_H_
#define SLICEPLAN_SERVER_ROOFLINE_FAT_TREE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace sliceplan::roofline {

// One level, from the GPUs upwards. All figures positive.
struct FatTreeLevel {
  int32_t child_count = 1;            // children under one switch of this level: 8 GPUs, 32 nodes, 4 scalable units
  double child_bytes_per_second = 0;  // links of one child to this level, one way
};

// Bytes per second of all children of one unit of the level, one way: also the cable bandwidth into it.
double LevelBytesPerSecond(const FatTreeLevel& level);
// Ports and links may differ: the smaller of all switch ports and all GPUs' links.
double NodeBytesPerSecond(int32_t switch_count, int32_t ports_per_switch, double port_bytes_per_second,
                          int32_t gpu_count, double gpu_bytes_per_second);
// Chips under one unit of level `index`.
int64_t ChipsUnder(absl::Span<const FatTreeLevel> levels, size_t index);
// The level's bandwidth as one chip sees it: a child's links shared by the chips under the child.
double ChipToChipBytesPerSecond(absl::Span<const FatTreeLevel> levels, size_t index);

// Array bytes per second of an all-gather or reduce-scatter that only this level limits: child rate x n / (n - 1).
// With one child nothing is gathered; the child rate is returned.
double LevelGatherBytesPerSecond(const FatTreeLevel& level);

struct FatTreeTime {
  double seconds = 0;
  int32_t slowest_level = 0;  // ties go to the level nearest to the chips
};
// All-gather or reduce-scatter of an array over every chip of the tree: the slowest level. An all-reduce takes twice
// that, or, reduced inside the switches, InNetworkAllReduce.
FatTreeTime FatTreeGather(absl::Span<const FatTreeLevel> levels, double bytes);
// All-reduce with reduction in the switches: each child sends its array up and receives the sum. No (n - 1) / n.
FatTreeTime FatTreeInNetworkAllReduce(absl::Span<const FatTreeLevel> levels, double bytes);

// `bytes`: the array before it is also sharded over `inner_shards` neighbouring chips, which gather nothing among
// themselves. A level is relieved only as far as the shards spread over its children:
// bytes x (n - 1) / n x S / (max(Y, S) x child rate), S = chips under one child.
FatTreeTime FatTreeGatherOfSharded(absl::Span<const FatTreeLevel> levels, double bytes, int64_t inner_shards);

// The book's two-level limit of the same: inside a domain bytes / (chip rate x min(Y, S)), between domains
// bytes x S / (domain rate x max(Y, S)), S = chips of a domain.
struct TwoLevelTime {
  double inside_seconds = 0;
  double outside_seconds = 0;
  double Seconds() const { return inside_seconds > outside_seconds ? inside_seconds : outside_seconds; }
};
TwoLevelTime TwoLevelGatherOfSharded(double bytes, int64_t inner_shards, int32_t domain_size,
                                     double chip_bytes_per_second, double domain_bytes_per_second);

// All-to-all of bytes held by all n chips of a domain: bytes x (n - 1) / (n^2 x chip rate), times the share not empty.
double DomainAllToAllSeconds(double bytes, int32_t domain_size, double chip_bytes_per_second, double fill_ratio = 1);
// The book's limit of it: bytes / (n x chip rate).
double LargeDomainAllToAllSeconds(double bytes, int32_t domain_size, double chip_bytes_per_second,
                                  double fill_ratio = 1);
// All-to-all of top-k routing over `shard_count` chips of domains of S: bytes x (Z - S) / (Z x domain rate) x
// min(S k / Z, 1), because a token visits a domain once. 0 when the shards fit one domain.
double ExpertAllToAllSeconds(double bytes, double shard_count, double domain_size, double choices_per_token,
                             double domain_bytes_per_second);

// Bytes through one switch (or one node's switches taken together).
struct SwitchTraffic {
  double ingress_bytes = 0;
  double egress_bytes = 0;
};
// All-gather of an array: the whole array comes in once, and each child is given all of it.
SwitchTraffic GatherThroughSwitch(double bytes, int32_t child_count);
// At the top of the tree a child is not given back its own share: bytes x (n - 1) in all.
SwitchTraffic GatherThroughTopSwitch(double bytes, int32_t child_count);
// All-reduce inside the switch: every child sends the array and receives the sum.
SwitchTraffic InNetworkAllReduceThroughSwitch(double bytes, int32_t child_count);

}  // namespace sliceplan::roofline

#endif  // SLICEPLAN_SERVER_ROOFLINE_FAT_TREE_H_
