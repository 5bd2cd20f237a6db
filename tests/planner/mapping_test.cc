// Placements of logical axes on a slice: against brute force on small tori, and what requests get wrong.
#include "server/planner/mapping.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/planner/mapping_enumeration.h"

namespace sliceplan::planner {
namespace {

using hardware::FabricKind;
using hardware::Group;
using hardware::GroupPiece;
using hardware::Slice;
using hardware::TorusAxis;
using hardware::Violation;
using testing::HasSubstr;

Slice Torus(std::vector<TorusAxis> axes) {
  Slice slice;
  slice.accelerator.ici_link_bytes_per_second = 90e9;
  slice.accelerator.dcn_bytes_per_second = 6e9;
  for (const TorusAxis& axis : axes) {
    slice.axes.push_back(axis);
    slice.chip_count *= axis.size;
  }
  return slice;
}

Slice Gpus(int64_t count, int32_t domain_size) {
  Slice slice;
  slice.accelerator.fabric = FabricKind::kSwitched;
  slice.accelerator.scale_up_bytes_per_second = 450e9;
  slice.accelerator.network_bytes_per_second = 50e9;
  slice.chip_count = count;
  slice.domain_size = domain_size;
  slice.axes.push_back({static_cast<int32_t>(count), false});
  return slice;
}

AxisDegrees Degrees(std::map<LogicalAxis, int32_t> degrees) {
  AxisDegrees all;
  for (const auto& [axis, degree] : degrees) all[axis] = degree;
  return all;
}

Parallelism Plan(std::map<LogicalAxis, int32_t> ici, std::map<LogicalAxis, int32_t> dcn = {}) {
  Parallelism plan;
  plan.ici = Degrees(std::move(ici));
  plan.dcn = Degrees(std::move(dcn));
  return plan;
}

// One physical axis of a placement: (logical axis, factor) from the inside out, written down.
using AxisText = std::string;

std::vector<AxisText> TextOf(const MappedAxes& mapped) {
  std::vector<AxisText> texts;
  for (size_t physical = 0; physical < mapped.block.size(); ++physical) {
    std::map<int32_t, std::string> by_stride;
    for (LogicalAxis axis : kLogicalAxes) {
      for (const GroupPiece& piece : mapped.groups[static_cast<size_t>(axis)].pieces) {
        if (piece.axis != static_cast<int32_t>(physical)) continue;
        by_stride[piece.stride] += std::string(LogicalAxisName(axis)) + std::to_string(piece.factor) + " ";
      }
    }
    AxisText text = std::to_string(mapped.block[physical].size) + (mapped.block[physical].wraps ? "r: " : "l: ");
    for (const auto& [stride, piece] : by_stride) text += piece;
    texts.push_back(text);
  }
  return texts;
}

// Swaps of equal axes give the same text.
std::string ClassOf(std::vector<AxisText> texts) {
  std::sort(texts.begin(), texts.end());
  std::string joined;
  for (const AxisText& text : texts) joined += text + "| ";
  return joined;
}

// All sequences of (logical axis, factor above 1), each logical axis at most once, that multiply to `size`.
void AllOrders(int32_t size, std::vector<std::pair<LogicalAxis, int32_t>>& sequence,
               std::vector<std::vector<std::pair<LogicalAxis, int32_t>>>& all) {
  if (size == 1) {
    all.push_back(sequence);
    return;
  }
  for (LogicalAxis axis : kLogicalAxes) {
    if (std::any_of(sequence.begin(), sequence.end(), [axis](const auto& taken) { return taken.first == axis; }))
      continue;
    for (int32_t factor = 2; factor <= size; ++factor) {
      if (size % factor != 0) continue;
      sequence.emplace_back(axis, factor);
      AllOrders(size / factor, sequence, all);
      sequence.pop_back();
    }
  }
}

// Every combination of orders of the axes whose factors multiply to the degrees; classes only.
std::set<std::string> BruteForce(const Slice& slice, const AxisDegrees& degrees) {
  std::vector<std::vector<std::vector<std::pair<LogicalAxis, int32_t>>>> of_axis;
  for (const TorusAxis& axis : slice.axes) {
    std::vector<std::pair<LogicalAxis, int32_t>> sequence;
    of_axis.emplace_back();
    AllOrders(axis.size, sequence, of_axis.back());
  }
  std::set<std::string> classes;
  std::vector<size_t> choice(of_axis.size(), 0);
  for (bool done = false; !done;) {
    AxisDegrees product;
    std::vector<AxisText> texts;
    for (size_t i = 0; i < of_axis.size(); ++i) {
      AxisText text = std::to_string(slice.axes[i].size) + (slice.axes[i].wraps ? "r: " : "l: ");
      for (const auto& [axis, factor] : of_axis[i][choice[i]]) {
        product[axis] *= factor;
        text += std::string(LogicalAxisName(axis)) + std::to_string(factor) + " ";
      }
      texts.push_back(text);
    }
    if (product == degrees) classes.insert(ClassOf(texts));
    done = true;
    for (size_t i = 0; i < choice.size() && done; ++i) {
      choice[i] = (choice[i] + 1) % of_axis[i].size();
      done = choice[i] == 0;
    }
  }
  return classes;
}

// Every chip of the block has its own tuple of places in the groups, and every group has as many members as its degree.
void ExpectBijective(const MappedAxes& mapped, const AxisDegrees& degrees) {
  int64_t chips = 1;
  for (const TorusAxis& axis : mapped.block) chips *= axis.size;
  EXPECT_EQ(chips, degrees.Product());
  std::set<std::vector<int32_t>> tuples;
  for (int64_t chip = 0; chip < chips; ++chip) {
    std::vector<int32_t> coordinates;
    int64_t rest = chip;
    for (const TorusAxis& axis : mapped.block) {
      coordinates.push_back(static_cast<int32_t>(rest % axis.size));
      rest /= axis.size;
    }
    std::vector<int32_t> tuple;
    for (LogicalAxis axis : kLogicalAxes) {
      int32_t place = 0;
      for (const GroupPiece& piece : mapped.groups[static_cast<size_t>(axis)].pieces) {
        place = place * piece.factor + coordinates[static_cast<size_t>(piece.axis)] / piece.stride % piece.factor;
      }
      EXPECT_LT(place, degrees[axis]);
      tuple.push_back(place);
    }
    EXPECT_TRUE(tuples.insert(tuple).second) << "two chips have the same place";
  }
  for (LogicalAxis axis : kLogicalAxes) {
    EXPECT_EQ(mapped.groups[static_cast<size_t>(axis)].SizeInSlice(), degrees[axis]);
  }
}

const TorusAxis kRing4{4, true}, kRing8{8, true}, kRing12{12, true}, kRing16{16, true}, kLine2{2, false},
    kLine4{4, false}, kLine6{6, false};
constexpr LogicalAxis kData = LogicalAxis::kData, kFsdp = LogicalAxis::kFsdp, kTensor = LogicalAxis::kTensor,
                      kContext = LogicalAxis::kContext, kExpert = LogicalAxis::kExpert,
                      kPipeline = LogicalAxis::kPipeline;

struct SmallTorus {
  const char* name;
  std::vector<TorusAxis> axes;
  std::map<LogicalAxis, int32_t> degrees;
};

const SmallTorus kSmallTori[] = {
    {"one_axis", {kRing8}, {{kFsdp, 4}, {kTensor, 2}}},
    {"one_axis_three_ways", {kRing12}, {{kFsdp, 3}, {kTensor, 2}, {kData, 2}}},
    {"square", {kRing4, kRing4}, {{kFsdp, 4}, {kTensor, 4}}},
    {"square_uneven", {kRing4, kRing4}, {{kFsdp, 8}, {kTensor, 2}}},
    {"square_three", {kLine4, kLine4}, {{kFsdp, 4}, {kTensor, 2}, {kContext, 2}}},
    {"rectangle", {kLine2, kRing8}, {{kFsdp, 4}, {kTensor, 4}}},
    {"ring_and_line_of_one_size", {kRing4, kLine4}, {{kFsdp, 8}, {kTensor, 2}}},
    {"equal_axes_apart", {kRing4, kRing8, kRing4}, {{kFsdp, 32}, {kTensor, 4}}},
    {"cube", {kRing4, kRing4, kRing4}, {{kFsdp, 16}, {kTensor, 4}}},
    {"cube_three", {kRing4, kRing4, kRing4}, {{kFsdp, 8}, {kTensor, 4}, {kData, 2}}},
    {"cube_four", {kRing4, kRing4, kRing4}, {{kFsdp, 4}, {kTensor, 4}, {kExpert, 2}, {kPipeline, 2}}},
    {"odd_factors", {kLine6, kRing12}, {{kFsdp, 12}, {kTensor, 6}}},
    {"all_six", {kLine4, kRing16}, {{kData, 2}, {kFsdp, 2}, {kTensor, 2}, {kContext, 2}, {kExpert, 2}, {kPipeline, 2}}},
    {"one_chip", {{1, false}}, {}},
};

TEST(EnumerateMappings, FindsEveryPlacementOnce) {
  for (const SmallTorus& torus : kSmallTori) {
    SCOPED_TRACE(torus.name);
    const Slice slice = Torus(torus.axes);
    const AxisDegrees degrees = Degrees(torus.degrees);
    const MappingList list = EnumerateMappings(slice, degrees, AxisDegrees{}, false, 1 << 20);
    EXPECT_FALSE(list.truncated);
    std::set<std::string> classes;
    for (const MappedAxes& mapped : list.mappings) {
      EXPECT_TRUE(classes.insert(ClassOf(TextOf(mapped))).second) << "twice: " << ClassOf(TextOf(mapped));
      ExpectBijective(mapped, degrees);
    }
    EXPECT_EQ(classes, BruteForce(slice, degrees));
  }
}

TEST(EnumerateMappings, WholeAxesInTheUsualOrderComeFirst) {
  const Slice cube = Torus({kRing16, kRing16, kRing16});
  const MappingList list = EnumerateMappings(cube, Degrees({{kFsdp, 256}, {kTensor, 16}}), AxisDegrees{}, false);
  ASSERT_FALSE(list.mappings.empty());
  EXPECT_EQ(ClassOf(TextOf(list.mappings[0])), "16r: fsdp16 | 16r: fsdp16 | 16r: tensor16 | ");
  const MappingList split =
      EnumerateMappings(Torus({kRing16}), Degrees({{kFsdp, 2}, {kTensor, 4}, {kData, 2}}), {}, false);
  EXPECT_EQ(ClassOf(TextOf(split.mappings[0])), "16r: tensor4 fsdp2 data2 | ");
  EXPECT_EQ(ClassOf(TextOf(split.mappings[1])), "16r: data2 fsdp2 tensor4 | ");
}

TEST(EnumerateMappings, IsBoundedAndSaysSo) {
  const Slice cube = Torus({kRing16, kRing16, kRing16});
  const AxisDegrees degrees =
      Degrees({{kData, 4}, {kFsdp, 8}, {kTensor, 8}, {kContext, 4}, {kExpert, 2}, {kPipeline, 2}});
  const MappingList list = EnumerateMappings(cube, degrees, AxisDegrees{}, false);
  EXPECT_TRUE(list.truncated);
  EXPECT_LE(list.mappings.size(), kMaxMappings);
  EXPECT_GE(list.mappings.size(), kMaxMappings / 2);
  for (size_t i = 0; i < list.mappings.size(); i += 8) ExpectBijective(list.mappings[i], degrees);
  const MappingList again = EnumerateMappings(cube, degrees, AxisDegrees{}, false);
  for (size_t i = 0; i < list.mappings.size(); ++i) {
    EXPECT_EQ(TextOf(list.mappings[i]), TextOf(again.mappings[i]));
  }
}

// What is kept of too many holds, for each kind of traffic alone, a placement as fast as any.
TEST(EnumerateMappings, KeepsTheBestOfTooMany) {
  const Slice slice = Torus({kRing8, kRing16});
  const Parallelism plan = Plan({{kFsdp, 8}, {kTensor, 4}, {kExpert, 2}, {kData, 2}});
  const MappingList all = EnumerateMappings(slice, plan.ici, plan.dcn, false, 1 << 20);
  const MappingList few = EnumerateMappings(slice, plan.ici, plan.dcn, false, 24);
  ASSERT_FALSE(all.truncated);
  ASSERT_TRUE(few.truncated);
  using roofline::CollectiveLaw;
  for (CollectiveLaw PlanLaws::*law : {&PlanLaws::weights_gather, &PlanLaws::tensor_gather, &PlanLaws::expert_exchange,
                                       &PlanLaws::expert_gradient_reduce}) {
    const auto best = [&](const MappingList& list) {
      double seconds = 1;
      for (const MappedAxes& mapped : list.mappings) {
        const PlanLaws laws = *LawsOf(slice, mapped.groups, plan, false);
        seconds = std::min(seconds, (laws.*law).pipelined_seconds_per_byte);
      }
      return seconds;
    };
    EXPECT_EQ(best(few), best(all));
  }
}

TEST(EnumerateMappings, IdleChipsLeaveABlock) {
  const Slice slice = Torus({kRing4, kRing4, kRing4});
  EXPECT_TRUE(EnumerateMappings(slice, Degrees({{kFsdp, 16}, {kTensor, 2}}), {}, false).mappings.empty());
  const AxisDegrees degrees = Degrees({{kFsdp, 16}, {kTensor, 2}});
  const MappingList list = EnumerateMappings(slice, degrees, AxisDegrees{}, true);
  ASSERT_FALSE(list.mappings.empty());
  for (const MappedAxes& mapped : list.mappings) {
    ExpectBijective(mapped, degrees);
    // 32 of 64 chips: 4 x 4 x 2 whichever axis is halved, and the half is a line.
    EXPECT_EQ(std::count_if(mapped.block.begin(), mapped.block.end(), [](const TorusAxis& axis) { return axis.wraps; }),
              2);
  }
  // 3 of 4 chips of an axis, 7 of none.
  EXPECT_FALSE(EnumerateMappings(slice, Degrees({{kTensor, 3}}), {}, true).mappings.empty());
  EXPECT_TRUE(EnumerateMappings(slice, Degrees({{kTensor, 7}}), {}, true).mappings.empty());
  EXPECT_TRUE(EnumerateMappings(slice, Degrees({{kTensor, 128}}), {}, true).mappings.empty());
}

TEST(EnumerateMappings, SwitchedOrdersThatMeetDomainsAlikeAppearOnce) {
  const Slice slice = Gpus(64, 8);
  // Members per domain: tensor 8 or 1 or in between with data.
  const AxisDegrees degrees = Degrees({{kTensor, 4}, {kContext, 2}, {kFsdp, 8}});
  const MappingList list = EnumerateMappings(slice, degrees, AxisDegrees{}, false);
  for (const MappedAxes& mapped : list.mappings) ExpectBijective(mapped, degrees);
  // Of 6 orders these differ: tensor and context inside in either order, once; fsdp inside fills the domain, once;
  // tensor then fsdp; context then fsdp.
  EXPECT_EQ(list.mappings.size(), 4u);
  EXPECT_EQ(TextOf(list.mappings[0])[0], "64l: tensor4 context2 fsdp8 ");
}

TEST(EnumerateMappings, SwitchedIdleGpus) {
  const Slice slice = Gpus(144, 72);
  const AxisDegrees degrees = Degrees({{kTensor, 8}, {kFsdp, 16}});
  const MappingList list = EnumerateMappings(slice, degrees, AxisDegrees{}, true);
  std::set<int32_t> domain_sizes;
  for (const MappedAxes& mapped : list.mappings) {
    ExpectBijective(mapped, degrees);
    domain_sizes.insert(mapped.domain_size);
  }
  // 128 GPUs: 72 + 56, or 64 of each domain.
  EXPECT_EQ(domain_sizes, (std::set<int32_t>{64, 72}));
}

TEST(BuildMappingSet, KeepsWhatNothingBeats) {
  const Slice slice = Torus({kRing16, kRing16, kRing16});
  const Parallelism plan = Plan({{kFsdp, 512}, {kContext, 2}, {kTensor, 4}}, {{kData, 1}});
  const absl::StatusOr<MappingSet> set = BuildMappingSet(slice, plan);
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_EQ(set->mappings.size(), set->laws.size());
  EXPECT_LT(set->mappings.size(), set->enumerated_count);
  // For any traffic, no placement is faster than the best one kept.
  const MappingList all = EnumerateMappings(slice, plan.ici, plan.dcn, false);
  const double weights[][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}, {1, 10, 3}, {10, 1, 5}, {3, 5, 100}};
  for (const auto& weight : weights) {
    const auto seconds = [&](const PlanLaws& laws) {
      return weight[0] * laws.weights_gather.pipelined_seconds_per_byte +
             weight[1] * laws.tensor_gather.pipelined_seconds_per_byte +
             weight[2] * laws.context_gather.pipelined_seconds_per_byte;
    };
    double best_of_all = 1;
    for (const MappedAxes& mapped : all.mappings) {
      best_of_all = std::min(best_of_all, seconds(*LawsOf(slice, mapped.groups, plan, false)));
    }
    double best_kept = 1;
    for (const PlanLaws& laws : set->laws) best_kept = std::min(best_kept, seconds(laws));
    EXPECT_EQ(best_kept, best_of_all);
  }
}

TEST(BuildMappingSet, SpansSlices) {
  Slice slice = Torus({kRing4, kRing4});
  slice.slice_count = 4;
  const absl::StatusOr<MappingSet> set = BuildMappingSet(slice, Plan({{kFsdp, 16}}, {{kData, 2}, {kFsdp, 2}}));
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->mappings[0].groups[static_cast<size_t>(kData)].slice_count, 2);
  EXPECT_EQ(set->mappings[0].groups[static_cast<size_t>(kFsdp)].Size(), 32);
  EXPECT_GT(set->laws[0].weights_gather.dcn_seconds_per_byte, 0);
  EXPECT_EQ(set->laws[0].dense_gradient_reduce.ici_seconds_per_byte, 0);
}

