// Files into a catalog: what is refused and how it is said, and what an overlay changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/catalog/catalog.h"
#include "server/catalog/constant_table.h"
#include "server/catalog/efficiency.h"

namespace sliceplan::catalog {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kAccelerators[] = R"(
# proto-message: sliceplan.catalog.v1.Accelerators
accelerators {
  id: "cube-chip"
  aliases: ["cc", "shared"]
  kind: ACCELERATOR_KIND_TPU
  vendor: "maker"
  status: AVAILABILITY_STATUS_GA
  figures { field: "bf16_flops_per_second" value: 1e14 chosen: true source: "s" as_of: "2026-08" }
  figures { field: "bf16_flops_per_second" value: 2e14 source: "s" as_of: "2026-08" }
  figures { field: "tensorcore_count" value: 2 chosen: true source: "s" as_of: "2026-08" }
  figures { field: "ici_torus_dims" value: 3 chosen: true source: "s" as_of: "2026-08" }
  interconnect { kind: FABRIC_KIND_TORUS_3D wrap_rule: WRAP_RULE_CUBES_WRAP_ALL_AXES source: "s" as_of: "2026-08" }
  source: "s"
  as_of: "2026-08-22"
}
accelerators {
  id: "switch-chip"
  aliases: ["shared"]
  kind: ACCELERATOR_KIND_GPU
  vendor: "maker"
  status: AVAILABILITY_STATUS_GA
  interconnect { kind: FABRIC_KIND_SWITCHED source: "s" as_of: "2026-08" }
  source: "s"
  as_of: "2026-08-22"
})";

constexpr char kSlices[] = R"(
# proto-message: sliceplan.catalog.v1.Slices
defaults { accelerator: "cube-chip" name_counts: NAME_COUNTS_TENSORCORES chips_per_host: 4 chips_per_host_bounds: [2, 2, 1]
           source: "s" as_of: "2026-08" }
slices { topology: "4x4x8" slice_name: "cc-256" })";

constexpr char kPrices[] = R"(
# proto-message: sliceplan.catalog.v1.Prices
prices { provider: "gcp" accelerator: "cube-chip" region: "us-east5" price_model: PRICE_MODEL_ON_DEMAND usd_per_chip_hour: 4.2
         as_of: "2026-08" source: "s" })";

constexpr char kModels[] = R"(
# proto-message: sliceplan.catalog.v1.Models
models { preset: "tiny" hugging_face_name: "org/Tiny" family: "Tiny" hugging_face_config_file: "configs/tiny.json" source: "s" })";

std::vector<SourceFile> Base() {
  return {{"accelerators.textproto", kAccelerators},
          {"slices.textproto", kSlices},
          {"prices.textproto", kPrices},
          {"models/models.textproto", kModels},
          {"models/configs/tiny.json", "{\"vocab_size\": 7}"}};
}

std::shared_ptr<const Catalog> BuildOrDie(const std::vector<SourceFile>& overlay = {}) {
  absl::StatusOr<std::shared_ptr<const Catalog>> catalog = Catalog::Build(Base(), overlay);
  EXPECT_TRUE(catalog.ok()) << catalog.status();
  return *catalog;
}

std::string Problem(const std::vector<SourceFile>& overlay) {
  return std::string(Catalog::Build(Base(), overlay).status().message());
}

TEST(CatalogBuildTest, DerivesWhatASliceLeavesOut) {
  const auto catalog = BuildOrDie();
  const v1::SliceRecord& slice = catalog->slices()[0];
  EXPECT_EQ(slice.chip_count(), 4 * 4 * 8);
  EXPECT_EQ(slice.tensorcore_count(), 2 * 4 * 4 * 8);
  EXPECT_EQ(slice.host_count(), 32);
  EXPECT_TRUE(slice.multi_host());
  EXPECT_THAT(slice.host_bounds(), ElementsAre(2, 2, 8));
  EXPECT_THAT(slice.axis_wraps(), ElementsAre(true, true, true));
  EXPECT_THAT(slice.dims(), ElementsAre(4, 4, 8));
}

TEST(CatalogBuildTest, ReadsConfigurationsBesideTheirFile) {
  EXPECT_EQ(BuildOrDie()->FindModel("org/tiny").model->hugging_face_config(), "{\"vocab_size\": 7}");
}

