#include "server/planner/mapping.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/planner/mapping_choice.h"
#include "server/planner/mapping_enumeration.h"
#include "server/roofline/switched_collective.h"

namespace sliceplan::planner {
namespace {

using hardware::FabricKind;
using hardware::Group;
using hardware::GroupPiece;
using hardware::Slice;
using hardware::TorusAxis;

// Ways to factor the axes that are looked at before the best-known are chosen.
constexpr size_t kMaxFactorWays = 2048;

struct UsedBlock {
  Block axes;
  int32_t domain_size = 1;
};

// Parts of a switched slice: domains filled whole from the first, or the same part of every domain.
std::vector<UsedBlock> SwitchedBlocks(const Slice& slice, int64_t chips) {
  const auto block_of = [chips](int32_t domain_size) {
    return UsedBlock{{TorusAxis{static_cast<int32_t>(chips), false}}, domain_size};
  };
  if (chips == slice.chip_count) return {block_of(slice.domain_size)};
  if (chips < 1 || chips > slice.chip_count) return {};
  std::vector<UsedBlock> blocks = {block_of(slice.domain_size)};
  const int64_t domain = std::max(1, slice.domain_size);
  const int64_t domain_count = (slice.chip_count + domain - 1) / domain;
  for (int64_t part = std::min(domain - 1, chips); part >= 1; --part) {
    if (chips % part == 0 && chips / part <= domain_count) {
      blocks.push_back(block_of(static_cast<int32_t>(part)));
      break;
    }
  }
  return blocks;
}

std::vector<UsedBlock> BlocksFor(const Slice& slice, int64_t chips) {
  if (slice.accelerator.fabric == FabricKind::kSwitched) return SwitchedBlocks(slice, chips);
  std::vector<UsedBlock> blocks;
  for (Block& block : BlocksOf(slice.axes, slice.twisted, chips))
    blocks.push_back({std::move(block), slice.domain_size});
  return blocks;
}

// One way to factor one block, with the orders that each physical axis can have.
struct Pattern {
  const UsedBlock* block = nullptr;
  absl::InlinedVector<int, 3> equal_before;
  Factors factors;
  int piece_count = 0;
};

// A pattern with one order chosen for each of its axes.
struct Candidate {
  const Pattern* pattern = nullptr;
  absl::InlinedVector<uint16_t, 3> orders;  // index among the orders of each axis: 6! = 720 at most
};

class Enumeration {
 public:
  Enumeration(const Slice& slice, const AxisDegrees& ici, const AxisDegrees& dcn, size_t limit)
      : slice_(slice), ici_(ici), dcn_(dcn), limit_(limit), candidate_limit_(limit * kCandidatesPerMapping) {}

  MappingList Run(const std::vector<UsedBlock>& blocks) {
    for (const UsedBlock& block : blocks) AddPatterns(block);
    std::stable_sort(patterns_.begin(), patterns_.end(),
                     [](const Pattern& a, const Pattern& b) { return a.piece_count < b.piece_count; });
    // All patterns in their usual order come before any in another order.
    for (size_t rank_sum = 0; more_orders_ && !truncated_; ++rank_sum) {
      more_orders_ = false;
      for (const Pattern& pattern : patterns_) {
        Candidate candidate{&pattern, {}};
        AddOrders(rank_sum, candidate);
        if (truncated_) break;
      }
    }
    return Chosen();
  }

 private:
  void AddPatterns(const UsedBlock& block) {
    absl::InlinedVector<int32_t, 3> sizes;
    for (const TorusAxis& axis : block.axes) sizes.push_back(axis.size);
    const absl::InlinedVector<int, 3> equal_before = EqualBefore(block.axes);
    for (Factors& factors : FactorWays(sizes, equal_before, ici_, kMaxFactorWays, truncated_factors_)) {
      Pattern pattern{&block, equal_before, std::move(factors), 0};
      for (const auto& of_axis : pattern.factors) {
        pattern.piece_count += static_cast<int>(kLogicalAxisCount - std::count(of_axis.begin(), of_axis.end(), 1));
      }
      patterns_.push_back(std::move(pattern));
    }
  }

