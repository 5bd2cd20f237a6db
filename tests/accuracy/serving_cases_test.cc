#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/calibrate/cases.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/catalog/catalog_store.h"

namespace sliceplan::calibrate {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;

constexpr char kColumns[] =
    "id,accelerator,model,layers,hidden_dim,ffn_dim,ffn_gated,heads,kv_heads,head_dim,vocab,experts,experts_per_token,"
    "attention_kind,chip,chips,tp,pp,ep,dp,weight_dtype,kv_dtype,framework,phase,batch_or_concurrency,input_len,"
    "output_len,context_len,metric_prefill_s,metric_ttft_s,metric_step_ms_or_tpot_ms,metric_output_tokens_per_s_total,"
    "notes\n";
constexpr char kLlama[] = "Llama-3.1-8B,32,4096,14336,1,32,8,128,128256,,,gqa";

const catalog::Catalog& BuiltIn() {
  static const std::shared_ptr<const catalog::Catalog>* const catalog =
      new std::shared_ptr<const catalog::Catalog>(*catalog::BuiltInCatalog());
  return **catalog;
}

CaseTable Read(const std::string& rows) {
  const absl::StatusOr<Table> table = Table::Parse(absl::StrCat(kColumns, rows));
  EXPECT_TRUE(table.ok()) << table.status();
  return ServingCases(*table, BuiltIn());
}

const v1::EstimateServingRequest& Asked(const Case& made) {
  return std::get<v1::EstimateServingRequest>(made.question);
}

TEST(ServingCasesTest, AModelIsWrittenOutFromItsColumns) {
  const CaseTable read =
      Read(absl::StrCat("a-1,tpu-v6e,", kLlama, ",TPU,4,4,,,,bf16,bf16,SGLang-JAX,decode,8,,,1024,,,5.5,,\n"));
  ASSERT_EQ(read.cases.size(), 1);
  const v1::Architecture& model = Asked(read.cases[0]).model().architecture();
  EXPECT_EQ(model.hidden_dim(), 4096);
  EXPECT_EQ(model.vocab_size(), 128256);
  EXPECT_EQ(model.layer_groups(0).repeat_count(), 32);
  EXPECT_EQ(model.layer_groups(0).layers(0).attention().grouped_query().kv_head_count(), 8);
  EXPECT_EQ(model.layer_groups(0).layers(0).feed_forward().dense().ffn_dim(), 14336);
  EXPECT_TRUE(model.layer_groups(0).layers(0).feed_forward().dense().gated());
}

TEST(ServingCasesTest, AModelWithoutDimensionsIsThePresetOfItsName) {
  struct {
    const char* model;  // model to attention_kind
    const char* preset;
  } const kRows[] = {
      {"Llama-3.1-8B,,,,,,,,,,,", "llama-3.1-8b"},
      {"Llama-3.1-8B,32,4096,,,32,,,128256,,,gqa", "llama-3.1-8b"},  // what is there agrees
      {"Llama-3.1-8B,32,4096,,,64,,,,,,", ""},                       // 32 heads
      {"Llama-3.1-8B,16,,,,,,,,,,", ""},                             // 32 layers
      {"Unheard-3B,,,,,,,,,,,", ""},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.model);
    const CaseTable read =
        Read(absl::StrCat("a-1,TPU v6e,", row.model, ",TPU,4,4,,,,bf16,bf16,SGLang-JAX,decode,8,,,1024,,,5.5,,\n"));
    if (*row.preset == '\0') {
      ASSERT_EQ(read.unmapped.size(), 1);
      EXPECT_THAT(read.unmapped[0].reason, HasSubstr("not stated"));
    } else {
      ASSERT_EQ(read.cases.size(), 1) << read.unmapped[0].reason;
      EXPECT_EQ(Asked(read.cases[0]).model().preset(), row.preset);
      EXPECT_EQ(read.cases[0].accelerator, "tpu-v6e");
      EXPECT_EQ(Asked(read.cases[0]).calibration_profile(), "jax-serving-tpu");
    }
  }
}

