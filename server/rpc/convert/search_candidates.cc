#include "server/rpc/convert/search_candidates.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/catalog/gpu_domains.h"
#include "server/catalog/shape_choice.h"
#include "server/hardware/topology.h"
#include "server/planner/words.h"
#include "server/rpc/convert/enums.h"
#include "server/rpc/convert/ranges.h"
#include "server/rpc/convert/slice.h"

namespace sliceplan::rpc {
namespace {

using hardware::Shape;
using planner::CountWords;

constexpr int kMaxSlices = 1024;
constexpr int kMaxNames = 64;
constexpr int kMaxPools = 1024;
constexpr int32_t kMaxJoinedSlices = 1024;
constexpr int32_t kMaxFreeSlices = 65536;
constexpr size_t kMaxZoneBytes = 64;
constexpr size_t kMaxPoolNameBytes = 128;
constexpr double kMaxUsdPerChipHour = 1e6;
constexpr double kMaxWaitSeconds = 1e9;
// Of one pool up to so many slices are tried in every number, above in powers of two.
constexpr int32_t kEveryCountUpTo = 8;
constexpr int64_t kCubeSide = 4;  // of SHAPE_RULE_CUBES_OF_4
constexpr int64_t kCubeChips = kCubeSide * kCubeSide * kCubeSide;

struct ChipRange {
  int64_t least = 1;
  int64_t most = 0;
};

// How much of what is legal is a candidate.
enum class Breadth { kSold, kLegal };

class Collector {
 public:
  Collector(const catalog::Catalog& catalog, bool twists, const FieldPath& path, Violations& violations,
            Assumptions& assumptions)
      : catalog_(catalog), twists_(twists), path_(path), violations_(violations), assumptions_(assumptions) {}

  void AddList(const v1::SliceList& list);
  void AddRange(const v1::AcceleratorRange& range);
  void AddPools(const v1::CapacityList& capacity);
  void AddCatalog();

  std::vector<Candidate> Take() { return std::move(candidates_); }

 private:
  // False, with a violation, when there are too many.
  bool Add(catalog::ResolvedSlice slice, const v1::CapacityPool* pool = nullptr);
  void AddPool(const v1::CapacityPool& pool, const FieldPath& pool_path);
  bool CheckPool(const v1::CapacityPool& pool, const FieldPath& pool_path);
  // Slices of one accelerator with `range` chips, by chips.
  std::vector<catalog::ResolvedSlice> SlicesOf(const catalog::Accelerator& accelerator, const ChipRange& range,
                                               Breadth breadth, bool twisted_too) const;
  void AddNothing(const catalog::Accelerator& accelerator, const ChipRange& range, const FieldPath& where);