TEST(CatalogBuildTest, AnAliasOfTwoChipsIsAmbiguous) {
  EXPECT_EQ(BuildOrDie()->FindAccelerator("shared").violation->reason, "AMBIGUOUS_ACCELERATOR");
  EXPECT_EQ(BuildOrDie()->FindAccelerator("cc").accelerator->record.id(), "cube-chip");
}

TEST(CatalogBuildTest, AnOverlayReplacesByKeyAndAdds) {
  const std::string prices = absl::StrCat(
      "# proto-message: Prices\n",
      R"(prices { provider: "gcp" accelerator: "cube-chip" region: "us-east5" price_model: PRICE_MODEL_ON_DEMAND
                  usd_per_chip_hour: 3 as_of: "2026-08" source: "contract" }
         prices { provider: "gcp" accelerator: "cube-chip" region: "us-west1" price_model: PRICE_MODEL_ON_DEMAND
                  usd_per_chip_hour: 2 as_of: "2026-09-01" source: "contract" })");
  const auto catalog = BuildOrDie({{"ours.textproto", prices}});
  ASSERT_EQ(catalog->prices().rows().size(), 2u);
  hardware::PriceQuery query;
  query.accelerator = "cube-chip";
  EXPECT_EQ(catalog->prices().Resolve(query).row->usd_per_chip_hour, 2);
  query.region = "us-east5";
  EXPECT_EQ(catalog->prices().Resolve(query).row->usd_per_chip_hour, 3);
  EXPECT_NE(catalog->version(), BuildOrDie()->version());
}

TEST(CatalogBuildTest, AnOverlayMayAddAChipWithItsSlicesAndProfile) {
  const std::string chip =
      absl::StrReplaceAll(kAccelerators, {{"cube-chip", "new-chip"}, {"switch-chip", "new-switch"}, {"\"cc\", ", ""}});
  const std::string slices = absl::StrReplaceAll(kSlices, {{"cube-chip", "new-chip"}});
  const std::string profile = R"(# proto-message: sliceplan.catalog.v1.CalibrationProfiles
    profiles { name: "p" version: "1" workload: CALIBRATION_WORKLOAD_TRAINING source: "fit" as_of: "2026-11-29"
               families { name: "f" accelerators: ["new-chip"] } })";
  const auto catalog = BuildOrDie({{"a.textproto", chip}, {"b.textproto", slices}, {"c.textproto", profile}});
  EXPECT_EQ(catalog->accelerators().size(), 4u);
  EXPECT_EQ(catalog->FindAccelerator("new-chip").accelerator->slices.size(), 1u);
  ASSERT_EQ(catalog->calibration_profiles().size(), 1u);
}

TEST(CatalogBuildTest, ChipsWithoutMeasuredRunsHaveAWiderInterval) {
  const std::string text = R"(# proto-message: sliceplan.catalog.v1.CalibrationProfiles
    profiles { name: "p" version: "1" workload: CALIBRATION_WORKLOAD_TRAINING source: "fit" as_of: "2026-11-29"
               measured_accelerators: "cube-chip" unmeasured_interval_power: 2
               constants { name: "dense_low_ratio" value: 0.9 source: "s" }
               constants { name: "dense_high_ratio" value: 1.2 source: "s" }
               constants { name: "matmul_inverse_ratio" value: 1.5 source: "s" } })";
  const auto catalog = BuildOrDie({{"c.textproto", text}});
  const v1::CalibrationProfile& record = catalog->calibration_profiles()[0];
  Problems problems;
  RecordProblems record_problems(problems, "", "p");
  const roofline::EfficiencyProfile measured = EfficiencyOf(record, "cube-chip", record_problems);
  EXPECT_EQ(measured.dense_low_ratio, 0.9);
  EXPECT_EQ(measured.dense_high_ratio, 1.2);
  const roofline::EfficiencyProfile other = EfficiencyOf(record, "switch-chip", record_problems);
  EXPECT_DOUBLE_EQ(other.dense_low_ratio, 0.9 * 0.9);
  EXPECT_DOUBLE_EQ(other.dense_high_ratio, 1.2 * 1.2);
  EXPECT_EQ(other.matmul_inverse_ratio, 1.5);
  EXPECT_EQ(other.expert_low_ratio, 0) << "no interval";
  EXPECT_FALSE(IsUnmeasured(record, "cube-chip"));
  EXPECT_TRUE(IsUnmeasured(record, "switch-chip"));
  EXPECT_TRUE(IsUnmeasured(record, "")) << "a chip on paper";
  EXPECT_FALSE(IsUnmeasured(v1::CalibrationProfile(), "switch-chip")) << "no chip is listed";
}

