// DescribeModel, AnalyzeOperation, AnalyzeCollective and the RPCs that come later.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/sliceplan/v1/collective.pb.h"
#include "proto/sliceplan/v1/measurement.pb.h"
#include "proto/sliceplan/v1/model_description.pb.h"
#include "proto/sliceplan/v1/operation.pb.h"
#include "server/rpc/errors.h"
#include "tests/rpc/testing.h"

namespace sliceplan::rpc {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::DescribeModelResponse Describe(const char* text) {
  v1::DescribeModelResponse response;
  const Result result = Call("AnalysisService/DescribeModel", FromText<v1::DescribeModelRequest>(text), &response);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.status().DebugString());
  return response;
}

// The model card: 70,553,706,496 parameters. 80 layers x 8 KV heads x 128 x 2 x 2 bytes a token.
TEST(DescribeModelTest, Llama70b) {
  const v1::DescribeModelResponse model = Describe("model { preset: 'meta-llama/Meta-Llama-3-70B' }");
  EXPECT_EQ(model.name(), "llama-3-70b");
  EXPECT_EQ(model.parameters().total_count(), 70'553'706'496);
  EXPECT_EQ(model.kv_cache().bytes_per_token(), 80 * 8 * 128 * 2 * 2);
  EXPECT_EQ(model.layer_count(), 80);
  EXPECT_EQ(model.sequence_length(), 8192);
  int64_t components = 0;
  for (const v1::ComponentCount& line : model.parameters().components()) {
    if (line.component() != v1::COMPONENT_MTP) components += line.count();
  }
  EXPECT_EQ(components, model.parameters().total_count());
  double flops = 0;
  for (const v1::ComponentFlops& line : model.flops().components()) flops += line.training_flops_per_token();
  EXPECT_NEAR(flops, model.flops().training_flops_per_token(), 1e-9 * flops);
  EXPECT_EQ(model.largest_tensors_size(), 9);  // seven in a layer, two tables
  EXPECT_EQ(model.architecture().layer_groups_size(), 1);
}

TEST(DescribeModelTest, ConfigTextAndPresetAreTheSameModel) {
  const auto catalog = TestEngine().catalogs.Snapshot();
  v1::DescribeModelRequest request;
  request.mutable_model()->set_hugging_face_config(catalog->FindModel("llama-3-8b").model->hugging_face_config());
  v1::DescribeModelResponse from_text;
  ASSERT_TRUE(Call("AnalysisService/DescribeModel", request, &from_text).ok());
  const v1::DescribeModelResponse from_preset = Describe("model { preset: 'llama-3-8b' }");
  EXPECT_EQ(from_text.parameters().SerializeAsString(), from_preset.parameters().SerializeAsString());
}

// What a reply shows of an architecture can be asked again.
TEST(DescribeModelTest, ShownArchitectureIsTheSameModel) {
  for (const char* preset : {"llama-3-8b", "mixtral-8x7b", "deepseek-v3"}) {
    v1::DescribeModelRequest request;
    request.mutable_model()->set_preset(preset);
    v1::DescribeModelResponse first;
    ASSERT_TRUE(Call("AnalysisService/DescribeModel", request, &first).ok()) << preset;
    *request.mutable_model()->mutable_architecture() = first.architecture();
    v1::DescribeModelResponse second;
    const Result result = Call("AnalysisService/DescribeModel", request, &second);
    ASSERT_TRUE(result.ok()) << preset << result.status().DebugString();
    EXPECT_EQ(second.parameters().total_count(), first.parameters().total_count()) << preset;
    EXPECT_EQ(second.parameters().stored_count(), first.parameters().stored_count()) << preset;
    EXPECT_EQ(second.flops().training_flops_per_token(), first.flops().training_flops_per_token()) << preset;
    EXPECT_EQ(second.kv_cache().SerializeAsString(), first.kv_cache().SerializeAsString()) << preset;
  }
}

TEST(DescribeModelTest, EverythingWrongAtOnce) {
  v1::DescribeModelResponse response;
  const Result result = Call("AnalysisService/DescribeModel",
                             FromText<v1::DescribeModelRequest>(
                                 "model { preset: 'no' } sequence_length: 0 attention_mask: 9 kv_cache_dtype: 99"),
                             &response);
  EXPECT_THAT(ViolatedFields(result.status()),
              ElementsAre("model.preset", "sequence_length", "attention_mask", "kv_cache_dtype"));
}

TEST(DescribeModelTest, UnreadableConfigNamesItsKeys) {
  v1::DescribeModelRequest request;
  request.mutable_model()->set_hugging_face_config(R"({"model_type": "llama", "hidden_size": "big"})");
  v1::DescribeModelResponse response;
  const Result result = Call("AnalysisService/DescribeModel", request, &response);
  EXPECT_EQ(result.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(result.status().message(), HasSubstr("hidden_size"));
  EXPECT_THAT(ViolatedFields(result.status()), Contains("model.hugging_face_config"));
}

// A chip of round numbers: 1e15 FLOP/s, 1e12 B/s of HBM, links of 1e11 B/s one way.
constexpr char kChip[] = R"pb(
  custom {
    bf16_flops_per_second: 1e15
    hbm_bytes: 100000000000
    hbm_bytes_per_second: 1e12
    ici_torus_dims: 1
    ici_link_bytes_per_second: 1e11
    ici_hop_latency_seconds: 1e-6
  }
)pb";

TEST(AnalyzeOperationTest, MatmulOnOneChip) {
  auto request = FromText<v1::AnalyzeOperationRequest>(R"pb(
    matmul { m: 64 k: 4096 n: 8192 }
    estimation_mode: ESTIMATION_MODE_ROOFLINE
  )pb");
  *request.mutable_slice() = FromText<v1::Slice>(kChip);
  v1::AnalyzeOperationResponse response;
  const Result result = Call("AnalysisService/AnalyzeOperation", request, &response);
  ASSERT_TRUE(result.ok()) << result.status().DebugString();
  const double flops = 2.0 * 64 * 4096 * 8192;
  const double bytes = 2.0 * (64 * 4096 + 4096 * 8192 + 64 * 8192);
  EXPECT_DOUBLE_EQ(response.flops(), flops);
  EXPECT_EQ(response.hbm_bytes(), static_cast<int64_t>(bytes));
  EXPECT_DOUBLE_EQ(response.intensity_flops_per_byte(), flops / bytes);
  EXPECT_DOUBLE_EQ(response.compute_seconds(), flops / 1e15);
  EXPECT_DOUBLE_EQ(response.hbm_seconds(), bytes / 1e12);
  EXPECT_DOUBLE_EQ(response.roofline_lower_seconds(), bytes / 1e12);
  EXPECT_DOUBLE_EQ(response.expected_seconds(), response.roofline_lower_seconds());
  EXPECT_EQ(response.bound(), v1::RESOURCE_HBM);
  // B = C x bytes of a weight / (2 W): 1e15 x 2 / (2 x 1e12).
  EXPECT_DOUBLE_EQ(response.critical_batch(), 1000);
  EXPECT_EQ(response.matmul_case(), 0);
  EXPECT_EQ(response.inserted_collectives_size(), 0);
}

TEST(AnalyzeOperationTest, ShardedMatmulGathers) {
  auto request = FromText<v1::AnalyzeOperationRequest>(R"pb(
    mesh_axes { name: "X" size: 8 }
    matmul {
      m: 4096
      k: 8192
      n: 8192
      rhs_sharding { dimension: "k" axes: "X" }
    }
    estimation_mode: ESTIMATION_MODE_ROOFLINE
  )pb");
  *request.mutable_slice() = FromText<v1::Slice>(kChip);
  request.mutable_slice()->set_topology("8");
  v1::AnalyzeOperationResponse response;
  const Result result = Call("AnalysisService/AnalyzeOperation", request, &response);
  ASSERT_TRUE(result.ok()) << result.status().DebugString();
  EXPECT_EQ(response.matmul_case(), 2);
  ASSERT_GE(response.inserted_collectives_size(), 1);
  EXPECT_THAT(response.inserted_collectives(0).axes(), ElementsAre("X"));
  EXPECT_GT(response.network_seconds(), 0);
  EXPECT_EQ(response.slice().total_chip_count(), 8);
}

TEST(AnalyzeOperationTest, EverythingWrongAtOnce) {
  v1::AnalyzeOperationResponse response;
  const Result result = Call("AnalysisService/AnalyzeOperation", FromText<v1::AnalyzeOperationRequest>(R"pb(
                               slice { accelerator: "tpu-v5p" topology: "4x4x4" }
                               mesh_axes { name: "X" size: 3 }
                               matmul {
                                 m: 0
                                 k: 8
                                 n: 8
                                 lhs_dtype: 99
                                 lhs_sharding { dimension: "q" axes: "Y" }
                               }
                             )pb"),
                             &response);
  EXPECT_EQ(result.code(), absl::StatusCode::kInvalidArgument);
  const std::vector<std::string> fields = ViolatedFields(result.status());
  EXPECT_THAT(fields, Contains("matmul.m"));
  EXPECT_THAT(fields, Contains("matmul.lhs_dtype"));
  EXPECT_THAT(fields, Contains(HasSubstr("mesh_axes")));
}

TEST(AnalyzeOperationTest, AttentionAndElementwiseAreChecked) {
  struct Row {
    const char* text;
    const char* field;
  };
  const Row rows[] = {
      {"attention { query_length: 8 key_length: 8 query_head_count: 6 kv_head_count: 4 head_dim: 8 }",
       "attention.query_head_count"},
      {"attention { query_length: 9 key_length: 8 query_head_count: 1 kv_head_count: 1 head_dim: 8 }",
       "attention.query_length"},
      {"attention { query_length: 8 key_length: 8 query_head_count: 1 kv_head_count: 1 }", "attention.head_dim"},
      {"elementwise { element_count: 0 }", "elementwise.element_count"},
      {"elementwise { element_count: 1 flops_per_element: nan }", "elementwise.flops_per_element"},
      {"elementwise { element_count: 1 input_count: -1 }", "elementwise.input_count"},
      {"estimation_mode: ESTIMATION_MODE_ROOFLINE", ""},
  };
  for (const Row& row : rows) {
    auto request = FromText<v1::AnalyzeOperationRequest>(row.text);
    request.mutable_slice()->set_accelerator("tpu-v5e");
    v1::AnalyzeOperationResponse response;
    const Result result = Call("AnalysisService/AnalyzeOperation", request, &response);
    ASSERT_EQ(result.code(), absl::StatusCode::kInvalidArgument) << row.text;
    EXPECT_THAT(ViolatedFields(result.status()), ElementsAre(row.field)) << row.text;
  }
}

TEST(AnalyzeOperationTest, MissingFiguresAreNamed) {
  v1::AnalyzeOperationResponse response;
  const Result result = Call("AnalysisService/AnalyzeOperation", FromText<v1::AnalyzeOperationRequest>(R"pb(
                               slice { custom { hbm_bytes_per_second: 1e12 } }
                               matmul { m: 8 k: 8 n: 8 }
                               estimation_mode: ESTIMATION_MODE_ROOFLINE
                             )pb"),
                             &response);
  EXPECT_EQ(result.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(result.status().message(), HasSubstr("bf16_flops_per_second"));
  EXPECT_EQ(DetailOf<google::rpc::ErrorInfo>(result.status()).reason(), "ACCELERATOR_FIGURE_UNKNOWN");
}

v1::AnalyzeCollectiveResponse Collective(const char* text) {
  auto request = FromText<v1::AnalyzeCollectiveRequest>(text);
  v1::AnalyzeCollectiveResponse response;
  const Result result = Call("AnalysisService/AnalyzeCollective", request, &response);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.status().DebugString());
  return response;
}

// A ring of 8 with links of 1e11 each way: 7/8 of 1e9 bytes over two directions. Latency: 4 hops of 1 us.
TEST(AnalyzeCollectiveTest, AllGatherOnARing) {
  const v1::AnalyzeCollectiveResponse response = Collective(R"pb(
    slice {
      custom { ici_torus_dims: 1 ici_link_bytes_per_second: 1e11 ici_hop_latency_seconds: 1e-6 ici_axis_wraps: true }
      topology: "8"
    }
    kind: COLLECTIVE_KIND_ALL_GATHER
    bytes: 1000000000
    estimation_mode: ESTIMATION_MODE_ROOFLINE
  )pb");
  EXPECT_NEAR(response.bandwidth_seconds(), 1e9 * 7 / 8 / 2e11, 1e-12);
  EXPECT_EQ(response.hops(), 4);
  EXPECT_NEAR(response.latency_seconds(), 4e-6, 1e-15);
  EXPECT_EQ(response.seconds(), response.bandwidth_seconds());
  EXPECT_EQ(response.expected_seconds(), response.seconds());
  EXPECT_EQ(response.group_size(), 8);
  EXPECT_EQ(response.group_count(), 1);
  EXPECT_EQ(response.bound(), v1::RESOURCE_ICI);
  EXPECT_NEAR(response.ring_ideal_ratio(), 1, 1e-12);
  ASSERT_EQ(response.pieces_size(), 1);
  EXPECT_TRUE(response.pieces(0).closes_ring());
}

TEST(AnalyzeCollectiveTest, CalibratedIsSlower) {
  const v1::AnalyzeCollectiveResponse response = Collective(R"pb(
    slice { accelerator: "tpu-v5p" topology: "4x4x4" }
    kind: COLLECTIVE_KIND_ALL_REDUCE
    bytes: 1000000000
  )pb");
  EXPECT_GE(response.expected_seconds(), response.seconds());
  EXPECT_EQ(response.group_size(), 64);
}

struct CollectiveRow {
  const char* text;
  const char* field;
};

const CollectiveRow kCollectiveRows[] = {
    {"bytes: 0", "bytes"},
    {"kind: 77", "kind"},
    {"group_pieces { axis: 3 factor: 2 }", "group_pieces[0].axis"},
    {"group_pieces { axis: 0 factor: 3 }", "group_pieces[0].factor"},
    {"group_pieces { axis: 0 factor: 0 }", "group_pieces[0].factor"},
    {"group_pieces { axis: 0 factor: 2 stride: 3 }", "group_pieces[0].factor"},
    {"group_pieces { axis: 0 factor: 2 stride: -1 }", "group_pieces[0].stride"},
    {"group_pieces { axis: 0 factor: 2 } group_pieces { axis: 0 factor: 2 }", "group_pieces"},
    {"group_pieces { axis: -1 factor: 2 }", "group_pieces[0].factor"},
    {"ragged { expert_count: 8 experts_per_token: 2 }", "ragged"},
    {"calibration_profile: 'x' bytes: -1", "bytes"},
};

TEST(AnalyzeCollectiveTest, EveryViolationIsNamed) {
  for (const CollectiveRow& row : kCollectiveRows) {
    auto request = FromText<v1::AnalyzeCollectiveRequest>(R"pb(
      slice { accelerator: "tpu-v5p" topology: "4x4x4" }
      kind: COLLECTIVE_KIND_ALL_GATHER
      bytes: 1000
    )pb");
    request.MergeFrom(FromText<v1::AnalyzeCollectiveRequest>(row.text));
    if (std::string(row.text).find("bytes: 0") == 0) request.set_bytes(0);
    v1::AnalyzeCollectiveResponse response;
    const Result result = Call("AnalysisService/AnalyzeCollective", request, &response);
    ASSERT_EQ(result.code(), absl::StatusCode::kInvalidArgument) << row.text;
    EXPECT_THAT(ViolatedFields(result.status()), Contains(row.field)) << row.text;
  }
}

TEST(AnalyzeCollectiveTest, RaggedSendsItsShare) {
  const char* dense = R"pb(
    slice { accelerator: "h100" chip_count: 8 }
    kind: COLLECTIVE_KIND_ALL_TO_ALL
    bytes: 1000000000
    estimation_mode: ESTIMATION_MODE_ROOFLINE
  )pb";
  const std::string ragged = std::string(dense) + "ragged { expert_count: 64 experts_per_token: 4 }";
  // `bytes` are the tokens of the group: one expert each is the dense traffic, four are four times as much.
  const double once = Collective(dense).bandwidth_seconds();
  EXPECT_NEAR(Collective(ragged.c_str()).bandwidth_seconds() / once, 4, 1e-12);
  const auto ratio = [&](const char* text) {
    return Collective((std::string(dense) + text).c_str()).bandwidth_seconds() / once;
  };
  EXPECT_NEAR(ratio("ragged { expert_count: 64 experts_per_token: 1 }"), 1, 1e-12);
  // Never more than once for each of the 8 chips, or for each place that holds experts.
  EXPECT_NEAR(ratio("ragged { expert_count: 64 experts_per_token: 32 }"), 8, 1e-12);
  EXPECT_NEAR(ratio("ragged { expert_count: 4 experts_per_token: 4 }"), 4, 1e-12);
}

TEST(LaterTest, SayWhatComesAndWhatToUse) {
  v1::CompareMeasurementResponse comparison;
  const Result result = Call("AnalysisService/CompareMeasurement", v1::CompareMeasurementRequest(), &comparison);
  EXPECT_EQ(result.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(result.status().message(), HasSubstr("Meanwhile"));
  EXPECT_EQ(DetailOf<google::rpc::ErrorInfo>(result.status()).reason(), "NOT_IMPLEMENTED_YET");
}

}  // namespace
}  // namespace sliceplan::rpc
