// Tables of replies, on replies written by hand.
#include "client/cli/report.h"

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/describe.h"
#include "client/cli/train.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/client/cli/parse.h"

namespace sliceplan::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFeasible[] = R"(
  estimate {
    outcome: OUTCOME_FEASIBLE
    chip_count: 8192
    slice { slice { accelerator: "tpu-v5p" topology: "16x16x16" dims: 16 dims: 16 dims: 16 } slice_count: 2
            total_chip_count: 8192 }
    step_time { roofline_lower_seconds: 0.5 roofline_upper_seconds: 0.9 expected_seconds: 0.62 p05_seconds: 0.58
                p95_seconds: 0.67 }
    mfu_ratio: 0.55 hfu_ratio: 0.68 tokens_per_second: 6764232 tokens_per_second_per_chip: 825.7
    tokens_per_step: 4194304
    flops_convention { name: "6 x matmul parameters" peak_flops_per_second_per_chip: 459e12 peak_format: "bf16" }
    time_to_train_seconds: 2217560 step_count: 3576279 total_model_flops: 6.3e24
    cost { total_usd: 21.2e6 usd_per_chip_hour: 4.2 usd_per_million_tokens: 1.41 usd_per_hour: 34406
           price { row { provider: "gcp" region: "us-east5" price_model: PRICE_MODEL_ON_DEMAND as_of: "2026-08-22" } } }
    memory { used_bytes: 64424509440 capacity_bytes: 102005473280 parameters_bytes: 34359738368
             optimizer_bytes: 21474836480 activations_bytes: 10737418240 not_coexisting_bytes: 2147483648
             headroom_bytes: 37580963840 moment: "backward pass of the output head" }
    parallelism { ici { fsdp: 512 context: 2 tensor: 4 } dcn { data: 2 } }
    workload { remat_policy: REMAT_POLICY_FULL optimizer: OPTIMIZER_ADAMW gradient_accumulation: 1 }
    mapping { axis: PARALLELISM_AXIS_TENSOR ici_degree: 4 dcn_degree: 1 pieces { axis: PARALLELISM_AXIS_TENSOR
              physical_axis: 2 factor: 4 } }
    mapping { axis: PARALLELISM_AXIS_DATA ici_degree: 1 dcn_degree: 2 }
    bottleneck { resource: RESOURCE_MATRIX_UNIT share_ratio: 0.7 sentence: "The matrix unit takes 70.0% of the step." }
    breakdown { component: COMPONENT_FEED_FORWARD resource: RESOURCE_MATRIX_UNIT phase: PHASE_FORWARD seconds: 0.2 }
    breakdown { component: COMPONENT_FEED_FORWARD resource: RESOURCE_MATRIX_UNIT phase: PHASE_BACKWARD seconds: 0.3 }
    breakdown { component: COMPONENT_ATTENTION_SCORES resource: RESOURCE_VECTOR_UNIT phase: PHASE_FORWARD seconds: 0.09 }
    breakdown { resource: RESOURCE_ICI phase: PHASE_GRADIENT_REDUCTION axis: PARALLELISM_AXIS_FSDP seconds: 0.03
                hidden_seconds: 0.1 }
    thresholds { tokens_per_chip: 512 data_tokens_per_chip: 850 fsdp_tensor_tokens_per_chip: 235
                 own_split_tokens_per_chip: 113 tensor_degree_limit: 18.3 sentence: "FSDP alone needs more." }
    advice { code: "MORE_TENSOR" sentence: "Tensor 8 instead of 4." expected_seconds: 0.6 time_change_ratio: -0.032
             memory_change_bytes: -1073741824 changes { field: "parallelism.ici.tensor" value: "8" } }
    advice { code: "REMAT" sentence: "Save more." changes { field: "workload.remat_policy" value: "REMAT_POLICY_NONE" } }
    assumptions { field: "workload.optimizer" value: "OPTIMIZER_ADAMW" sentence: "AdamW, the usual choice." }
    warnings { code: "NOT_SOLD" field: "slice.topology" sentence: "The shape is not sold as one slice." }
  }
  engine_version: "1.0.0" catalog_version: "2026-08-22"
)";

