#include "server/transformer/kv_cache.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/transformer/model_table.h"
#include "tests/transformer/small_architectures.h"

namespace sliceplan::transformer {
namespace {

using hardware::DataType;

Architecture LocalAndGlobal() {
  Layer full = Dense(8, 2, 16, 256);
  Layer sliding = full;
  std::get<GroupedQueryAttention>(sliding.attention).sliding_window = 128;
  Layer chunked = full;
  std::get<GroupedQueryAttention>(chunked.attention).chunked_window = 512;
  return Small({sliding, sliding, chunked, full}, 3);
}

TEST(KvCacheTest, WindowsFillAndStop) {
  const KvCache cache = KvCacheOf(LocalAndGlobal());
  const int64_t layer_bytes = 2 * 2 * 16 * 2;  // K and V, 2 heads of 16, bf16
  EXPECT_EQ(GrowingBytesPerToken(cache, DataType::kBf16), 3 * layer_bytes);
  EXPECT_EQ(ReservedBytesPerToken(cache, DataType::kBf16), 12 * layer_bytes);
  EXPECT_EQ(cache.growing_layer_count, 3);
  EXPECT_EQ(cache.window_layer_count, 9);
  for (const int64_t context : {0, 1, 127, 128, 129, 512, 513, 100000}) {
    const int64_t expected =
        layer_bytes * (3 * context + 6 * std::min<int64_t>(context, 128) + 3 * std::min<int64_t>(context, 512));
    EXPECT_EQ(BytesAtContext(cache, context, DataType::kBf16), static_cast<double>(expected)) << context;
    EXPECT_EQ(ReservedBytesAtContext(cache, context, DataType::kBf16), static_cast<double>(12 * layer_bytes * context));
  }
}

TEST(KvCacheTest, WindowOfTheWholeContextLimitsNothing) {
  Architecture architecture = LocalAndGlobal();
  architecture.max_position_count = 128;
  EXPECT_EQ(KvCacheOf(architecture).window_layer_count, 0);
  architecture.max_position_count = 129;
  EXPECT_EQ(KvCacheOf(architecture).window_layer_count, 6);
}

TEST(KvCacheTest, LayersThatShareACacheOwnNone) {
  Layer shared = Dense(8, 2, 16, 256);
  std::get<GroupedQueryAttention>(shared.attention).shares_earlier_kv = true;
  const KvCache cache = KvCacheOf(Small({Dense(8, 2, 16, 256), shared}, 2));
  EXPECT_EQ(ReservedBytesPerToken(cache, DataType::kBf16), 2 * 2 * 2 * 16 * 2);
}

TEST(KvCacheTest, HalfBytesRoundUp) {
  Layer layer = Dense(1, 1, 1, 1);
  std::get<GroupedQueryAttention>(layer.attention).value_head_dim = 2;
  const KvCache cache = KvCacheOf(Small({layer}, 1));
  EXPECT_EQ(GrowingBytesPerToken(cache, DataType::kInt4), 2);  // 1.5 bytes
  EXPECT_EQ(BytesAtContext(cache, 3, DataType::kInt4), 5);     // 4.5 bytes
}

TEST(KvCacheTest, ConstantStateIsThereFromTheStart) {
  // Mamba-130m: 24 layers, inner width 1,536, state 16, four taps.
  const KvCache cache = KvCacheOf(Imported(ModelNamed("state-spaces/mamba-130m-hf").config_text));
  const int64_t state = 24 * (1536 * 16 * 4 + 1536 * 3 * 2);
  EXPECT_EQ(StateBytes(cache, DataType::kBf16), state);
  EXPECT_EQ(BytesAtContext(cache, 0, DataType::kBf16), static_cast<double>(state));
  EXPECT_EQ(BytesAtContext(cache, 1 << 20, DataType::kBf16), static_cast<double>(state));
}

TEST(KvCacheTest, IndexerKeysAreALineOfTheirOwn) {
  const KvCache cache = KvCacheOf(Imported(ModelNamed("deepseek-ai/DeepSeek-V3.2").config_text));
  EXPECT_EQ(IndexerBytesPerToken(cache, DataType::kBf16), 61 * 128 * 2);
  EXPECT_EQ(BytesAtContext(cache, 1000, DataType::kBf16), 1000.0 * (70272 + 61 * 128 * 2));
}

TEST(KvCacheTest, NeverShrinksWithTheContext) {
  for (const ModelRow& row : AllModels()) {
    if (row.IsRefused()) continue;
    const KvCache cache = KvCacheOf(Imported(row.config_text));
    double last = 0;
    for (int64_t context = 0; context < 1 << 20; context = context * 3 + 1) {
      const double bytes = BytesAtContext(cache, context, DataType::kBf16);
      EXPECT_GE(bytes, last) << row.name;
      EXPECT_LE(bytes, ReservedBytesAtContext(cache, context, DataType::kBf16)) << row.name;
      last = bytes;
    }
  }
}

}  // namespace
}  // namespace sliceplan::transformer
