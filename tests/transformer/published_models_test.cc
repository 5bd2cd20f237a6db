// Every model of models.jsonl, imported from its config and compared to the last digit.
#include <map>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/transformer/hugging_face/import.h"
#include "server/transformer/kv_cache.h"
#include "server/transformer/parameter_count.h"
#include "tests/transformer/model_table.h"

namespace sliceplan::transformer {
namespace {

using hardware::DataType;

class PublishedModelTest : public testing::TestWithParam<ModelRow> {};

int64_t ExtraOf(const ParameterCount& parameters, StoredExtra::Kind kind) {
  int64_t count = 0;
  for (const StoredExtra& extra : parameters.extras) {
    if (extra.kind == kind) count += extra.count;
  }
  return count;
}

// Published kinds that are lines of ours.
const std::map<std::string, StoredExtra::Kind>& LineKinds() {
  static const auto* const kinds = new std::map<std::string, StoredExtra::Kind>{
      {"mtp_layers", StoredExtra::Kind::kMtpLayers},
      {"mtp_table_copies", StoredExtra::Kind::kMtpTableCopies},
      {"tied_table_copy", StoredExtra::Kind::kTiedTableCopy},
      {"scales", StoredExtra::Kind::kQuantizationScales},
      {"buffer", StoredExtra::Kind::kBuffer},
  };
  return *kinds;
}

TEST_P(PublishedModelTest, CountsToTheLastDigit) {
  const ModelRow& row = GetParam();
  const ImportResult result = ImportHuggingFaceConfig(row.config_text);
  if (row.IsRefused()) {
    ASSERT_FALSE(result.model.has_value());
    EXPECT_EQ(result.violations.front().reason, row.row.at("refused"));
    EXPECT_EQ(result.violations.front().kind, hardware::Violation::Kind::kUnsupported);
    return;
  }
  const Architecture architecture = Imported(row.config_text);
  const absl::StatusOr<ParameterCount> parameters = CountParameters(architecture);
  ASSERT_TRUE(parameters.ok()) << parameters.status();

  const auto total = row.Number("total_count");
  EXPECT_EQ(parameters->total_count, total.value_or(parameters->total_count));
  EXPECT_EQ(parameters->active_count, row.Number("active_count").value_or(parameters->active_count));
  int64_t component_sum = 0;
  for (const int64_t component : parameters->components) component_sum += component;
  EXPECT_EQ(component_sum, parameters->total_count);
  int64_t stored = parameters->total_count;
  for (const StoredExtra& extra : parameters->extras) stored += extra.count;
  EXPECT_EQ(stored, parameters->stored_count);
}

TEST_P(PublishedModelTest, ExplainsThePublishedFigure) {
  const ModelRow& row = GetParam();
  const auto published = row.Number("published_count");
  if (row.IsRefused() || !published) return;
  const absl::StatusOr<ParameterCount> parameters = CountParameters(Imported(row.config_text));
  ASSERT_TRUE(parameters.ok()) << parameters.status();

  int64_t explained = parameters->total_count;
  for (const auto& [name, kind] : LineKinds()) {
    const int64_t part = row.PartSum({name});
    if (part == 0) continue;
    EXPECT_EQ(ExtraOf(*parameters, kind), part) << name;
    explained += ExtraOf(*parameters, kind);
  }
  explained += row.PartSum({"tower", "not_counted_by_publisher", "not_in_config", "packed"});
  EXPECT_EQ(explained, *published);
  if (const auto scales = row.Number("scale_count")) {
    EXPECT_EQ(ExtraOf(*parameters, StoredExtra::Kind::kQuantizationScales), *scales);
  }
  if (const auto buffers = row.Number("buffer_count")) {
    EXPECT_EQ(ExtraOf(*parameters, StoredExtra::Kind::kBuffer), *buffers);
  }
}

TEST_P(PublishedModelTest, CachesToTheLastByte) {
  const ModelRow& row = GetParam();
  if (row.IsRefused()) return;
  const KvCache cache = KvCacheOf(Imported(row.config_text));
  const auto reserved = row.Number("kv_reserved_bytes_per_token");
  if (reserved) {
    EXPECT_EQ(ReservedBytesPerToken(cache, DataType::kBf16), *reserved);
    EXPECT_EQ(GrowingBytesPerToken(cache, DataType::kBf16), *row.Number("kv_growing_bytes_per_token"));
    EXPECT_EQ(ReservedBytesPerToken(cache, DataType::kFp8), *reserved / 2);
  } else if (row.name == "nvidia/Llama-3_3-Nemotron-Super-49B-v1") {
    // 49 of 80 blocks kept their attention: 8 KV heads of 128, keys and values.
    EXPECT_EQ(ReservedBytesPerToken(cache, DataType::kBf16), 49 * 8 * 128 * 2 * 2);
  } else if (row.name == "deepseek-ai/DeepSeek-V4-Flash") {
    // One vector of 512 is key and value. Growing: 21 layers keep one for 4 tokens, 20 layers one for 128. Reserved: a
    // window in all 43 layers too.
    EXPECT_EQ(GrowingBytesPerToken(cache, DataType::kBf16), (21 * 512 / 4 + 20 * 512 / 128) * 2);
    EXPECT_EQ(ReservedBytesPerToken(cache, DataType::kBf16), (21 * 512 / 4 + 20 * 512 / 128 + 43 * 512) * 2);
    EXPECT_EQ(IndexerBytesPerToken(cache, DataType::kBf16), 21 * 128 / 4 * 2);
  } else {
    EXPECT_EQ(ReservedBytesPerToken(cache, DataType::kBf16), 0);  // nothing but constant state
    EXPECT_GT(StateBytes(cache, DataType::kBf16), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PublishedModelTest, testing::ValuesIn(AllModels()),
                         [](const testing::TestParamInfo<ModelRow>& info) { return TestName(info.param.name); });

// Models that models.jsonl does not hold.
TEST(PublishedModelsTest, MoreModels) {
  const std::vector<nlohmann::json> rows = ReadLines("more_models.jsonl");
  EXPECT_EQ(rows.size(), 132u);
  for (const nlohmann::json& line : rows) {
    ModelRow row;
    row.row = line;
    SCOPED_TRACE(line.at("name").get<std::string>());
    const Architecture architecture = Imported(line.at("hf_config").dump());
    const absl::StatusOr<ParameterCount> parameters = CountParameters(architecture);
    ASSERT_TRUE(parameters.ok()) << parameters.status();
    int64_t explained = parameters->total_count;
    for (const auto& [name, kind] : LineKinds()) {
      const int64_t part = row.PartSum({name});
      if (part == 0) continue;
      EXPECT_EQ(ExtraOf(*parameters, kind), part) << name;
      explained += part;
    }
    EXPECT_EQ(explained, line.at("published_count").get<int64_t>());
    const KvCache cache = KvCacheOf(architecture);
    for (const auto& [key, value] :
         {std::pair{"active_count", parameters->active_count}, std::pair{"stored_count", parameters->stored_count},
          std::pair{"checkpoint_bytes", parameters->checkpoint_bytes},
          std::pair{"kv_growing_bytes_per_token", GrowingBytesPerToken(cache, DataType::kBf16)},
          std::pair{"kv_reserved_bytes_per_token", ReservedBytesPerToken(cache, DataType::kBf16)}}) {
      EXPECT_EQ(value, row.Number(key).value_or(value)) << key;
    }
  }
}

// What the table cannot check, by name, so that no row drops out unseen.
TEST(PublishedModelsTest, OnlyKnownRowsLackACount) {
  std::set<std::string> without_total;
  std::set<std::string> not_in_config;
  size_t exact = 0;
  for (const ModelRow& row : AllModels()) {
    if (row.IsRefused()) continue;
    if (!row.Number("total_count")) without_total.insert(row.name);
    if (row.Number("published_count")) ++exact;
    if (row.PartSum({"not_in_config"}) != 0) not_in_config.insert(row.name);
  }
  EXPECT_EQ(AllModels().size(), 143u);
  EXPECT_EQ(exact, 101u);
  // No exact public figure is known; the rounded one is 309B.
  EXPECT_THAT(without_total, testing::ElementsAre("XiaomiMiMo/MiMo-V2-Flash"));
  // A few thousand stored values, and second copies of tied tables, that nothing in the config tells of.
  EXPECT_THAT(not_in_config, testing::ElementsAre("Qwen/Qwen3-0.6B", "Qwen/Qwen3-1.7B", "moonshotai/Kimi-K2-Instruct",
                                                  "moonshotai/Moonlight-16B-A3B"));
}

// The base repository of DeepSeek-V4-Flash holds experts in fp8 as well, and copies of both tables in the draft layer.
TEST(PublishedModelsTest, BaseRepositoryWithoutFp4Experts) {
  nlohmann::json config = ModelNamed("deepseek-ai/DeepSeek-V4-Flash").row.at("hf_config");
  config.erase("expert_dtype");
  const absl::StatusOr<ParameterCount> parameters = CountParameters(Imported(config.dump()));
  ASSERT_TRUE(parameters.ok());
  EXPECT_EQ(parameters->stored_count + int64_t{2} * 129280 * 4096, 292'021'347'282);
}

TEST(PublishedModelsTest, RoundedFigureWhereNoExactOneIsKnown) {
  const absl::StatusOr<ParameterCount> parameters =
      CountParameters(Imported(ModelNamed("XiaomiMiMo/MiMo-V2-Flash").config_text));
  ASSERT_TRUE(parameters.ok());
  EXPECT_NEAR(static_cast<double>(parameters->total_count), 309e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(parameters->active_count), 15e9, 0.5e9);
}

}  // namespace
}  // namespace sliceplan::transformer
