// Reading a config (target: under 100 us) and listing its operations (target: under 20 us).
#include <string>

#include "benchmark/benchmark.h"
#include "server/transformer/describe.h"
#include "server/transformer/hugging_face/import.h"
#include "tests/transformer/model_table.h"

namespace sliceplan::transformer {
namespace {

constexpr const char* kModels[] = {"meta-llama/Meta-Llama-3-70B", "deepseek-ai/DeepSeek-V3", "google/gemma-3-27b-it",
                                   "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B"};

const std::string& ConfigText(const benchmark::State& state) {
  return ModelNamed(kModels[static_cast<size_t>(state.range(0))]).config_text;
}

void BM_Import(benchmark::State& state) {
  const std::string& text = ConfigText(state);
  for (auto _ : state) benchmark::DoNotOptimize(ImportHuggingFaceConfig(text));
  state.SetLabel(kModels[static_cast<size_t>(state.range(0))]);
}
BENCHMARK(BM_Import)->DenseRange(0, 3);

void BM_OperationsOf(benchmark::State& state) {
  const Architecture architecture = ImportHuggingFaceConfig(ConfigText(state)).model.value().architecture;
  for (auto _ : state) benchmark::DoNotOptimize(OperationsOf(architecture));
  state.SetLabel(kModels[static_cast<size_t>(state.range(0))]);
}
BENCHMARK(BM_OperationsOf)->DenseRange(0, 3);

void BM_DescribeModel(benchmark::State& state) {
  const Architecture architecture = ImportHuggingFaceConfig(ConfigText(state)).model.value().architecture;
  for (auto _ : state) benchmark::DoNotOptimize(DescribeModel(architecture, DescribeOptions()));
  state.SetLabel(kModels[static_cast<size_t>(state.range(0))]);
}
BENCHMARK(BM_DescribeModel)->DenseRange(0, 3);

}  // namespace
}  // namespace sliceplan::transformer
