#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "server/planner/mapping.h"
#include "server/roofline/torus_collective.h"

namespace sliceplan::planner {
namespace {

constexpr size_t kShardCount = 16;

// All that placements and laws depend on, packed into words.
constexpr size_t kFlagWord = 0;
constexpr size_t kAxisWords = roofline::kMaxTorusAxes;
constexpr size_t kFigureCount = 5;
constexpr size_t kWordCount = 1 + kAxisWords + 3 + kFigureCount + kLogicalAxisCount;
using Key = std::array<uint64_t, kWordCount>;

uint64_t Bits(const std::optional<double>& figure) {
  // A figure of 0 or less is as good as none (LawOf refuses both), so 0 may stand for an absent one.
  const double value = figure.value_or(0);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

uint64_t Pair(int32_t high, int32_t low) {
  return static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32 | static_cast<uint32_t>(low);
}

// nullopt for slices that no law covers.
std::optional<Key> KeyOf(const hardware::Slice& slice, const Parallelism& parallelism, bool allow_idle_chips,
                         size_t max_mappings) {
  if (slice.axes.size() > kAxisWords) return std::nullopt;
  const hardware::AcceleratorSpec& chip = slice.accelerator;
  Key key = {};
  key[kFlagWord] = static_cast<uint64_t>(slice.axes.size()) << 8 |
                   (chip.fabric == hardware::FabricKind::kSwitched ? 1u : 0u) | (slice.twisted ? 2u : 0u) |
                   (chip.in_network_reduction ? 4u : 0u) | (allow_idle_chips ? 8u : 0u) |
                   (parallelism.data_zero_stage == ZeroStage::k3 ? 16u : 0u) | (chip.ici_hop_seconds ? 32u : 0u);
  size_t word = 1;
  for (size_t i = 0; i < kAxisWords; ++i, ++word) {
    if (i < slice.axes.size()) key[word] = Pair(slice.axes[i].wraps ? 1 : 0, slice.axes[i].size);
  }
  key[word++] = static_cast<uint64_t>(slice.chip_count);
  key[word++] = Pair(slice.domain_size, slice.slice_count);
  key[word++] = max_mappings;
  for (const std::optional<double>& figure :
       {chip.ici_link_bytes_per_second, chip.ici_hop_seconds, chip.scale_up_bytes_per_second,
        chip.network_bytes_per_second, chip.dcn_bytes_per_second}) {
    key[word++] = Bits(figure);
  }
  for (LogicalAxis axis : kLogicalAxes) key[word++] = Pair(parallelism.ici[axis], parallelism.dcn[axis]);
  return key;
}

}  // namespace

// Two generations: what is used moves to the young one; full, it becomes the old one and the old is forgotten.
struct MappingCache::Shard {
  using Sets = absl::flat_hash_map<Key, std::shared_ptr<const MappingSet>>;

  mutable std::mutex mutex;
  Sets young;
  Sets old;
  size_t young_size = 0;  // placements
  size_t old_size = 0;

  std::shared_ptr<const MappingSet> Find(const Key& key) {
    if (auto found = young.find(key); found != young.end()) return found->second;
    return nullptr;
  }

  void Add(const Key& key, std::shared_ptr<const MappingSet> set, size_t capacity) {
    const size_t size = set->mappings.size();
    if (young_size + size > capacity / 2 && young_size > 0) {
      old = std::move(young);
      young.clear();
      old_size = std::exchange(young_size, 0);
    }
    if (young.insert_or_assign(key, std::move(set)).second) young_size += size;
  }
};

MappingCache::MappingCache(size_t capacity)
    : shards_(std::make_unique<Shard[]>(kShardCount)), shard_capacity_(std::max<size_t>(2, capacity / kShardCount)) {}

MappingCache::~MappingCache() = default;

absl::StatusOr<std::shared_ptr<const MappingSet>> MappingCache::Find(const hardware::Slice& slice,
                                                                     const Parallelism& parallelism,
                                                                     bool allow_idle_chips, size_t max_mappings) {
  const std::optional<Key> key =
      parallelism.mapping.empty() ? KeyOf(slice, parallelism, allow_idle_chips, max_mappings) : std::nullopt;
  Shard* shard = nullptr;
  if (key.has_value()) {
    shard = &shards_[absl::HashOf(*key) >> 8 & (kShardCount - 1)];
    const std::lock_guard<std::mutex> lock(shard->mutex);
    if (std::shared_ptr<const MappingSet> found = shard->Find(*key)) return found;
    if (auto found = shard->old.find(*key); found != shard->old.end()) {
      std::shared_ptr<const MappingSet> set = found->second;
      shard->old_size -= set->mappings.size();
      shard->old.erase(found);
      shard->Add(*key, set, shard_capacity_);
      return set;
    }
  }
  absl::StatusOr<MappingSet> built = BuildMappingSet(slice, parallelism, allow_idle_chips, max_mappings);
  if (!built.ok()) return built.status();
  auto set = std::make_shared<const MappingSet>(*std::move(built));
  if (shard != nullptr) {
    const std::lock_guard<std::mutex> lock(shard->mutex);
    shard->Add(*key, set, shard_capacity_);
  }
  return set;
}

size_t MappingCache::size() const {
  size_t size = 0;
  for (size_t i = 0; i < kShardCount; ++i) {
    const std::lock_guard<std::mutex> lock(shards_[i].mutex);
    size += shards_[i].young_size + shards_[i].old_size;
  }
  return size;
}

}  // namespace sliceplan::planner
