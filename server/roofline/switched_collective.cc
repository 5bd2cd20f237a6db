#include "server/roofline/switched_collective.h"

#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

namespace sliceplan::roofline {
namespace {

using hardware::GroupPiece;

struct Block {
  int64_t factor = 1;
  int64_t stride = 1;

  int64_t Cell() const { return factor * stride; }
};

using Blocks = absl::InlinedVector<Block, 4>;

constexpr size_t kMaxPieces = 64;
// Far above any system; keeps the count of groups that straddle domains short.
constexpr int64_t kMaxGpus = int64_t{1} << 20;

// Pieces read from the inside, those that continue each other merged.
absl::Status BlocksOf(int64_t gpu_count, absl::Span<const GroupPiece> pieces, Blocks& blocks) {
  if (pieces.size() > kMaxPieces) {
    return absl::InvalidArgumentError(absl::StrCat("a group of ", pieces.size(), " pieces; at most ", kMaxPieces));
  }
  for (const GroupPiece& piece : pieces) {
    if (piece.axis != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("axis ", piece.axis, ": a switched slice has one axis, 0, its GPUs numbered domain by domain"));
    }
    if (piece.factor < 1 || piece.stride < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("factor ", piece.factor, " and stride ", piece.stride, " must both be at least 1"));
    }
    const Block block{piece.factor, piece.stride};
    if (block.Cell() > gpu_count || gpu_count % block.Cell() != 0) {
      return absl::InvalidArgumentError(absl::StrCat("factor ", piece.factor, " x stride ", piece.stride,
                                                     " does not divide the ", gpu_count, " GPUs of the slice"));
    }
    if (piece.factor > 1) blocks.push_back(block);
  }
  std::sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.stride < b.stride; });
  size_t kept = 0;
  for (size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].stride % blocks[kept].Cell() != 0) {
      return absl::InvalidArgumentError(absl::StrCat("two pieces overlap: factor ", blocks[kept].factor, " x stride ",
                                                     blocks[kept].stride, " and factor ", blocks[i].factor,
                                                     " x stride ", blocks[i].stride));
    }
    if (blocks[i].stride == blocks[kept].Cell()) {
      blocks[kept].factor *= blocks[i].factor;
    } else {
      blocks[++kept] = blocks[i];
    }
  }
  if (!blocks.empty()) blocks.resize(kept + 1);
  return absl::OkStatus();
}

// Members of one group inside a domain when every block nests in the domain or starts at its edge; 0: one straddles.
int64_t AlignedMembers(const Blocks& blocks, int64_t domain_size) {
  int64_t members = 1;
  for (const Block& block : blocks) {
    if (domain_size % block.Cell() == 0) {
      members *= block.factor;
    } else if (block.stride < domain_size) {
      if (domain_size % block.stride != 0 || block.Cell() % domain_size != 0) return 0;
      members *= domain_size / block.stride;
    } else if (block.stride % domain_size != 0) {
      return 0;
    }
  }
  return members;
}

// Number of the group that GPU `position` belongs to: its place with the digits of the blocks left out.
int64_t GroupIndex(const Blocks& blocks, int64_t position) {
  int64_t index = 0;
  int64_t scale = 1;
  int64_t consumed = 1;
  for (const Block& block : blocks) {
    const int64_t gap = block.stride / consumed;
    index += position / consumed % gap * scale;
    scale *= gap;
    consumed = block.Cell();
  }
  return index + position / consumed * scale;
}

// What one domain sees of the groups.
struct DomainCount {
  int64_t groups = 0;
  int64_t largest = 0;  // members of one group
  double squares = 0;   // of the members of each group, summed
};

// `length` GPUs inside one cell of a block: its groups take turns, one GPU each per stride.
void CountStretch(const Block& block, int64_t length, int64_t repeats, DomainCount& count) {
  if (length == 0 || repeats == 0) return;
  const int64_t rounds = length / block.stride;
  const int64_t rest = length % block.stride;
  const double more = static_cast<double>(rounds + 1);
  const double less = static_cast<double>(rounds);
  count.groups += std::min(length, block.stride) * repeats;
  count.largest = std::max(count.largest, rounds + (rest > 0 ? 1 : 0));
  count.squares += static_cast<double>(repeats) *
                   (static_cast<double>(rest) * more * more + static_cast<double>(block.stride - rest) * less * less);
}

DomainCount CountOneBlock(const Block& block, int64_t first, int64_t last) {
  const int64_t cell = block.Cell();
  const int64_t head = std::min(last - first, (cell - first % cell) % cell);
  const int64_t whole_cells = (last - first - head) / cell;
  DomainCount count;
  CountStretch(block, head, 1, count);
  CountStretch(block, cell, whole_cells, count);
  CountStretch(block, last - first - head - whole_cells * cell, 1, count);
  return count;
}

DomainCount CountEachGpu(const Blocks& blocks, int64_t first, int64_t last) {
  absl::flat_hash_map<int64_t, int64_t> members;
  for (int64_t position = first; position < last; ++position) ++members[GroupIndex(blocks, position)];
  DomainCount count;
  count.groups = static_cast<int64_t>(members.size());
  for (const auto& [group, of_group] : members) {
    count.largest = std::max(count.largest, of_group);
    count.squares += static_cast<double>(of_group) * static_cast<double>(of_group);
  }
  return count;
}

