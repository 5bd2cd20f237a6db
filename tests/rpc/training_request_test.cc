// What training requests are refused for, and which defaults a small one gets.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/sliceplan/v1/training.pb.h"
#include "server/rpc/errors.h"
#include "tests/rpc/testing.h"

namespace sliceplan::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr char kMethod[] = "PlannerService/EstimateTraining";

// Two slices of 64 chips: a request with which nothing is wrong.
constexpr char kGood[] = R"pb(
  model { preset: "llama-3-8b" }
  slice { accelerator: "tpu-v5p" topology: "4x4x4" slice_count: 2 }
  parallelism { ici { fsdp: 64 } }
)pb";

v1::EstimateTrainingRequest Merged(absl::string_view text) {
  auto request = FromText<v1::EstimateTrainingRequest>(kGood);
  request.MergeFrom(FromText<v1::EstimateTrainingRequest>(text));
  return request;
}

struct Row {
  const char* name;
  const char* text;  // merged into kGood
  std::vector<std::string> fields;
};

const Row kRows[] = {
    {"no such topology", "slice { topology: '3x3x3' }", {"slice.topology"}},
    {"slices without end", "slice { slice_count: 100000 }", {"slice.slice_count"}},
    {"sequence of nothing", "workload { sequence_length: 0 }", {"workload.sequence_length"}},
    {"negative sequence", "workload { sequence_length: -8 }", {"workload.sequence_length"}},
    {"tokens that are no sequences",
     "workload { sequence_length: 4096 global_batch_tokens: 5000 }",
     {"workload.global_batch_tokens"}},
    {"negative batch", "workload { global_batch_size: -1 }", {"workload.global_batch_size"}},
    {"no tokens at all", "workload { total_tokens: 0 }", {"workload.total_tokens"}},
    {"steps without end", "workload { step_count: 9007199254740992 }", {"workload.step_count"}},
    {"format of no meaning", "workload { precision { compute: 77 } }", {"workload.precision.compute"}},
    {"weights in int8", "workload { precision { parameters: DATA_TYPE_INT8 } }", {"workload.precision.parameters"}},
    {"policy of no meaning", "workload { remat_policy: 99 }", {"workload.remat_policy"}},
    {"custom without a list", "workload { remat_policy: REMAT_POLICY_CUSTOM }", {"workload.custom_remat"}},
    {"a list without custom", "workload { custom_remat { saved: LAYER_TENSOR_CONTEXT } }", {"workload.custom_remat"}},
    {"a tensor in two lists",
     "workload { remat_policy: REMAT_POLICY_CUSTOM custom_remat { saved: LAYER_TENSOR_CONTEXT offloaded: "
     "LAYER_TENSOR_CONTEXT } }",
     {"workload.custom_remat.offloaded[0]"}},
    {"keys apart from values",
     "workload { remat_policy: REMAT_POLICY_CUSTOM custom_remat { saved: LAYER_TENSOR_KEY_PROJ } }",
     {"workload.custom_remat"}},
    {"checkpoints beside a policy",
     "workload { remat_policy: REMAT_POLICY_FULL checkpoints_per_layer: 2 }",
     {"workload.checkpoints_per_layer"}},
    {"checkpoints of nothing", "workload { checkpoints_per_layer: 0 }", {"workload.checkpoints_per_layer"}},
    {"infinite capacity", "workload { expert_capacity_factor: inf }", {"workload.expert_capacity_factor"}},
    {"capacity that is no number", "workload { expert_capacity_factor: nan }", {"workload.expert_capacity_factor"}},
    {"balance better than even",
     "workload { expert_load_imbalance_ratio: 0.5 }",
     {"workload.expert_load_imbalance_ratio"}},
    {"MFU above one", "assumed_mfu_ratio: 1.5", {"assumed_mfu_ratio"}},
    {"MFU that is no number", "assumed_mfu_ratio: nan", {"assumed_mfu_ratio"}},
    {"infinite price", "pricing { usd_per_chip_hour: inf }", {"pricing.usd_per_chip_hour"}},
    {"price of no date", "pricing { as_of: 'yesterday' }", {"pricing.as_of"}},
    {"terms of no meaning", "pricing { price_model: 50 }", {"pricing.price_model"}},
    {"deadline without a length", "job_deadline_seconds: 10", {"job_deadline_seconds"}},
    {"budget that is no number", "budget_usd: nan workload { total_tokens: 1000000000 }", {"budget_usd"}},
    {"failures all the time",
     "reliability { mean_seconds_between_failures_per_chip: 0 }",
     {"reliability.mean_seconds_between_failures_per_chip"}},
    {"restart that is no number", "reliability { restart_seconds: nan }", {"reliability.restart_seconds"}},
    {"checkpoints all the time",
     "reliability { checkpoint_interval_seconds: 0 }",
     {"reliability.checkpoint_interval_seconds"}},
    {"chips left over", "parallelism { ici { fsdp: 32 } }", {"parallelism.ici"}},
    {"negative degree", "parallelism { ici { tensor: -2 } }", {"parallelism.ici.tensor"}},
    {"slices left over", "parallelism { dcn { data: 3 } }", {"parallelism.dcn"}},
    {"experts of a dense model", "parallelism { ici { fsdp: 32 expert: 2 } }", {"parallelism.ici.expert"}},
    {"a stage too many", "parallelism { virtual_stage_count: 0 }", {"parallelism.virtual_stage_count"}},
    {"microbatches of nothing", "parallelism { microbatch_count: 0 }", {"parallelism.microbatch_count"}},
    {"axis of no meaning", "parallelism { mapping { axis: 9 factor: 2 } }", {"parallelism.mapping[0].axis"}},
    {"axis out of the slice",
     "parallelism { mapping { axis: PARALLELISM_AXIS_FSDP physical_axis: 7 factor: 4 } }",
     {"parallelism.mapping[0].physical_axis"}},
    {"mode of no meaning", "estimation_mode: 12", {"estimation_mode"}},
    {"profile of serving", "calibration_profile: 'no-such'", {}},
};

