#include "server/catalog/slice_resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "server/catalog/catalog_store.h"

namespace sliceplan::catalog {
namespace {

using hardware::Violation;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const Catalog& BuiltIn() {
  static const auto& catalog = *new absl::StatusOr<std::shared_ptr<const Catalog>>(BuiltInCatalog());
  return **catalog;
}

SliceQuery Topology(absl::string_view accelerator, absl::string_view topology) {
  SliceQuery query;
  query.accelerator = accelerator;
  query.topology = topology;
  return query;
}
SliceQuery Type(absl::string_view type, absl::string_view accelerator = "") {
  SliceQuery query;
  query.accelerator = accelerator;
  query.accelerator_type = type;
  return query;
}
SliceQuery Chips(absl::string_view accelerator, int32_t chip_count) {
  SliceQuery query;
  query.accelerator = accelerator;
  query.chip_count = chip_count;
  return query;
}

ResolvedSlice Resolve(const SliceQuery& query) {
  SliceResolution resolution = ResolveSlice(BuiltIn(), query);
  for (const Violation& violation : resolution.violations)
    ADD_FAILURE() << violation.field << ": " << violation.description;
  return resolution.resolved.value_or(ResolvedSlice());
}
std::vector<Violation> Violations(const SliceQuery& query) {
  SliceResolution resolution = ResolveSlice(BuiltIn(), query);
  EXPECT_FALSE(resolution.resolved.has_value());
  return resolution.violations;
}
Violation OneViolation(const SliceQuery& query) {
  const std::vector<Violation> violations = Violations(query);
  EXPECT_EQ(violations.size(), 1u);
  return violations.empty() ? Violation() : violations[0];
}
std::string Notes(const ResolvedSlice& resolved) { return absl::StrJoin(resolved.notes, "\n"); }
std::string Wraps(const hardware::Slice& slice) {
  return absl::StrJoin(slice.axes, "",
                       [](std::string* out, const hardware::TorusAxis& axis) { out->append(axis.wraps ? "1" : "0"); });
}

struct ShapeCase {
  const char* name;
  SliceQuery query;
  const char* accelerator;
  const char* topology;
  const char* wraps;
  int64_t chips;
  int32_t hosts;
};

class ResolveTest : public testing::TestWithParam<ShapeCase> {};

TEST_P(ResolveTest, GivesTheSlice) {
  const ResolvedSlice resolved = Resolve(GetParam().query);
  const hardware::Slice& slice = resolved.slice;
  EXPECT_EQ(slice.accelerator_id, GetParam().accelerator);
  EXPECT_EQ(slice.topology, GetParam().topology);
  EXPECT_EQ(Wraps(slice), GetParam().wraps);
  EXPECT_EQ(slice.chip_count, GetParam().chips);
  EXPECT_EQ(slice.host_count, GetParam().hosts);
  int64_t product = 1;
  for (const hardware::TorusAxis& axis : slice.axes) product *= axis.size;
  EXPECT_EQ(product, slice.chip_count);
}

// Names: Google's and XPK's conventions (the number counts TensorCores for v2 to v5p and TPU7x, chips for v5e and v6e).
INSTANTIATE_TEST_SUITE_P(
    Names, ResolveTest,
    testing::Values(ShapeCase{"v5p_256_counts_cores", Type("v5p-256"), "tpu-v5p", "4x4x8", "111", 128, 32},
                    ShapeCase{"v5p_8", Type("v5p-8"), "tpu-v5p", "2x2x1", "000", 4, 1},
                    ShapeCase{"v5p_8192", Type("v5p-8192"), "tpu-v5p", "16x16x16", "111", 4096, 1024},
                    ShapeCase{"v5litepod_16_counts_chips", Type("v5litepod-16"), "tpu-v5e", "4x4", "00", 16, 4},
                    ShapeCase{"v5e_16", Type("v5e-16"), "tpu-v5e", "4x4", "00", 16, 4},
                    ShapeCase{"v6e_8", Type("v6e-8"), "tpu-v6e", "2x4", "00", 8, 1},
                    ShapeCase{"v6e_256", Type("v6e-256"), "tpu-v6e", "16x16", "11", 256, 64},
                    ShapeCase{"tpu7x_128", Type("tpu7x-128"), "tpu-7x", "4x4x4", "111", 64, 16},
                    ShapeCase{"v4_8", Type("v4-8"), "tpu-v4", "2x2x1", "000", 4, 1},
                    ShapeCase{"v4_8192_is_not_listed_by_name", Type("v4-8192"), "tpu-v4", "16x16x16", "111", 4096,
                              1024},
                    ShapeCase{"v3_8", Type("v3-8"), "tpu-v3", "2x2", "00", 4, 1},
                    ShapeCase{"capitals", Type("V5P-256"), "tpu-v5p", "4x4x8", "111", 128, 32},
                    ShapeCase{"skypilot", Type("tpu-v6e-8"), "tpu-v6e", "2x4", "00", 8, 1},
                    ShapeCase{"xpk_topology_form", Type("v5p-4x4x16"), "tpu-v5p", "4x4x16", "111", 256, 64},
                    ShapeCase{"agrees_with_accelerator", Type("v5p-256", "v5p"), "tpu-v5p", "4x4x8", "111", 128, 32},
                    ShapeCase{"gpus", Type("h100-16"), "nvidia-h100-sxm", "16", "0", 16, 2}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Shapes, ResolveTest,
    testing::Values(ShapeCase{"listed", Topology("tpu-v5p", "8x8x16"), "tpu-v5p", "8x8x16", "111", 1024, 256},
                    ShapeCase{"by_alias", Topology("tpu-v4p", "4x4x4"), "tpu-v4", "4x4x4", "111", 64, 16},
                    ShapeCase{"order_2d", Topology("tpu-v6e", "4x2"), "tpu-v6e", "2x4", "00", 8, 1},
                    ShapeCase{"order_3d", Topology("tpu-v5p", "16x8x8"), "tpu-v5p", "8x8x16", "111", 1024, 256},
                    ShapeCase{"ones_last", Topology("tpu-v5p", "1x2x2"), "tpu-v5p", "2x2x1", "000", 4, 1},
                    ShapeCase{"long_axis_wraps", Topology("tpu-v5e", "16x8"), "tpu-v5e", "8x16", "01", 128, 32},
                    ShapeCase{"unlisted", Topology("tpu-v5p", "4x8x16"), "tpu-v5p", "4x8x16", "111", 512, 128},
                    ShapeCase{"full_pod_of_v3", Topology("tpu-v3", "32x32"), "tpu-v3", "32x32", "11", 1024, 256},
                    ShapeCase{"whole_pod", Topology("tpu-v5p", "16x20x28"), "tpu-v5p", "16x20x28", "111", 8960, 2240},
                    ShapeCase{"one_chip_slice", Topology("tpu-v6e", "1x1"), "tpu-v6e", "1x1", "00", 1, 1},
                    ShapeCase{"gpu_count_as_topology", Topology("h100", "64"), "nvidia-h100-sxm", "64", "0", 64, 8}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Counts, ResolveTest,
    testing::Values(ShapeCase{"most_cubic", Chips("tpu-v5p", 512), "tpu-v5p", "8x8x8", "111", 512, 128},
                    ShapeCase{"smallest", Chips("tpu-v5p", 4), "tpu-v5p", "2x2x1", "000", 4, 1},
                    ShapeCase{"square", Chips("tpu-v5e", 16), "tpu-v5e", "4x4", "00", 16, 4},
                    ShapeCase{"unlisted_count", Chips("tpu-v5p", 64 * 11), "tpu-v5p", "4x4x44", "111", 704, 176},
                    ShapeCase{"part_of_a_node", Chips("h100", 4), "nvidia-h100-sxm", "4", "0", 4, 1},
                    ShapeCase{"rack", Chips("gb200", 72), "nvidia-gb200-nvl72", "72", "0", 72, 18},
                    ShapeCase{"one_gpu", Chips("l4", 1), "nvidia-l4", "1", "0", 1, 1}),
    [](const auto& info) { return info.param.name; });

TEST(ResolveSliceTest, CarriesNamesThatSchedulersNeed) {
  const ResolvedSlice resolved = Resolve(Topology("tpu-v5p", "4x4x8"));
  EXPECT_EQ(resolved.slice.accelerator_type, "v5p-256");
  EXPECT_EQ(resolved.slice.machine_type, "ct5p-hightpu-4t");
  EXPECT_EQ(resolved.slice.chips_per_host, 4);
  EXPECT_TRUE(resolved.slice.listed);
  EXPECT_TRUE(resolved.slice.schedulable);
  ASSERT_NE(resolved.record(), nullptr);
  EXPECT_EQ(resolved.record()->gke_tpu_topology(), "4x4x8");
  EXPECT_EQ(resolved.slice.accelerator.bf16_flops_per_second, 459e12);
}

TEST(ResolveSliceTest, NotesWhatWasChosen) {
  EXPECT_THAT(Notes(Resolve(Type("v5p-256"))), HasSubstr("The number in v5p-256 counts TensorCores: 4x4x8, 128 chips"));
  EXPECT_THAT(Notes(Resolve(Topology("tpu-v6e", "4x2"))), HasSubstr("4x2 is read as 2x4"));
  EXPECT_THAT(Notes(Resolve(Chips("tpu-v5p", 512))), HasSubstr("512 chips: planned as 8x8x8"));
  EXPECT_THAT(Notes(Resolve(Topology("tpu-v5p", "4x8x16"))),
              HasSubstr("4x8x16 is not among the listed slices of tpu-v5p"));
  EXPECT_THAT(Notes(Resolve(Topology("tpu-v3", "4x4"))), HasSubstr("No source says which axes of 4x4 close"));
  EXPECT_THAT(Notes(Resolve(Topology("tpu-v5p", "4x4x8"))), HasSubstr("Planned untwisted"));
  EXPECT_THAT(Resolve(Topology("tpu-v5p", "8x8x8")).notes, IsEmpty());
}

TEST(ResolveSliceTest, AnUnlistedShapeHasADerivedRecord) {
  const ResolvedSlice resolved = Resolve(Topology("tpu-v5p", "4x8x16"));
  EXPECT_FALSE(resolved.slice.listed);
  EXPECT_EQ(resolved.listed, nullptr);
  ASSERT_NE(resolved.record(), nullptr);
  EXPECT_EQ(resolved.record()->topology(), "4x8x16");
}

TEST(ResolveSliceTest, AShapeThatIsNotSoldAsOneSliceSaysSo) {
  const ResolvedSlice resolved = Resolve(Topology("tpu-v5p", "16x20x28"));
  EXPECT_FALSE(resolved.slice.schedulable);
  EXPECT_TRUE(resolved.slice.listed);
  EXPECT_THAT(Notes(resolved),
              HasSubstr("16x20x28 (8960 chips) is not sold as one slice; the largest that is: 16x16x24."));
}

TEST(ResolveSliceTest, OneShapeOnSeveralHosts) {
  SliceQuery query = Topology("tpu-v6e", "2x4");
  EXPECT_EQ(Resolve(query).slice.machine_type, "ct6e-standard-8t");
  EXPECT_THAT(Notes(Resolve(query)), HasSubstr("ct6e-standard-8t (1 host), ct6e-standard-4t (2 hosts)"));
  query.machine_type = "CT6E-standard-4t";
  EXPECT_EQ(Resolve(query).slice.host_count, 2);
  EXPECT_THAT(Resolve(query).notes, IsEmpty());
  query.machine_type = "ct5lp-hightpu-4t";
  const Violation violation = OneViolation(query);
  EXPECT_EQ(violation.field, "machine_type");
  EXPECT_EQ(violation.kind, Violation::Kind::kNotFound);
  EXPECT_THAT(violation.description, HasSubstr("ct6e-standard-4t (2 hosts)"));
}

struct BadCase {
  const char* name;
  SliceQuery query;
  const char* field;
  const char* reason;
  Violation::Kind kind;
  const char* says;
};

class RefusedTest : public testing::TestWithParam<BadCase> {};

TEST_P(RefusedTest, WithFieldReasonAndWhatWouldBeRight) {
  const Violation violation = OneViolation(GetParam().query);
  EXPECT_EQ(violation.field, GetParam().field);
  EXPECT_EQ(violation.reason, GetParam().reason);
  EXPECT_EQ(violation.kind, GetParam().kind);
  EXPECT_THAT(violation.description, HasSubstr(GetParam().says));
}

constexpr Violation::Kind kInvalid = Violation::Kind::kInvalid;
constexpr Violation::Kind kNotFound = Violation::Kind::kNotFound;

SliceQuery WithSlices(SliceQuery query, int32_t slice_count) {
  query.slice_count = slice_count;
  return query;
}
SliceQuery Twisted(SliceQuery query) {
  query.twisted = true;
  return query;
}
SliceQuery Hosts(SliceQuery query, absl::string_view machine_type) {
  query.machine_type = machine_type;
  return query;
}
SliceQuery TwoShapes() {
  SliceQuery query = Topology("tpu-v5p", "4x4x8");
  query.chip_count = 128;
  return query;
}

INSTANTIATE_TEST_SUITE_P(
    Queries, RefusedTest,
    testing::Values(
        BadCase{"nothing", SliceQuery(), "accelerator", "REQUIRED", kInvalid, "accelerator is required"},
        BadCase{"no_shape", Topology("tpu-v6e", ""), "topology", "REQUIRED", kInvalid, "Legal are 1x1, 2x2, 2x4"},
        BadCase{"unknown_chip", Topology("tpu-v9", "2x2"), "accelerator", "UNKNOWN_ACCELERATOR", kNotFound,
                "did you mean"},
        BadCase{"ambiguous_chip", Chips("a100", 8), "accelerator", "AMBIGUOUS_ACCELERATOR", kInvalid,
                "nvidia-a100-40gb"},
        BadCase{"two_shapes", TwoShapes(), "topology", "CONFLICTING_FIELDS", kInvalid, "exclude each other"},
        BadCase{"malformed", Topology("tpu-v5p", "4by4"), "topology", "MALFORMED_TOPOLOGY", kInvalid, "8x8x16"},
        BadCase{"not_a_slice_2d", Topology("tpu-v5e", "2x8"), "topology", "ILLEGAL_TOPOLOGY", kInvalid,
                "Legal are 1x1"},
        BadCase{"not_a_slice_3d", Topology("tpu-v5p", "4x4x6"), "topology", "ILLEGAL_TOPOLOGY", kInvalid,
                "multiples of 4"},
        BadCase{"too_few_dimensions", Topology("tpu-v5p", "4x4"), "topology", "ILLEGAL_TOPOLOGY", kInvalid, "2x2x1"},
        BadCase{"too_large", Topology("tpu-v4", "16x16x20"), "topology", "ILLEGAL_TOPOLOGY", kInvalid,
                "at most 4096 chips"},
        BadCase{"count", Chips("tpu-v5p", 100), "chip_count", "ILLEGAL_CHIP_COUNT", kInvalid,
                "nearest counts are 64 and 128"},
        BadCase{"count_of_one", Chips("tpu-v5p", 1), "chip_count", "ILLEGAL_CHIP_COUNT", kInvalid,
                "nearest count is 4"},
        BadCase{"count_zero", Chips("tpu-v5p", 0), "chip_count", "OUT_OF_RANGE", kInvalid, "between 1 and"},
        BadCase{"count_huge", Chips("h100", (1 << 20) + 1), "chip_count", "OUT_OF_RANGE", kInvalid, "between 1 and"},
        BadCase{"gpus_not_in_whole_domains", Chips("h100", 12), "chip_count", "ILLEGAL_CHIP_COUNT", kInvalid,
                "8 and 16"},
        BadCase{"gpus_have_no_torus", Topology("h100", "8x8"), "topology", "ILLEGAL_TOPOLOGY", kInvalid, "chip_count"},
        BadCase{"type_conflict", Type("v5p-256", "tpu-v6e"), "accelerator_type", "CONFLICTING_FIELDS", kInvalid,
                "tpu-v5p"},
        BadCase{"type_unknown", Type("v5x-256"), "accelerator_type", "UNKNOWN_ACCELERATOR_TYPE", kNotFound,
                "did you mean"},
        BadCase{"type_is_a_chip", Type("tpu-v5p"), "accelerator_type", "UNKNOWN_ACCELERATOR_TYPE", kNotFound,
                "belongs in accelerator"},
        BadCase{"type_odd_cores", Type("v5p-7"), "accelerator_type", "ILLEGAL_CHIP_COUNT", kInvalid,
                "not a multiple of 2"},
        BadCase{"type_no_such_count", Type("v5litepod-3"), "accelerator_type", "ILLEGAL_CHIP_COUNT", kInvalid,
                "1 and 4"},
        BadCase{"type_of_ambiguous_chip", Type("a100-8"), "accelerator_type", "AMBIGUOUS_ACCELERATOR", kInvalid,
                "nvidia-a100-80gb"},
        BadCase{"announced_without_slices", Chips("tpu-8t", 4), "chip_count", "ILLEGAL_CHIP_COUNT", kInvalid,
                "No slice of tpu-8t is public"},
        BadCase{"no_slices_at_all", WithSlices(Topology("tpu-v5p", "4x4x8"), 0), "slice_count", "OUT_OF_RANGE",
                kInvalid, "between 1 and"},
        BadCase{"too_many_slices", WithSlices(Topology("tpu-v5p", "4x4x8"), 65537), "slice_count", "OUT_OF_RANGE",
                kInvalid, "65536"},
        BadCase{"too_many_chips", WithSlices(Topology("tpu-v5p", "16x16x16"), 65536), "slice_count", "OUT_OF_RANGE",
                kInvalid, "more than"},
        BadCase{"twist_not_offered", Twisted(Topology("tpu-v5p", "8x8x8")), "twisted", "TWIST_NOT_OFFERED", kInvalid,
                "4x4x8, 4x8x8"},
        BadCase{"twist_of_2d", Twisted(Topology("tpu-v6e", "8x16")), "twisted", "TWIST_NOT_OFFERED", kInvalid,
                "No shape"},
        BadCase{"twist_of_gpus", Twisted(Chips("h100", 8)), "twisted", "TWIST_NOT_OFFERED", kInvalid, "torus"},
        BadCase{"host_of_a_count", Hosts(Chips("tpu-v6e", 8), "ct5p"), "machine_type", "UNKNOWN_MACHINE_TYPE",
                kNotFound, "2x4 does not come on"},
        BadCase{"gpu_machine", Hosts(Chips("h100", 8), "a2-highgpu-8g"), "machine_type", "UNKNOWN_MACHINE_TYPE",
                kNotFound, "a3-highgpu-8g"},
        BadCase{"part_of_a_machine", Hosts(Chips("h100", 4), "a3-highgpu-8g"), "machine_type", "ILLEGAL_CHIP_COUNT",
                kInvalid, "has 8 GPUs"}),
    [](const auto& info) { return info.param.name; });

TEST(ResolveSliceTest, ReportsEverythingAtOnce) {
  SliceQuery query = Twisted(WithSlices(Topology("tpu-v5p", "4x4x6"), -1));
  query.override_fields = [](hardware::AcceleratorSpec& spec) { spec.hbm_bytes_per_second = -1; };
  std::vector<std::string> fields;
  for (const Violation& violation : Violations(query)) fields.push_back(violation.field);
  EXPECT_THAT(fields, UnorderedElementsAre("override.hbm_bytes_per_second", "topology", "slice_count"));
}

TEST(ResolveSliceTest, TwistedWhereOffered) {
  EXPECT_TRUE(Resolve(Twisted(Topology("tpu-v5p", "4x4x8"))).slice.twisted);
  EXPECT_TRUE(Resolve(Twisted(Topology("tpu-v4", "8x8x16"))).slice.twisted);  // by its rule
  EXPECT_FALSE(Resolve(Topology("tpu-v5p", "4x4x8")).slice.twisted);
}

TEST(ResolveSliceTest, OverridesChangeSingleFields) {
  SliceQuery query = Topology("tpu-v6e", "4x4");
  query.override_fields = [](hardware::AcceleratorSpec& spec) {
    spec.hbm_bytes_per_second = 2 * *spec.hbm_bytes_per_second;
  };
  const ResolvedSlice resolved = Resolve(query);
  EXPECT_EQ(resolved.slice.accelerator.hbm_bytes_per_second, 2 * 1638e9);
  EXPECT_EQ(resolved.slice.accelerator.bf16_flops_per_second, 918e12);
  EXPECT_EQ(BuiltIn().FindAccelerator("tpu-v6e").accelerator->spec.hbm_bytes_per_second, 1638e9);
  query.axis_wraps = {true, false};
  EXPECT_EQ(Wraps(Resolve(query).slice), "10");
  query.axis_wraps = {true};
  EXPECT_EQ(OneViolation(query).field, "override.ici_axis_wraps");
}

TEST(ResolveSliceTest, AnotherMemoryForgetsTheUsableShareOfTheListedOne) {
  SliceQuery query = Topology("tpu-v5p", "4x4x4");
  query.override_fields = [](hardware::AcceleratorSpec& spec) { spec.hbm_bytes = int64_t{48} << 30; };
  EXPECT_EQ(Resolve(query).slice.accelerator.AllocatableBytes(), int64_t{48} << 30);
}

TEST(ResolveSliceTest, AnOverrideStaysWithinTheFabric) {
  SliceQuery query = Chips("h100", 8);
  query.override_fields = [](hardware::AcceleratorSpec& spec) { spec.ici_link_bytes_per_second = 1e9; };
  EXPECT_EQ(OneViolation(query).field, "override");
  query = Topology("tpu-v6e", "4x4");
  query.override_fields = [](hardware::AcceleratorSpec& spec) { spec.scale_up_domain_size = 8; };
  EXPECT_EQ(OneViolation(query).field, "override");
  query.override_fields = [](hardware::AcceleratorSpec& spec) { spec.ici_torus_dims = 3; };
  EXPECT_EQ(OneViolation(query).field, "override.ici_torus_dims");
}

TEST(ResolveSliceTest, OneChipWithoutAShapeOnlyOnRequest) {
  for (const char* chip : {"tpu-v5p", "tpu-8i", "h100"}) {
    SliceQuery query;
    query.accelerator = chip;
    query.one_chip_without_shape = true;
    const ResolvedSlice resolved = Resolve(query);
    EXPECT_EQ(resolved.slice.chip_count, 1) << chip;
    EXPECT_EQ(resolved.slice.TotalChips(), 1) << chip;
    EXPECT_THAT(Notes(resolved), HasSubstr("One chip")) << chip;
    query.one_chip_without_shape = false;
    EXPECT_EQ(OneViolation(query).reason, "REQUIRED") << chip;
  }
}

TEST(ResolveSliceTest, GpuDomains) {
  const auto domain = [](absl::string_view chip, int32_t count) {
    return Resolve(Chips(chip, count)).slice.domain_size;
  };
  EXPECT_EQ(domain("h100", 4), 4);
  EXPECT_EQ(domain("h100", 8), 8);
  EXPECT_EQ(domain("h100", 1024), 8);
  EXPECT_EQ(domain("gb200", 64), 64);
  EXPECT_EQ(domain("gb200", 144), 72);
  EXPECT_EQ(domain("gb200", 128), 64);
  EXPECT_THAT(Notes(Resolve(Chips("gb200", 128))), HasSubstr("2 scale-up domains with 64 of 72 chips"));
  // Without NVLink the chips of a host meet on PCIe.
  EXPECT_EQ(domain("l4", 16), 8);
  // Neither a domain nor a network is public.
  EXPECT_EQ(domain("nvidia-h100-nvl", 2), 1);
}

TEST(ResolveSliceTest, GpuMachines) {
  const ResolvedSlice named = Resolve(Hosts(Chips("h100", 16), "a3-megagpu-8g"));
  EXPECT_EQ(named.slice.machine_type, "a3-megagpu-8g");
  EXPECT_EQ(named.slice.host_count, 2);
  ASSERT_NE(named.gpu_machine, nullptr);
  EXPECT_EQ(named.gpu_machine->provider(), "gcp");
  // One machine type has four; five have eight.
  EXPECT_EQ(Resolve(Chips("h100", 4)).slice.machine_type, "a3-highgpu-4g");
  EXPECT_EQ(Resolve(Chips("h100", 8)).slice.machine_type, "");
  // Sixteen GPUs of one machine are one domain; of single-GPU machines, none.
  EXPECT_EQ(Resolve(Hosts(Chips("nvidia-a100-40gb", 32), "a2-megagpu-16g")).slice.domain_size, 16);
  EXPECT_EQ(Resolve(Hosts(Chips("nvidia-a100-40gb", 4), "a2-highgpu-1g")).slice.domain_size, 1);
}

SliceQuery Custom(const hardware::AcceleratorSpec& spec, absl::string_view topology) {
  SliceQuery query;
  query.custom = &spec;
  query.topology = topology;
  return query;
}

SliceResolution Named(absl::string_view name, std::optional<int32_t> chip_count = std::nullopt) {
  SliceQuery query;
  query.accelerator = name;
  query.chip_count = chip_count;
  return ResolveSlice(BuiltIn(), query);
}

TEST(ResolveSliceTest, MachinesNameTheirChips) {
  const SliceResolution gpu = Named("A3-HighGPU-8g");
  ASSERT_TRUE(gpu.resolved.has_value());
  EXPECT_EQ(gpu.resolved->slice.chip_count, 8);
  EXPECT_EQ(gpu.resolved->slice.machine_type, "a3-highgpu-8g");
  EXPECT_EQ(gpu.resolved->slice.host_memory_bytes, int64_t{1872} << 30);
  const SliceResolution several = Named("a3-highgpu-8g", 64);
  ASSERT_TRUE(several.resolved.has_value());
  EXPECT_EQ(several.resolved->slice.host_count, 8);
  const SliceResolution tpu = Named("ct5p-hightpu-4t");
  ASSERT_TRUE(tpu.resolved.has_value());
  EXPECT_EQ(tpu.resolved->slice.accelerator_id, "tpu-v5p");
  EXPECT_EQ(tpu.resolved->slice.chip_count, 4);
  EXPECT_EQ(tpu.resolved->slice.host_memory_bytes, int64_t{448} << 30);
}

TEST(ResolveSliceTest, ALongNameIsSaidOnce) { EXPECT_EQ(Named(std::string(200, 'x')).violations.size(), 1u); }

TEST(ResolveSliceTest, WhatIsNoChipIsExplained) {
  const auto why = [](absl::string_view name) { return Named(name).violations.at(0).description; };
  EXPECT_THAT(why("8x8x16"), AllOf(HasSubstr("is a topology"), HasSubstr("tpu-v5p")));
  EXPECT_THAT(why("v5p256"), HasSubstr("did you mean the slice \"v5p-256\"?"));
}

TEST(ResolveCustomTest, OneToThreeDimensionsInTheOrderGiven) {
  hardware::AcceleratorSpec spec;
  spec.name = "what-if";
  spec.ici_link_bytes_per_second = 45e9;
  const std::pair<const char*, const char*> kCases[] = {
      {"16", "1"}, {"8x4", "11"}, {"4x4x8", "111"}, {"2x4", "01"}, {"1x1", "00"}};
  for (const auto& [topology, wraps] : kCases) {
    const ResolvedSlice resolved = Resolve(Custom(spec, topology));
    EXPECT_EQ(resolved.slice.topology, topology);
    EXPECT_EQ(Wraps(resolved.slice), wraps) << topology;
    EXPECT_EQ(resolved.slice.accelerator_id, "");
    EXPECT_EQ(resolved.record(), nullptr);
    EXPECT_EQ(resolved.slice.accelerator.fabric, hardware::FabricKind::kTorus);
  }
}

TEST(ResolveCustomTest, ExplicitWraps) {
  const hardware::AcceleratorSpec spec;
  SliceQuery query = Custom(spec, "8x16");
  query.axis_wraps = {false, true};
  EXPECT_EQ(Wraps(Resolve(query).slice), "01");
  query = Custom(spec, "2x16");
  query.axis_wraps = {true, true};
  EXPECT_EQ(Wraps(Resolve(query).slice), "01");
  EXPECT_THAT(Notes(Resolve(query)), HasSubstr("Axis 0 has two chips"));
  query.axis_wraps = {true, true, true};
  EXPECT_EQ(OneViolation(query).field, "custom.ici_axis_wraps");
}

TEST(ResolveCustomTest, Switched) {
  hardware::AcceleratorSpec spec;
  spec.scale_up_domain_size = 8;
  spec.scale_up_bytes_per_second = 450e9;
  spec.network_bytes_per_second = 50e9;
  const ResolvedSlice resolved = Resolve(Custom(spec, "64"));
  EXPECT_EQ(resolved.slice.accelerator.fabric, hardware::FabricKind::kSwitched);
  EXPECT_EQ(resolved.slice.domain_size, 8);
  ASSERT_EQ(resolved.slice.axes.size(), 1u);
  EXPECT_EQ(resolved.slice.axes[0].size, 64);
}

TEST(ResolveCustomTest, Counts) {
  hardware::AcceleratorSpec spec;
  spec.ici_torus_dims = 3;
  SliceQuery query = Custom(spec, "");
  query.chip_count = 8;
  EXPECT_EQ(Resolve(query).slice.topology, "2x2x2");
  spec.ici_torus_dims.reset();
  spec.ici_link_bytes_per_second = 1e9;
  EXPECT_EQ(OneViolation(query).field, "chip_count");
}

TEST(ResolveCustomTest, Twisted) {
  hardware::AcceleratorSpec spec;
  for (const char* topology : {"4x8", "4x4x8", "6x6x12", "8x16x16"}) {
    EXPECT_TRUE(Resolve(Twisted(Custom(spec, topology))).slice.twisted) << topology;
  }
  EXPECT_EQ(OneViolation(Twisted(Custom(spec, "4x4x12"))).field, "twisted");
  SliceQuery open = Twisted(Custom(spec, "4x8"));
  open.axis_wraps = {true, false};
  EXPECT_EQ(OneViolation(open).field, "twisted");
}

TEST(ResolveCustomTest, Refused) {
  hardware::AcceleratorSpec spec;
  spec.bf16_flops_per_second = -1;
  EXPECT_EQ(OneViolation(Custom(spec, "4x4")).field, "custom.bf16_flops_per_second");
  spec = {};
  spec.ici_torus_dims = 2;
  EXPECT_EQ(OneViolation(Custom(spec, "4x4x4")).reason, "ILLEGAL_TOPOLOGY");
  spec.scale_up_domain_size = 8;
  EXPECT_EQ(OneViolation(Custom(spec, "4x4")).reason, "CONFLICTING_FIELDS");
  spec = {};
  SliceQuery query = Custom(spec, "");
  EXPECT_EQ(OneViolation(query).reason, "REQUIRED");
  query.accelerator = "tpu-v5p";
  query.topology = "4x4x4";
  EXPECT_EQ(OneViolation(query).reason, "CONFLICTING_FIELDS");
  query = Custom(spec, "");
  query.accelerator_type = "v5p-256";
  EXPECT_EQ(OneViolation(query).field, "accelerator_type");
}

// Every name of every listed slice leads back to it.
TEST(ResolveSliceTest, EveryListedSliceResolvesByNameShapeAndHost) {
  for (const v1::SliceRecord& record : BuiltIn().slices()) {
    const ResolvedSlice by_shape =
        Resolve(Hosts(Topology(record.accelerator(), record.topology()), record.machine_type()));
    EXPECT_EQ(by_shape.listed, &record) << record.accelerator() << " " << record.topology();
    if (!record.slice_name().empty()) {
      EXPECT_EQ(Resolve(Hosts(Type(record.slice_name()), record.machine_type())).listed, &record)
          << record.slice_name();
    }
    EXPECT_EQ(Resolve(Chips(record.accelerator(), record.chip_count())).slice.chip_count, record.chip_count());
  }
}

}  // namespace
}  // namespace sliceplan::catalog
