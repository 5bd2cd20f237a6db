// Serving jobs on made-up, round chips: every expected value can be worked out by hand.
#ifndef SLICEPLAN_TESTS_PLANNER_SERVING_SERVING_FIXTURE_H_
#define SLICEPLAN_TESTS_PLANNER_SERVING_SERVING_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "server/planner/serving/estimate_serving.h"
#include "server/transformer/operations.h"

namespace sliceplan::planner {

// An architecture with its operations.
struct ServedFixture {
  transformer::Architecture architecture;
  transformer::ModelOperations operations;
  ServedModel Model() const { return {&architecture, &operations}; }
};

struct DenseShape {
  int32_t layers = 80;
  int32_t hidden_dim = 8192;
  int32_t query_heads = 64;
  int32_t kv_heads = 8;
  int32_t head_dim = 128;
  int32_t ffn_dim = 28672;
  int32_t vocab_size = 128256;
  int32_t window = 0;
  int32_t experts = 0;
  int32_t experts_per_token = 0;
};

// Llama 3 70B unless told otherwise.
inline ServedFixture Served(const DenseShape& shape = {}) {
  ServedFixture fixture;
  transformer::Layer layer;
  transformer::GroupedQueryAttention attention;
  attention.query_head_count = shape.query_heads;
  attention.kv_head_count = shape.kv_heads;
  attention.head_dim = shape.head_dim;
  attention.sliding_window = shape.window;
  layer.attention = attention;
  if (shape.experts > 0) {
    transformer::MixtureOfExperts experts;
    experts.expert_count = shape.experts;
    experts.experts_per_token = shape.experts_per_token;
    experts.expert_ffn_dim = shape.ffn_dim;
    layer.feed_forward = experts;
  } else {
    transformer::DenseFeedForward feed_forward;
    feed_forward.ffn_dim = shape.ffn_dim;
    layer.feed_forward = feed_forward;
  }
  fixture.architecture.name = "served";
  fixture.architecture.hidden_dim = shape.hidden_dim;
  fixture.architecture.vocab_size = shape.vocab_size;
  fixture.architecture.layer_groups.push_back({shape.layers, {layer}});
  absl::StatusOr<transformer::ModelOperations> operations = transformer::OperationsOf(fixture.architecture);
  EXPECT_TRUE(operations.ok()) << operations.status();
  fixture.operations = *std::move(operations);
  return fixture;
}

// The book's v5e (chapters 2 and 8): 1.97e14 FLOP/s, 8.2e11 B/s HBM of 16e9 bytes, 4.5e10 B/s a link and way.
inline hardware::AcceleratorSpec BookServingChip() {
  hardware::AcceleratorSpec chip;
  chip.name = "test-serving";
  chip.fabric = hardware::FabricKind::kTorus;
  chip.bf16_flops_per_second = 1.97e14;
  chip.int8_ops_per_second = 3.94e14;
  chip.hbm_bytes = 16'000'000'000;
  chip.hbm_bytes_per_second = 8.2e11;
  chip.ici_torus_dims = 2;
  chip.ici_link_bytes_per_second = 4.5e10;
  chip.ici_hop_seconds = 1e-6;
  chip.dcn_bytes_per_second = 3.125e9;
  chip.mean_watts = 200;
  return chip;
}

inline hardware::Slice ServingSlice(int32_t x, int32_t y) {
  hardware::Slice slice;
  slice.accelerator = BookServingChip();
  slice.axes.push_back({x, false});
  slice.axes.push_back({y, false});
  slice.chip_count = int64_t{x} * y;
  return slice;
}

inline Parallelism TensorOnly(int32_t degree) {
  Parallelism parallelism;
  parallelism.sequence_parallel = false;
  parallelism.ici[LogicalAxis::kTensor] = degree;
  return parallelism;
}

// ROOFLINE, everything int8 but the FLOPs, 16-way tensor on a 4x4: chapter 8's running example.
inline ServingJob BookJob(const ServedFixture& served, double context, int32_t batch) {
  ServingJob job;
  job.model = served.Model();
  job.mode = EstimationMode::kRoofline;
  ServingPool pool;
  pool.slice = ServingSlice(4, 4);
  pool.parallelism = TensorOnly(16);
  pool.usd_per_chip_hour = 1.2;
  job.pools.push_back(pool);
  job.workload.prompt = TokenLengths::Constant(context - 1);
  job.workload.output = TokenLengths::Constant(2);
  job.workload.load = ServingLoadKind::kBatch;
  job.workload.batch_size = batch;
  job.workload.kv_block_tokens = 1;
  job.workload.precision.weights = hardware::DataType::kInt8;
  job.workload.precision.kv_cache = hardware::DataType::kInt8;
  job.workload.precision.compute = hardware::DataType::kBf16;
  return job;
}

inline ServingEstimate Estimate(const ServingJob& job) {
  MappingCache mappings;
  ServingAnswer answer = EstimateServing(job, mappings);
  for (const hardware::Violation& violation : answer.violations) {
    ADD_FAILURE() << violation.field << ": " << violation.description;
  }
  return std::move(answer.estimate);
}

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_TESTS_PLANNER_SERVING_SERVING_FIXTURE_H_