  const std::vector<AxisOrder>& OrdersFor(const std::array<int32_t, kLogicalAxisCount>& factors) {
    std::array<bool, kLogicalAxisCount> present = {};
    size_t mask = 0;
    for (size_t i = 0; i < factors.size(); ++i) {
      present[i] = factors[i] > 1;
      mask |= present[i] ? size_t{1} << i : 0;
    }
    if (orders_[mask].empty()) orders_[mask] = OrdersOf(present);
    return orders_[mask];
  }

  const AxisOrder& OrderOf(const Candidate& candidate, size_t physical) {
    return OrdersFor(candidate.pattern->factors[physical])[candidate.orders[physical]];
  }

  // Adds the candidates whose orders have ranks that sum to `rank_sum`, choosing for one physical axis after the other.
  void AddOrders(size_t rank_sum, Candidate& candidate) {
    const Pattern& pattern = *candidate.pattern;
    const size_t physical = candidate.orders.size();
    const size_t order_count = OrdersFor(pattern.factors[physical]).size();
    const bool last = physical + 1 == pattern.factors.size();
    // Of two equal axes with equal factors the later one has the later order: their swap is the same placement.
    size_t first = 0;
    const int earlier = pattern.equal_before[physical];
    if (earlier >= 0 && pattern.factors[physical] == pattern.factors[static_cast<size_t>(earlier)]) {
      first = candidate.orders[static_cast<size_t>(earlier)];
    }
    if (last) first = std::max(first, rank_sum);
    for (size_t order = first; order < order_count && !truncated_; ++order) {
      if (order > rank_sum) {
        more_orders_ = true;  // a later round reaches it
        return;
      }
      candidate.orders.push_back(static_cast<uint16_t>(order));
      if (last) {
        Add(candidate);
      } else {
        AddOrders(rank_sum - order, candidate);
      }
      candidate.orders.pop_back();
    }
  }

  void Add(const Candidate& candidate) {
    if (slice_.accelerator.fabric == FabricKind::kSwitched && MeetsDomainsLikeAnother(Materialize(candidate))) return;
    if (candidates_.size() == candidate_limit_) {
      truncated_ = true;
      return;
    }
    candidates_.push_back(candidate);
  }

  MappedAxes Materialize(const Candidate& candidate) {
    const Pattern& pattern = *candidate.pattern;
    MappedAxes mapped;
    mapped.block = pattern.block->axes;
    mapped.domain_size = pattern.block->domain_size;
    for (LogicalAxis axis : kLogicalAxes) mapped.groups[static_cast<size_t>(axis)].slice_count = dcn_[axis];
    for (size_t physical = 0; physical < pattern.factors.size(); ++physical) {
      int32_t stride = 1;
      for (LogicalAxis axis : OrderOf(candidate, physical)) {
        const int32_t factor = pattern.factors[physical][static_cast<size_t>(axis)];
        mapped.groups[static_cast<size_t>(axis)].pieces.push_back({static_cast<int32_t>(physical), factor, stride});
        stride *= factor;
      }
    }
    return mapped;
  }

  // Behind switches only the members per domain matter, as long as groups and domains nest.
  bool MeetsDomainsLikeAnother(const MappedAxes& mapped) {
    std::array<double, kLogicalAxisCount + 1> members_per_domain = {};
    members_per_domain[kLogicalAxisCount] = mapped.domain_size;
    for (size_t i = 0; i < kLogicalAxisCount; ++i) {
      roofline::DomainOccupancy occupancy;
      if (!roofline::OccupancyOf(mapped.block[0].size, mapped.domain_size, mapped.groups[i].pieces, occupancy).ok() ||
          occupancy.groups_per_gpu * occupancy.members_per_domain != 1) {
        return false;
      }
      members_per_domain[i] = occupancy.members_per_domain;
    }
    if (std::find(seen_.begin(), seen_.end(), members_per_domain) != seen_.end()) return true;
    seen_.push_back(members_per_domain);
    return false;
  }

