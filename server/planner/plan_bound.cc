#include "server/planner/plan_bound.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/container/inlined_vector.h"

namespace sliceplan::planner {
namespace {

using hardware::Group;
using hardware::GroupPiece;
using hardware::Slice;
using hardware::TorusAxis;
using roofline::CollectiveLaw;
using roofline::CollectiveLaws;

using Sizes = absl::InlinedVector<int32_t, 3>;

// Adds every way to write `members` as a product of one factor for each axis: a divisor of its size, or with `parts` of
// axes in use any number up to it.
void AddFactorings(absl::Span<const TorusAxis> axes, int64_t members, bool parts, Sizes& chosen,
                   std::vector<Sizes>& ways) {
  if (axes.empty()) {
    if (members == 1) ways.push_back(chosen);
    return;
  }
  for (int64_t factor = 1; factor <= std::min<int64_t>(members, axes.front().size); ++factor) {
    if (members % factor != 0 || (!parts && axes.front().size % factor != 0)) continue;
    chosen.push_back(static_cast<int32_t>(factor));
    AddFactorings(axes.subspan(1), members / factor, parts, chosen, ways);
    chosen.pop_back();
  }
}

void TakeSmaller(const CollectiveLaw& other, CollectiveLaw& law) {
  law.ici_seconds_per_byte = std::min(law.ici_seconds_per_byte, other.ici_seconds_per_byte);
  law.scale_up_seconds_per_byte = std::min(law.scale_up_seconds_per_byte, other.scale_up_seconds_per_byte);
  law.scale_out_seconds_per_byte = std::min(law.scale_out_seconds_per_byte, other.scale_out_seconds_per_byte);
  law.dcn_seconds_per_byte = std::min(law.dcn_seconds_per_byte, other.dcn_seconds_per_byte);
  law.pipelined_seconds_per_byte = std::min(law.pipelined_seconds_per_byte, other.pipelined_seconds_per_byte);
  law.latency_seconds = std::min(law.latency_seconds, other.latency_seconds);
  law.hops = std::min(law.hops, other.hops);
}

roofline::CollectiveOptions OptionsOf(const Slice& slice) {
  roofline::CollectiveOptions options;
  options.in_network_reduction = slice.accelerator.in_network_reduction;
  return options;
}

// A twisted torus has shorter ways than its axes as rings.
absl::StatusOr<CollectiveLaws> Twisted(const Slice& slice, int64_t in_slice, int32_t slices,
                                       absl::StatusOr<CollectiveLaws> best) {
  const unsigned subset_count = 1u << slice.axes.size();
  for (unsigned subset = 1; subset < subset_count && best.ok(); ++subset) {
    Group group;
    group.slice_count = slices;
    for (size_t i = 0; i < slice.axes.size(); ++i) {
      if ((subset >> i & 1) != 0) group.pieces.push_back(GroupPiece{static_cast<int32_t>(i), slice.axes[i].size, 1});
    }
    if (group.SizeInSlice() != in_slice) continue;
    const absl::StatusOr<CollectiveLaws> laws = roofline::LawsOfGroup(slice, group, OptionsOf(slice));
    if (!laws.ok()) return laws.status();
    for (size_t kind = 0; kind < best->size(); ++kind) TakeSmaller((*laws)[kind], (*best)[kind]);
  }
  return best;
}

absl::StatusOr<CollectiveLaws> OnRings(const Slice& slice, int64_t in_slice, int32_t slices, bool parts) {
  std::vector<Sizes> ways;
  Sizes chosen;
  AddFactorings(slice.axes, in_slice, parts, chosen, ways);
  // Members that no block holds: the plan has no placement, which the search finds out by itself.
  if (ways.empty()) return CollectiveLaws{};
  absl::StatusOr<CollectiveLaws> best;
  Slice rings = slice;
  rings.twisted = false;
  for (size_t way = 0; way < ways.size(); ++way) {
    Group group;
    group.slice_count = slices;
    rings.chip_count = in_slice;
    for (size_t i = 0; i < rings.axes.size(); ++i) {
      // Members that do not fill a ring lie on a line, or so far apart that its wrap link wins nothing.
      rings.axes[i] = TorusAxis{ways[way][i], slice.axes[i].wraps && ways[way][i] == slice.axes[i].size};
      if (ways[way][i] > 1) group.pieces.push_back(GroupPiece{static_cast<int32_t>(i), ways[way][i], 1});
    }
    absl::StatusOr<CollectiveLaws> laws = roofline::LawsOfGroup(rings, group, OptionsOf(slice));
    if (!laws.ok()) return laws.status();
    if (way == 0) {
      best = *std::move(laws);
      continue;
    }
    for (size_t kind = 0; kind < best->size(); ++kind) TakeSmaller((*laws)[kind], (*best)[kind]);
  }
  return slice.twisted ? Twisted(slice, in_slice, slices, std::move(best)) : best;
}

void ForgetShards(PlanLaws& laws) {
  for (const PlanLawSlot& slot : kPlanLawSlots) {
    const bool whole = slot.group == PlanGroup::kTensor || slot.group == PlanGroup::kContext ||
                       slot.group == PlanGroup::kExpert || slot.group == PlanGroup::kPipeline;
    if (!whole) laws.*slot.law = CollectiveLaw();
  }
}

// Neighbours fill domains before they leave them. Members far apart send more, but none of it through a domain first.
absl::StatusOr<CollectiveLaws> InDomains(const Slice& slice, int64_t in_slice, int32_t slices) {
  Group group;
  group.slice_count = slices;
  if (in_slice > 1) group.pieces.push_back(GroupPiece{0, static_cast<int32_t>(in_slice), 1});
  Slice packed = slice;
  // A group that does not divide the slice fits a smaller one as well.
  packed.chip_count = slice.chip_count - slice.chip_count % in_slice;
  packed.axes[0].size = static_cast<int32_t>(packed.chip_count);
  absl::StatusOr<CollectiveLaws> best = roofline::LawsOfGroup(packed, group, OptionsOf(slice));
  if (!best.ok() || in_slice <= 1) return best;
  group.pieces[0].stride = static_cast<int32_t>(packed.chip_count / in_slice);
  const absl::StatusOr<CollectiveLaws> apart = roofline::LawsOfGroup(packed, group, OptionsOf(slice));
  if (!apart.ok()) return apart.status();
  for (size_t kind = 0; kind < best->size(); ++kind) {
    CollectiveLaw& law = (*best)[kind];
    law.latency_seconds = std::min(law.latency_seconds, (*apart)[kind].latency_seconds);
    law.hops = std::min(law.hops, (*apart)[kind].hops);
  }
  return best;
}

}  // namespace

const absl::StatusOr<CollectiveLaws>& IdealLaws::OfGroup(int64_t in_slice, int32_t slices) {
  const uint64_t key = static_cast<uint64_t>(in_slice) << 24 | static_cast<uint64_t>(slices);
  if (const auto found = remembered_.find(key); found != remembered_.end()) return *found->second;
  absl::StatusOr<CollectiveLaws> laws = slice_.accelerator.fabric == hardware::FabricKind::kTorus
                                            ? OnRings(slice_, in_slice, slices, allow_idle_chips_)
                                            : InDomains(slice_, in_slice, slices);
  return *remembered_.emplace(key, std::make_unique<absl::StatusOr<CollectiveLaws>>(std::move(laws))).first->second;
}

absl::StatusOr<PlanLaws> IdealLaws::Of(const Parallelism& parallelism) {
  const PlanGroupAxes axes = GroupAxesOf(parallelism);
  std::array<const CollectiveLaws*, kPlanGroupCount> of_group = {};
  for (size_t g = 0; g < kPlanGroupCount; ++g) {
    int64_t in_slice = 1;
    int32_t slices = 1;
    for (size_t axis = 0; axis < kLogicalAxisCount; ++axis) {
      if (!axes[g][axis]) continue;
      in_slice *= parallelism.ici.degree[axis];
      slices *= parallelism.dcn.degree[axis];
    }
    if (in_slice * slices <= 1) continue;
    const absl::StatusOr<CollectiveLaws>& laws = OfGroup(in_slice, slices);
    if (!laws.ok()) return laws.status();
    of_group[g] = &*laws;
  }
  PlanLaws laws;
  for (const PlanLawSlot& slot : kPlanLawSlots) {
    const CollectiveLaws* const group = of_group[static_cast<size_t>(slot.group)];
    if (group != nullptr) laws.*slot.law = (*group)[static_cast<size_t>(slot.kind)];
  }
  return laws;
}

absl::StatusOr<PlanLaws> IdealLaws::OfShape(const Parallelism& parallelism) {
  absl::StatusOr<PlanLaws> laws = Of(parallelism);
  if (laws.ok()) ForgetShards(*laws);
  return laws;
}

void IdealLaws::ShapeInSharedDomains(const Parallelism& parallelism, std::vector<PlanLaws>& ways) {
  InSharedDomains(parallelism, ways);
  for (PlanLaws& laws : ways) ForgetShards(laws);
}

const absl::StatusOr<CollectiveLaws>& IdealLaws::OfSpreadGroup(int64_t in_domain, int64_t domains, int32_t slices) {
  const uint64_t key =
      static_cast<uint64_t>(in_domain) << 44 | static_cast<uint64_t>(domains) << 20 | static_cast<uint64_t>(slices);
  if (const auto found = spread_.find(key); found != spread_.end()) return *found->second;
  Group group;
  group.slice_count = slices;
  if (in_domain > 1) group.pieces.push_back(GroupPiece{0, static_cast<int32_t>(in_domain), 1});
  if (domains > 1) group.pieces.push_back(GroupPiece{0, static_cast<int32_t>(domains), slice_.domain_size});
  return *spread_
              .emplace(key, std::make_unique<absl::StatusOr<CollectiveLaws>>(
                                roofline::LawsOfGroup(slice_, group, OptionsOf(slice_))))
              .first->second;
}

void IdealLaws::InSharedDomains(const Parallelism& parallelism, std::vector<PlanLaws>& ways) {
  ways.clear();
  const auto is_power_of_two = [](int64_t number) { return number > 0 && (number & (number - 1)) == 0; };
  if (slice_.accelerator.fabric != hardware::FabricKind::kSwitched || allow_idle_chips_) return;
  if (!is_power_of_two(slice_.domain_size) || slice_.chip_count % slice_.domain_size != 0) return;
  for (int32_t degree : parallelism.ici.degree) {
    if (!is_power_of_two(degree)) return;
  }
  AxisMembers in_domain = {};
  AddWays(parallelism, GroupAxesOf(parallelism), 0, slice_.domain_size, false, in_domain, ways);
}

// An axis lies inside the domains, across them, or as the only one partly inside.
void IdealLaws::AddWays(const Parallelism& parallelism, const PlanGroupAxes& axes, size_t axis, int64_t places,
                        bool partial, AxisMembers& in_domain, std::vector<PlanLaws>& ways) {
  if (axis < kLogicalAxisCount) {
    const int64_t degree = parallelism.ici.degree[axis];
    for (int64_t members = 1; members <= std::min(degree, places); members *= 2) {
      const bool is_partial = members > 1 && members < degree;
      if (is_partial && partial) continue;
      in_domain[axis] = members;
      AddWays(parallelism, axes, axis + 1, places / members, partial || is_partial, in_domain, ways);
    }
    return;
  }
  int64_t outside = 1;
  for (size_t i = 0; i < kLogicalAxisCount; ++i) outside *= parallelism.ici.degree[i] / in_domain[i];
  // More members outside than there are domains do not fit: others must come in.
  if (outside > slice_.chip_count / slice_.domain_size) return;
  PlanLaws& laws = ways.emplace_back();
  std::array<const CollectiveLaws*, kPlanGroupCount> of_group = {};
  for (size_t g = 0; g < kPlanGroupCount; ++g) {
    int64_t inside = 1;
    int64_t domains = 1;
    int32_t slices = 1;
    for (size_t i = 0; i < kLogicalAxisCount; ++i) {
      if (!axes[g][i]) continue;
      inside *= in_domain[i];
      domains *= parallelism.ici.degree[i] / in_domain[i];
      slices *= parallelism.dcn.degree[i];
    }
    if (inside * domains * slices <= 1) continue;
    const absl::StatusOr<CollectiveLaws>& found = OfSpreadGroup(inside, domains, slices);
    if (found.ok()) of_group[g] = &*found;
  }
  for (const PlanLawSlot& slot : kPlanLawSlots) {
    const CollectiveLaws* const group = of_group[static_cast<size_t>(slot.group)];
    if (group != nullptr) laws.*slot.law = (*group)[static_cast<size_t>(slot.kind)];
  }
}

}  // namespace sliceplan::planner