  const catalog::Catalog& catalog_;
  const bool twists_;
  const FieldPath& path_;
  Violations& violations_;
  Assumptions& assumptions_;
  std::vector<Candidate> candidates_;
  bool full_ = false;
};

bool IsSold(const catalog::v1::SliceRecord& record) {
  return !record.has_single_slice_schedulable() || record.single_slice_schedulable();
}

// A GPU is for sale when a machine with it, or a price, is public.
bool IsOffered(const catalog::Accelerator& accelerator, const catalog::Catalog& catalog) {
  const auto status = accelerator.record.status();
  if (status == catalog::v1::AVAILABILITY_STATUS_ANNOUNCED || status == catalog::v1::AVAILABILITY_STATUS_INTERNAL) {
    return false;
  }
  if (!accelerator.slices.empty() || !accelerator.gpu_machines.empty()) return true;
  const auto rows = catalog.prices().rows();
  return std::any_of(rows.begin(), rows.end(),
                     [&](const hardware::PriceRow& row) { return row.accelerator == accelerator.record.id(); });
}

// Shapes of a torus in range, by chips.
std::vector<Shape> ShapesIn(const catalog::Accelerator& accelerator, const ChipRange& range, Breadth breadth) {
  std::vector<Shape> shapes;
  for (const catalog::v1::SliceRecord* record : accelerator.slices) {
    if (record->chip_count() < range.least || record->chip_count() > range.most || !IsSold(*record)) continue;
    Shape shape(record->dims().begin(), record->dims().end());
    // One shape may come on several hosts, which no formula sees.
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(std::move(shape));
  }
  const catalog::v1::SliceRule* const rule = accelerator.slice_rule;
  if (breadth == Breadth::kLegal && rule != nullptr && rule->shape_rule() == catalog::v1::SHAPE_RULE_CUBES_OF_4) {
    int64_t most = std::min<int64_t>(range.most, rule->max_chip_count());
    if (rule->has_max_single_slice_chip_count()) most = std::min<int64_t>(most, rule->max_single_slice_chip_count());
    const size_t listed_count = shapes.size();
    for (int64_t chips = (range.least + kCubeChips - 1) / kCubeChips * kCubeChips; chips <= most; chips += kCubeChips) {
      for (Shape& shape : hardware::ShapesOf(chips, 3, kCubeSide)) {
        const auto listed_end = shapes.begin() + static_cast<std::ptrdiff_t>(listed_count);
        if (std::find(shapes.begin(), listed_end, shape) == listed_end) shapes.push_back(std::move(shape));
      }
    }
  }
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const Shape& a, const Shape& b) { return hardware::ChipCount(a) < hardware::ChipCount(b); });
  return shapes;
}

// Numbers of GPUs in range that are worth a look; some may not fill domains evenly.
std::set<int64_t> GpuCountsIn(const catalog::Accelerator& accelerator, const ChipRange& range, Breadth breadth) {
  const int64_t host = std::max(accelerator.spec.chips_per_host.value_or(1), 1);
  const int64_t domain = catalog::DomainSizeOf(accelerator.spec);
  std::set<int64_t> counts;
  const auto consider = [&](int64_t count) {
    if (count >= range.least && count <= range.most) counts.insert(count);
  };
  for (const catalog::v1::GpuMachineRecord* machine : accelerator.gpu_machines) consider(machine->gpu_count());
  const bool clusters = breadth == Breadth::kLegal || accelerator.spec.network_bytes_per_second.has_value();
  for (const int64_t unit : {host, domain}) {
    for (int64_t count = unit; count <= range.most && (clusters || count <= domain); count *= 2) {
      consider(count);
      if (breadth == Breadth::kLegal) consider(3 * count);
    }
  }
  if (breadth == Breadth::kLegal) {
    for (int64_t count = 1; count < host; count *= 2) consider(count);
    consider(range.least);
    consider(range.most);
  }
  return counts;
}

// The most chips of one slice where the request does not say.
int64_t LargestSlice(const catalog::Accelerator& accelerator) {
  if (accelerator.spec.fabric == hardware::FabricKind::kSwitched) return kLargestUnaskedCluster;
  int64_t largest = 1;
  for (const catalog::v1::SliceRecord* record : accelerator.slices) {
    if (IsSold(*record)) largest = std::max<int64_t>(largest, record->chip_count());
  }
  return largest;
}

bool CheckChips(int64_t value, int64_t least, const FieldPath& path, Violations& violations) {
  return CheckRange(value, least, hardware::kMaxChipCount, path, violations);
}

bool Collector::Add(catalog::ResolvedSlice slice, const v1::CapacityPool* pool) {
  if (candidates_.size() < kMaxCandidates) {
    candidates_.push_back({std::move(slice), pool});
    return true;
  }
  full_ = true;
  return false;
}