  MappingList Chosen() {
    MappingList list;
    list.truncated = truncated_ || truncated_factors_ || candidates_.size() > limit_;
    std::vector<size_t> chosen;
    if (candidates_.size() > limit_ && slice_.accelerator.fabric == FabricKind::kTorus) {
      std::vector<TrafficTimes> times;
      times.reserve(candidates_.size());
      for (const Candidate& candidate : candidates_) {
        absl::InlinedVector<OrderedAxis, 3> axes;
        for (size_t i = 0; i < candidate.orders.size(); ++i) {
          axes.push_back({candidate.pattern->block->axes[i], &candidate.pattern->factors[i], &OrderOf(candidate, i)});
        }
        times.push_back(EstimateTraffic(axes, ici_));
      }
      chosen = ChooseByTraffic(times, ici_, limit_);
    } else {
      for (size_t i = 0; i < std::min(candidates_.size(), limit_); ++i) chosen.push_back(i);
    }
    list.mappings.reserve(chosen.size());
    for (size_t i : chosen) list.mappings.push_back(Materialize(candidates_[i]));
    return list;
  }

  const Slice& slice_;
  const AxisDegrees& ici_;
  const AxisDegrees& dcn_;
  const size_t limit_;
  const size_t candidate_limit_;
  std::vector<Pattern> patterns_;
  std::array<std::vector<AxisOrder>, size_t{1} << kLogicalAxisCount> orders_;  // by which logical axes are present
  std::vector<std::array<double, kLogicalAxisCount + 1>> seen_;
  std::vector<Candidate> candidates_;
  bool truncated_factors_ = false;
  bool truncated_ = false;
  bool more_orders_ = true;
};

// What of a law depends on the placement; smaller is better everywhere.
void AppendCosts(const roofline::CollectiveLaw& law, std::vector<double>& costs) {
  costs.push_back(law.ici_seconds_per_byte);
  costs.push_back(law.scale_up_seconds_per_byte);
  costs.push_back(law.scale_out_seconds_per_byte);
  costs.push_back(law.dcn_seconds_per_byte);
  costs.push_back(law.latency_seconds);
}

std::vector<double> CostsOf(const PlanLaws& laws) {
  std::vector<double> costs;
  // A scatter costs what the gather of the same group costs.
  for (const roofline::CollectiveLaw* law :
       {&laws.weights_gather, &laws.weights_gather_with_expert, &laws.tensor_gather, &laws.context_gather,
        &laws.expert_exchange, &laws.pipeline_permute, &laws.dense_gradient_reduce, &laws.expert_gradient_reduce}) {
    if (law->slowest_tier != roofline::Tier::kNone) AppendCosts(*law, costs);
  }
  costs.push_back(laws.weights_share_tensor_links ? 1 : 0);
  costs.push_back(laws.weights_share_context_links ? 1 : 0);
  costs.push_back(laws.weights_share_expert_links ? 1 : 0);
  return costs;
}

bool NowhereLarger(const std::vector<double>& a, const std::vector<double>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
  }
  return true;
}

// Leaves out what another placement beats or equals; of equals the first stays.
void DropBeaten(MappingSet& set) {
  std::vector<std::vector<double>> costs;
  costs.reserve(set.laws.size());
  for (const PlanLaws& laws : set.laws) costs.push_back(CostsOf(laws));
  std::vector<size_t> kept;
  for (size_t i = 0; i < costs.size(); ++i) {
    bool beaten = false;
    for (size_t k : kept) {
      if (NowhereLarger(costs[k], costs[i])) {
        beaten = true;
        break;
      }
    }
    if (beaten) continue;
    kept.erase(std::remove_if(kept.begin(), kept.end(), [&](size_t k) { return NowhereLarger(costs[i], costs[k]); }),
               kept.end());
    kept.push_back(i);
  }
  for (size_t k = 0; k < kept.size(); ++k) {
    if (kept[k] == k) continue;
    set.mappings[k] = std::move(set.mappings[kept[k]]);
    set.laws[k] = set.laws[kept[k]];
  }
  set.mappings.resize(kept.size());
  set.laws.resize(kept.size());
}

absl::Status StatusOf(const std::vector<hardware::Violation>& violations) {
  std::string message;
  for (const hardware::Violation& violation : violations) {
    absl::StrAppend(&message, message.empty() ? "" : "; ", violation.field, ": ", violation.description);
  }
  return absl::InvalidArgumentError(message);
}

}  // namespace

