// How many training estimates one core answers: the engine alone, with the search, and the whole request path.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "google/protobuf/util/json_util.h"
#include "server/catalog/catalog_store.h"
#include "server/catalog/efficiency.h"
#include "server/catalog/slice_resolver.h"
#include "server/planner/estimate_training.h"
#include "server/rpc/call_context.h"
#include "server/rpc/handlers/engine.h"
#include "server/rpc/handlers/register.h"
#include "server/rpc/method_table.h"
#include "server/transformer/hugging_face/import.h"

namespace sliceplan {
namespace {

void Require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "training_bench: %s\n", what);
  std::abort();
}

// Llama 3 70B on two slices of 16x16x16, 4Mi tokens a step: the example of `make run`.
struct Example {
  Example() : store(*catalog::CatalogStore::Create("")), snapshot(store->Snapshot()) {
    const catalog::ModelLookup found = snapshot->FindModel("llama-3-70b");
    Require(found.model != nullptr, "no such preset");
    const transformer::ImportResult imported = transformer::ImportHuggingFaceConfig(found.model->hugging_face_config());
    Require(imported.model.has_value(), "the preset does not import");
    model = *transformer::OperationsOf(imported.model->architecture);
    catalog::SliceQuery query;
    query.accelerator = "tpu-v5p";
    query.topology = "16x16x16";
    query.slice_count = 2;
    const catalog::SliceResolution resolution = catalog::ResolveSlice(*snapshot, query);
    Require(resolution.resolved.has_value(), "no such slice");
    for (const catalog::v1::CalibrationProfile& record : snapshot->calibration_profiles()) {
      catalog::Problems problems;
      catalog::RecordProblems record_problems(problems, "", record.name());
      if (record.name() == "maxtext-tpu") profile = catalog::EfficiencyOf(record, "tpu-v5p", record_problems);
    }
    job.model = &model;
    job.profile = &profile;
    job.slice = resolution.resolved->slice;
    job.workload.sequence_length = 4096;
    job.workload.global_batch_size = 1024;
    job.workload.total_tokens = 15'000'000'000'000;
    job.usd_per_chip_hour = 4.2;
    planner::Parallelism plan;
    plan.ici[planner::LogicalAxis::kFsdp] = 512;
    plan.ici[planner::LogicalAxis::kContext] = 2;
    plan.ici[planner::LogicalAxis::kTensor] = 4;
    plan.dcn[planner::LogicalAxis::kData] = 2;
    job.parallelism = plan;
  }

  std::unique_ptr<catalog::CatalogStore> store;
  std::shared_ptr<const catalog::Catalog> snapshot;
  transformer::ModelOperations model;
  roofline::EfficiencyProfile profile;
  planner::TrainingJob job;
};

// Memory, bounds, expectation, breakdown, thresholds, cost and advice of a given plan.
void BM_EstimateGivenPlan(benchmark::State& state) {
  const Example example;
  planner::MappingCache mappings;
  for (auto _ : state) {
    planner::TrainingAnswer answer = planner::EstimateTraining(example.job, mappings);
    Require(answer.violations.empty(), "violations");
    benchmark::DoNotOptimize(answer.estimate.step_time.expected_seconds);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_EstimateGivenPlan);

// The same with the recompute policy fixed, as a replayed job has it.
void BM_EstimateGivenPlanAndPolicy(benchmark::State& state) {
  Example example;
  example.job.workload.remat_policy = planner::RematPolicy::kFull;
  example.job.workload.gradient_accumulation = 1;
  planner::MappingCache mappings;
  for (auto _ : state) {
    planner::TrainingAnswer answer = planner::EstimateTraining(example.job, mappings);
    benchmark::DoNotOptimize(answer.estimate.step_time.expected_seconds);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_EstimateGivenPlanAndPolicy);

// Every legal split of the slice. Items are plans.
void BM_SearchSlice(benchmark::State& state) {
  Example example;
  example.job.parallelism.reset();
  planner::MappingCache mappings;
  int64_t plans = 0;
  for (auto _ : state) {
    planner::TrainingAnswer answer = planner::EstimateTraining(example.job, mappings);
    plans += answer.estimate.plans_evaluated;
  }
  state.SetItemsProcessed(plans);
}
BENCHMARK(BM_SearchSlice)->Unit(benchmark::kMillisecond);

// Request bytes to reply bytes: parse, validate, resolve, estimate, convert, serialise.
void BM_RequestBytes(benchmark::State& state) {
  const std::unique_ptr<catalog::CatalogStore> store = *catalog::CatalogStore::Create("");
  rpc::Engine engine(store.get());
  const rpc::MethodTable table = rpc::MakeMethodTable(&engine);
  const rpc::Method& method = *table.Find("PlannerService/EstimateTraining");
  const std::unique_ptr<google::protobuf::Message> request(method.request_prototype->New());
  const std::string json = R"({"model":{"preset":"llama-3-70b"},
      "slice":{"accelerator":"tpu-v5p","topology":"16x16x16","slice_count":2},
      "workload":{"sequence_length":4096,"global_batch_tokens":4194304,"total_tokens":15000000000000},
      "parallelism":{"ici":{"fsdp":512,"context":2,"tensor":4},"dcn":{"data":2}}})";
  Require(google::protobuf::util::JsonStringToMessage(json, request.get()).ok(), "the request does not parse");
  const std::string bytes = request->SerializeAsString();
  std::string response;
  for (auto _ : state) {
    Require(rpc::CallWithBytes(method, bytes, &response, rpc::CallContext()).ok(), "the call failed");
    benchmark::DoNotOptimize(response.data());
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size() + response.size()));
}
BENCHMARK(BM_RequestBytes);

}  // namespace
}  // namespace sliceplan
