// Replays of 10,000 requests and the mean field, with a timer that costs next to nothing: what the machinery itself
// takes.
#include <benchmark/benchmark.h>

#include "server/planner/serving/replay.h"
#include "server/planner/serving/saturation.h"
#include "tests/planner/serving_fixture.h"

namespace sliceplan::planner {
namespace {

constexpr double kUtilization = 0.8;

ServingSystem SystemOf(BatchPolicy policy, bool has_prefill_replicas, const StepTimer& timer) {
  ServingSystem system = OneReplica(timer, policy);
  if (has_prefill_replicas) {
    system.prefill = system.main;
    system.transfer_seconds_per_prompt = 0.01;
  }
  return system;
}

// Mean prompts of 1,000 tokens and outputs of 200, 80% of what saturates.
void ReplayBenchmark(benchmark::State& state, BatchPolicy policy, bool has_prefill_replicas, bool is_varied) {
  const LinearTimer timer = PlausibleTimer();
  const ServingSystem system = SystemOf(policy, has_prefill_replicas, timer);
  const RequestMix mix = is_varied ? VariedMix(1000, 200) : ConstantMix(1000, 200);
  Load load;
  load.requests_per_second = kUtilization * SaturationOf(system, mix).requests_per_second;
  double events = 0;
  double steps = 0;
  for (auto _ : state) {
    const ReplayResult result = Replay(system, mix, load);
    events += static_cast<double>(result.events);
    steps += static_cast<double>(result.engine_steps);
    benchmark::DoNotOptimize(result.ttft.p99_seconds);
  }
  state.counters["events"] = benchmark::Counter(events, benchmark::Counter::kIsRate);
  state.counters["steps"] = benchmark::Counter(steps, benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(ReplayBenchmark, static_varied, BatchPolicy::kStatic, false, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ReplayBenchmark, whole_same, BatchPolicy::kWholePrefill, false, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ReplayBenchmark, whole_varied, BatchPolicy::kWholePrefill, false, true)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ReplayBenchmark, chunked_same, BatchPolicy::kChunkedPrefill, false, false)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ReplayBenchmark, chunked_varied, BatchPolicy::kChunkedPrefill, false, true)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ReplayBenchmark, prefill_apart, BatchPolicy::kChunkedPrefill, true, true)
    ->Unit(benchmark::kMillisecond);

void MeanFieldBenchmark(benchmark::State& state, BatchPolicy policy) {
  const LinearTimer timer = PlausibleTimer();
  const ServingSystem system = SystemOf(policy, false, timer);
  const RequestMix mix = VariedMix(1000, 200);
  const double rate = kUtilization * SaturationOf(system, mix).requests_per_second;
  for (auto _ : state) {
    benchmark::DoNotOptimize(OpenLoopMeanField(system, mix, rate, 1).ttft_seconds);
  }
}

BENCHMARK_CAPTURE(MeanFieldBenchmark, whole, BatchPolicy::kWholePrefill)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(MeanFieldBenchmark, chunked, BatchPolicy::kChunkedPrefill)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace sliceplan::planner