TEST(BuildMappingSet, PartOfARingIsALine) {
  const Slice slice = Torus({kRing8});
  const absl::StatusOr<MappingSet> part = BuildMappingSet(slice, Plan({{kTensor, 6}}));
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_DOUBLE_EQ(part->laws[0].tensor_gather.ici_seconds_per_byte, 5.0 / 6 / 90e9);
  EXPECT_EQ(BuildMappingSet(slice, Plan({{kTensor, 6}}), false).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(BuildMappingSet, UsesAGivenMappingAlone) {
  const Slice slice = Torus({kRing16});
  Parallelism plan = Plan({{kTensor, 4}, {kFsdp, 4}});
  plan.mapping = {{kTensor, 0, 4, 4}, {kFsdp, 0, 4, 1}};
  const absl::StatusOr<MappingSet> set = BuildMappingSet(slice, plan);
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_EQ(set->mappings.size(), 1u);
  EXPECT_EQ(TextOf(set->mappings[0])[0], "16r: fsdp4 tensor4 ");
  const std::vector<AxisAssignment> listed = AssignmentsOf(set->mappings[0]);
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].logical, kFsdp);
  EXPECT_EQ(listed[1].stride, 4);
  plan.mapping[1].stride = 2;
  EXPECT_THAT(std::string(BuildMappingSet(slice, plan).status().message()), HasSubstr("parallelism.mapping[1].stride"));
}