std::vector<catalog::ResolvedSlice> Collector::SlicesOf(const catalog::Accelerator& accelerator, const ChipRange& range,
                                                        Breadth breadth, bool twisted_too) const {
  std::vector<catalog::ResolvedSlice> slices;
  // Numbers that no slice has are left out: they were only worth a look.
  const auto resolve = [&](catalog::SliceQuery query) {
    query.accelerator = accelerator.record.id();
    catalog::SliceResolution resolution = catalog::ResolveSlice(catalog_, query);
    if (resolution.resolved.has_value()) slices.push_back(*std::move(resolution.resolved));
  };
  if (accelerator.spec.fabric == hardware::FabricKind::kSwitched) {
    for (const int64_t count : GpuCountsIn(accelerator, range, breadth)) {
      catalog::SliceQuery query;
      query.chip_count = static_cast<int32_t>(count);
      resolve(query);
    }
    return slices;
  }
  for (const Shape& shape : ShapesIn(accelerator, range, breadth)) {
    const std::string topology = hardware::ShapeName(shape);
    catalog::SliceQuery query;
    query.topology = topology;
    resolve(query);
    if (!twisted_too || !catalog::IsTwistOffered(accelerator, shape)) continue;
    query.twisted = true;
    resolve(query);
  }
  return slices;
}

void Collector::AddNothing(const catalog::Accelerator& accelerator, const ChipRange& range, const FieldPath& where) {
  violations_.Add(
      where,
      absl::StrCat("No slice of ", accelerator.record.id(), " that is sold has ",
                   range.least <= range.most ? absl::StrCat(CountWords(range.least), " to ", CountWords(range.most))
                                             : absl::StrCat("as many as ", CountWords(range.least)),
                   " chips. ", catalog::LegalShapes(accelerator)),
      "NO_CANDIDATES");
}

void Collector::AddList(const v1::SliceList& list) {
  const FieldPath list_path(path_, "slices");
  const FieldPath slices_path(list_path, "slices");
  if (list.slices().empty()) AddRequired("at least one slice", slices_path, violations_);
  if (!CheckCount(list.slices_size(), kMaxSlices, slices_path, violations_)) return;
  for (int i = 0; i < list.slices_size(); ++i) {
    auto slice =
        ToSlice(list.slices(i), catalog_, MissingShape::kRefused, FieldPath(list_path, "slices", i), violations_);
    if (slice.has_value()) Add(*std::move(slice));
  }
}

void Collector::AddRange(const v1::AcceleratorRange& range) {
  const FieldPath range_path(path_, "accelerators");
  const FieldPath names_path(range_path, "names");
  const FieldPath most_path(range_path, "max_chip_count");
  int64_t least = 1;
  if (range.has_min_chip_count()) {
    least = range.min_chip_count();
    if (!CheckChips(least, 1, FieldPath(range_path, "min_chip_count"), violations_)) least = 1;
  }
  bool legal = true;
  if (range.has_max_chip_count()) legal = CheckChips(range.max_chip_count(), least, most_path, violations_);
  int32_t most_slices = 1;
  if (range.has_max_slice_count()) {
    most_slices = range.max_slice_count();
    legal &=
        CheckRange(int64_t{most_slices}, 1, kMaxJoinedSlices, FieldPath(range_path, "max_slice_count"), violations_);
  }
  if (range.names().empty()) AddRequired("at least one name", names_path, violations_);
  if (!CheckCount(range.names_size(), kMaxNames, names_path, violations_)) return;
  std::vector<const catalog::Accelerator*> accelerators;
  for (int i = 0; i < range.names_size(); ++i) {
    const catalog::AcceleratorLookup lookup = catalog_.FindAccelerator(range.names(i), absl::StrCat("names[", i, "]"));
    if (lookup.violation.has_value()) violations_.Add(range_path, *lookup.violation, range.names(i));
    // Two names of one chip are one.
    if (lookup.accelerator != nullptr &&
        std::find(accelerators.begin(), accelerators.end(), lookup.accelerator) == accelerators.end()) {
      accelerators.push_back(lookup.accelerator);
    }
  }
  if (!legal) return;
  for (const catalog::Accelerator* accelerator : accelerators) {
    const ChipRange chips = {least, range.has_max_chip_count() ? range.max_chip_count() : LargestSlice(*accelerator)};
    const size_t count_before = candidates_.size();
    const ChipRange of_one_slice = {(chips.least + most_slices - 1) / most_slices, chips.most};
    for (const catalog::ResolvedSlice& slice : SlicesOf(*accelerator, of_one_slice, Breadth::kLegal, twists_)) {
      const int64_t size = slice.slice.chip_count;
      const int64_t most = std::min<int64_t>(most_slices, chips.most / size);
      for (int64_t count = (chips.least + size - 1) / size; count <= most && !full_; ++count) {
        catalog::ResolvedSlice joined = slice;
        joined.slice.slice_count = static_cast<int32_t>(count);
        Add(std::move(joined));
      }
    }
    if (candidates_.size() == count_before && !full_) AddNothing(*accelerator, chips, range_path);
  }
  if (full_) {
    violations_.Add(range_path,
                    absl::StrCat("allows more than ", kMaxCandidates,
                                 " slices; narrow min_chip_count, max_chip_count or max_slice_count."),
                    "TOO_MANY");
  }
}

