#include "server/catalog/shape_choice.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/catalog/slice_record.h"

namespace sliceplan::catalog {
namespace {

using hardware::Shape;

// Side and chips of the cubes of SHAPE_RULE_CUBES_OF_4.
constexpr int32_t kCubeSide = 4;
constexpr int64_t kCubeChips = kCubeSide * kCubeSide * kCubeSide;
constexpr size_t kCubeDims = 3;

// Chips of the largest shape that the cube rule allows; 0 without that rule.
int64_t MaxCubeChips(const Accelerator& accelerator) {
  const v1::SliceRule* rule = accelerator.slice_rule;
  return rule != nullptr && rule->shape_rule() == v1::SHAPE_RULE_CUBES_OF_4 ? rule->max_chip_count() : 0;
}

bool IsSold(const v1::SliceRecord& record) {
  return !record.has_single_slice_schedulable() || record.single_slice_schedulable();
}

bool IsSoldByRule(const Accelerator& accelerator, int64_t chip_count) {
  return !accelerator.slice_rule->has_max_single_slice_chip_count() ||
         chip_count <= accelerator.slice_rule->max_single_slice_chip_count();
}

}  // namespace

std::vector<const v1::SliceRecord*> ListedSlices(const Accelerator& accelerator, const Shape& shape) {
  std::vector<const v1::SliceRecord*> records;
  const int64_t chip_count = hardware::ChipCount(shape);
  for (const v1::SliceRecord* record : accelerator.slices) {
    if (record->chip_count() == chip_count &&
        std::equal(shape.begin(), shape.end(), record->dims().begin(), record->dims().end())) {
      records.push_back(record);
    }
  }
  return records;
}

bool IsLegalByRule(const Accelerator& accelerator, const Shape& shape) {
  return shape.size() == kCubeDims && hardware::ChipCount(shape) <= MaxCubeChips(accelerator) &&
         std::all_of(shape.begin(), shape.end(), [](int32_t size) { return size % kCubeSide == 0; });
}

bool IsTwistOffered(const Accelerator& accelerator, const Shape& shape) {
  const v1::TwistedTorus& twist = accelerator.record.interconnect().twisted_torus();
  if (!twist.available() || !hardware::IsTwistable(shape)) return false;
  if (twist.rule() == v1::TWIST_RULE_DOUBLED_CUBES) return shape.size() == kCubeDims && shape[0] % kCubeSide == 0;
  const auto& supported = twist.supported_shapes();
  return std::find(supported.begin(), supported.end(), hardware::ShapeName(shape)) != supported.end();
}

v1::SliceRecord DeriveSlice(const Accelerator& accelerator, const Shape& shape) {
  // The largest listed slice has the hosts and labels of every multi-host slice of its generation.
  const v1::SliceRecord& neighbour = *accelerator.slices.back();
  v1::SliceRecord record;
  record.set_accelerator(neighbour.accelerator());
  record.set_topology(hardware::ShapeName(shape));
  record.set_name_counts(neighbour.name_counts());
  record.set_chips_per_host(neighbour.chips_per_host());
  *record.mutable_chips_per_host_bounds() = neighbour.chips_per_host_bounds();
  record.set_machine_type(neighbour.machine_type());
  record.set_gke_tpu_accelerator(neighbour.gke_tpu_accelerator());
  if (neighbour.has_gke_workload_policy_required()) {
    record.set_gke_workload_policy_required(neighbour.gke_workload_policy_required());
  }
  // XPK accepts "v5p-4x4x16" for a shape that is not the default of its count.
  const std::string& device_type = neighbour.xpk_device_type();
  if (const size_t hyphen = device_type.rfind('-'); hyphen != std::string::npos) {
    record.set_xpk_device_type(absl::StrCat(device_type.substr(0, hyphen + 1), record.topology()));
  }
  record.set_axis_wraps_source(neighbour.axis_wraps_source());
  record.set_single_slice_schedulable(IsSoldByRule(accelerator, hardware::ChipCount(shape)));
  record.set_source(accelerator.slice_rule->source());
  record.set_as_of(accelerator.slice_rule->as_of());
  Problems problems;
  RecordProblems record_problems(problems, "", "");
  CompleteSliceRecord(accelerator.spec, accelerator.pod_shape, record, record_problems);
  return record;
}

std::optional<Shape> MostCubicShape(const Accelerator& accelerator, int64_t chip_count) {
  std::optional<Shape> best;
  bool best_is_sold = false;
  const auto consider = [&](Shape shape, bool is_sold) {
    if (best.has_value() && (best_is_sold != is_sold ? best_is_sold : !hardware::IsMoreCubic(shape, *best))) return;
    best = std::move(shape);
    best_is_sold = is_sold;
  };
  for (const v1::SliceRecord* record : accelerator.slices) {
    if (record->chip_count() != chip_count) continue;
    consider(Shape(record->dims().begin(), record->dims().end()), IsSold(*record));
  }
  if (chip_count <= MaxCubeChips(accelerator)) {
    std::vector<Shape> shapes = hardware::ShapesOf(chip_count, kCubeDims, kCubeSide);
    if (!shapes.empty()) consider(std::move(shapes.front()), IsSoldByRule(accelerator, chip_count));
  }
  return best;
}

std::vector<int64_t> NearestChipCounts(const Accelerator& accelerator, int64_t chip_count) {
  int64_t below = 0;
  int64_t above = 0;
  const auto consider = [&](int64_t legal) {
    if (legal < chip_count) below = std::max(below, legal);
    if (legal > chip_count && (above == 0 || legal < above)) above = legal;
  };
  for (const v1::SliceRecord* record : accelerator.slices) consider(record->chip_count());
  if (const int64_t largest = MaxCubeChips(accelerator) / kCubeChips; largest > 0) {
    const int64_t cubes = std::clamp<int64_t>(chip_count / kCubeChips, 1, largest);
    consider(cubes * kCubeChips);
    if (cubes < largest) consider((cubes + 1) * kCubeChips);
  }
  std::vector<int64_t> nearest;
  if (below > 0) nearest.push_back(below);
  if (above > 0) nearest.push_back(above);
  return nearest;
}

std::string LegalShapes(const Accelerator& accelerator) {
  if (accelerator.spec.fabric == hardware::FabricKind::kSwitched)
    return "chip_count takes any number of GPUs of one domain, or whole domains.";
  const int64_t max_cube_chips = MaxCubeChips(accelerator);
  std::vector<absl::string_view> shapes;
  for (const v1::SliceRecord* record : accelerator.slices) {
    if (max_cube_chips > 0 && record->chip_count() >= kCubeChips) continue;  // said by the rule
    if (shapes.empty() || shapes.back() != record->topology()) shapes.push_back(record->topology());
  }
  if (max_cube_chips > 0) {
    return absl::StrCat("Legal are ", absl::StrJoin(shapes, ", "), ", and AxBxC with A <= B <= C, multiples of ",
                        kCubeSide, ", at most ", max_cube_chips, " chips.");
  }
  if (shapes.empty()) return absl::StrCat("No slice of ", accelerator.record.id(), " is public.");
  return absl::StrCat("Legal are ", absl::StrJoin(shapes, ", "), ".");
}

std::string TwistedShapes(const Accelerator& accelerator) {
  const v1::TwistedTorus& twist = accelerator.record.interconnect().twisted_torus();
  if (!twist.available()) return "No shape of it is.";
  if (twist.rule() == v1::TWIST_RULE_DOUBLED_CUBES) {
    return absl::StrCat("Offered are k x k x 2k and k x 2k x 2k with k a multiple of ", kCubeSide, ".");
  }
  return absl::StrCat("Offered are ", absl::StrJoin(twist.supported_shapes(), ", "), ".");
}

int32_t CoresPerNamedChip(const Accelerator& accelerator) {
  const bool counts_cores =
      !accelerator.slices.empty() && accelerator.slices.front()->name_counts() == v1::NAME_COUNTS_TENSORCORES;
  return counts_cores ? std::max(1, accelerator.spec.tensorcore_count.value_or(1)) : 1;
}

}  // namespace sliceplan::catalog