TEST(CatalogBuildTest, AChipWhoseFiguresAnOverlayChangesIsUnmeasured) {
  const std::string profile = R"(# proto-message: sliceplan.catalog.v1.CalibrationProfiles
    profiles { name: "p" version: "1" workload: CALIBRATION_WORKLOAD_TRAINING source: "fit" as_of: "2026-11-29"
               measured_accelerators: "cube-chip" unmeasured_interval_power: 2 })";
  std::vector<SourceFile> base = Base();
  base.push_back({"profile.textproto", profile});
  const auto unmeasured = [&](const std::vector<SourceFile>& overlay) {
    const auto catalog = Catalog::Build(base, overlay);
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    return IsUnmeasured((*catalog)->calibration_profiles()[0], "cube-chip");
  };
  const std::string faster = absl::StrReplaceAll(kAccelerators, {{"value: 1e14", "value: 1.1e14"}});
  const std::string renamed = absl::StrReplaceAll(kAccelerators, {{"\"cc\", ", ""}});
  ASSERT_NE(faster, kAccelerators);
  ASSERT_NE(renamed, kAccelerators);
  EXPECT_FALSE(unmeasured({}));
  EXPECT_FALSE(unmeasured({{"a.textproto", renamed}}));
  EXPECT_TRUE(unmeasured({{"a.textproto", faster}}));
  // A profile of the overlay was fitted to the overlay's chip.
  EXPECT_FALSE(unmeasured({{"a.textproto", faster}, {"p.textproto", profile}}));
}

TEST(CatalogBuildTest, TheVersionFollowsTheContentAlone) {
  const std::string version = BuildOrDie()->version();
  std::vector<SourceFile> files = Base();
  std::reverse(files.begin(), files.end());
  EXPECT_EQ((*Catalog::Build(files))->version(), version) << "the order of files";
  const std::string commented = absl::StrCat(kPrices, "\n# a remark\n");
  EXPECT_EQ(BuildOrDie({{"prices.textproto", commented}})->version(), version) << "comments";
  const std::string stated =
      absl::StrReplaceAll(kSlices, {{"\"cc-256\"", "\"cc-256\" chip_count: 128 host_count: 32"}});
  EXPECT_EQ(BuildOrDie({{"s.textproto", stated}})->version(), version) << "derived fields that are stated";
  const std::string config = absl::StrReplaceAll(
      kModels, {{"hugging_face_config_file: \"configs/tiny.json\"", "hugging_face_config: '{\"vocab_size\": 8}'"}});
  EXPECT_NE(BuildOrDie({{"m.textproto", config}})->version(), version) << "a model's configuration";
}

struct BadCase {
  const char* name;
  std::string text;
  const char* problem;
};

class BadFileTest : public testing::TestWithParam<BadCase> {};

TEST_P(BadFileTest, NamesFileRecordAndField) {
  EXPECT_THAT(Problem({{"bad.textproto", GetParam().text}}), HasSubstr(GetParam().problem));
}

std::string Price(absl::string_view fields) { return absl::StrCat("# proto-message: Prices\nprices { ", fields, " }"); }
std::string Slice(absl::string_view fields) {
  return absl::StrReplaceAll(kSlices, {{"topology: \"4x4x8\" slice_name: \"cc-256\"", fields}});
}
std::string Figure(absl::string_view figure) {
  return absl::StrReplaceAll(kAccelerators, {{"figures { field: \"tensorcore_count\"",
                                              absl::StrCat(figure, " figures { field: \"tensorcore_count\"")}});
}
constexpr char kGoodPrice[] =
    R"(provider: "gcp" accelerator: "cube-chip" region: "r" price_model: PRICE_MODEL_SPOT as_of: "2026-08" source: "s")";