TEST(BuildMappingSet, NamesAMissingFigure) {
  Slice slice = Torus({kRing4});
  slice.accelerator.ici_link_bytes_per_second.reset();
  const absl::Status status = BuildMappingSet(slice, Plan({{kTensor, 4}})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ici_link_bytes_per_second"));
}

// Degrees that multiply past 2^63, none of them too large alone, and a slice without axes.
TEST(BuildMappingSet, RefusesWhatOverflowsOrIsEmpty) {
  const Slice huge = Torus({{1 << 20, true}});
  const int32_t most = 1 << 20;
  EXPECT_FALSE(BuildMappingSet(huge, Plan({{kData, most}, {kFsdp, most}, {kTensor, most}, {kContext, most}})).ok());
  Slice bare;
  EXPECT_TRUE(BuildMappingSet(bare, Plan({})).ok());
  EXPECT_FALSE(BuildMappingSet(bare, Plan({{kTensor, 2}})).ok());
}

std::vector<Violation> PlacementViolations(const Slice& slice, const Parallelism& plan, bool allow_idle_chips) {
  std::vector<Violation> violations;
  CheckPlacement(slice, plan, allow_idle_chips, violations);
  return violations;
}

TEST(CheckPlacement, SaysWhatCannotBePlaced) {
  struct Case {
    const char* name;
    Slice slice;
    Parallelism plan;
    bool allow_idle_chips;
    const char* field;
    const char* description;
  };
  const Slice square = Torus({kLine4, kLine4});
  const Case cases[] = {
      {"tensor_3", square, Plan({{kTensor, 3}}), false, "parallelism.ici.tensor",
       "no way to place tensor 3 on axes 4, 4; 2 or 4 can be placed"},
      {"context_32", square, Plan({{kContext, 32}}), false, "parallelism.ici.context",
       "no way to place context 32 on axes 4, 4; 16 can be placed"},
      {"prime_idle", square, Plan({{kTensor, 7}}), true, "parallelism.ici.tensor",
       "no way to place tensor 7 on axes 4, 4; 6 or 8 can be placed"},
      {"joint_idle", square, Plan({{kTensor, 4}, {kData, 2}, {kFsdp, 3}}), true, "parallelism.ici",
       "the degrees multiply to more than 16, the slice has 16 chips"},
      {"no_block", Torus({kLine4, {5, false}}), Plan({{kTensor, 3}, {kData, 6}}), true, "parallelism.ici",
       "no way to place data 6, tensor 3 on axes 4, 5: no block of them has 18 chips"},
      {"too_few", square, Plan({{kTensor, 2}}), false, "parallelism.ici",
       "the degrees multiply to 2, the slice has 16 chips"},
      {"gpus", Gpus(16, 8), Plan({{kTensor, 3}}), false, "parallelism.ici.tensor",
       "no way to place tensor 3 on 16 GPUs; 2 or 4 can be placed"},
      {"zero", square, Plan({{kTensor, 0}}), false, "parallelism.ici.tensor", "must be at least 1"},
  };
  for (const Case& c : cases) {
    const std::vector<Violation> violations = PlacementViolations(c.slice, c.plan, c.allow_idle_chips);
    ASSERT_EQ(violations.size(), 1u) << c.name;
    EXPECT_EQ(violations[0].field, c.field) << c.name;
    EXPECT_EQ(violations[0].description, c.description) << c.name;
    EXPECT_FALSE(BuildMappingSet(c.slice, c.plan, c.allow_idle_chips).ok()) << c.name;
  }
  EXPECT_TRUE(PlacementViolations(square, Plan({{kTensor, 3}}), true).empty());
  EXPECT_EQ(PlacementViolations(square, Plan({{kTensor, 3}, {kFsdp, 5}}), false).size(), 2u);
}

// What CheckPlacement accepts has a placement, what it refuses has none.
TEST(CheckPlacement, AgreesWithTheEnumeration) {
  for (const Slice& slice : {Torus({kLine4, {6, false}}), Torus({kRing4, kLine2, {3, true}}), Gpus(24, 8)}) {
    for (bool allow_idle_chips : {false, true}) {
      for (int32_t tensor = 1; tensor <= 24; ++tensor) {
        for (int32_t fsdp = 1; fsdp <= 24; ++fsdp) {
          const Parallelism plan = Plan({{kTensor, tensor}, {kFsdp, fsdp}});
          const bool placed = !EnumerateMappings(slice, plan.ici, plan.dcn, allow_idle_chips).mappings.empty();
          EXPECT_EQ(PlacementViolations(slice, plan, allow_idle_chips).empty(), placed)
              << "tensor " << tensor << ", fsdp " << fsdp << ", idle " << allow_idle_chips;
        }
      }
    }
  }
}

TEST(CheckMapping, FindsEveryMistake) {
  struct Case {
    const char* name;
    std::vector<AxisAssignment> mapping;
    bool allow_idle_chips;
    std::vector<const char*> fields;
  };
  const Slice slice = Torus({kRing4, kRing16});
  const Parallelism degrees = Plan({{kTensor, 4}, {kFsdp, 16}});
  const Case cases[] = {
      {"right", {{kTensor, 0, 4, 1}, {kFsdp, 1, 16, 1}}, false, {}},
      {"right_split", {{kTensor, 0, 2, 1}, {kFsdp, 0, 2, 2}, {kTensor, 1, 2, 1}, {kFsdp, 1, 8, 2}}, false, {}},
      {"right_adjacent", {{kTensor, 0, 4, 1}, {kFsdp, 1, 4, 1}, {kFsdp, 1, 4, 4}}, false, {}},
      {"right_with_ones", {{kTensor, 0, 4, 1}, {kFsdp, 1, 16, 1}, {kData, 1, 1, 1}}, false, {}},
      {"axis",
       {{kTensor, 2, 4, 1}, {kFsdp, -1, 16, 1}},
       false,
       {"parallelism.mapping[0].physical_axis", "parallelism.mapping[1].physical_axis"}},
      {"factor",
       {{kTensor, 0, 3, 1}, {kFsdp, 1, 0, 1}},
       false,
       {"parallelism.mapping[0].factor", "parallelism.mapping[1].factor"}},
      {"stride", {{kTensor, 0, 4, 0}}, false, {"parallelism.mapping[0].stride"}},
      {"too_long", {{kTensor, 0, 4, 2}}, false, {"parallelism.mapping[0].factor"}},
      {"too_long_idle", {{kTensor, 0, 8, 1}}, true, {"parallelism.mapping[0].factor"}},
      {"overlap", {{kTensor, 0, 4, 1}, {kFsdp, 0, 2, 2}, {kFsdp, 1, 16, 1}}, false, {"parallelism.mapping[1].stride"}},
      {"same_twice",
       {{kTensor, 0, 4, 1}, {kTensor, 0, 4, 1}, {kFsdp, 1, 16, 1}},
       false,
       {"parallelism.mapping[1].stride"}},
      {"gap", {{kTensor, 0, 2, 2}, {kFsdp, 1, 16, 1}}, false, {"parallelism.mapping[0].stride"}},
      {"incomplete", {{kTensor, 0, 2, 1}, {kFsdp, 1, 16, 1}}, false, {"parallelism.mapping"}},
      {"wrong_degree", {{kTensor, 1, 16, 1}, {kFsdp, 0, 4, 1}}, false, {"parallelism.mapping", "parallelism.mapping"}},
  };
  for (const Case& c : cases) {
    Parallelism plan = degrees;
    plan.mapping = c.mapping;
    std::vector<Violation> violations;
    CheckMapping(slice, plan, c.allow_idle_chips, violations);
    std::vector<std::string> fields;
    for (const Violation& violation : violations) {
      fields.push_back(violation.field);
      EXPECT_FALSE(violation.description.empty());
      EXPECT_FALSE(violation.reason.empty());
    }
    EXPECT_EQ(fields, std::vector<std::string>(c.fields.begin(), c.fields.end())) << c.name;
    if (c.fields.empty()) ExpectBijective(MappingOf(slice, plan), plan.ici);
  }
}

TEST(MappingCache, GivesTheSameSetAgain) {
  MappingCache cache;
  const Slice slice = Torus({kRing4, kRing8});
  const Parallelism plan = Plan({{kFsdp, 8}, {kTensor, 4}});
  const auto first = cache.Find(slice, plan);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*cache.Find(slice, plan), *first);
  EXPECT_EQ(cache.size(), (*first)->mappings.size());
  EXPECT_EQ((*first)->laws.size(), BuildMappingSet(slice, plan)->laws.size());
}