std::vector<AxisAssignment> AssignmentsOf(const MappedAxes& mapped) {
  std::vector<AxisAssignment> assignments;
  for (LogicalAxis axis : kLogicalAxes) {
    for (const GroupPiece& piece : mapped.groups[static_cast<size_t>(axis)].pieces) {
      assignments.push_back({axis, piece.axis, piece.factor, piece.stride});
    }
  }
  return assignments;
}

Slice BlockSlice(const Slice& slice, const MappedAxes& mapped) {
  Slice block = slice;
  bool whole = mapped.domain_size == slice.domain_size;
  block.chip_count = 1;
  for (size_t i = 0; i < mapped.block.size(); ++i) {
    whole = whole && i < slice.axes.size() && mapped.block[i].size == slice.axes[i].size;
    block.chip_count *= mapped.block[i].size;
  }
  block.axes.assign(mapped.block.begin(), mapped.block.end());
  block.domain_size = mapped.domain_size;
  if (!whole) block.twisted = false;
  return block;
}

MappingList EnumerateMappings(const Slice& slice, const AxisDegrees& ici, const AxisDegrees& dcn, bool allow_idle_chips,
                              size_t max_mappings) {
  max_mappings = std::clamp<size_t>(max_mappings, 1, kMostMappings);
  const int64_t chips = ProductUpTo(ici, slice.chip_count);
  if (chips != slice.chip_count && !allow_idle_chips) return {};
  return Enumeration(slice, ici, dcn, max_mappings).Run(BlocksFor(slice, chips));
}

absl::StatusOr<MappingSet> BuildMappingSet(const Slice& slice, const Parallelism& parallelism, bool allow_idle_chips,
                                           size_t max_mappings) {
  std::vector<hardware::Violation> violations;
  MappingSet set;
  CheckPlacement(slice, parallelism, allow_idle_chips, violations);
  if (!violations.empty()) return StatusOf(violations);
  if (parallelism.mapping.empty()) {
    MappingList list = EnumerateMappings(slice, parallelism.ici, parallelism.dcn, allow_idle_chips, max_mappings);
    set.mappings = std::move(list.mappings);
    set.truncated = list.truncated;
  } else {
    CheckMapping(slice, parallelism, allow_idle_chips, violations);
    if (!violations.empty()) return StatusOf(violations);
    set.mappings.push_back(MappingOf(slice, parallelism));
  }
  if (set.mappings.empty())
    return absl::InvalidArgumentError("parallelism.ici: no way to place the degrees on the slice");
  const bool whole = ProductUpTo(parallelism.ici, slice.chip_count) == slice.chip_count;
  set.enumerated_count = set.mappings.size();
  set.laws.reserve(set.mappings.size());
  for (const MappedAxes& mapped : set.mappings) {
    absl::StatusOr<PlanLaws> laws =
        whole ? LawsOf(slice, mapped.groups, parallelism, slice.accelerator.in_network_reduction)
              : LawsOf(BlockSlice(slice, mapped), mapped.groups, parallelism, slice.accelerator.in_network_reduction);
    if (!laws.ok()) return laws.status();
    set.laws.push_back(*std::move(laws));
  }
  DropBeaten(set);
  return set;
}

}  // namespace sliceplan::planner
