// What constants of serving profiles do. Expected values are worked out by hand.
#include <cmath>

#include "server/planner/serving/replica_load.h"
#include "tests/planner/serving/serving_fixture.h"

namespace sliceplan::planner {
namespace {

using hardware::DataType;
using roofline::ServingEfficiency;

// Weights as stored in 16 bits on 4x4 chips of the book's kind, each replica 16-way tensor.
ServingJob CalibratedJob(const ServedFixture& served, const ServingEfficiency& efficiency) {
  ServingJob job = BookJob(served, 1025, 1);
  job.mode = EstimationMode::kCalibrated;
  job.pools[0].efficiency = &efficiency;
  job.workload.prompt = TokenLengths::Constant(1024);
  job.workload.output = TokenLengths::Constant(64);
  job.workload.precision.weights.reset();
  job.workload.precision.compute.reset();
  return job;
}

ServingJob ClosedLoopJob(const ServedFixture& served, const ServingEfficiency& efficiency, int32_t users) {
  ServingJob job = CalibratedJob(served, efficiency);
  job.workload.load = ServingLoadKind::kConcurrency;
  job.workload.concurrency = users;
  return job;
}

double WeightBytes(const ServingJob& job) { return static_cast<double>(Estimate(job).memory.weights_bytes); }

TEST(CalibratedServingTest, FourBitWeightsCarryTheirScales) {
  const ServedFixture served = Served();
  ServingEfficiency efficiency;
  efficiency.quantizes_head = false;
  ServingJob job = CalibratedJob(served, efficiency);
  const double wide = WeightBytes(job);
  job.workload.precision.weights = DataType::kFp4;
  const double bare = WeightBytes(job);
  efficiency.four_bit_scale_bytes = 1.0 / 16;
  const double scaled = WeightBytes(job);
  // What shrinks from two bytes to half a byte takes a sixteenth of a byte more.
  EXPECT_NEAR((scaled - bare) / (wide - bare), 1.0 / 16 / 1.5, 1e-6);
}

// Where the request leaves it open the reply says what weights are multiplied as.
TEST(CalibratedServingTest, TheReplyNamesTheOperandsOfMatmuls) {
  const ServedFixture served = Served();
  const ServingEfficiency efficiency;
  struct {
    DataType weights;
    bool has_units;  // of eight and four bits
    DataType compute;
  } const kRows[] = {
      {DataType::kBf16, true, DataType::kBf16}, {DataType::kInt8, true, DataType::kBf16},
      {DataType::kInt4, true, DataType::kBf16}, {DataType::kFp8, true, DataType::kFp8},
      {DataType::kFp8, false, DataType::kBf16}, {DataType::kFp4, true, DataType::kFp4},
      {DataType::kFp4, false, DataType::kBf16},
  };
  for (const auto& row : kRows) {
    ServingJob job = CalibratedJob(served, efficiency);
    job.workload.precision.weights = row.weights;
    hardware::AcceleratorSpec& chip = job.pools[0].slice.accelerator;
    chip.fp8_flops_per_second = row.has_units ? std::optional<double>(3.94e14) : std::nullopt;
    chip.fp4_flops_per_second = row.has_units ? std::optional<double>(7.88e14) : std::nullopt;
    EXPECT_EQ(Estimate(job).load.compute, row.compute) << hardware::DataTypeName(row.weights) << row.has_units;
  }
}

transformer::LatentAttention Latent() {
  transformer::LatentAttention attention;
  attention.query_head_count = 16;
  attention.kv_lora_rank = 512;
  attention.qk_nope_head_dim = 128;
  attention.qk_rope_head_dim = 64;
  attention.v_head_dim = 128;
  return attention;
}

ServedFixture ServedLatent(const transformer::LatentAttention& attention) {
  ServedFixture served;
  transformer::Layer layer;
  layer.attention = attention;
  transformer::DenseFeedForward feed_forward;
  feed_forward.ffn_dim = 8192;
  layer.feed_forward = feed_forward;
  served.architecture.hidden_dim = 2048;
  served.architecture.vocab_size = 32000;
  served.architecture.layer_groups.push_back({4, {layer}});
  served.operations = transformer::OperationsOf(served.architecture).value();
  return served;
}

TEST(CalibratedServingTest, FourBitWeightsCanLeaveLatentAttentionWide) {
  const ServedFixture served = ServedLatent(Latent());
  ServingEfficiency efficiency;
  ServingJob job = CalibratedJob(served, efficiency);
  job.pools[0].slice = ServingSlice(1, 1);
  job.pools[0].parallelism = TensorOnly(1);
  job.workload.precision.weights = DataType::kFp4;
  const double all = WeightBytes(job);
  efficiency.four_bit_latent_attention = false;
  // Queries 2048 x 16 x 192, latents 2048 x 576, keys and values out of them 512 x 16 x 256, outputs 2048 x 2048.
  const double attention_weights = 2048.0 * 16 * 192 + 2048.0 * 576 + 512.0 * 16 * 256 + 2048.0 * 2048;
  EXPECT_NEAR(WeightBytes(job) - all, 4 * 1.5 * attention_weights, 1);
}

// DeepSeek-V3.2 in vLLM and SGLang: 512 values in fp8 with four fp32 scales and 64 in 16 bits, and 128 of the indexer
// with one scale. 43.67 GiB for 975,424 tokens of 61 layers: https://github.com/sgl-project/sglang/pull/11309.
TEST(CalibratedServingTest, CachesThatAreSelectedFromCarryScales) {
  transformer::LatentAttention attention = Latent();
  const ServedFixture plain = ServedLatent(attention);
  attention.indexer_head_count = 64;
  attention.indexer_head_dim = 128;
  attention.indexer_top_k = 2048;
  const ServedFixture selected = ServedLatent(attention);
  struct Case {
    const ServedFixture* served;
    EstimationMode mode;
    DataType kv_cache;
    int64_t bytes_per_layer;
  };
  const Case cases[] = {
      {&selected, EstimationMode::kCalibrated, DataType::kFp8, 656 + 132},
      {&selected, EstimationMode::kCalibrated, DataType::kBf16, 2 * 576 + 132},
      {&selected, EstimationMode::kRoofline, DataType::kFp8, 576 + 128},
      {&plain, EstimationMode::kCalibrated, DataType::kFp8, 576},
  };
  const ServingEfficiency efficiency;
  for (const Case& c : cases) {
    ServingJob job = CalibratedJob(*c.served, efficiency);
    job.mode = c.mode;
    job.pools[0].slice = ServingSlice(1, 1);
    job.pools[0].parallelism = TensorOnly(1);
    job.workload.precision.kv_cache = c.kv_cache;
    EXPECT_EQ(Estimate(job).memory.kv_bytes_per_token, 4 * c.bytes_per_layer) << c.bytes_per_layer;
  }
}

// 300 columns of an expert on each chip are held as three tiles of 128, with four-bit units as two of 256; 2,880 inputs
// as twelve of 256. A weight and its part of a scale take 17/32 bytes.
TEST(CalibratedServingTest, FourBitExpertsAreHeldInWholeTiles) {
  constexpr double kTensor = 16;
  constexpr double kLayers = 4;
  constexpr double kExperts = 8;
  constexpr double kMatrices = 3;
  DenseShape shape;
  shape.layers = kLayers;
  shape.hidden_dim = 2880;
  shape.ffn_dim = 300 * kTensor;
  shape.experts = kExperts;
  shape.experts_per_token = 2;
  ServedFixture served = Served(shape);
  transformer::Quantization& quantization = served.architecture.quantization;
  const auto expert = static_cast<size_t>(transformer::WeightClass::kExpert);
  quantization.method = "mxfp4";
  quantization.quantized[expert] = true;
  transformer::WeightFormat& format = quantization.formats[expert];
  format.dtype = DataType::kFp4;
  format.block_rows = 1;
  format.block_columns = 32;
  format.scale_bytes = 1;

  const ServingEfficiency efficiency;
  ServingJob job = CalibratedJob(served, efficiency);
  job.mode = EstimationMode::kRoofline;
  const double stored = WeightBytes(job);
  const auto expected = [&](double width) {
    return kLayers * kExperts * kMatrices * (width * 3072 - 300 * 2880) * 17 / 32;
  };
  job.mode = EstimationMode::kCalibrated;
  EXPECT_NEAR(WeightBytes(job) - stored, expected(384), 1);
  job.pools[0].slice.accelerator.fp4_flops_per_second = 7.88e14;
  EXPECT_NEAR(WeightBytes(job) - stored, expected(512), 1);
  // Other formats are not held so.
  format.block_columns = 16;
  const double calibrated = WeightBytes(job);
  job.mode = EstimationMode::kRoofline;
  EXPECT_NEAR(calibrated, WeightBytes(job), 1);
}

TEST(CalibratedServingTest, EnginesTakeTheirShareOfWhatProgramsCanAllocate) {
  const ServedFixture served = Served();
  ServingEfficiency efficiency;
  efficiency.hbm_utilization_ratio = 0.9;
  efficiency.reserved_bytes = 1e9;
  ServingJob job = CalibratedJob(served, efficiency);
  job.pools[0].slice.accelerator.hbm_usable_bytes = 15'000'000'000;
  const ServingMemory before = Estimate(job).memory;
  EXPECT_NEAR(static_cast<double>(before.kv_pool_bytes + before.weights_bytes + before.buffers_bytes), 12.5e9, 2);
  // Measured buffers stand in the place of counted ones.
  efficiency.collective_buffer_bytes = 2e8;
  EXPECT_NEAR(static_cast<double>(before.kv_pool_bytes + before.buffers_bytes - Estimate(job).memory.kv_pool_bytes),
              2e8, 2);
  // 1,000 rows of 128,256 logits in four bytes, three times.
  efficiency.max_sequences = 1000;
  efficiency.logit_copies = 3;
  EXPECT_NEAR(static_cast<double>(Estimate(job).memory.activations_bytes), 3 * 1000 * 128256 * 4.0, 1);
}

// Places never stand empty while users wait: rate x time is the number of users, and more users change no rate.
TEST(CalibratedServingTest, UsersBeyondTheCapacityOnlyWait) {
  const ServedFixture served = Served();
  ServingEfficiency efficiency;
  efficiency.prefill_wait_ratio = 1;
  ServingJob job = ClosedLoopJob(served, efficiency, 100);
  job.workload.max_batch_size = 10;
  const ServingEstimate some = Estimate(job);
  job.workload.concurrency = 1000;
  const ServingEstimate many = Estimate(job);
  EXPECT_NEAR(many.throughput.requests_per_second, some.throughput.requests_per_second,
              1e-9 * some.throughput.requests_per_second);
  EXPECT_DOUBLE_EQ(many.tpot->mean_seconds, some.tpot->mean_seconds);
  EXPECT_NEAR(some.throughput.requests_per_second * (some.ttft->mean_seconds + 64 * some.tpot->mean_seconds), 100,
              1e-6);
}

TEST(CalibratedServingTest, WithoutDecodesPromptsWaitForPrompts) {
  const ServedFixture served = Served();
  const ServingEfficiency efficiency;
  ServingJob job = ClosedLoopJob(served, efficiency, 8);
  job.workload.output = TokenLengths::Constant(1);
  const ServingEstimate estimate = Estimate(job);
  EXPECT_NEAR(estimate.ttft->mean_seconds, 8 * estimate.prefill.time.expected_seconds, 1e-9);
}

// Requests that are all alike stay in step where prompts come first: everybody waits for half of the others' prompts
// before the first token and for the other half after it.
TEST(CalibratedServingTest, UsersWithEqualRequestsStayInStep) {
  const ServedFixture served = Served();
  ServingEfficiency efficiency;
  const ServingJob alike = ClosedLoopJob(served, efficiency, 9);
  const ServingEstimate mixed = Estimate(alike);
  efficiency.prefill_first = true;
  const ServingEstimate in_step = Estimate(alike);
  EXPECT_LT(in_step.tpot->mean_seconds, mixed.tpot->mean_seconds);
  EXPECT_GT(in_step.ttft->mean_seconds, mixed.ttft->mean_seconds);
  const double delay = 64 * (mixed.tpot->mean_seconds - in_step.tpot->mean_seconds);
  EXPECT_NEAR(in_step.ttft->mean_seconds - mixed.ttft->mean_seconds, delay, 1e-9);
  ServingJob different = alike;
  different.workload.prompt = TokenLengths::LogNormal(1024, 0.5);
  ServingEfficiency plain;
  ServingJob reference = different;
  reference.pools[0].efficiency = &plain;
  EXPECT_DOUBLE_EQ(Estimate(different).tpot->mean_seconds, Estimate(reference).tpot->mean_seconds);
}

// Prompts of a batch follow each other through the stages: 8 prompts in 2 stages fill 9 of 16 slots of one each.
TEST(CalibratedServingTest, PromptsOfABatchFillThePipeline) {
  const ServedFixture served = Served();
  const ServingEfficiency efficiency;
  ServingJob job = CalibratedJob(served, efficiency);
  job.pools[0].parallelism = TensorOnly(8);
  job.pools[0].parallelism->ici[LogicalAxis::kPipeline] = 2;
  job.workload.output = TokenLengths::Constant(1);
  job.workload.batch_size = 1;
  const double one = Estimate(job).ttft->mean_seconds;
  job.workload.batch_size = 8;
  const double eight = Estimate(job).ttft->mean_seconds;
  EXPECT_LT(eight, 8 * one * 9 / 16 * 1.001);
  EXPECT_GT(eight, 8 * one * 9 / 16 * 0.8);
}

}  // namespace
}  // namespace sliceplan::planner