TEST(ServingCasesTest, PhasesAskForTheirOwnFigure) {
  struct {
    const char* framework;
    const char* rest;  // from `phase` on
    Metric metric;
    double value;
    v1::ServingWorkload::LoadCase load;
    const char* profile;
  } const kRows[] = {
      {"TensorRT-LLM v0.6", "prefill,1,128,,,0.007,,,,first token", Metric::kPrefillSeconds, 0.007,
       v1::ServingWorkload::kBatchSize, "trtllm-gpu"},
      {"SGLang", "prefill,8,1024,1,,,0.12,,,closed loop", Metric::kTimeToFirstToken, 0.12,
       v1::ServingWorkload::kConcurrency, "sglang-gpu"},
      {"gpt-fast (PyTorch compile)", "decode,1,5,,,,,9.5,,", Metric::kDecodeStepSeconds, 0.0095,
       v1::ServingWorkload::kBatchSize, "torch-compile-gpu"},
      {"FasterTransformer", "e2e,16,20,8,,,,,64,", Metric::kBatchLatencySeconds, 16 * 8 / 64.0,
       v1::ServingWorkload::kBatchSize, "fastertransformer-gpu"},
      {"vLLM 0.10", "e2e,64,1000,1000,,,,,2500,", Metric::kOutputTokensPerSecond, 2500,
       v1::ServingWorkload::kConcurrency, "vllm-gpu"},
      {"TensorRT-LLM", "e2e,,467,256,,,,,500,offered QPS 2; mean", Metric::kOutputTokensPerSecond, 500,
       v1::ServingWorkload::kRequestsPerSecond, "trtllm-gpu"},
      {"TensorRT-LLM", "e2e,,467,256,,,,,500,infinite rate", Metric::kOutputTokensPerSecond, 500,
       v1::ServingWorkload::LOAD_NOT_SET, "trtllm-gpu"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.rest);
    const CaseTable read = Read(
        absl::StrCat("a-1,nvidia-h100-sxm,", kLlama, ",H100,1,1,,,,bf16,bf16,", row.framework, ",", row.rest, "\n"));
    ASSERT_EQ(read.cases.size(), 1) << read.unmapped[0].reason;
    const Case& made = read.cases[0];
    ASSERT_FALSE(made.measured.empty());
    EXPECT_EQ(made.measured[0].metric, row.metric);
    EXPECT_DOUBLE_EQ(made.measured[0].value, row.value);
    EXPECT_EQ(Asked(made).workload().load_case(), row.load);
    EXPECT_EQ(Asked(made).calibration_profile(), row.profile);
  }
}

TEST(ServingCasesTest, DegreesCountChipsOfOneReplica) {
  struct {
    const char* degrees;  // chips,tp,pp,ep,dp
    const char* notes;
    int tensor, pipeline, expert, chips, replicas;
  } const kRows[] = {
      {"8,8,,,", "", 8, 1, 0, 8, 1},
      {"24,8,3,,", "", 8, 3, 0, 24, 1},
      {"8,2,,,4", "", 2, 1, 0, 2, 4},       // whole replicas
      {"8,2,,,", "", 2, 1, 0, 2, 4},        // the same, not said
      {"32,,,32,32", "", 1, 1, 32, 32, 1},  // ranks of the attention
      {"4,8,,8,", "", 4, 1, 0, 4, 1},       // TensorCores
      {"4,8,,8,", "DP attention enabled", 1, 1, 4, 4, 1},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(absl::StrCat(row.degrees, " ", row.notes));
    const CaseTable read = Read(absl::StrCat("a-1,nvidia-h100-sxm,", kLlama, ",H100,", row.degrees,
                                             ",bf16,bf16,vLLM,e2e,64,100,100,,,,,2500,", row.notes, "\n"));
    ASSERT_EQ(read.cases.size(), 1) << read.unmapped[0].reason;
    const v1::EstimateServingRequest& asked = Asked(read.cases[0]);
    const bool pools = asked.pools_size() > 0;
    const v1::AxisDegrees& ici = pools ? asked.pools(0).parallelism().ici() : asked.parallelism().ici();
    EXPECT_EQ(ici.tensor(), row.tensor);
    EXPECT_EQ(ici.pipeline(), row.pipeline);
    EXPECT_EQ(ici.expert(), row.expert);
    EXPECT_EQ((pools ? asked.pools(0).slice() : asked.slice()).chip_count(), row.chips);
    EXPECT_EQ(pools ? asked.pools(0).replica_count() : 1, row.replicas);
  }
}