// The busiest of all domains. They repeat after a common multiple, so few are looked at.
void CountStraddling(const Blocks& blocks, int64_t gpu_count, int64_t domain_size, DomainOccupancy& occupancy) {
  const int64_t end = std::min(std::lcm(blocks.back().Cell(), domain_size), gpu_count);
  occupancy.members_per_domain = 1;
  occupancy.groups_per_gpu = 0;
  occupancy.local_share = 1;
  const auto count_domain = [&](int64_t first, int64_t last) {
    const DomainCount count =
        blocks.size() == 1 ? CountOneBlock(blocks[0], first, last) : CountEachGpu(blocks, first, last);
    const double gpus = static_cast<double>(last - first);
    if (static_cast<double>(count.groups) * occupancy.members > gpus) occupancy.leaves_domain = true;
    occupancy.members_per_domain = std::max(occupancy.members_per_domain, static_cast<double>(count.largest));
    occupancy.groups_per_gpu = std::max(occupancy.groups_per_gpu, static_cast<double>(count.groups) / gpus);
    occupancy.local_share = std::min(occupancy.local_share, count.squares / gpus / occupancy.members);
  };
  for (int64_t first = 0; first < end; first += domain_size)
    count_domain(first, std::min(first + domain_size, gpu_count));
  const int64_t rest = gpu_count % domain_size;
  if (rest != 0) count_domain(gpu_count - rest, gpu_count);
}

}  // namespace

absl::Status OccupancyOf(int64_t gpu_count, int32_t domain_size, absl::Span<const GroupPiece> pieces,
                         DomainOccupancy& occupancy) {
  if (domain_size < 1) return absl::InvalidArgumentError("domain_size must be at least 1");
  if (gpu_count < 1 || gpu_count > kMaxGpus) {
    return absl::InvalidArgumentError(absl::StrCat("a switched slice has 1 to ", kMaxGpus, " GPUs, not ", gpu_count));
  }
  Blocks blocks;
  if (absl::Status status = BlocksOf(gpu_count, pieces, blocks); !status.ok()) return status;
  occupancy = DomainOccupancy{};
  if (blocks.empty()) return absl::OkStatus();
  int64_t members = 1;
  for (const Block& block : blocks) members *= block.factor;
  occupancy.members = static_cast<double>(members);
  const int64_t domain = std::min<int64_t>(domain_size, gpu_count);
  const int64_t aligned = gpu_count % domain == 0 ? AlignedMembers(blocks, domain) : 0;
  if (aligned > 0) {
    occupancy.members_per_domain = static_cast<double>(aligned);
    occupancy.groups_per_gpu = 1 / occupancy.members_per_domain;
    occupancy.local_share = occupancy.members_per_domain / occupancy.members;
    occupancy.leaves_domain = aligned < members;
  } else {
    CountStraddling(blocks, gpu_count, domain, occupancy);
  }
  occupancy.domains = occupancy.members / occupancy.members_per_domain;
  return absl::OkStatus();
}

SwitchedCost SwitchedCollective(CollectiveKind kind, const DomainOccupancy& occupancy,
                                const CollectiveOptions& options) {
  const double n = occupancy.members;
  const double r = occupancy.members_per_domain;
  SwitchedCost cost;
  if (n <= 1) return cost;
  // Every group that touches a domain must bring in what its members there lack.
  const double gather_out = occupancy.leaves_domain ? occupancy.groups_per_gpu - 1 / n : 0;
  cost.scale_up_hops = r > 1 ? 1 : 0;
  cost.scale_out_hops = occupancy.leaves_domain ? 1 : 0;
  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      cost.scale_up_units = (r - 1) / r;
      cost.scale_out_units = gather_out;
      break;
    case CollectiveKind::kAllReduce:
      cost.scale_up_units = 2 * (r - 1) / r;
      cost.scale_out_units = 2 * gather_out;
      cost.scale_up_hops *= 2;
      cost.scale_out_hops *= 2;
      if (options.in_network_reduction) {
        // Each GPU sends its array up once and receives the sum once. With two members nothing is saved.
        cost.scale_up_units = std::min(cost.scale_up_units, 1.0);
        cost.scale_out_units = std::min(cost.scale_out_units, occupancy.groups_per_gpu);
      }
      break;
    case CollectiveKind::kAllToAll:
      cost.scale_up_units = (r - 1) / (n * (options.rail_only_network ? r : n)) * options.all_to_all_fill_ratio;
      cost.scale_out_units =
          occupancy.leaves_domain ? (1 - occupancy.local_share) / n * options.all_to_all_fill_ratio : 0;
      break;
    case CollectiveKind::kCollectivePermute:
      // A chip's message leaves the domain through the chip's own share of the network.
      cost.scale_up_units = r > 1 ? 1 : 0;
      cost.scale_out_units = occupancy.leaves_domain ? 1 : 0;
      // The longest way: straight to the other domain, where there is one.
      if (occupancy.leaves_domain) cost.scale_up_hops = 0;
      break;
  }
  return cost;
}

}  // namespace sliceplan::roofline
