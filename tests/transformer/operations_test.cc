// Operation lists: shapes, splits, parameters and traffic against the formulas of the book (chapter 4) and of the
// papers.
#include "server/transformer/operations.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/transformer/parameter_count.h"
#include "tests/transformer/small_architectures.h"

namespace sliceplan::transformer {
namespace {

constexpr int64_t kD = 64;  // hidden_dim of the small architectures
constexpr int64_t kV = 1000;

const WeightMatmul& Find(const LayerOperations& layer, const std::string& name) {
  const auto place = std::find_if(layer.matmuls.begin(), layer.matmuls.end(),
                                  [&](const WeightMatmul& matmul) { return matmul.name == name; });
  EXPECT_NE(place, layer.matmuls.end()) << name;
  return place == layer.matmuls.end() ? layer.matmuls.front() : *place;
}

TEST(OperationsTest, DenseLayerIsTheBooks) {
  const ModelOperations model =
      OperationsOf(Small({Dense(/*heads=*/8, /*kv_heads=*/2, /*head_dim=*/16, /*ffn=*/256)}, 4)).value();
  ASSERT_EQ(model.layers.size(), 1u);
  const LayerOperations& layer = model.layers[0];
  EXPECT_EQ(layer.count, 4);
  EXPECT_EQ(layer.positions, (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(model.layer_kind, (std::vector<int32_t>{0, 0, 0, 0}));
  struct Shape {
    const char* name;
    int64_t k, n;
    TensorSplit split;
    SavedTensor output;
    int32_t units;
    bool copies;
  };
  const Shape shapes[] = {
      {"q_proj", kD, 8 * 16, TensorSplit::kColumn, SavedTensor::kQuery, 8, false},
      {"k_proj", kD, 2 * 16, TensorSplit::kColumn, SavedTensor::kKeyValue, 2, true},
      {"v_proj", kD, 2 * 16, TensorSplit::kColumn, SavedTensor::kKeyValue, 2, true},
      {"o_proj", 8 * 16, kD, TensorSplit::kRow, SavedTensor::kOutProjection, 8, false},
      {"gate_proj", kD, 256, TensorSplit::kColumn, SavedTensor::kMlpUpGate, 0, false},
      {"up_proj", kD, 256, TensorSplit::kColumn, SavedTensor::kMlpUpGate, 0, false},
      {"down_proj", 256, kD, TensorSplit::kRow, SavedTensor::kMlpDown, 0, false},
  };
  ASSERT_EQ(layer.matmuls.size(), std::size(shapes));
  for (size_t i = 0; i < std::size(shapes); ++i) {
    const WeightMatmul& matmul = layer.matmuls[i];
    EXPECT_STREQ(matmul.name, shapes[i].name);
    EXPECT_EQ(matmul.k, shapes[i].k) << matmul.name;
    EXPECT_EQ(matmul.n, shapes[i].n) << matmul.name;
    EXPECT_EQ(matmul.split, shapes[i].split) << matmul.name;
    EXPECT_EQ(matmul.output, shapes[i].output) << matmul.name;
    EXPECT_EQ(matmul.split_unit_count, shapes[i].units) << matmul.name;
    EXPECT_EQ(matmul.copies_beyond_units, shapes[i].copies) << matmul.name;
    EXPECT_TRUE(matmul.low_precision_allowed) << matmul.name;
  }
  EXPECT_TRUE(layer.has_softmax);
  EXPECT_EQ(layer.softmax.query_head_count, 8);
  EXPECT_EQ(layer.softmax.kv_head_count, 2);
  EXPECT_EQ(layer.softmax.qk_head_dim, 16);
  EXPECT_EQ(layer.softmax.value_head_dim, 16);
  EXPECT_FALSE(model.head.low_precision_allowed);

  // Book, chapter 4: P = L (3DF + 2D(N + K)H + 2D) + 2DV + D.
  const int64_t layers = 4;
  EXPECT_EQ(CountParameters(Small({Dense(8, 2, 16, 256)}, 4))->total_count,
            layers * (3 * kD * 256 + 2 * kD * (8 + 2) * 16 + 2 * kD) + 2 * kD * kV + kD);
}

TEST(OperationsTest, ElementwiseTraffic) {
  // 10D beside the tensor group, 2(N + K)H + 3F inside; a plain MLP 2F; a parallel block with one norm 7D.
  const auto layer_of = [](const Layer& layer) { return OperationsOf(Small({layer}, 1)).value().layers[0]; };
  Layer layer = Dense(8, 2, 16, 256);
  EXPECT_DOUBLE_EQ(layer_of(layer).hidden_elements_per_token, 10 * kD);
  EXPECT_DOUBLE_EQ(layer_of(layer).split_elements_per_token, 2 * (8 + 2) * 16 + 3 * 256);
  std::get<DenseFeedForward>(layer.feed_forward).gated = false;
  EXPECT_DOUBLE_EQ(layer_of(layer).split_elements_per_token, 2 * (8 + 2) * 16 + 2 * 256);
  layer.parallel_block = true;
  layer.norms.count = 1;
  EXPECT_DOUBLE_EQ(layer_of(layer).hidden_elements_per_token, 7 * kD);
  // Experts: the width that a token passes through, shared ones included.
  EXPECT_DOUBLE_EQ(
      layer_of(Moe(8, 2, 16, /*experts=*/8, /*per_token=*/2, /*ffn=*/32, /*shared=*/1)).split_elements_per_token,
      2 * (8 + 2) * 16 + 3 * (2 + 1) * 32);
}

TEST(OperationsTest, EqualLayersAreOneKind) {
  const Layer full = Dense(8, 2, 16, 256);
  Layer sliding = full;
  std::get<GroupedQueryAttention>(sliding.attention).sliding_window = 128;
  Architecture architecture = Small({sliding, sliding, full}, 3);
  architecture.layer_groups.push_back({2, {sliding}});
  const ModelOperations model = OperationsOf(architecture).value();
  ASSERT_EQ(model.layers.size(), 2u);
  EXPECT_EQ(model.layers[0].count, 8);
  EXPECT_EQ(model.layers[1].count, 3);
  EXPECT_EQ(model.layers[0].positions, (std::vector<int32_t>{0, 1, 3, 4, 6, 7, 9, 10}));
  EXPECT_EQ(model.layers[1].positions, (std::vector<int32_t>{2, 5, 8}));
  EXPECT_EQ(model.layer_kind, (std::vector<int32_t>{0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(model.layers[0].softmax.window, 128);
}

TEST(OperationsTest, Experts) {
  const ModelOperations model = OperationsOf(Small({Moe(8, 2, 16, 8, 2, 32, 1)}, 1)).value();
  const LayerOperations& layer = model.layers[0];
  const WeightMatmul& router = Find(layer, "router");
  EXPECT_EQ(router.n, 8);
  EXPECT_EQ(router.split, TensorSplit::kNone);
  EXPECT_FALSE(router.low_precision_allowed);
  const WeightMatmul& down = Find(layer, "experts.down_proj");
  EXPECT_EQ(down.expert_count, 8);
  EXPECT_DOUBLE_EQ(down.rows_per_token, 2);
  EXPECT_EQ(down.k, 32);
  EXPECT_EQ(down.n, kD);
  EXPECT_EQ(Find(layer, "shared_experts.up_proj").n, 32);
  EXPECT_EQ(layer.experts_per_token, 2);
  EXPECT_EQ(layer.expert_ffn_dim, 32);
}

TEST(OperationsTest, LatentAttentionIsExpanded) {
  LatentAttention attention;
  attention.query_head_count = 4;
  attention.q_lora_rank = 24;
  attention.kv_lora_rank = 32;
  attention.qk_nope_head_dim = 16;
  attention.qk_rope_head_dim = 8;
  attention.v_head_dim = 12;
  Layer layer = Dense(8, 2, 16, 256);
  layer.attention = attention;
  const LayerOperations operations = OperationsOf(Small({layer}, 1)).value().layers[0];
  EXPECT_EQ(Find(operations, "q_a_proj").n, 24);
  EXPECT_EQ(Find(operations, "q_b_proj").n, 4 * 24);
  EXPECT_EQ(Find(operations, "kv_a_proj_with_mqa").n, 32 + 8);
  EXPECT_EQ(Find(operations, "kv_a_proj_with_mqa").split, TensorSplit::kNone);
  EXPECT_EQ(Find(operations, "kv_b_proj").n, 4 * (16 + 12));
  EXPECT_EQ(Find(operations, "kv_b_proj").split_unit_count, 4);
  EXPECT_EQ(Find(operations, "o_proj").k, 4 * 12);
  EXPECT_EQ(operations.softmax.qk_head_dim, 24);
  EXPECT_EQ(operations.softmax.value_head_dim, 12);
  EXPECT_EQ(operations.softmax.kv_head_count, 4);
  EXPECT_EQ(operations.norm_parameter_count, 2 * kD + 24 + 32);
}

TEST(OperationsTest, ConstantStateLayersScan) {
  LinearAttention mamba;
  mamba.kind = LinearAttention::Kind::kMamba2;
  mamba.key_head_count = 2;
  mamba.value_head_count = 8;
  mamba.key_head_dim = 16;
  mamba.value_head_dim = 16;
  mamba.inner_dim = 128;
  mamba.conv_width = 4;
  mamba.chunk_size = 32;
  Layer layer;
  layer.attention = mamba;
  layer.norms.count = 1;
  const LayerOperations operations = OperationsOf(Small({layer}, 1)).value().layers[0];
  EXPECT_FALSE(operations.has_softmax);
  EXPECT_TRUE(operations.has_scan);
  EXPECT_EQ(operations.scan.state_elements, 8 * 16 * 16);
  EXPECT_EQ(operations.scan.convolution_state_elements, (128 + 2 * 2 * 16) * 3);
  EXPECT_EQ(Find(operations, "in_proj").n, 2 * 128 + 2 * 2 * 16 + 8);
  // Chunked dual form of Dao and Gu 2024: scores of a chunk per group, their product, the state in and out per head;
  // and the convolution.
  EXPECT_DOUBLE_EQ(operations.scan.flops_per_token,
                   2 * 32 * (2 * 16 + 8 * 16) + 4 * 8 * 16 * 16 + 2 * (128 + 2 * 2 * 16) * 4);
  EXPECT_DOUBLE_EQ(operations.hidden_elements_per_token, 5 * kD);  // one norm, one addition
}

TEST(OperationsTest, TiedTableIsComputedAndNotStored) {
  Architecture architecture = Small({Dense(8, 2, 16, 256)}, 1);
  architecture.tied_embeddings = true;
  const ModelOperations model = OperationsOf(architecture).value();
  EXPECT_EQ(model.head_parameter_count, 0);
  EXPECT_EQ(model.head.k, kD);
  EXPECT_EQ(model.head.n, kV);
  EXPECT_EQ(model.embedding_parameter_count, kD * kV);
}

TEST(OperationsTest, DraftLayersAreApart) {
  Architecture architecture = Small({Dense(8, 2, 16, 256)}, 2);
  const int64_t main = CountParameters(architecture)->total_count;
  architecture.mtp_layer_count = 1;
  architecture.mtp_layer = Dense(8, 2, 16, 256);
  const ModelOperations model = OperationsOf(architecture).value();
  EXPECT_EQ(model.mtp_layer_count, 1);
  EXPECT_EQ(Find(model.mtp, "eh_proj").k, 2 * kD);
  const ParameterCount parameters = CountParameters(architecture).value();
  EXPECT_EQ(parameters.total_count, main);
  // A block, the projection of two hidden states to one, three norms.
  EXPECT_EQ(parameters.mtp_count, 3 * kD * 256 + 2 * kD * 10 * 16 + 2 * kD + 2 * kD * kD + 3 * kD);
}

TEST(OperationsTest, InvalidArchitectureIsRefused) {
  Architecture architecture = Small({Dense(8, 3, 16, 256)}, 1);
  const absl::StatusOr<ModelOperations> model = OperationsOf(architecture);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(model.status().message().find("layer_groups[0].layers[0].attention.grouped_query.kv_head_count"),
            std::string::npos);
}

}  // namespace
}  // namespace sliceplan::transformer