INSTANTIATE_TEST_SUITE_P(
    Files, BadFileTest,
    testing::Values(
        BadCase{"no_kind", "prices { }",
                "bad.textproto: the comment \"# proto-message: sliceplan.catalog.v1.KIND\" must come first"},
        BadCase{"unknown_kind", "# proto-message: Foo\n", "it says Foo"},
        BadCase{"syntax", "# proto-message: Prices\nprices {\n  usd: 3\n}", "bad.textproto: line 3, column 6: "},
        BadCase{"not_text", std::string("# proto-message: Prices\n\0\xff\xfe", 27), "bad.textproto: line 2"},
        BadCase{"price_zero", Price(absl::StrCat(kGoodPrice, " usd_per_chip_hour: 0")),
                "bad.textproto: prices gcp cube-chip r PRICE_MODEL_SPOT 2026-08: usd_per_chip_hour: 0 is not above 0"},
        BadCase{"price_nan", Price(absl::StrCat(kGoodPrice, " usd_per_chip_hour: nan")),
                "usd_per_chip_hour: nan is not above 0"},
        BadCase{"price_negative", Price(absl::StrCat(kGoodPrice, " usd_per_chip_hour: -1")),
                "usd_per_chip_hour: -1 is not above 0"},
        BadCase{"price_of_nothing",
                Price(R"(provider: "gcp" accelerator: "no-chip" region: "r" price_model: PRICE_MODEL_SPOT
                                             usd_per_chip_hour: 1 as_of: "2026-08" source: "s")"),
                "accelerator: \"no-chip\" is not the id of an accelerator"},
        BadCase{"price_date",
                Price(R"(provider: "gcp" accelerator: "cube-chip" region: "r" price_model: PRICE_MODEL_SPOT
                                       usd_per_chip_hour: 1 as_of: "last week" source: "s")"),
                "as_of: \"last week\" is not a date"},
        BadCase{"price_twice",
                absl::StrCat(Price(absl::StrCat(kGoodPrice, " usd_per_chip_hour: 1")), "prices { ", kGoodPrice,
                             " usd_per_chip_hour: 2 }"),
                "is also in bad.textproto"},
        BadCase{"slice_shape", Slice("topology: \"4x4\""), "topology: 4x4 does not have 3 dimensions"},
        BadCase{"slice_order", Slice("topology: \"8x4x4\""), "topology: 8x4x4 is not in the catalog's order, 4x4x8"},
        BadCase{"slice_chips", Slice("topology: \"4x4x4\" chip_count: 65"),
                "slices cube-chip 4x4x4 : chip_count: 65 contradicts the shape, which gives 64"},
        BadCase{"slice_wraps", Slice("topology: \"4x4x4\" axis_wraps: [true, true, false]"),
                "axis_wraps: [1, 1, 0] contradicts the shape"},
        BadCase{"slice_hosts", Slice("topology: \"4x4x4\" chips_per_host: 7"),
                "chips_per_host: 7 does not divide 64 chips"},
        BadCase{"slice_bounds", Slice("topology: \"4x4x4\" chips_per_host_bounds: [2, 2, 2]"),
                "chips_per_host_bounds: holds 8 chips"},
        BadCase{"figure_name", Figure("figures { field: \"speed\" value: 1 source: \"s\" as_of: \"2026-08\" }"),
                "accelerators cube-chip: figures[2] speed: is not a field of the schema"},
        BadCase{
            "figure_twice",
            Figure(
                "figures { field: \"bf16_flops_per_second\" value: 1 chosen: true source: \"s\" as_of: \"2026-08\" }"),
            "figures[2] bf16_flops_per_second: is chosen twice"},
        BadCase{
            "figure_infinite",
            Figure(
                "figures { field: \"hbm_bytes_per_second\" value: inf chosen: true source: \"s\" as_of: \"2026-08\" }"),
            "hbm_bytes_per_second.value: must be finite"},
        BadCase{"figure_fraction",
                Figure("figures { field: \"hbm_bytes\" value: 1.5 chosen: true source: \"s\" as_of: \"2026-08\" }"),
                "figures hbm_bytes: 1.5 is not a whole number"},
        BadCase{"figure_too_large",
                Figure("figures { field: \"mxu_dim\" value: 1e18 chosen: true source: \"s\" as_of: \"2026-08\" }"),
                "figures mxu_dim: 1e+18 is not a whole number in range"},
        BadCase{"figure_without_source", Figure("figures { field: \"hbm_bytes\" value: 1 }"),
                "figures[2] hbm_bytes.source: is required"},
        BadCase{"fabric_contradicts", absl::StrReplaceAll(kAccelerators, {{"TORUS_3D", "TORUS_2D"}}),
                "ici_torus_dims: contradicts interconnect.kind"},
        BadCase{"id_in_capitals", absl::StrReplaceAll(kAccelerators, {{"\"cube-chip\"", "\"Cube Chip\""}}),
                "id: must be lower case"},
        BadCase{"model_name_taken",
                absl::StrReplaceAll(kModels,
                                    {{"\"tiny\"", "\"other\""},
                                     {"hugging_face_config_file: \"configs/tiny.json\"", "hugging_face_config: '{}'"}}),
                "\"org/Tiny\" is also a name of "},
        BadCase{"model_without_file", kModels, "hugging_face_config_file: there is no file configs/tiny.json"},
        BadCase{"machine_without_gpus", R"(# proto-message: Slices
                gpu_machines { accelerator: "switch-chip" provider: "gcp" machine_type: "m" source: "s" as_of: "2026-08" })",
                "gpu_machines switch-chip gcp m: gpu_count: must be between 1 and 1024"},
        BadCase{"rule_without_limit", R"(# proto-message: Slices
                rules { accelerator: "cube-chip" shape_rule: SHAPE_RULE_CUBES_OF_4 source: "s" as_of: "2026-08" })",
                "rules cube-chip: max_chip_count: must be between"},
        BadCase{"profile_of_nothing", R"(# proto-message: CalibrationProfiles
                profiles { name: "p" version: "1" workload: CALIBRATION_WORKLOAD_TRAINING source: "s" as_of: "2026-08"
                           families { name: "f" accelerators: ["no-chip"] } })",
                "profiles p: accelerator: \"no-chip\" is not the id"},
        BadCase{"serving_constant_of_training", R"(# proto-message: CalibrationProfiles
                profiles { name: "p" version: "1" workload: CALIBRATION_WORKLOAD_SERVING source: "s" as_of: "2026-08"
                           constants { name: "matmul_inverse_ratio" value: 1.1 source: "s" } })",
                "profiles p: constants[matmul_inverse_ratio]: is not a constant of a profile "
                "(server/roofline/serving_efficiency.h"},
        BadCase{"serving_constant_out_of_range", R"(# proto-message: CalibrationProfiles
                profiles { name: "p" version: "1" workload: CALIBRATION_WORKLOAD_SERVING source: "s" as_of: "2026-08"
                           constants { name: "burst_share" value: 1.5 source: "s" } })",
                "profiles p: constants[burst_share]: must be 0 to 1"},
        BadCase{"measured_accelerator_unknown", R"(# proto-message: CalibrationProfiles
                profiles { name: "p" version: "1" workload: CALIBRATION_WORKLOAD_TRAINING source: "s" as_of: "2026-08"
                           measured_accelerators: "no-chip" })",
                "profiles p: accelerator: \"no-chip\" is not the id"},
        BadCase{"interval_power_below_one", R"(# proto-message: CalibrationProfiles
                profiles { name: "p" version: "1" workload: CALIBRATION_WORKLOAD_TRAINING source: "s" as_of: "2026-08"
                           unmeasured_interval_power: 0.5 })",
                "profiles p: unmeasured_interval_power: must be 1 to 10"}),
    [](const auto& info) { return info.param.name; });

