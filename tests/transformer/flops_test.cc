#include "server/transformer/flops.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "server/transformer/parameter_count.h"
#include "tests/transformer/model_table.h"
#include "tests/transformer/small_architectures.h"

namespace sliceplan::transformer {
namespace {

// Keys counted query by query. The diagonal counts half, so that causal is half of full.
double CountedKeys(const SoftmaxAttention& attention, int64_t length, AttentionMask mask) {
  double keys = 0;
  for (int64_t query = 0; query < length; ++query) {
    for (int64_t key = 0; key < length; ++key) {
      if (mask == AttentionMask::kCausal && key > query) continue;
      if (attention.chunk > 0 && key / attention.chunk != query / attention.chunk) continue;
      if (attention.window > 0 && mask == AttentionMask::kCausal && query - key >= attention.window) continue;
      keys += mask == AttentionMask::kCausal && key == query ? 0.5 : 1;
    }
  }
  return keys / static_cast<double>(length);
}

TEST(AverageKeysTest, MatchesCounting) {
  for (const int64_t length : {1, 7, 32, 100}) {
    SoftmaxAttention full;
    EXPECT_DOUBLE_EQ(AverageKeys(full, length, AttentionMask::kCausal),
                     CountedKeys(full, length, AttentionMask::kCausal));
    EXPECT_DOUBLE_EQ(AverageKeys(full, length, AttentionMask::kFull), CountedKeys(full, length, AttentionMask::kFull));
    for (const int32_t limit : {1, 8, 32, 1000}) {
      SoftmaxAttention chunked;
      chunked.chunk = limit;
      EXPECT_NEAR(AverageKeys(chunked, length, AttentionMask::kCausal),
                  CountedKeys(chunked, length, AttentionMask::kCausal), 1e-9)
          << length << " " << limit;
      EXPECT_NEAR(AverageKeys(chunked, length, AttentionMask::kFull),
                  CountedKeys(chunked, length, AttentionMask::kFull), 1e-9);
      // The closed form treats the window as continuous: within half a key of counting.
      SoftmaxAttention sliding;
      sliding.window = limit;
      EXPECT_NEAR(AverageKeys(sliding, length, AttentionMask::kCausal),
                  CountedKeys(sliding, length, AttentionMask::kCausal), 0.5)
          << length << " " << limit;
    }
  }
}

TEST(AverageKeysTest, CompressedPastAddsOneEntryForEachBlock) {
  SoftmaxAttention attention;
  attention.window = 128;
  attention.compression = 4;
  // Window: nearly 128 keys; past: half of the length over 4.
  EXPECT_NEAR(AverageKeys(attention, 65536, AttentionMask::kCausal), 128 + 65536 / 2 / 4, 1);
  attention.selected_key_count = 512;
  EXPECT_NEAR(AverageKeys(attention, 1 << 24, AttentionMask::kCausal), 128 + 512, 1);
}

TEST(FlopsTest, DenseModelIsTheBooks) {
  // Chapter 4: 18BTDF + 12BTD(N + K)H + 12BTSNH (6 causal) per layer, 6BTDV for the head.
  const double D = 64, F = 256, N = 8, K = 2, H = 16, V = 1000, L = 4, T = 512;
  const ModelOperations model = OperationsOf(Small({Dense(8, 2, 16, 256)}, 4)).value();
  const double matmuls = L * (18 * D * F + 12 * D * (N + K) * H) + 6 * D * V;
  EXPECT_DOUBLE_EQ(CountFlops(model, 512, AttentionMask::kFull).training(), matmuls + L * 12 * T * N * H);
  const FlopsPerToken causal = CountFlops(model, 512, AttentionMask::kCausal);
  EXPECT_DOUBLE_EQ(causal.training(), matmuls + L * 6 * T * N * H);
  EXPECT_DOUBLE_EQ(kTrainingPasses * causal.forward_matmuls, matmuls);
  EXPECT_DOUBLE_EQ(kTrainingPasses * causal.forward_attention, L * 6 * T * N * H);
  EXPECT_DOUBLE_EQ(causal.components[static_cast<size_t>(Component::kOutputHead)], 2 * D * V);
  EXPECT_DOUBLE_EQ(causal.components[static_cast<size_t>(Component::kEmbedding)], 0);
  EXPECT_DOUBLE_EQ(AttentionShare(causal), causal.forward_attention / causal.forward);
}

TEST(FlopsTest, SixTimesActiveMatmulParameters) {
  // Norms and the embedding multiply nothing; every other active parameter of a bias-free model multiplies once.
  for (const char* name : {"meta-llama/Meta-Llama-3-70B", "mistralai/Mixtral-8x7B-v0.1", "Qwen/Qwen3-235B-A22B",
                           "deepseek-ai/DeepSeek-V2", "google/gemma-2-27b"}) {
    const Architecture architecture = Imported(ModelNamed(name).config_text);
    const ModelOperations model = OperationsOf(architecture).value();
    const ParameterCount parameters = CountParameters(architecture, model);
    const double table = static_cast<double>(parameters.embedding_count);
    const double norms = static_cast<double>(parameters.components[static_cast<size_t>(Component::kNorm)]);
    const double multiplied =
        static_cast<double>(parameters.active_count) - norms - (model.tied_embeddings ? 0 : table);
    EXPECT_DOUBLE_EQ(kTrainingPasses * CountFlops(model, 1, AttentionMask::kCausal).forward_matmuls, 6 * multiplied)
        << name;
  }
}

TEST(FlopsTest, WindowsBound) {
  Layer sliding = Dense(8, 2, 16, 256);
  std::get<GroupedQueryAttention>(sliding.attention).sliding_window = 128;
  const ModelOperations model = OperationsOf(Small({sliding}, 1)).value();
  const double short_flops = CountFlops(model, 128, AttentionMask::kCausal).forward_attention;
  EXPECT_DOUBLE_EQ(short_flops, 2 * 64.0 * 8 * 32);
  const double long_flops = CountFlops(model, 1 << 20, AttentionMask::kCausal).forward_attention;
  EXPECT_NEAR(long_flops, 2 * 128.0 * 8 * 32, 10);
}

TEST(FlopsTest, DraftLayersAreOutsideTheTotal) {
  Architecture architecture = Small({Dense(8, 2, 16, 256)}, 2);
  const double without = CountFlops(OperationsOf(architecture).value(), 64, AttentionMask::kCausal).forward;
  architecture.mtp_layer_count = 1;
  architecture.mtp_layer = Dense(8, 2, 16, 256);
  const FlopsPerToken flops = CountFlops(OperationsOf(architecture).value(), 64, AttentionMask::kCausal);
  EXPECT_DOUBLE_EQ(flops.forward, without);
  const double D = 64, F = 256, T = 64;
  EXPECT_DOUBLE_EQ(flops.training_mtp(), 18 * D * F + 12 * D * 10 * 16 + 6 * T * 8 * 16 + 6 * 2 * D * D + 6 * D * 1000);
}

TEST(AttentionEqualLengthTest, EightTimesTheWidthForTheBooksLayer) {
  // F = 4D, NH = D, MHA, gated: forward 24D^2 in the MLP and 8D^2 in the projections against 4TD in scores and context.
  Layer layer = Dense(/*heads=*/4, /*kv_heads=*/4, /*head_dim=*/16, /*ffn=*/256);
  const ModelOperations model = OperationsOf(Small({layer}, 3)).value();
  EXPECT_NEAR(AttentionEqualLength(model, AttentionMask::kFull).value(), 8 * 64, 0.01);
  EXPECT_NEAR(AttentionEqualLength(model, AttentionMask::kCausal).value(), 16 * 64, 0.01);
}

TEST(AttentionEqualLengthTest, NeverForShortWindows) {
  Layer layer = Dense(4, 4, 16, 256);
  std::get<GroupedQueryAttention>(layer.attention).sliding_window = 16;
  EXPECT_FALSE(AttentionEqualLength(OperationsOf(Small({layer}, 3)).value(), AttentionMask::kCausal).has_value());
}

}  // namespace
}  // namespace sliceplan::transformer
