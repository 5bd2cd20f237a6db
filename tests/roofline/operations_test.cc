// Costs of single operations on one chip, by their formulas.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "server/roofline/attention.h"
#include "server/roofline/critical_batch.h"
#include "server/roofline/elementwise.h"
#include "server/roofline/host_offload.h"
#include "server/roofline/matmul.h"
#include "server/roofline/memory_tiers.h"
#include "server/roofline/ring_matmul.h"
#include "server/roofline/tile_padding.h"
#include "tests/roofline/chips.h"

namespace sliceplan::roofline {
namespace {

using hardware::AcceleratorSpec;
using hardware::DataType;

struct MatmulCase {
  const char* name;
  Matmul op;
  DataType compute;
  double flops;
  double hbm_bytes;
};

const MatmulCase kMatmuls[] = {
    {"bf16",
     {.m = 512, .k = 4096, .n = 8192},
     DataType::kBf16,
     2.0 * 512 * 4096 * 8192,
     2.0 * (512 * 4096 + 4096 * 8192 + 512 * 8192)},
    // int8 weights with bf16 activations: book, chapter 1, question 2.
    {"int8_weights",
     {.m = 64, .k = 1024, .n = 512, .rhs = DataType::kInt8},
     DataType::kBf16,
     2.0 * 64 * 1024 * 512,
     2.0 * 64 * 1024 + 1.0 * 1024 * 512 + 2.0 * 64 * 512},
    {"int8",
     {.m = 8, .k = 16, .n = 32, .lhs = DataType::kInt8, .rhs = DataType::kInt8},
     DataType::kInt8,
     2.0 * 8 * 16 * 32,
     1.0 * 8 * 16 + 1.0 * 16 * 32 + 2.0 * 8 * 32},
    {"int4_weights_int8",
     {.m = 8, .k = 16, .n = 32, .lhs = DataType::kInt8, .rhs = DataType::kInt4},
     DataType::kInt8,
     2.0 * 8 * 16 * 32,
     1.0 * 8 * 16 + 0.5 * 16 * 32 + 2.0 * 8 * 32},
    {"fp8_weights_bf16",
     {.m = 8, .k = 16, .n = 32, .rhs = DataType::kFp8},
     DataType::kBf16,
     2.0 * 8 * 16 * 32,
     2.0 * 8 * 16 + 1.0 * 16 * 32 + 2.0 * 8 * 32},
    {"fp32_meets_int8",
     {.m = 8, .k = 16, .n = 32, .lhs = DataType::kFp32, .rhs = DataType::kInt8},
     DataType::kFp32,
     2.0 * 8 * 16 * 32,
     4.0 * 8 * 16 + 1.0 * 16 * 32 + 2.0 * 8 * 32},
    {"given_compute",
     {.m = 8, .k = 16, .n = 32, .compute = DataType::kFp8},
     DataType::kFp8,
     2.0 * 8 * 16 * 32,
     2.0 * (8 * 16 + 16 * 32 + 8 * 32)},
    {"batched",
     {.batch = 5, .m = 8, .k = 16, .n = 32},
     DataType::kBf16,
     5 * 2.0 * 8 * 16 * 32,
     5 * 2.0 * (8 * 16 + 16 * 32 + 8 * 32)},
};

TEST(MatmulTest, CostsFollowTheFormulas) {
  for (const MatmulCase& row : kMatmuls) {
    SCOPED_TRACE(row.name);
    const OpCost cost = CostOf(row.op);
    EXPECT_EQ(row.op.Compute(), row.compute);
    EXPECT_DOUBLE_EQ(cost.MatrixFlops(row.compute), row.flops);
    EXPECT_DOUBLE_EQ(cost.TotalFlops(), row.flops);
    EXPECT_DOUBLE_EQ(cost.hbm_bytes, row.hbm_bytes);
  }
}

TEST(MatmulTest, ComputeTypeIsSymmetric) {
  const DataType types[] = {DataType::kBf16, DataType::kFp16, DataType::kFp32, DataType::kFp8,
                            DataType::kFp4,  DataType::kInt8, DataType::kInt4};
  for (const DataType a : types) {
    EXPECT_EQ(ComputeType(a, a), a);
    for (const DataType b : types) EXPECT_EQ(ComputeType(a, b), ComputeType(b, a));
  }
  EXPECT_EQ(ComputeType(DataType::kInt8, DataType::kFp8), DataType::kBf16);
  EXPECT_EQ(ComputeType(DataType::kFp8, DataType::kFp4), DataType::kFp8);
  EXPECT_EQ(ComputeType(DataType::kFp16, DataType::kBf16), DataType::kBf16);
}

TEST(MatmulTest, TransposingChangesNothing) {
  const Matmul op{.m = 96, .k = 1024, .n = 512};
  const Matmul transposed{.m = 512, .k = 1024, .n = 96};
  EXPECT_DOUBLE_EQ(CostOf(op).TotalFlops(), CostOf(transposed).TotalFlops());
  EXPECT_DOUBLE_EQ(CostOf(op).hbm_bytes, CostOf(transposed).hbm_bytes);
}

TEST(MatmulTest, PaddingCountsWholeTiles) {
  EXPECT_DOUBLE_EQ(PaddedOverUseful({.m = 8, .k = 128, .n = 256}, 128), 1);
  EXPECT_DOUBLE_EQ(PaddedOverUseful({.m = 8, .k = 100, .n = 256}, 128), 128.0 / 100);
  EXPECT_DOUBLE_EQ(PaddedOverUseful({.m = 1, .k = 128, .n = 128}, 128), 8);  // rows come eight at a time
  EXPECT_DOUBLE_EQ(PaddedOverUseful({.m = 12, .k = 129, .n = 64}, 128), (16.0 / 12) * (256.0 / 129) * (128.0 / 64));
}

TEST(MatmulTest, OneTileReadsEachOperandOnce) {
  const Matmul op{.m = 256, .k = 512, .n = 128};
  EXPECT_DOUBLE_EQ(BytesOf(TiledMatmul{op, 256, 512, 128}), BytesOf(op).Total());
  // Half the rows at a time reads rhs twice.
  EXPECT_DOUBLE_EQ(BytesOf(TiledMatmul{op, 128, 512, 128}), BytesOf(op).Total() + BytesOf(op).rhs);
}

TEST(CriticalBatchTest, MeetsTheRoofline) {
  // C / W = 200 FLOPs a byte: 200 rows of two-byte weights, 100 of one-byte ones.
  EXPECT_DOUBLE_EQ(CriticalBatch(200e12, 1e12, 2), 200);
  EXPECT_DOUBLE_EQ(CriticalBatch(200e12, 1e12, 1), 100);
  EXPECT_DOUBLE_EQ(CriticalBatch(200e12, 1e12, 2, /*sparsity=*/4), 800);
}

TEST(CriticalBatchTest, ExactIsWhereBothTimesMeet) {
  const AcceleratorSpec chip = RoundChip();
  for (const DataType weights : {DataType::kBf16, DataType::kInt8}) {
    Matmul op{.k = 4096, .n = 16384, .rhs = weights};
    const double rows = ExactCriticalBatch(op, 200e12, 1e12).value();
    EXPECT_GT(rows, CriticalBatch(200e12, 1e12, hardware::BytesPerElement(weights)));
    op.m = static_cast<int64_t>(std::floor(rows));
    EXPECT_EQ(BoundOf(SecondsOf(CostOf(op), chip).value()).binding, Resource::kHbm);
    op.m = static_cast<int64_t>(std::ceil(rows)) + 1;
    EXPECT_EQ(BoundOf(SecondsOf(CostOf(op), chip).value()).binding, Resource::kMatrixUnit);
  }
}

TEST(CriticalBatchTest, NoneExistsWhenActivationsAloneAreTooMuch) {
  // k n / (k + n) below 200.
  EXPECT_FALSE(ExactCriticalBatch({.k = 256, .n = 256}, 200e12, 1e12).has_value());
  // n = 4 k: k must exceed 200 x 5 / 4.
  EXPECT_DOUBLE_EQ(MinimumContractingDim(200, 4, 2, 2), 250);
  EXPECT_FALSE(ExactCriticalBatch({.k = 249, .n = 4 * 249}, 200e12, 1e12).has_value());
  EXPECT_TRUE(ExactCriticalBatch({.k = 251, .n = 4 * 251}, 200e12, 1e12).has_value());
}

AttentionOp Attention(int64_t queries, int64_t keys, int64_t heads, int64_t kv_heads, AttentionMask mask) {
  AttentionOp op;
  op.query_length = queries;
  op.key_length = keys;
  op.query_head_count = heads;
  op.kv_head_count = kv_heads;
  op.head_dim = 128;
  op.mask = mask;
  return op;
}

TEST(AttentionTest, CostsFollowTheFormulas) {
  AttentionOp op = Attention(1024, 4096, 32, 8, AttentionMask::kFull);
  op.batch_size = 3;
  EXPECT_DOUBLE_EQ(AttentionFlops(op), 4.0 * 3 * 1024 * 4096 * 32 * 128);
  EXPECT_DOUBLE_EQ(BytesOf(op).query, 2.0 * 3 * 1024 * 32 * 128);
  EXPECT_DOUBLE_EQ(BytesOf(op).key_value, 2 * 2.0 * 3 * 4096 * 8 * 128);
  EXPECT_DOUBLE_EQ(BytesOf(op).output, BytesOf(op).query);
  // T S G / (T G + S), book, chapter 7.
  const double group = 32 / 8;
  EXPECT_DOUBLE_EQ(CostOf(op).Intensity(), 1024.0 * 4096 * group / (1024 * group + 4096));
}

TEST(AttentionTest, CausalPrefillIsHalfAndDecodeSeesEveryKey) {
  EXPECT_DOUBLE_EQ(AttentionFlops(Attention(4096, 4096, 8, 8, AttentionMask::kCausal)),
                   AttentionFlops(Attention(4096, 4096, 8, 8, AttentionMask::kFull)) / 2);
  EXPECT_DOUBLE_EQ(AttentionFlops(Attention(1, 4096, 8, 8, AttentionMask::kCausal)),
                   AttentionFlops(Attention(1, 4096, 8, 8, AttentionMask::kFull)));
  // A chunk of 1,024 at the end of 4,096: all pairs less the triangle in its own square.
  EXPECT_DOUBLE_EQ(AttendedPairs(Attention(1024, 4096, 8, 8, AttentionMask::kCausal)),
                   1024.0 * 4096 - 1024.0 * 1024 / 2);
}

TEST(AttentionTest, ChunksOfAPromptAddUpToTheWhole) {
  double flops = 0;
  for (int64_t end = 512; end <= 4096; end += 512) {
    flops += AttentionFlops(Attention(512, end, 8, 2, AttentionMask::kCausal));
  }
  EXPECT_DOUBLE_EQ(flops, AttentionFlops(Attention(4096, 4096, 8, 2, AttentionMask::kCausal)));
}

TEST(AttentionTest, ScoresInMemoryCostTrafficAndSkipNothing) {
  AttentionOp op = Attention(1024, 1024, 8, 8, AttentionMask::kCausal);
  const double fused_bytes = BytesOf(op).Total();
  op.materializes_scores = true;
  EXPECT_DOUBLE_EQ(AttentionFlops(op), 4.0 * 1024 * 1024 * 8 * 128);
  EXPECT_DOUBLE_EQ(BytesOf(op).Total() - fused_bytes, 4 * 2.0 * 1024 * 1024 * 8);
}

TEST(AttentionTest, NarrowCachesReadLess) {
  AttentionOp op = Attention(1, 8192, 64, 8, AttentionMask::kCausal);
  const double wide = BytesOf(op).key_value;
  op.kv_type = DataType::kInt8;
  EXPECT_DOUBLE_EQ(BytesOf(op).key_value, wide / 2);
}

TEST(AttentionTest, CriticalLengthsMeetTheRoofline) {
  AttentionOp op = Attention(1, 8192, 16, 4, AttentionMask::kFull);
  const double length = CriticalQueryLength(op, 200).value();
  op.query_length = static_cast<int64_t>(std::floor(length));
  EXPECT_LE(CostOf(op).Intensity(), 200);
  op.query_length += 1;
  EXPECT_GE(CostOf(op).Intensity(), 200);
  EXPECT_FALSE(CriticalQueryLength(Attention(1, 128, 16, 4, AttentionMask::kFull), 200).has_value());
  EXPECT_DOUBLE_EQ(CriticalPromptLength(200, 1), 400);
  EXPECT_DOUBLE_EQ(CriticalPromptLength(200, 4), 250);
}

TEST(AttentionTest, HeadsPadToTheMatrixUnit) {
  AttentionOp op = Attention(1, 1, 1, 1, AttentionMask::kFull);
  op.head_dim = 64;
  EXPECT_DOUBLE_EQ(PaddedOverUseful(op, 128), 2);
}

TEST(ElementwiseTest, CostsFollowTheFormulas) {
  const OpCost add =
      CostOf(Elementwise{.element_count = 1000, .input_count = 2, .flops_per_element = 1, .type = DataType::kFp32});
  EXPECT_DOUBLE_EQ(add.vector_flops, 1000);
  EXPECT_DOUBLE_EQ(add.hbm_bytes, 12 * 1000);
  EXPECT_DOUBLE_EQ(add.Intensity(), 1.0 / 12);  // book, chapter 12: fp32 add
  const OpCost fill = CostOf(Elementwise{.element_count = 10, .input_count = 0, .flops_per_element = 0});
  EXPECT_DOUBLE_EQ(fill.hbm_bytes, 20);
  EXPECT_DOUBLE_EQ(fill.TotalFlops(), 0);
  const OpCost lookup = CostOf(EmbeddingLookup{.token_count = 7, .hidden_dim = 100, .table_type = DataType::kFp32});
  EXPECT_DOUBLE_EQ(lookup.TotalFlops(), 0);
  EXPECT_DOUBLE_EQ(lookup.hbm_bytes, 7 * 100 * (4 + 2));
}

TEST(TilePaddingTest, RoundsUp) {
  EXPECT_EQ(PaddedDim(1, 128), 128);
  EXPECT_EQ(PaddedDim(128, 128), 128);
  EXPECT_EQ(PaddedDim(129, 128), 256);
  EXPECT_EQ(UsefulRatio(96, 128), 0.75);
  const TiledLayout layout = TiledLayoutOf({7, 10, 100}, {8, 128}, 2);
  EXPECT_EQ(layout.padded_shape, (std::vector<double>{7, 16, 128}));
  EXPECT_EQ(layout.bytes, 7.0 * 16 * 128 * 2);
  EXPECT_DOUBLE_EQ(layout.expansion_ratio, 16.0 * 128 / (10 * 100));
}

TEST(MemoryTiersTest, RatiosAndMissingFigures) {
  const AcceleratorSpec chip = RoundChip();
  EXPECT_DOUBLE_EQ(CriticalIntensity(chip, MemoryTier::kHbm).value(), 200);
  EXPECT_DOUBLE_EQ(CriticalIntensity(chip, MemoryTier::kHbm, DataType::kInt8).value(), 400);
  EXPECT_DOUBLE_EQ(CriticalIntensity(chip, MemoryTier::kIciAxis).value(), 2000);
  EXPECT_DOUBLE_EQ(CriticalIntensity(chip, MemoryTier::kIciLink).value(), 4000);
  EXPECT_DOUBLE_EQ(BandwidthRatio(chip, MemoryTier::kHbm, MemoryTier::kPcie).value(), 100);
  EXPECT_DOUBLE_EQ(IciEgressBytesPerSecond(chip).value(), 200e9);
  EXPECT_DOUBLE_EQ(HostDcnBytesPerSecond(chip, 4).value(), 20e9);
  EXPECT_FALSE(DomainEgressBytesPerSecond(chip).has_value());
  EXPECT_FALSE(SharedMemoryBytes(chip).has_value());
  EXPECT_EQ(CriticalIntensity(chip, MemoryTier::kScaleUp).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CriticalIntensity(AcceleratorSpec{}, MemoryTier::kHbm).status().code(),
            absl::StatusCode::kFailedPrecondition);
  for (int i = 0; i <= static_cast<int>(MemoryTier::kDcn); ++i) {
    EXPECT_FALSE(TierField(static_cast<MemoryTier>(i)).empty());
  }
}

TEST(HostOffloadTest, LinksOfACorner) {
  const hardware::Slice mesh = TorusOf({4, 4}, /*wraps=*/false);
  const hardware::Slice torus = TorusOf({4, 4}, /*wraps=*/true);
  const std::vector<int32_t> corner = {0, 0};
  const std::vector<int32_t> edge = {0, 2};
  const std::vector<int32_t> middle = {1, 2};
  EXPECT_EQ(LinkCountAt(mesh.axes, corner), 2);
  EXPECT_EQ(LinkCountAt(mesh.axes, edge), 3);
  EXPECT_EQ(LinkCountAt(mesh.axes, middle), 4);
  EXPECT_EQ(LinkCountAt(torus.axes, corner), 4);
  EXPECT_EQ(LinkCountAt(TorusOf({2, 1}, true).axes, corner), 1);
}

TEST(HostOffloadTest, StagesOfAGatheredMatmul) {
  const hardware::Slice slice = TorusOf({4, 4}, /*wraps=*/false);
  const std::vector<int32_t> corner = {0, 0};
  const Matmul op{.m = 8, .k = 1024, .n = 1024};
  const ResourceSeconds seconds = OffloadedMatmulSeconds(op, slice, corner).value();
  const double bytes = 2.0 * 1024 * 1024;
  EXPECT_DOUBLE_EQ(seconds.pcie, bytes / (16 * 10e9));
  EXPECT_DOUBLE_EQ(seconds.ici, bytes * 15 / 16 / (2 * 50e9));
  const HostTransfer transfer = HostTransferOf(1e9, slice.accelerator).value();
  EXPECT_DOUBLE_EQ(transfer.PipelinedSeconds(), 0.2);  // 5 GB/s out of the chip's share of the network
  EXPECT_DOUBLE_EQ(transfer.StoreAndForwardSeconds(), 2 * (0.1 + 0.2));
}

TEST(RingMatmulTest, ChunksCoverTheMatmul) {
  const Matmul op{.m = 64, .k = 4096, .n = 512};
  const RingMatmul ring = RingMatmulOf(op, 8);
  EXPECT_DOUBLE_EQ(ring.chunk_flops * static_cast<double>(ring.chunk_count), MatmulFlops(op));
  EXPECT_DOUBLE_EQ(RingMatmulSeconds(ring, 1, 0.5), 8);        // transfers hide
  EXPECT_DOUBLE_EQ(RingMatmulSeconds(ring, 1, 3), 1 + 7 * 3);  // transfers bind
  EXPECT_DOUBLE_EQ(RingMatmulSeconds(RingMatmulOf(op, 1), 1, 3), 1);
}

}  // namespace
}  // namespace sliceplan::roofline