TEST(TrainingRequestTest, GoodOneIsAnswered) {
  v1::EstimateTrainingResponse response;
  const Result result = Call(kMethod, Merged(""), &response);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.status().DebugString());
}

TEST(TrainingRequestTest, EveryViolationIsNamedByItsField) {
  for (const Row& row : kRows) {
    v1::EstimateTrainingResponse response;
    const Result result = Call(kMethod, Merged(row.text), &response);
    ASSERT_FALSE(result.ok()) << row.name;
    if (row.fields.empty()) {
      EXPECT_EQ(result.code(), absl::StatusCode::kNotFound) << row.name;
      continue;
    }
    EXPECT_EQ(result.code(), absl::StatusCode::kInvalidArgument) << row.name;
    const std::vector<std::string> fields = ViolatedFields(result.status());
    EXPECT_EQ(fields[0], row.fields[0]) << row.name << ": " << result.status().message();
  }
}

// The proof of issue and readme: five things wrong, five things said.
TEST(TrainingRequestTest, FiveViolationsAtOnce) {
  v1::EstimateTrainingResponse response;
  const Result result = Call(kMethod, FromText<v1::EstimateTrainingRequest>(R"pb(
                               model { preset: "llama-3-700b" }
                               slice { accelerator: "tpu-v5p" topology: "3x3x3" }
                               workload { sequence_length: -1 optimizer: 42 }
                               assumed_mfu_ratio: nan
                             )pb"),
                             &response);
  EXPECT_EQ(result.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(ViolatedFields(result.status()),
              UnorderedElementsAre("model.preset", "slice.topology", "workload.sequence_length", "workload.optimizer",
                                   "assumed_mfu_ratio"));
  EXPECT_EQ(DetailOf<google::rpc::ErrorInfo>(result.status()).metadata().at("violation_count"), "5");
}

// The engine's own findings come together with those of the conversion.
TEST(TrainingRequestTest, PlanAndWorkloadAreCheckedTogether) {
  v1::EstimateTrainingResponse response;
  const Result result = Call(kMethod, Merged(R"pb(
                               workload { sequence_length: 4096 logits_chunk_count: 0 }
                               parallelism {
                                 ici { fsdp: 3 tensor: 3 }
                                 schedule: 77
                               }
                             )pb"),
                             &response);
  const std::vector<std::string> fields = ViolatedFields(result.status());
  for (const char* field :
       {"workload.logits_chunk_count", "parallelism.ici.tensor", "parallelism.ici", "parallelism.schedule"}) {
    EXPECT_THAT(fields, ::testing::Contains(field));
  }
}

TEST(TrainingRequestTest, NothingAtAll) {
  v1::EstimateTrainingResponse response;
  const Result result = Call(kMethod, v1::EstimateTrainingRequest(), &response);
  EXPECT_THAT(ViolatedFields(result.status()), ElementsAre("model", "slice"));
}

TEST(TrainingRequestTest, UnknownNamesAreNotFoundWithNearOnes) {
  struct NameRow {
    const char* text;
    const char* type;
    const char* name;
    const char* near;
  };
  const NameRow rows[] = {
      {"model { preset: 'llama-3-80b' }", "model preset", "llama-3-80b", "llama-3-8b"},
      {"slice { accelerator: 'tpu-v5pp' }", "accelerator", "tpu-v5pp", "tpu-v5p"},
      {"calibration_profile: 'maxtext-tup'", "calibration profile", "maxtext-tup", "maxtext-tpu"},
  };
  for (const NameRow& row : rows) {
    v1::EstimateTrainingResponse response;
    const Result result = Call(kMethod, Merged(row.text), &response);
    ASSERT_EQ(result.code(), absl::StatusCode::kNotFound) << row.text;
    const auto resource = DetailOf<google::rpc::ResourceInfo>(result.status());
    EXPECT_EQ(resource.resource_type(), row.type);
    EXPECT_EQ(resource.resource_name(), row.name);
    EXPECT_THAT(result.status().message(), HasSubstr(row.near));
  }
}

TEST(TrainingRequestTest, AmbiguousAliasNamesBothChips) {
  v1::EstimateTrainingResponse response;
  auto request = Merged("slice { accelerator: 'a100' chip_count: 8 slice_count: 1 }");
  const Result result = Call(kMethod, request, &response);
  EXPECT_EQ(result.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(result.status().message(), HasSubstr("nvidia-a100-40gb"));
  EXPECT_THAT(result.status().message(), HasSubstr("nvidia-a100-80gb"));
}

TEST(TrainingRequestTest, FamiliesWithoutDecoderAreRefused) {
  v1::EstimateTrainingResponse response;
  auto request = Merged("");
  request.mutable_model()->set_hugging_face_config(R"({"model_type": "t5", "architectures": ["T5Model"]})");
  const Result result = Call(kMethod, request, &response);
  EXPECT_EQ(result.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailOf<google::rpc::ErrorInfo>(result.status()).reason(), "MODEL_FAMILY_UNSUPPORTED");
}

TEST(TrainingRequestTest, PlanFieldsWithoutDegreesAreNotPassedOver) {
  v1::EstimateTrainingResponse response;
  auto request = Merged("");
  request.mutable_parallelism()->clear_ici();
  request.mutable_parallelism()->set_microbatch_count(4);
  request.mutable_parallelism()->set_data_zero_stage(v1::ZERO_STAGE_1);
  const Result result = Call(kMethod, request, &response);
  EXPECT_THAT(ViolatedFields(result.status()),
              UnorderedElementsAre("parallelism.microbatch_count", "parallelism.data_zero_stage"));
}

// Whatever is wrong, the error fits a trailer.
TEST(TrainingRequestTest, ThousandsOfViolationsStaySmall) {
  auto request = Merged("");
  v1::Architecture* const architecture = request.mutable_model()->mutable_architecture();
  for (int i = 0; i < 3000; ++i) architecture->add_layer_groups()->add_layers();
  v1::EstimateTrainingResponse response;
  const Result result = Call(kMethod, request, &response);
  EXPECT_EQ(result.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_LE(result.status().ByteSizeLong(), kMaxStatusBytes);
  EXPECT_EQ(ViolatedFields(result.status()).size(), kMaxViolations);
}

// ---- Defaults ----

v1::TrainingEstimate Estimate(const v1::EstimateTrainingRequest& request) {
  v1::EstimateTrainingResponse response;
  const Result result = Call(kMethod, request, &response);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.status().DebugString());
  return response.estimate();
}

bool Assumes(const v1::TrainingEstimate& estimate, absl::string_view field) {
  return std::any_of(estimate.assumptions().begin(), estimate.assumptions().end(),
                     [&](const v1::Assumption& line) { return line.field() == field; });
}

TEST(TrainingDefaultsTest, EveryDefaultIsSaid) {
  const v1::TrainingEstimate estimate = Estimate(Merged(""));
  for (const char* field : {"workload.sequence_length", "workload.global_batch_tokens", "workload.precision",
                            "workload.optimizer", "estimation_mode", "pricing"}) {
    EXPECT_TRUE(Assumes(estimate, field)) << field;
  }
  EXPECT_EQ(estimate.workload().sequence_length(), 8192);
  EXPECT_EQ(estimate.tokens_per_step(), 4 << 20);
  EXPECT_EQ(estimate.workload().optimizer(), v1::OPTIMIZER_ADAMW);
  EXPECT_EQ(estimate.workload().precision().compute(), v1::DATA_TYPE_BF16);
  EXPECT_EQ(estimate.workload().precision().parameters(), v1::DATA_TYPE_FP32);
  EXPECT_EQ(estimate.workload().precision().optimizer_state(), v1::DATA_TYPE_FP32);
  EXPECT_EQ(estimate.estimation_mode(), v1::ESTIMATION_MODE_CALIBRATED);
  EXPECT_EQ(estimate.calibration_profile(), "maxtext-tpu");
  EXPECT_EQ(estimate.parallelism().dcn().data(), 2);
  EXPECT_FALSE(estimate.has_time_to_train_seconds());
  EXPECT_FALSE(estimate.cost().has_total_usd());
}

TEST(TrainingDefaultsTest, GivenFieldsAreNotAssumptions) {
  const v1::TrainingEstimate estimate = Estimate(Merged(R"pb(
    workload {
      sequence_length: 4096
      global_batch_size: 1024
      optimizer: OPTIMIZER_SGD
      precision { compute: DATA_TYPE_BF16 parameters: DATA_TYPE_FP32 }
    }
    estimation_mode: ESTIMATION_MODE_ROOFLINE
    pricing { usd_per_chip_hour: 2 }
  )pb"));
  for (const char* field : {"workload.sequence_length", "workload.global_batch_tokens", "workload.precision",
                            "workload.optimizer", "estimation_mode", "pricing"}) {
    EXPECT_FALSE(Assumes(estimate, field)) << field;
  }
  EXPECT_EQ(estimate.cost().usd_per_chip_hour(), 2);
  EXPECT_EQ(estimate.cost().usd_per_hour(), 2 * 128);
}

TEST(TrainingDefaultsTest, ShortModelsGetTheirLimit) {
  auto request = Merged("slice { slice_count: 1 }");
  request.mutable_model()->set_preset("gpt2");  // 1,024 positions
  EXPECT_EQ(Estimate(request).workload().sequence_length(), 1024);
}

TEST(TrainingDefaultsTest, GpusKeepMasterWeights) {
  const v1::TrainingEstimate estimate = Estimate(FromText<v1::EstimateTrainingRequest>(R"pb(
    model { preset: "llama-3-8b" }
    slice { accelerator: "h100" chip_count: 64 }
    parallelism { ici { fsdp: 64 } }
  )pb"));
  EXPECT_EQ(estimate.workload().precision().parameters(), v1::DATA_TYPE_BF16);
  EXPECT_EQ(estimate.workload().precision().master_weights(), v1::DATA_TYPE_FP32);
  EXPECT_EQ(estimate.calibration_profile(), "megatron-gpu");
}

TEST(TrainingDefaultsTest, StepsAndTokensMeanTheSame) {
  const v1::TrainingEstimate steps = Estimate(Merged("workload { step_count: 1000 }"));
  const v1::TrainingEstimate tokens =
      Estimate(Merged(absl::StrCat("workload { total_tokens: ", int64_t{1000} << 22, " }")));
  EXPECT_EQ(steps.time_to_train_seconds(), tokens.time_to_train_seconds());
  EXPECT_EQ(steps.step_count(), 1000);
  EXPECT_DOUBLE_EQ(steps.time_to_train_seconds(), 1000 * steps.step_time().expected_seconds());
}

}  // namespace
}  // namespace sliceplan::rpc