// Whatever a law depends on is part of what is looked up.
TEST(MappingCache, TellsQuestionsApart) {
  MappingCache cache;
  Slice slice = Torus({kRing4, kRing8});
  slice.slice_count = 2;
  const Parallelism plan = Plan({{kFsdp, 8}, {kTensor, 4}}, {{kData, 2}});
  std::vector<std::pair<Slice, Parallelism>> questions = {{slice, plan}};
  const auto vary = [&](auto change) {
    questions.emplace_back(slice, plan);
    change(questions.back().first, questions.back().second);
  };
  vary([](Slice& s, Parallelism&) { s.axes[0].wraps = false; });
  vary([](Slice& s, Parallelism&) { s.twisted = true; });
  vary([](Slice& s, Parallelism&) { s.accelerator.ici_link_bytes_per_second = 45e9; });
  vary([](Slice& s, Parallelism&) { s.accelerator.ici_hop_seconds = 0.0; });
  vary([](Slice& s, Parallelism&) { s.accelerator.ici_hop_seconds = 2e-6; });
  vary([](Slice& s, Parallelism&) { s.accelerator.dcn_bytes_per_second = 1e9; });
  vary([](Slice& s, Parallelism&) { s.accelerator.in_network_reduction = true; });
  vary([](Slice& s, Parallelism&) { std::swap(s.axes[0], s.axes[1]); });
  vary([](Slice&, Parallelism& p) { p.data_zero_stage = ZeroStage::k3; });
  vary([](Slice&, Parallelism& p) { std::swap(p.ici[kFsdp], p.ici[kContext]); });
  vary([](Slice&, Parallelism& p) { std::swap(p.dcn[kData], p.dcn[kPipeline]); });
  EXPECT_NE(*cache.Find(slice, plan, false), *cache.Find(slice, plan, true));
  EXPECT_NE(*cache.Find(slice, plan, true, 1), *cache.Find(slice, plan, true));
  EXPECT_EQ((*cache.Find(slice, plan, true, 1))->mappings.size(), 1u);
  std::set<const MappingSet*> sets;
  for (const auto& [s, p] : questions) {
    const auto found = cache.Find(s, p);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(sets.insert(found->get()).second);
  }
  // What no law depends on is not.
  Slice renamed = slice;
  renamed.accelerator.name = "another";
  renamed.accelerator.hbm_bytes = 1;
  EXPECT_EQ(*cache.Find(renamed, plan), *cache.Find(slice, plan));
  // A given mapping is answered, but not remembered.
  const size_t size = cache.size();
  Parallelism given = plan;
  given.mapping = {{kTensor, 0, 4, 1}, {kFsdp, 1, 8, 1}};
  ASSERT_TRUE(cache.Find(slice, given).ok());
  EXPECT_EQ(cache.size(), size);
}