TEST(ServingCasesTest, NothingStatedLeavesThePlanToTheEngine) {
  const CaseTable read =
      Read(absl::StrCat("a-1,tpu-v4,", kLlama, ",TPU,64,,,,,int8,,JAX,decode,64,,64,2048,,,28.5,,\n"));
  ASSERT_EQ(read.cases.size(), 1);
  // A plan for steps alone.
  ASSERT_EQ(Asked(read.cases[0]).pools_size(), 1);
  EXPECT_EQ(Asked(read.cases[0]).pools(0).role(), v1::POOL_ROLE_DECODE);
  EXPECT_FALSE(Asked(read.cases[0]).pools(0).has_parallelism());
}

TEST(ServingCasesTest, LengthsOfAStatedRangeAreDrawn) {
  const CaseTable read = Read(absl::StrCat("a-1,tpu-v6e,", kLlama,
                                           ",TPU,4,4,,,,fp8,fp8,vLLM TPU,e2e,64,1024,8192,,,,,2000,"
                                           "length range ratio 0.8; max_num_seqs 48\n"));
  ASSERT_EQ(read.cases.size(), 1);
  const v1::ServingWorkload& load = Asked(read.cases[0]).workload();
  EXPECT_DOUBLE_EQ(load.prompt_distribution().moments().mean_tokens(), 0.9 * 1024);
  // (1 - 0.8) / sqrt(12) / 0.9
  EXPECT_THAT(load.output_distribution().moments().coefficient_of_variation(),
              DoubleNear(0.2 / std::sqrt(12.0) / 0.9, 1e-12));
  EXPECT_EQ(load.max_batch_size(), 48);
}

TEST(ServingCasesTest, StandingFollowsTheNotes) {
  struct {
    const char* notes;
    Standing standing;
  } const kRows[] = {
      {"mean ITL", Standing::kScored},
      {"offered batch exceeds KV capacity", Standing::kInconsistent},
      {"chip ambiguous; do not use for gating", Standing::kInformative},
  };
  for (const auto& row : kRows) {
    const CaseTable read = Read(absl::StrCat(
        "a-1,tpu-v6e,", kLlama, ",TPU,4,4,,,,bf16,bf16,SGLang-JAX,e2e,8,1024,1024,,,,6,1300,", row.notes, "\n"));
    ASSERT_EQ(read.cases.size(), 1);
    EXPECT_EQ(read.cases[0].standing, row.standing) << row.notes;
  }
}

TEST(ServingCasesTest, RowsWithoutAQuestionAreListedWithTheReason) {
  struct {
    std::string row;  // after the id
    const char* reason;
  } const kRows[] = {
      {absl::StrCat(",", kLlama, ",H800,8,8,,,,fp8,,SGLang,decode,8,,,100,,,5,,"), "no catalog id"},
      {absl::StrCat("tpu-v5e,", kLlama, ",v5e,8,8,,,,bf16,,JetStream,e2e,128,,,,,,,8249,"), "input_len"},
      {absl::StrCat("tpu-v5e,", kLlama, ",v5e,8,8,,,,bf16,,JetStream,prefill,,1024,,,1,,,,"), "batch"},
      {absl::StrCat("nvidia-h100-sxm,", kLlama, ",H100,8,3,,,,bf16,,vLLM,e2e,8,10,10,,,,,100,"), "degrees"},
      {"tpu-v6e,Hy3,,,,,,,,,,,,TPU,8,8,,,,bf16,,vLLM,decode,8,,,100,,,5,,", "not stated"},
      {"tpu-v6e,X,32,4096,11008,1,32,32,128,32000,,,mla,TPU,8,8,,,,bf16,,vLLM,decode,8,,,100,,,5,,", "kind mla"},
      {absl::StrCat("tpu-v6e,", kLlama, ",TPU,8,8,,,,bf16,,vLLM,decode,8,,,100,,,,,"), "no figure"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.row);
    const CaseTable read = Read(absl::StrCat("src-7,", row.row, "\n"));
    EXPECT_TRUE(read.cases.empty());
    ASSERT_EQ(read.unmapped.size(), 1);
    EXPECT_EQ(read.unmapped[0].source, "src");
    EXPECT_THAT(read.unmapped[0].reason, HasSubstr(row.reason));
  }
}

}  // namespace
}  // namespace sliceplan::calibrate
