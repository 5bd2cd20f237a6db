#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/calibrate/cases.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/catalog/catalog_store.h"

namespace sliceplan::calibrate {
namespace {

using ::testing::HasSubstr;

constexpr char kColumns[] =
    "id,accelerator,concurrency,backend,backend_version,model_path,system,precision,mode,isl,osl,batch_size,tp_size,"
    "pp_size,attention_dp_size,moe_tp_size,moe_ep_size,prefill_num_workers,prefill_tp_size,prefill_attention_dp_size,"
    "decode_batch_size,decode_num_workers,decode_tp_size,decode_attention_dp_size,decode_moe_ep_size,silicon_ttft_ms,"
    "silicon_tpot_ms\n";

const catalog::Catalog& BuiltIn() {
  static const std::shared_ptr<const catalog::Catalog>* const catalog =
      new std::shared_ptr<const catalog::Catalog>(*catalog::BuiltInCatalog());
  return **catalog;
}

CaseTable Read(const std::string& rows) {
  const absl::StatusOr<Table> table = Table::Parse(absl::StrCat(kColumns, rows));
  EXPECT_TRUE(table.ok()) << table.status();
  return EndToEndCases(*table, BuiltIn());
}

const v1::EstimateServingRequest& Asked(const Case& made) {
  return std::get<v1::EstimateServingRequest>(made.question);
}

TEST(EndToEndCasesTest, DegreesOfOneEngine) {
  struct {
    const char* row;  // system,precision,... is built around it: users, batch, tp, attention dp, moe tp, moe ep
    int users, tensor, expert;
  } const kRows[] = {
      {"64,64,8,1,8,1", 64, 8, 1},   {"64,64,64,1,8,8", 64, 8, 1},  // 8 x 8 of one machine: the degree twice over
      {"256,4,1,64,8,8", 256, 1, 8}, {"256,32,1,8,1,8", 256, 1, 8}, {"128,32,4,1,1,4", 128, 1, 4},  // batch x 4 = users
      {",32,2,,1,1", 32, 2, 0},  // no experts to share
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.row);
    const std::vector<std::string> cells = absl::StrSplit(row.row, ',');
    const CaseTable read =
        Read(absl::StrCat("a,nvidia-b200,", cells[0], ",trtllm,1.0,deepseek-ai/DeepSeek-R1,b200_sxm,fp8,agg,4000,1000,",
                          cells[1], ",", cells[2], ",1,", cells[3], ",", cells[4], ",", cells[5], ",,,,,,,,,200,10\n"));
    ASSERT_EQ(read.cases.size(), 1) << read.unmapped[0].reason;
    const v1::EstimateServingRequest& asked = Asked(read.cases[0]);
    EXPECT_EQ(asked.workload().concurrency(), row.users);
    EXPECT_EQ(asked.parallelism().ici().tensor(), row.tensor);
    EXPECT_EQ(asked.parallelism().ici().expert(), row.expert);
    EXPECT_EQ(asked.slice().chip_count(), row.tensor * std::max(1, row.expert));
  }
}

TEST(EndToEndCasesTest, FormatsAreTheRecipes) {
  struct {
    const char* backend;
    const char* model;
    const char* precision;
    v1::DataType weights, cache;  // unspecified: as published, 16 bits
  } const kRows[] = {
      {"vllm", "meta-llama/Llama-3.1-70B", "fp8", v1::DATA_TYPE_FP8, v1::DATA_TYPE_FP8},
      {"trtllm", "nvidia/Qwen3-32B-NVFP4", "fp4", v1::DATA_TYPE_FP4, v1::DATA_TYPE_FP8},
      {"sglang", "deepseek-ai/DeepSeek-R1", "fp8", v1::DATA_TYPE_UNSPECIFIED, v1::DATA_TYPE_UNSPECIFIED},
      {"vllm", "openai/gpt-oss-120b", "fp4", v1::DATA_TYPE_UNSPECIFIED, v1::DATA_TYPE_FP8},
      {"vllm", "Qwen/Qwen3-32B", "", v1::DATA_TYPE_UNSPECIFIED, v1::DATA_TYPE_UNSPECIFIED},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(absl::StrCat(row.backend, " ", row.model));
    const CaseTable read = Read(absl::StrCat("a,nvidia-b200,8,", row.backend, ",1.0,", row.model, ",b200_sxm,",
                                             row.precision, ",agg,4000,1000,8,8,1,1,8,1,,,,,,,,,200,10\n"));
    ASSERT_EQ(read.cases.size(), 1) << read.unmapped[0].reason;
    EXPECT_EQ(Asked(read.cases[0]).workload().precision().weights(), row.weights);
    EXPECT_EQ(Asked(read.cases[0]).workload().precision().kv_cache(), row.cache);
  }
}

TEST(EndToEndCasesTest, NominalLengthsOfInferenceXAreDrawn) {
  const CaseTable read = Read(
      "a,nvidia-b200,8,vllm,1.0,meta-llama/Llama-3.1-70B,b200_sxm,fp8,agg,1024,8192,8,8,1,1,8,1,,,,,,,,,200,10\n"
      "b,nvidia-b200,8,vllm,1.0,meta-llama/Llama-3.1-70B,b200_sxm,fp8,agg,4000,1000,8,8,1,1,8,1,,,,,,,,,200,10\n");
  ASSERT_EQ(read.cases.size(), 2);
  EXPECT_DOUBLE_EQ(Asked(read.cases[0]).workload().output_distribution().moments().mean_tokens(), 0.9 * 8192);
  EXPECT_DOUBLE_EQ(Asked(read.cases[1]).workload().output_distribution().moments().mean_tokens(), 1000);
}

TEST(EndToEndCasesTest, PoolsHaveTheirOwnPlans) {
  const CaseTable read = Read(
      "a,nvidia-gb200-nvl72,2048,trtllm,1.0,deepseek-ai/DeepSeek-V3,gb200,fp8,disagg,4000,1000,,,1,,,,3,4,1,64,2,"
      "1,32,32,1877,24.5\n");
  ASSERT_EQ(read.cases.size(), 1) << read.unmapped[0].reason;
  const v1::EstimateServingRequest& asked = Asked(read.cases[0]);
  ASSERT_EQ(asked.pools_size(), 2);
  EXPECT_EQ(asked.pools(0).role(), v1::POOL_ROLE_PREFILL);
  EXPECT_EQ(asked.pools(0).replica_count(), 3);
  EXPECT_EQ(asked.pools(0).parallelism().ici().tensor(), 4);
  EXPECT_EQ(asked.pools(1).role(), v1::POOL_ROLE_DECODE);
  EXPECT_EQ(asked.pools(1).replica_count(), 2);
  EXPECT_EQ(asked.pools(1).parallelism().ici().expert(), 32);
  EXPECT_EQ(asked.pools(1).slice().chip_count(), 32);
}

TEST(EndToEndCasesTest, PlansOfOneJobAreThoseOfTheSameUsersOnTheSameChips) {
  const auto job = [](const char* users, const char* tensor, const char* data, const char* version) {
    const CaseTable read = Read(absl::StrCat("a,nvidia-b200,", users, ",vllm,", version,
                                             ",meta-llama/Llama-3.1-70B,b200_sxm,fp8,agg,4000,1000,8,", tensor, ",1,",
                                             data, ",1,1,,,,,,,,,200,10\n"));
    EXPECT_EQ(read.cases.size(), 1U);
    return read.cases[0].job;
  };
  EXPECT_EQ(job("64", "8", "1", "1.0"), job("64", "4", "2", "1.0"));
  EXPECT_NE(job("64", "8", "1", "1.0"), job("64", "4", "1", "1.0"));
  EXPECT_NE(job("64", "8", "1", "1.0"), job("32", "8", "1", "1.0"));
  EXPECT_NE(job("64", "8", "1", "1.0"), job("64", "8", "1", "1.1"));
}

TEST(EndToEndCasesTest, NamesOfOneArchitectureAreLeftOutTogether) {
  for (const char* path : {"deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-V3", "nvidia/DeepSeek-V3.1-NVFP4"}) {
    const CaseTable read = Read(
        absl::StrCat("a,nvidia-b200,8,trtllm,1.0,", path, ",b200_sxm,fp4,agg,4000,1000,8,8,1,1,8,1,,,,,,,,,200,10\n"));
    ASSERT_EQ(read.cases.size(), 1U);
    EXPECT_EQ(read.cases[0].architecture, "deepseek-v3") << path;
  }
}

TEST(EndToEndCasesTest, LittlesLawGivesTheThroughput) {
  const CaseTable read =
      Read("a,nvidia-b200,8,vllm,1.0,meta-llama/Llama-3.1-70B,b200_sxm,fp8,agg,4000,1000,8,8,1,1,8,1,,,,,,,,,200,10\n");
  ASSERT_EQ(read.cases.size(), 1);
  ASSERT_EQ(read.cases[0].measured.size(), 3);
  EXPECT_EQ(read.cases[0].measured[2].metric, Metric::kOutputTokensPerSecond);
  EXPECT_NEAR(read.cases[0].measured[2].value, 8 * 1000 / (0.2 + 999 * 0.01), 1e-9);
  EXPECT_TRUE(read.cases[0].measured[2].derived);
}

TEST(EndToEndCasesTest, WhatIsNotScoredOrAsked) {
  constexpr char kKey[] =
      "nvidia-b200,8,trtllm,1.0,deepseek-ai/DeepSeek-R1,b200_sxm,fp8,agg,4000,1000,8,8,1,1,8,1,,,,,,,,,";
  const CaseTable twice = Read(absl::StrCat("a,", kKey, "200,10\nb,", kKey, "200,10\n"));
  EXPECT_EQ(twice.cases.size(), 1);
  ASSERT_EQ(twice.unmapped.size(), 1);
  EXPECT_THAT(twice.unmapped[0].reason, HasSubstr("twice"));

  const CaseTable contradicting = Read(absl::StrCat("a,", kKey, "200,10\nb,", kKey, "200,16\n"));
  ASSERT_EQ(contradicting.cases.size(), 2);
  EXPECT_EQ(contradicting.cases[0].standing, Standing::kInconsistent);
  EXPECT_EQ(contradicting.cases[1].standing, Standing::kInconsistent);

  const CaseTable wide = Read(
      "a,nvidia-gb200-nvl72,8,trtllm,1.0,deepseek-ai/DeepSeek-R1,gb200,fp8,agg,4000,1000,8,72,1,1,72,1,,,,,,,,,200,10\n"
      "b,nvidia-gb200-nvl72,8,trtllm,1.0,deepseek-ai/"
      "DeepSeek-R1,gb200,fp8,disagg,4000,1000,,,,,,,,4,1,,,4,1,,200,10\n");
  EXPECT_TRUE(wide.cases.empty());
  ASSERT_EQ(wide.unmapped.size(), 2);
  EXPECT_THAT(wide.unmapped[0].reason, HasSubstr("layout"));
  EXPECT_THAT(wide.unmapped[1].reason, HasSubstr("workers"));
}

}  // namespace
}  // namespace sliceplan::calibrate
