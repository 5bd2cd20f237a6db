// Figures that people reported in public about parameters and caches.
#include <cmath>

#include "gtest/gtest.h"
#include "server/transformer/flops.h"
#include "server/transformer/kv_cache.h"
#include "server/transformer/parameter_count.h"
#include "tests/transformer/model_table.h"

namespace sliceplan::transformer {
namespace {

using hardware::DataType;

class ModelReportTest : public testing::TestWithParam<nlohmann::json> {};

double Answer(const nlohmann::json& row) {
  const std::string quantity = row.at("quantity");
  const Architecture architecture = Imported(
      row.contains("model") ? ModelNamed(row.at("model").get<std::string>()).config_text : row.at("hf_config").dump());
  const ModelOperations model = OperationsOf(architecture).value();
  const ParameterCount parameters = CountParameters(architecture, model);
  const KvCache cache = KvCacheOf(architecture);
  const DataType dtype = row.value("kv_cache_dtype", "bf16") == "fp8" ? DataType::kFp8 : DataType::kBf16;
  const int64_t context = row.value("context_tokens", int64_t{0});
  if (quantity == "kv_reserved_bytes_per_token") return static_cast<double>(ReservedBytesPerToken(cache, dtype));
  if (quantity == "kv_growing_bytes_per_token") return static_cast<double>(GrowingBytesPerToken(cache, dtype));
  if (quantity == "kv_bytes_at_context") return BytesAtContext(cache, context, dtype);
  if (quantity == "kv_growing_bytes_at_context") {
    return static_cast<double>(GrowingBytesPerToken(cache, dtype)) * static_cast<double>(context);
  }
  if (quantity == "kv_tokens_in_budget") {
    return std::floor(row.at("budget_bytes").get<double>() / static_cast<double>(ReservedBytesPerToken(cache, dtype)));
  }
  if (quantity == "checkpoint_bytes") return static_cast<double>(parameters.checkpoint_bytes);
  if (quantity == "total_count") return static_cast<double>(parameters.total_count);
  if (quantity == "active_count") return static_cast<double>(parameters.active_count);
  if (quantity == "bf16_bytes") return WeightBytes(parameters, DataType::kBf16);
  if (quantity == "training_flops_and_norms") {
    // That counter multiplies every active parameter by six, norms included, and takes full attention.
    const double norms = static_cast<double>(parameters.components[static_cast<size_t>(Component::kNorm)]);
    return CountFlops(model, context, AttentionMask::kFull).training() + 6 * norms;
  }
  ADD_FAILURE() << "no such quantity: " << quantity;
  return NAN;
}

TEST_P(ModelReportTest, IsReproduced) {
  const nlohmann::json& row = GetParam();
  const double value = row.at("value").get<double>();
  EXPECT_NEAR(Answer(row) / row.value("divisor", 1.0), value, value * row.at("tolerance").get<double>())
      << row.at("url") << " " << row.at("quantity");
}

INSTANTIATE_TEST_SUITE_P(All, ModelReportTest, testing::ValuesIn(ReadLines("model_reports.jsonl")),
                         [](const testing::TestParamInfo<nlohmann::json>& info) {
                           return TestName(info.param.at("id").get<std::string>() + "_" +
                                           info.param.at("quantity").get<std::string>() + "_" +
                                           std::to_string(info.index));
                         });

}  // namespace
}  // namespace sliceplan::transformer
