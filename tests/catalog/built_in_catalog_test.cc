// The catalog's data against the facts that it was made from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/catalog/catalog.h"
#include "server/catalog/catalog_store.h"
#include "tests/catalog/csv.h"

namespace sliceplan::catalog {
namespace {

const Catalog& BuiltIn() {
  static const auto& catalog = *new absl::StatusOr<std::shared_ptr<const Catalog>>(BuiltInCatalog());
  EXPECT_TRUE(catalog.ok()) << catalog.status();
  return **catalog;
}

const Accelerator& Chip(absl::string_view name) {
  const AcceleratorLookup lookup = BuiltIn().FindAccelerator(name);
  EXPECT_NE(lookup.accelerator, nullptr) << name;
  return *lookup.accelerator;
}

TEST(BuiltInCatalogTest, HoldsEveryAcceleratorOfTheFacts) {
  std::set<std::string> ids;
  for (const CsvRow& row : ReadCsv("catalog/planning.csv")) ids.insert(row.at("accelerator"));
  EXPECT_EQ(ids.size(), 28u);
  for (const std::string& id : ids) EXPECT_EQ(Chip(id).record.id(), id);
}

// The chosen reading of each field is the number to plan with, and nothing else is chosen but what the catalog adds.
TEST(BuiltInCatalogTest, PlansWithTheChosenFigures) {
  std::set<std::pair<std::string, std::string>> stated;
  for (const CsvRow& row : ReadCsv("catalog/planning.csv")) {
    const v1::AcceleratorRecord& record = Chip(row.at("accelerator")).record;
    stated.emplace(record.id(), row.at("field"));
    const auto chosen =
        std::find_if(record.figures().begin(), record.figures().end(),
                     [&row](const v1::Figure& figure) { return figure.chosen() && figure.field() == row.at("field"); });
    ASSERT_NE(chosen, record.figures().end()) << record.id() << " " << row.at("field");
    EXPECT_EQ(chosen->value(), std::strtod(row.at("value").c_str(), nullptr)) << record.id() << " " << row.at("field");
  }
  const std::set<std::string> added = {"fp32_flops_per_second", "hbm_usable_bytes", "pcie_bytes_per_second",
                                       "sustained_matmul_ratio"};
  std::set<std::string> ids;
  for (const auto& [id, field] : stated) ids.insert(id);
  for (const std::string& id : ids) {
    for (const v1::Figure& figure : Chip(id).record.figures()) {
      if (!figure.chosen() || added.count(figure.field()) > 0) continue;
      EXPECT_TRUE(stated.count({id, figure.field()}) > 0) << id << " " << figure.field();
    }
  }
}

TEST(BuiltInCatalogTest, TheSpecCarriesTheFigures) {
  const hardware::AcceleratorSpec& tpu = Chip("tpu-v5p").spec;
  EXPECT_EQ(tpu.fabric, hardware::FabricKind::kTorus);
  EXPECT_EQ(tpu.wrap_rule, hardware::WrapRule::kWholeCubes);
  EXPECT_EQ(tpu.bf16_flops_per_second, 459e12);
  EXPECT_EQ(tpu.hbm_bytes, int64_t{96} << 30);
  EXPECT_EQ(tpu.AllocatableBytes(), int64_t{95} << 30);
  EXPECT_EQ(tpu.ici_torus_dims, 3);
  EXPECT_EQ(tpu.ici_link_bytes_per_second, 90e9);
  EXPECT_EQ(tpu.ici_hop_seconds, 1e-6);
  EXPECT_EQ(tpu.chips_per_host, 4);
  EXPECT_EQ(tpu.devices_per_chip, 1);
  EXPECT_EQ(tpu.sustained_matmul_ratio, 0.95);
  EXPECT_EQ(Chip("tpu-7x").spec.devices_per_chip, 2);
  EXPECT_EQ(Chip("tpu-v5e").spec.wrap_rule, hardware::WrapRule::kAxisOf16);
  EXPECT_EQ(Chip("tpu-v3").spec.wrap_rule, hardware::WrapRule::kFullPodOnly);

  const hardware::AcceleratorSpec& gpu = Chip("nvidia-h100-sxm").spec;
  EXPECT_EQ(gpu.fabric, hardware::FabricKind::kSwitched);
  EXPECT_EQ(gpu.scale_up_domain_size, 8);
  EXPECT_EQ(gpu.scale_up_bytes_per_second, 450e9);
  EXPECT_EQ(gpu.network_bytes_per_second, 50e9);
  EXPECT_EQ(gpu.fp32_flops_per_second, 494.5e12);  // tf32
  EXPECT_DOUBLE_EQ(*gpu.sustained_matmul_ratio, 794.5 / 989);
  EXPECT_DOUBLE_EQ(*gpu.sustained_fp8_matmul_ratio, 1402.6 / 1979);
  EXPECT_FALSE(Chip("tpu-v2").spec.ici_link_bytes_per_second.has_value());
}

std::string Text(const google::protobuf::RepeatedField<bool>& wraps) {
  std::string text;
  for (bool wrap : wraps) text += wrap ? '1' : '0';
  return text;
}

std::string Optional(bool has, bool value) { return has ? value ? "true" : "false" : ""; }

TEST(BuiltInCatalogTest, EverySliceAgreesWithItsSources) {
  const std::vector<CsvRow> rows = ReadCsv("catalog/slices.csv");
  ASSERT_EQ(rows.size(), 244u);
  EXPECT_EQ(BuiltIn().slices().size(), 244u);
  for (const CsvRow& row : rows) {
    SCOPED_TRACE(absl::StrCat(row.at("accelerator"), " ", row.at("topology"), " ", row.at("machine_type")));
    const auto slices = BuiltIn().slices();
    const auto found = std::find_if(slices.begin(), slices.end(), [&row](const v1::SliceRecord& record) {
      return record.accelerator() == row.at("accelerator") && record.topology() == row.at("topology") &&
             record.machine_type() == row.at("machine_type");
    });
    ASSERT_NE(found, slices.end());
    EXPECT_EQ(found->slice_name(), row.at("slice_name"));
    EXPECT_EQ(found->cloud_tpu_accelerator_type(), row.at("cloud_tpu_accelerator_type"));
    EXPECT_EQ(absl::StrCat(found->chip_count()), row.at("chips"));
    EXPECT_EQ(absl::StrCat(found->tensorcore_count()), row.at("tensorcores"));
    EXPECT_EQ(absl::StrCat(found->jax_device_count()), row.at("jax_devices"));
    EXPECT_EQ(absl::StrCat(found->host_count()), row.at("hosts"));
    EXPECT_EQ(absl::StrCat(found->chips_per_host()), row.at("chips_per_host"));
    EXPECT_EQ(absl::StrJoin(found->host_bounds(), "x"), row.at("host_bounds"));
    EXPECT_EQ(found->gke_tpu_topology(), row.at("gke_tpu_topology"));
    EXPECT_EQ(absl::StrCat(found->google_com_tpu_per_pod()), row.at("google_com_tpu_per_pod"));
    EXPECT_EQ(Optional(found->has_single_slice_schedulable(), found->single_slice_schedulable()),
              row.at("schedulable"));
    EXPECT_EQ(Optional(found->has_twisted_torus_option(), found->twisted_torus_option()), row.at("twisted"));
    // Of a full pod the rule of the generation is known, though no source lists its wraps.
    if (!row.at("wraps").empty() || hardware::ParseShape(row.at("topology")) != Chip(row.at("accelerator")).pod_shape) {
      EXPECT_EQ(Text(found->axis_wraps()), row.at("wraps"));
    } else {
      EXPECT_EQ(Text(found->axis_wraps()), "11");
    }
    EXPECT_EQ(found->axis_wraps_source().empty(), row.at("wraps").empty());
  }
}

TEST(BuiltInCatalogTest, EveryPriceIsThere) {
  const std::vector<CsvRow> rows = ReadCsv("catalog/prices.csv");
  ASSERT_EQ(rows.size(), 227u);
  EXPECT_EQ(BuiltIn().prices().rows().size(), 227u);
  const std::pair<const char*, hardware::PriceModel> kModels[] = {
      {"on_demand", hardware::PriceModel::kOnDemand},       {"spot", hardware::PriceModel::kSpot},
      {"committed_1y", hardware::PriceModel::kCommitted1Y}, {"committed_3y", hardware::PriceModel::kCommitted3Y},
      {"flex_start", hardware::PriceModel::kFlexStart},     {"calendar", hardware::PriceModel::kCalendar}};
  for (const CsvRow& row : rows) {
    const auto model = std::find_if(std::begin(kModels), std::end(kModels),
                                    [&row](const auto& m) { return m.first == row.at("price_model"); });
    ASSERT_NE(model, std::end(kModels)) << row.at("price_model");
    const hardware::PriceAnswer answer = BuiltIn().prices().Resolve(
        {row.at("accelerator"), row.at("provider"), row.at("region"), model->second, row.at("as_of")});
    ASSERT_NE(answer.row, nullptr) << row.at("accelerator") << " " << row.at("region");
    EXPECT_EQ(answer.row->usd_per_chip_hour, std::strtod(row.at("usd_per_chip_hour").c_str(), nullptr));
    EXPECT_EQ(answer.row->as_of, row.at("as_of"));
    EXPECT_FALSE(answer.row->source.empty());
  }
}

struct PriceCase {
  const char* accelerator;
  double usd;
  const char* place;
};

TEST(BuiltInCatalogTest, DefaultPrices) {
  // Google Cloud's list prices per chip-hour; the H100 costs 2.99 everywhere at RunPod, less than in any cloud's US
  // region.
  const PriceCase kCases[] = {{"tpu-v5p", 4.2, "us-central1"}, {"tpu-v5e", 1.2, "us-central1"},
                              {"tpu-v6e", 2.7, "us-central1"}, {"tpu-7x", 12, "us-central1"},
                              {"tpu-v4", 3.22, "us-central2"}, {"nvidia-h100-sxm", 2.99, "all"}};
  for (const PriceCase& c : kCases) {
    hardware::PriceQuery query;
    query.accelerator = c.accelerator;
    const hardware::PriceAnswer answer = BuiltIn().prices().Resolve(query);
    ASSERT_NE(answer.row, nullptr) << c.accelerator;
    EXPECT_EQ(answer.row->usd_per_chip_hour, c.usd) << c.accelerator;
    EXPECT_EQ(answer.row->region, c.place) << c.accelerator;
  }
}

TEST(BuiltInCatalogTest, GpuMachinesBelongToTheirChip) {
  EXPECT_EQ(BuiltIn().gpu_machines().size(), 28u);
  for (const v1::GpuMachineRecord* machine : Chip("h100").gpu_machines)
    EXPECT_EQ(machine->accelerator(), "nvidia-h100-sxm");
  EXPECT_EQ(Chip("h100").gpu_machines.size(), 7u);
}

TEST(BuiltInCatalogTest, FindsChipsByTheNamesInUse) {
  const std::pair<const char*, const char*> kNames[] = {{"tpu-v4p", "tpu-v4"},
                                                        {"v5p", "tpu-v5p"},
                                                        {"TPU v5e", "tpu-v5e"},
                                                        {"v5litepod", "tpu-v5e"},
                                                        {"Trillium", "tpu-v6e"},
                                                        {"ironwood", "tpu-7x"},
                                                        {"tpu7x", "tpu-7x"},
                                                        {"h100", "nvidia-h100-sxm"},
                                                        {"H200", "nvidia-h200-sxm"},
                                                        {"b200", "nvidia-b200"},
                                                        {"gb200", "nvidia-gb200-nvl72"},
                                                        {"mi300x", "amd-mi300x"},
                                                        {"A100-40GB", "nvidia-a100-40gb"},
                                                        {"a100_80gb", "nvidia-a100-80gb"},
                                                        {"nvidia-b200", "nvidia-b200"}};
  for (const auto& [name, id] : kNames) EXPECT_EQ(Chip(name).record.id(), id) << name;
}

TEST(BuiltInCatalogTest, AnAmbiguousNameIsAnErrorThatNamesBoth) {
  const AcceleratorLookup lookup = BuiltIn().FindAccelerator("a100");
  EXPECT_EQ(lookup.accelerator, nullptr);
  ASSERT_TRUE(lookup.violation.has_value());
  EXPECT_EQ(lookup.violation->kind, hardware::Violation::Kind::kInvalid);
  EXPECT_THAT(lookup.violation->description, testing::HasSubstr("\"nvidia-a100-40gb\" or \"nvidia-a100-80gb\""));
}

TEST(BuiltInCatalogTest, AnUnknownNameOffersNearOnes) {
  const AcceleratorLookup lookup = BuiltIn().FindAccelerator("tpu-v5q", "slice.accelerator");
  ASSERT_TRUE(lookup.violation.has_value());
  EXPECT_EQ(lookup.violation->kind, hardware::Violation::Kind::kNotFound);
  EXPECT_EQ(lookup.violation->field, "slice.accelerator");
  EXPECT_THAT(lookup.violation->description, testing::HasSubstr("\"tpu-v5p\""));
  EXPECT_LT(BuiltIn().FindAccelerator(std::string(1 << 20, 'x')).violation->description.size(), 1000u);
}

TEST(BuiltInCatalogTest, HoldsThePresets) {
  EXPECT_EQ(BuiltIn().models().size(), 132u);
  const std::pair<const char*, const char*> kNames[] = {{"llama-3-70b", "llama-3-70b"},
                                                        {"meta-llama/Meta-Llama-3-70B", "llama-3-70b"},
                                                        {"llama-3-8b", "llama-3-8b"},
                                                        {"llama-3-405b", "llama-3.1-405b"},
                                                        {"meta-llama/Llama-3.1-405B", "llama-3.1-405b"},
                                                        {"llama-2-13b", "llama-2-13b"},
                                                        {"mixtral-8x7b", "mixtral-8x7b"},
                                                        {"deepseek-v3", "deepseek-v3"},
                                                        {"gpt-3-175b", "gpt-3-175b"},
                                                        {"DeepSeek-V3", "deepseek-v3"},
                                                        {"deepseek-ai/DeepSeek-V3", "deepseek-v3"},
                                                        {"Qwen/Qwen3-235B-A22B", "qwen3-235b-a22b"}};
  for (const auto& [name, preset] : kNames) {
    const ModelLookup lookup = BuiltIn().FindModel(name);
    ASSERT_NE(lookup.model, nullptr) << name;
    EXPECT_EQ(lookup.model->preset(), preset) << name;
  }
  EXPECT_THAT(BuiltIn().FindModel("llama-3-70b").model->hugging_face_config(),
              testing::HasSubstr("\"intermediate_size\": 28672"));
  const ModelLookup unknown = BuiltIn().FindModel("llama3-70");
  ASSERT_TRUE(unknown.violation.has_value());
  EXPECT_EQ(unknown.violation->kind, hardware::Violation::Kind::kNotFound);
  EXPECT_THAT(unknown.violation->description, testing::HasSubstr("\"llama-3-70b\""));
}

TEST(BuiltInCatalogTest, EveryRecordSaysWhereItComesFrom) {
  for (const Accelerator& accelerator : BuiltIn().accelerators()) {
    for (const v1::HostRecord& host : accelerator.record.hosts()) {
      EXPECT_FALSE(host.machine_type().empty()) << accelerator.record.id();
      EXPECT_FALSE(host.source().empty()) << accelerator.record.id();
    }
  }
  for (const v1::ModelRecord& model : BuiltIn().models()) {
    EXPECT_NE(model.config_fidelity(), v1::CONFIG_FIDELITY_UNSPECIFIED) << model.preset();
    EXPECT_FALSE(model.source().empty()) << model.preset();
  }
}

TEST(BuiltInCatalogTest, TheVersionIsStable) {
  EXPECT_THAT(BuiltIn().version(), testing::MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(BuiltIn().version().size(), 12u);
  EXPECT_EQ((*BuiltInCatalog())->version(), BuiltIn().version());
}

}  // namespace
}  // namespace sliceplan::catalog
