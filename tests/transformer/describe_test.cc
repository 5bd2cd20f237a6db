#include "server/transformer/describe.h"

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/transformer/model_table.h"
#include "tests/transformer/small_architectures.h"

namespace sliceplan::transformer {
namespace {

TEST(DescribeTest, Llama3At8192) {
  const ModelDescription model =
      DescribeModel(Imported(ModelNamed("meta-llama/Meta-Llama-3-70B").config_text), DescribeOptions()).value();
  EXPECT_EQ(model.parameters.total_count, 70553706496);
  EXPECT_EQ(model.kv_cache.bytes_per_token, 327680);
  EXPECT_EQ(model.kv_cache.bytes_at_context, 8192 * int64_t{327680});
  // 80 layers of D 8192, F 28672, N 64, K 8, H 128; V 128256; causal.
  const double matmuls = 80 * (18.0 * 8192 * 28672 + 12.0 * 8192 * 72 * 128) + 6.0 * 8192 * 128256;
  const double attention = 80 * 6.0 * 8192 * 64 * 128;
  EXPECT_DOUBLE_EQ(model.flops.training(), matmuls + attention);
  EXPECT_DOUBLE_EQ(model.attention_share_ratio, attention / (matmuls + attention));
  ASSERT_EQ(model.layer_kinds.size(), 1u);
  EXPECT_EQ(model.layer_kinds[0].count, 80);
  EXPECT_EQ(model.layer_kinds[0].attention, "full attention, 64 heads of 128 over 8 KV heads");
  EXPECT_EQ(model.layer_kinds[0].feed_forward, "gated MLP of 28672");
  // The tables are the largest tensors: 128,256 x 8,192 each.
  ASSERT_GE(model.largest_tensors.size(), 3u);
  EXPECT_EQ(model.largest_tensors[0].count, int64_t{128256} * 8192);
  EXPECT_EQ(model.largest_tensors[1].count, int64_t{128256} * 8192);
  EXPECT_EQ(model.largest_tensors[2].count, int64_t{28672} * 8192);
  EXPECT_EQ(model.largest_tensors[2].layer_count, 80);
}

TEST(DescribeTest, KindsOfLayersInWords) {
  const ModelDescription model =
      DescribeModel(Imported(ModelNamed("google/gemma-3-27b-it").config_text), DescribeOptions()).value();
  ASSERT_EQ(model.layer_kinds.size(), 2u);
  EXPECT_EQ(model.layer_kinds[0].count, 52);
  EXPECT_THAT(model.layer_kinds[0].attention, testing::HasSubstr("sliding (1024)"));
  EXPECT_EQ(model.layer_kinds[1].count, 10);
}

TEST(DescribeTest, EveryModelIsDescribed) {
  for (const ModelRow& row : AllModels()) {
    if (row.IsRefused()) continue;
    for (const AttentionMask mask : {AttentionMask::kCausal, AttentionMask::kFull}) {
      DescribeOptions options;
      options.attention_mask = mask;
      options.sequence_length = 4096;
      const absl::StatusOr<ModelDescription> model = DescribeModel(Imported(row.config_text), options);
      ASSERT_TRUE(model.ok()) << row.name << model.status();
      const double sum = std::accumulate(model->flops.components.begin(), model->flops.components.end(), 0.0);
      EXPECT_DOUBLE_EQ(sum, model->flops.forward) << row.name;
      EXPECT_GT(model->flops.forward, 0) << row.name;
      EXPECT_GE(model->attention_share_ratio, 0) << row.name;
      EXPECT_LT(model->attention_share_ratio, 1) << row.name;
      int64_t layers = 0;
      for (const LayerKind& kind : model->layer_kinds) layers += kind.count;
      EXPECT_EQ(layers, Imported(row.config_text).LayerCount()) << row.name;
      EXPECT_GT(model->parameters.checkpoint_bytes, 0) << row.name;
    }
  }
}

TEST(DescribeTest, OptionsOutOfRange) {
  const Architecture architecture = Small({Dense(8, 2, 16, 256)}, 2);
  for (const int64_t length : {int64_t{0}, int64_t{-1}, kMaxSequenceLength + 1}) {
    DescribeOptions options;
    options.sequence_length = length;
    EXPECT_EQ(DescribeModel(architecture, options).status().code(), absl::StatusCode::kInvalidArgument) << length;
  }
  DescribeOptions longest;
  longest.sequence_length = kMaxSequenceLength;
  EXPECT_TRUE(DescribeModel(architecture, longest).ok());
}

// A cache beyond what whole bytes can be counted in is an error, not a wrong number.
TEST(DescribeTest, CacheTooLargeToCount) {
  Layer layer = Dense(1 << 12, 1 << 12, 1 << 12, 16);
  DescribeOptions options;
  options.sequence_length = kMaxSequenceLength;
  EXPECT_EQ(DescribeModel(Small({layer}, 4000), options).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sliceplan::transformer