bool Collector::CheckPool(const v1::CapacityPool& pool, const FieldPath& pool_path) {
  const size_t count_before = violations_.size();
  CheckLength(pool.zone(), kMaxZoneBytes, FieldPath(pool_path, "zone"), violations_);
  CheckLength(pool.name(), kMaxPoolNameBytes, FieldPath(pool_path, "name"), violations_);
  FromProto(kPriceModels, pool.price_model(), FieldPath(pool_path, "price_model"), violations_);
  if (pool.has_free_slice_count()) {
    CheckRange(int64_t{pool.free_slice_count()}, 0, kMaxFreeSlices, FieldPath(pool_path, "free_slice_count"),
               violations_);
  }
  if (pool.has_usd_per_chip_hour()) {
    CheckRange(pool.usd_per_chip_hour(), 0, kMaxUsdPerChipHour, FieldPath(pool_path, "usd_per_chip_hour"), violations_);
  }
  if (pool.has_available_after_seconds()) {
    CheckRange(pool.available_after_seconds(), 0, kMaxWaitSeconds, FieldPath(pool_path, "available_after_seconds"),
               violations_);
  }
  if (pool.shape_case() == v1::CapacityPool::SHAPE_NOT_SET) {
    AddRequired("topology or chips", FieldPath(pool_path, "topology"), violations_);
  }
  if (pool.has_chips()) {
    const FieldPath chips_path(pool_path, "chips");
    int64_t least = 1;
    if (pool.chips().has_min_count()) {
      least = pool.chips().min_count();
      if (!CheckChips(least, 1, FieldPath(chips_path, "min_count"), violations_)) least = 1;
    }
    CheckChips(pool.chips().max_count(), least, FieldPath(chips_path, "max_count"), violations_);
  }
  return violations_.size() == count_before;
}

void Collector::AddPool(const v1::CapacityPool& pool, const FieldPath& pool_path) {
  bool legal = CheckPool(pool, pool_path);
  const catalog::AcceleratorLookup lookup =
      pool.accelerator().empty() ? catalog::AcceleratorLookup() : catalog_.FindAccelerator(pool.accelerator());
  if (pool.accelerator().empty()) AddRequired("accelerator", FieldPath(pool_path, "accelerator"), violations_);
  if (lookup.violation.has_value()) violations_.Add(pool_path, *lookup.violation, pool.accelerator());
  if (lookup.accelerator == nullptr || pool.shape_case() == v1::CapacityPool::SHAPE_NOT_SET) return;

  std::vector<catalog::ResolvedSlice> slices;
  if (pool.has_chips()) {
    if (!legal) return;
    const ChipRange chips = {pool.chips().has_min_count() ? pool.chips().min_count() : 1, pool.chips().max_count()};
    slices = SlicesOf(*lookup.accelerator, chips, Breadth::kLegal, /*twisted_too=*/false);
    if (slices.empty()) AddNothing(*lookup.accelerator, chips, FieldPath(pool_path, "chips"));
  } else {
    v1::Slice named;
    named.set_accelerator(pool.accelerator());
    named.set_topology(pool.topology());
    auto slice = ToSlice(named, catalog_, MissingShape::kRefused, pool_path, violations_);
    if (!slice.has_value() || !legal) return;
    slices.push_back(*std::move(slice));
  }
  const int32_t free = pool.has_free_slice_count() ? pool.free_slice_count() : 1;
  for (const catalog::ResolvedSlice& slice : slices) {
    for (int64_t count = 1; count <= free && !full_; count += count < kEveryCountUpTo ? 1 : count) {
      catalog::ResolvedSlice joined = slice;
      joined.slice.slice_count = static_cast<int32_t>(count);
      if (joined.slice.TotalChips() > catalog::kMaxTotalChipCount) break;
      Add(std::move(joined), &pool);
    }
  }
}