TEST(CatalogBuildTest, ReportsEveryProblemOfEveryFileAtOnce) {
  const std::string message = Problem({{"one.textproto", Price("usd_per_chip_hour: 1")},
                                       {"two.textproto", Slice("topology: \"4x4\"")},
                                       {"three.textproto", "# proto-message: Prices\n}"}});
  EXPECT_THAT(message, HasSubstr("one.textproto: prices"));
  for (const char* field : {"provider: is required", "accelerator: is required", "region: is required",
                            "price_model: is required", "as_of: is required", "source: is required"}) {
    EXPECT_THAT(message, HasSubstr(field));
  }
  EXPECT_THAT(message, HasSubstr("two.textproto: slices"));
  EXPECT_THAT(message, HasSubstr("three.textproto: line 2"));
}

TEST(CatalogBuildTest, AMessageOfManyProblemsIsBounded) {
  std::string prices = "# proto-message: Prices\n";
  for (int i = 0; i < 5000; ++i) absl::StrAppend(&prices, "prices { region: \"r", i, "\" }\n");
  const std::string message = Problem({{"many.textproto", prices}});
  EXPECT_LT(message.size(), 50000u);
  EXPECT_THAT(message, HasSubstr("more"));
}

TEST(CatalogBuildTest, OtherFilesAreIgnored) {
  EXPECT_EQ(BuildOrDie({{"README.md", "not a textproto"}, {"extra.json", "{"}})->version(), BuildOrDie()->version());
}

}  // namespace
}  // namespace sliceplan::catalog
