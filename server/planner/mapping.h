// Where the logical axes of a plan lie on a slice: which assignments of degrees to physical axes, or factors of them,
// there are, and what their collectives cost. docs/collectives.md section 9; costs from server/roofline/collective.h.
#ifndef SLICEPLAN_SERVER_PLANNER_MAPPING_H_
#define SLICEPLAN_SERVER_PLANNER_MAPPING_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "server/hardware/slice.h"
#include "server/hardware/violation.h"
#include "server/planner/parallelism.h"
#include "server/planner/plan_laws.h"

namespace sliceplan::planner {

// Placements looked at closely for one plan: all of most plans with three axes. Of more, see EnumerateMappings.
inline constexpr size_t kMaxMappings = 128;
// Placements whose traffic is estimated for each one kept.
inline constexpr size_t kCandidatesPerMapping = 16;
// What EnumerateMappings can be asked for at most.
inline constexpr size_t kMostMappings = size_t{1} << 20;

// One placement. Every chip of the block in use belongs to exactly one group of each logical axis.
struct MappedAxes {
  // By logical axis; degree 1: no pieces. slice_count is the axis's degree across slices.
  std::array<hardware::Group, kLogicalAxisCount> groups;
  // The part of each physical axis in use: the whole axis unless chips idle. A part of a ring does not wrap.
  absl::InlinedVector<hardware::TorusAxis, 3> block;
  int32_t domain_size = 1;  // chips in use of each scale-up domain (switched)
};

// Pieces of a placement as a request lists them, in the order of the logical axes.
std::vector<AxisAssignment> AssignmentsOf(const MappedAxes& mapped);

// The slice as the block of a placement sees it.
hardware::Slice BlockSlice(const hardware::Slice& slice, const MappedAxes& mapped);

struct MappingList {
  std::vector<MappedAxes> mappings;
  bool truncated = false;
};

// All placements of the degrees inside a slice; placements that differ only by a swap of equal physical axes, or
// (switched) of axes that meet the domains alike, appear once. A logical axis takes at most one contiguous or strided
// run of each physical axis. The order is fixed: whole blocks first, then tensor innermost, context, expert, FSDP,
// data, pipeline outermost, then its reverse, then all other orders. Of more than `max_mappings`, those kept are the
// best under several mixes of traffic (mapping_choice.h) of the first kCandidatesPerMapping times as many with the
// fewest pieces; behind switches, the first. `allow_idle_chips`: degrees may multiply to fewer chips; they then fill a
// block of part of some axes (switched: part of every domain, or the first domains whole). Empty when there is no way:
// CheckPlacement says why.
MappingList EnumerateMappings(const hardware::Slice& slice, const AxisDegrees& ici, const AxisDegrees& dcn,
                              bool allow_idle_chips, size_t max_mappings = kMaxMappings);

// Adds a violation when the degrees of the plan cannot be placed on the slice: "no way to place tensor 3 on axes 4, 4".
// Fields are relative to the request: "parallelism.ici.tensor".
void CheckPlacement(const hardware::Slice& slice, const Parallelism& parallelism, bool allow_idle_chips,
                    std::vector<hardware::Violation>& violations);

// Adds a violation for everything that is wrong with parallelism.mapping: axes out of range, factors that do not
// divide, overlaps, gaps, products that are not the degrees. Fields are relative to the request:
// "parallelism.mapping[1].stride".
void CheckMapping(const hardware::Slice& slice, const Parallelism& parallelism, bool allow_idle_chips,
                  std::vector<hardware::Violation>& violations);

// Requires parallelism.mapping that CheckMapping accepts.
MappedAxes MappingOf(const hardware::Slice& slice, const Parallelism& parallelism);

// The placements of one plan that can be best, with the laws of its collectives: laws[i] belongs to mappings[i]. A
// placement that another beats or equals in every law is left out.
struct MappingSet {
  std::vector<MappedAxes> mappings;  // never empty
  std::vector<PlanLaws> laws;
  size_t enumerated_count = 0;  // before the beaten ones were left out
  bool truncated = false;       // more placements exist than were looked at closely
};

// parallelism.mapping, when given, is the only placement. INVALID_ARGUMENT: no placement, or the given one is wrong;
// the message joins what CheckPlacement or CheckMapping say. FAILED_PRECONDITION names a network figure that is
// missing. Takes about 10 us per placement looked at closely; a search over many plans asks for fewer.
absl::StatusOr<MappingSet> BuildMappingSet(const hardware::Slice& slice, const Parallelism& parallelism,
                                           bool allow_idle_chips = true, size_t max_mappings = kMaxMappings);

// Remembers sets of placements, because schedulers ask the same again. Thread-safe; the least recently used
// are forgotten.
class MappingCache {
 public:
  // `capacity`: placements held in all; a placement with its laws takes 2 to 3 kB.
  explicit MappingCache(size_t capacity = 16384);
  ~MappingCache();
  MappingCache(const MappingCache&) = delete;
  MappingCache& operator=(const MappingCache&) = delete;

  // As BuildMappingSet. Errors and given mappings are not remembered. The accelerator's name is not part of what is
  // remembered: all figures that laws depend on are.
  absl::StatusOr<std::shared_ptr<const MappingSet>> Find(const hardware::Slice& slice, const Parallelism& parallelism,
                                                         bool allow_idle_chips = true,
                                                         size_t max_mappings = kMaxMappings);

  // Placements held now.
  size_t size() const;

 private:
  struct Shard;
  std::unique_ptr<Shard[]> shards_;
  size_t shard_capacity_;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_MAPPING_H_