void Collector::AddPools(const v1::CapacityList& capacity) {
  const FieldPath capacity_path(path_, "capacity");
  const FieldPath pools_path(capacity_path, "pools");
  if (capacity.pools().empty()) AddRequired("at least one pool", pools_path, violations_);
  if (!CheckCount(capacity.pools_size(), kMaxPools, pools_path, violations_)) return;
  int taken_count = 0;
  for (int i = 0; i < capacity.pools_size(); ++i) {
    const v1::CapacityPool& pool = capacity.pools(i);
    taken_count += pool.has_free_slice_count() && pool.free_slice_count() == 0 ? 1 : 0;
    AddPool(pool, FieldPath(capacity_path, "pools", i));
  }
  if (taken_count > 0) {
    assumptions_.Add("capacity", "",
                     absl::StrCat(taken_count, " of ", capacity.pools_size(),
                                  capacity.pools_size() == 1 ? " pool has" : " pools have", " no slice free"));
  }
  if (full_) {
    violations_.Add(pools_path,
                    absl::StrCat("allow more than ", kMaxCandidates,
                                 " slices; narrow chips, or give the topologies that are free."),
                    "TOO_MANY");
  }
}

void Collector::AddCatalog() {
  for (const catalog::Accelerator& accelerator : catalog_.accelerators()) {
    if (accelerator.record.interconnect().kind() == catalog::v1::FABRIC_KIND_OTHER || !IsOffered(accelerator, catalog_))
      continue;
    const ChipRange chips = {1, LargestSlice(accelerator)};
    for (catalog::ResolvedSlice& slice : SlicesOf(accelerator, chips, Breadth::kSold, twists_)) {
      Add(std::move(slice));
    }
  }
  assumptions_.Add(
      "entire_catalog", "true",
      absl::StrCat("Every slice of the catalog that is sold: ", CountWords(static_cast<int64_t>(candidates_.size())),
                   ", GPUs in machines and in clusters of 2, 4, 8, ... of them up to ",
                   CountWords(kLargestUnaskedCluster)));
  if (full_) {
    assumptions_.Add("entire_catalog", "true",
                     absl::StrCat("The catalog has more slices; the first ", kMaxCandidates, " were candidates"));
  }
}

}  // namespace

std::vector<Candidate> ToCandidates(const v1::ProposeShardingRequest& request, const catalog::Catalog& catalog,
                                    bool twists, const FieldPath& path, Violations& violations,
                                    Assumptions& assumptions) {
  Collector collector(catalog, twists, path, violations, assumptions);
  switch (request.candidates_case()) {
    case v1::ProposeShardingRequest::kSlices: collector.AddList(request.slices()); break;
    case v1::ProposeShardingRequest::kAccelerators: collector.AddRange(request.accelerators()); break;
    case v1::ProposeShardingRequest::kCapacity: collector.AddPools(request.capacity()); break;
    case v1::ProposeShardingRequest::kEntireCatalog:
      if (!request.entire_catalog()) {
        violations.Add(FieldPath(path, "entire_catalog"),
                       "false leaves nowhere to run; set it to true, or give slices, accelerators or capacity.",
                       "INVALID_FIELD");
        break;
      }
      [[fallthrough]];
    case v1::ProposeShardingRequest::CANDIDATES_NOT_SET: collector.AddCatalog(); break;
  }
  return collector.Take();
}

}  // namespace sliceplan::rpc