constexpr char kOutOfMemory[] = R"(
  estimate {
    outcome: OUTCOME_OUT_OF_MEMORY
    slice { slice { accelerator: "tpu-v5e" topology: "4x4" } slice_count: 1 total_chip_count: 16 }
    shortfall { limit: "hbm_bytes" sentence: "Each chip needs 60.0 GiB and has 15.7 GiB." }
    smallest_fix { sentence: "Recompute everything." code: "REMAT" expected_seconds: 2
                   changes { field: "workload.remat_policy" value: "REMAT_POLICY_FULL" } }
    memory { used_bytes: 64424509440 capacity_bytes: 16857956352 parameters_bytes: 64424509440
             headroom_bytes: -47566553088 stage_index: 2 }
    stage_memory { } stage_memory { } stage_memory { } stage_memory { }
  }
)";

std::string TrainingTable(const char* text, const Style& style) {
  v1::EstimateTrainingResponse response;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &response));
  TrainQuestion question;
  const ParsedFlags parsed(&question, {"--model", "llama-3-70b", "--slice", "v5p-8192"});
  std::ostringstream out;
  Report report(&out, style);
  PrintTraining(response, "llama-3-70b", parsed.flags(), report);
  return out.str();
}

// Line breaks and indents are the terminal's affair.
std::string Unwrapped(std::string table) {
  table = absl::StrReplaceAll(table, {{"\n", " "}});
  absl::RemoveExtraAsciiWhitespace(&table);
  return table;
}

void ExpectNarrow(const std::string& table, size_t columns) {
  for (const absl::string_view line : absl::StrSplit(table, '\n')) EXPECT_LE(line.size(), columns) << line;
}

TEST(TrainReportTest, SaysEverythingThatMatters) {
  const std::string table = TrainingTable(kFeasible, Style());
  ExpectNarrow(table, kMaxColumns);
  for (const char* part : {
           "FEASIBLE training llama-3-70b on 2 x tpu-v5p 16x16x16 (8,192 chips)",
           "620 ms expected, 580 ms to 670 ms in 9 of 10 runs",
           "500 ms with full overlap, 900 ms with none",
           "MFU 55.0% of 459 TFLOP/s bf16",
           "6.76M tokens/s, 826 per chip; 4,194,304 tokens a step",
           "25.7 days for 3,576,279 steps, 6.30e24 useful FLOPs",
           "$21.2M in all, $1.41 per million tokens, $34.4k an hour at $4.20 per chip-hour",
           "gcp us-east5, on demand, 2026-08-22",
           "60.0 GiB of 95.0 GiB per chip (63.2%)",
           "The matrix unit takes 70.0% of the step.",
           "fsdp 512 x tensor 4 x context 2; data 2 across slices; remat full; adamw",
           "tensor on axis 2 x4; data on DCN x2",
           "forward 46.8%, backward 48.4%, gradient reduction 4.8%",
           "ICI, fsdp",
           "too few: bound by the network",
           "Tensor degrees up to 18.3 are bound by compute.",
           "Tensor 8 instead of 4. (then 600 ms, time -3.2%, memory -1.00 GiB) [--parallelism tensor=8]",
           "Save more. [--remat none]",
           "AdamW, the usual choice. [--optimizer]",
           "The shape is not sold as one slice. [--slice]",
           "engine 1.0.0, catalog 2026-08-22",
       }) {
    EXPECT_THAT(Unwrapped(table), HasSubstr(part));
  }
  EXPECT_THAT(table, Not(HasSubstr("\033")));
}

TEST(TrainReportTest, MergesPhasesAndOrdersByTime) {
  const std::string table = TrainingTable(kFeasible, Style());
  const std::vector<std::string> lines = absl::StrSplit(table, '\n');
  std::vector<std::string> parts;
  for (const std::string& line : lines) {
    if (absl::StrContains(line, "%  ") && absl::StrContains(line, "#")) parts.push_back(line);
  }
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_THAT(parts[0], HasSubstr("feed forward"));
  EXPECT_THAT(parts[0], HasSubstr("500 ms"));
  EXPECT_THAT(parts[0], HasSubstr("80.6%"));
  EXPECT_THAT(parts[1], HasSubstr("attention scores"));
  EXPECT_THAT(parts[2], HasSubstr("100 ms"));
}