TEST(MappingCache, ForgetsBeyondItsCapacity) {
  MappingCache cache(64);
  const Slice slice = Torus({kRing16, kRing16});
  for (int round = 0; round < 3; ++round) {
    for (int32_t tensor = 1; tensor <= 256; tensor *= 2) {
      for (int32_t data = 1; data <= 256 / tensor; data *= 2) {
        const auto found = cache.Find(slice, Plan({{kTensor, tensor}, {kData, data}, {kFsdp, 256 / tensor / data}}));
        ASSERT_TRUE(found.ok());
        EXPECT_FALSE((*found)->mappings.empty());
      }
    }
  }
  // 16 shards, each of which may exceed its share by one set.
  EXPECT_LE(cache.size(), 64u + 16 * kMaxMappings);
}

TEST(MappingCache, ServesManyThreads) {
  MappingCache cache(256);
  const Slice slice = Torus({kRing4, kRing8, kRing16});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, &slice] {
      for (int round = 0; round < 5; ++round) {
        for (int32_t tensor = 1; tensor <= 64; tensor *= 2) {
          const Parallelism plan = Plan({{kTensor, tensor}, {kFsdp, 512 / tensor}});
          const auto found = cache.Find(slice, plan);
          ASSERT_TRUE(found.ok());
          for (const MappedAxes& mapped : (*found)->mappings) {
            ASSERT_EQ(mapped.groups[static_cast<size_t>(kTensor)].SizeInSlice(), tensor);
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace sliceplan::planner
