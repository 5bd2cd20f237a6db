// How fast a serving estimate is made. One core, ratios and rates in one run: docs/serving.md.
#include <benchmark/benchmark.h>

#include "server/planner/serving/estimate_serving.h"
#include "tests/planner/serving/serving_fixture.h"

namespace sliceplan::planner {
namespace {

roofline::ServingEfficiency Runtime() {
  roofline::ServingEfficiency runtime;
  runtime.weights_hbm_ratio = 0.9;
  runtime.kv_hbm_ratio = 0.7;
  runtime.decode_matmul_ratio = 0.75;
  runtime.prefill_matmul_ratio = 0.85;
  runtime.activation_passes = 4;
  runtime.seconds_per_layer = 5e-5;
  runtime.prefill_chunk_tokens = 8192;
  return runtime;
}

ServingJob CalibratedJob(const ServedFixture& served, const roofline::ServingEfficiency& runtime) {
  ServingJob job = BookJob(served, 2048, 32);
  job.mode = EstimationMode::kCalibrated;
  job.pools[0].efficiency = &runtime;
  job.workload.output = TokenLengths::Constant(256);
  return job;
}

// A fixed batch, the plan given: memory, times with parts, frontier, cost, advice.
void BM_FixedBatch(benchmark::State& state) {
  const ServedFixture served = Served();
  const roofline::ServingEfficiency runtime = Runtime();
  const ServingJob job = CalibratedJob(served, runtime);
  MappingCache mappings;
  for (auto _ : state) benchmark::DoNotOptimize(EstimateServing(job, mappings));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_FixedBatch);

// The best plan of 16 chips, with the frontier over all of them.
void BM_BestPlanOfASlice(benchmark::State& state) {
  const ServedFixture served = Served();
  const roofline::ServingEfficiency runtime = Runtime();
  ServingJob job = CalibratedJob(served, runtime);
  job.pools[0].parallelism.reset();
  job.workload.load = ServingLoadKind::kLargestBatch;
  job.slo.tpot.p95_seconds = 0.04;
  MappingCache mappings;
  for (auto _ : state) benchmark::DoNotOptimize(EstimateServing(job, mappings));
}
BENCHMARK(BM_BestPlanOfASlice)->Unit(benchmark::kMillisecond);

// 10,000 Poisson arrivals at half of what is sustained.
void BM_OpenLoop(benchmark::State& state) {
  const ServedFixture served = Served();
  const roofline::ServingEfficiency runtime = Runtime();
  ServingJob job = CalibratedJob(served, runtime);
  job.workload.load = ServingLoadKind::kRate;
  job.workload.requests_per_second = 1;
  MappingCache mappings;
  for (auto _ : state) benchmark::DoNotOptimize(EstimateServing(job, mappings));
}
BENCHMARK(BM_OpenLoop)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sliceplan::planner