TEST(TrainReportTest, PutsWhatIsMissingFirst) {
  const std::string table = TrainingTable(kOutOfMemory, Style());
  ExpectNarrow(table, kMaxColumns);
  EXPECT_THAT(table, testing::StartsWith("OUT OF MEMORY  training llama-3-70b on tpu-v5e 4x4 (16 chips)\n"
                                         "  missing      Each chip needs 60.0 GiB and has 15.7 GiB.\n"
                                         "  fix          Recompute everything. [--remat full]"));
  EXPECT_THAT(table, HasSubstr("pipeline stage 3 of 4"));
  EXPECT_THAT(table, HasSubstr("44.3 GiB too much"));
  EXPECT_THAT(table, Not(HasSubstr("step time")));
}

TEST(TrainReportTest, NamesTheZeroStage) {
  v1::TrainingEstimate estimate;
  estimate.mutable_parallelism()->mutable_ici()->set_data(8);
  for (const auto& [stage, words] :
       {std::pair{v1::ZERO_STAGE_1, "ZeRO stage 1 over data"}, std::pair{v1::ZERO_STAGE_3, "ZeRO stage 3 over data"}}) {
    estimate.mutable_parallelism()->set_data_zero_stage(stage);
    EXPECT_THAT(PlanText(estimate), HasSubstr(words));
  }
  estimate.mutable_parallelism()->set_data_zero_stage(v1::ZERO_STAGE_0);
  EXPECT_THAT(PlanText(estimate), Not(HasSubstr("ZeRO")));
}

TEST(TrainReportTest, IsNarrowOnNarrowTerminals) { ExpectNarrow(TrainingTable(kFeasible, {70, false}), 70); }

TEST(TrainReportTest, PaintsOnlyWhenAsked) {
  EXPECT_THAT(TrainingTable(kFeasible, {100, true}), HasSubstr("\033[1;32mFEASIBLE"));
  EXPECT_THAT(TrainingTable(kOutOfMemory, {100, true}), HasSubstr("\033[1;31mOUT OF MEMORY"));
}

TEST(TrainReportTest, SurvivesAnEmptyReply) {
  const std::string table = TrainingTable("", Style());
  ExpectNarrow(table, kMaxColumns);
  EXPECT_THAT(table, HasSubstr("UNSET"));
}

TEST(DescribeReportTest, ShowsBothSums) {
  DescribeQuestion question;
  const ParsedFlags parsed(&question, {"m"});
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    name: "deepseek" layer_count: 61 sequence_length: 8192
    parameters { total_count: 671026419200 active_count: 37552282624 mtp_count: 11506843136 stored_count: 684531386000
                 components { component: COMPONENT_FEED_FORWARD count: 671026419200 }
                 components { component: COMPONENT_MTP count: 11506843136 }
                 stored_extras { kind: STORED_EXTRA_KIND_MTP_LAYERS name: "multi-token prediction" count: 13504966800 }
                 weights_bytes: 688586727753 }
    flops { forward_flops_per_token: 8e10 training_flops_per_token: 24e10 }
    kv_cache { bytes_per_token: 70272 reserved_bytes_per_token: 70272 dtype: DATA_TYPE_BF16 })",
                                                            question.response()));
  std::ostringstream out;
  Report report(&out, Style());
  question.Print(parsed.flags(), report);
  ExpectNarrow(out.str(), kMaxColumns);
  EXPECT_THAT(out.str(), HasSubstr("671,026,419,200 parameters"));
  EXPECT_THAT(out.str(), HasSubstr("37,552,282,624 parameters are used"));
  EXPECT_THAT(out.str(), HasSubstr("684,531,386,000"));
  EXPECT_THAT(out.str(), HasSubstr("68.6 KiB"));
}

TEST(ReportTest, CutsTextThatIsTooWide) {
  std::ostringstream out;
  Report report(&out, {40, false});
  report.Table({{"name", false}, {"count", true}}, {{std::string(60, 'n'), "1,234,567"}, {"short", "1"}});
  ExpectNarrow(out.str(), 40);
  EXPECT_THAT(out.str(), HasSubstr("1,234,567"));
  EXPECT_THAT(out.str(), HasSubstr("nn.."));
}

TEST(ReportTest, ShowsSmallShares) {
  EXPECT_EQ(Report::Bar(0.001), "#");
  EXPECT_EQ(Report::Bar(0), "");
  EXPECT_EQ(Report::Bar(1).size(), Report::Bar(2).size());
}

}  // namespace
}  // namespace sliceplan::cli
