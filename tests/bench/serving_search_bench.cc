// The search for the best way to serve, as ProposeSharding runs it without the reply: the catalog up to 64 chips and
// whole, one slice with a target, and an estimate without a plan. One core: docs/serving.md, section 6.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/text_format.h"
#include "server/catalog/catalog_store.h"
#include "server/planner/serving/estimate_serving.h"
#include "server/planner/serving/serving_judge.h"
#include "server/planner/serving/serving_search.h"
#include "server/rpc/convert/serving_search.h"

namespace sliceplan::rpc {
namespace {

struct Case {
  const char* name;
  const char* request;
  int64_t most_chips = std::numeric_limits<int64_t>::max();  // of a replica
};

constexpr char kTargets[] = "constraints { slo { ttft { p95_seconds: 1 } tpot { p95_seconds: 0.05 } } }";

const Case kCases[] = {
    {"8B/rate/64-chips", "model { preset: 'llama-3-8b' } serving { requests_per_second: 20 }", 64},
    {"8B/rate-slo/64-chips", "model { preset: 'llama-3-8b' } serving { requests_per_second: 20 }", 64},
    {"8B/rate-slo-tpot/64-chips",
     "model { preset: 'llama-3-8b' } serving { requests_per_second: 20 } objective: OBJECTIVE_MIN_STEP_TIME", 64},
    {"70B/rate-slo/64-chips", "model { preset: 'llama-3-70b' } serving { requests_per_second: 20 }", 64},
    {"70B/rate-slo/catalog", "model { preset: 'llama-3-70b' } serving { requests_per_second: 20 }"},
    {"70B/batch/64-chips", "model { preset: 'llama-3-70b' } serving { batch_size: 32 }", 64},
    {"70B/users/64-chips", "model { preset: 'llama-3-70b' } serving { concurrency: 64 }", 64},
    {"8B/rate-slo/one-slice",
     "model { preset: 'llama-3-8b' } serving { requests_per_second: 5 } "
     "slices { slices { accelerator: 'tpu-v5e' topology: '2x4' } }"},
};

void Require(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "serving_search_bench: %s\n", what.c_str());
  std::abort();
}

struct Asked {
  explicit Asked(const Case& asked) : store(*catalog::CatalogStore::Create("")) {
    std::string text =
        absl::StrReplaceAll(asked.request, {{"serving {", "serving { prompt_tokens: 2000 output_tokens: 256"}});
    if (std::string(asked.name).find("slo") != std::string::npos) absl::StrAppend(&text, " ", kTargets);
    Require(google::protobuf::TextFormat::ParseFromString(text, &request), text);
    ToServingSearch(request, *store->Snapshot(), models, profiles, FieldPath(), question, violations);
    Require(violations.empty(), asked.name);
    auto& candidates = question.search.candidates;
    const auto is_large = [&](const auto& one) { return one.slice.TotalChips() > asked.most_chips; };
    candidates.erase(std::remove_if(candidates.begin(), candidates.end(), is_large), candidates.end());
  }

  std::unique_ptr<catalog::CatalogStore> store;
  ModelCache models;
  ProfileCache profiles;
  v1::ProposeShardingRequest request;
  ServingSearchQuestion question;
  Violations violations;
};

void Search(benchmark::State& state, const Asked& asked) {
  planner::MappingCache mappings;
  planner::ServingSearchAnswer answer;
  for (auto _ : state) answer = planner::ProposeServing(asked.question.search, mappings, nullptr);
  state.counters["slices"] = static_cast<double>(asked.question.search.candidates.size());
  state.counters["plans"] = static_cast<double>(answer.considered_count);
  state.counters["evaluated"] = static_cast<double>(answer.evaluated_count);
  state.counters["proven"] = answer.exhaustive ? 1 : 0;
  if (answer.proposals.empty()) return;
  const planner::ServingProposal& best = answer.proposals[0];
  const hardware::Slice& slice = asked.question.search.candidates[best.candidates[0]].slice;
  state.SetLabel(absl::StrCat(best.estimate.pools[0].replica_count, " x ", slice.accelerator_id, " ", slice.topology));
}

// The same slice and load, one replica given and the plan left open.
void Estimate(benchmark::State& state, const Asked& asked) {
  const planner::ServingJudge judge(asked.question.search);
  const planner::ServingJob job = judge.JobOf(0, planner::PoolRole::kBoth);
  planner::MappingCache mappings;
  for (auto _ : state) benchmark::DoNotOptimize(planner::EstimateServing(job, mappings));
}

void Register() {
  for (const Case& one : kCases) {
    const auto* const asked = new Asked(one);
    benchmark::RegisterBenchmark(absl::StrCat("propose/", one.name).c_str(), [asked](benchmark::State& state) {
      Search(state, *asked);
    })->Unit(benchmark::kMillisecond);
    if (asked->question.search.candidates.size() > 1) continue;
    benchmark::RegisterBenchmark(absl::StrCat("estimate/", one.name).c_str(), [asked](benchmark::State& state) {
      Estimate(state, *asked);
    })->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace sliceplan::rpc

int main(int argc, char** argv) {
  sliceplan::rpc::Register();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
