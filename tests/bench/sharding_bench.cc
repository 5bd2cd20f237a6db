// The search: one slice, several slices over the data-centre network, GPU clusters, the whole catalog. Each iteration
// starts with an empty cache of placements (cold) or finds what the one before left (warm). Counters are of one search.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/catalog/catalog_store.h"
#include "server/catalog/efficiency.h"
#include "server/catalog/slice_resolver.h"
#include "server/planner/sharding_search.h"
#include "server/transformer/hugging_face/import.h"

namespace sliceplan {
namespace {

void Require(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "sharding_bench: %s\n", what.c_str());
  std::abort();
}

// What a question points to.
class Questions {
 public:
  Questions() : store_(*catalog::CatalogStore::Create("")), snapshot_(store_->Snapshot()) {}

  planner::ShardingQuestion For(const std::string& preset, int32_t sequence_length, int64_t batch) {
    const catalog::ModelLookup found = snapshot_->FindModel(preset);
    Require(found.model != nullptr, absl::StrCat("no preset ", preset));
    const transformer::ImportResult imported = transformer::ImportHuggingFaceConfig(found.model->hugging_face_config());
    Require(imported.model.has_value(), absl::StrCat(preset, " does not import"));
    models_.push_back(
        std::make_unique<transformer::ModelOperations>(*transformer::OperationsOf(imported.model->architecture)));
    planner::ShardingQuestion question;
    question.model = models_.back().get();
    workload_.sequence_length = sequence_length;
    workload_.global_batch_size = batch;
    workload_.total_tokens = 15'000'000'000'000;
    return question;
  }

  void AddSlice(planner::ShardingQuestion& question, const std::string& accelerator, const std::string& topology,
                int32_t slice_count = 1) {
    catalog::SliceQuery query;
    query.accelerator = accelerator;
    query.topology = topology;
    query.slice_count = slice_count;
    const catalog::SliceResolution resolution = catalog::ResolveSlice(*snapshot_, query);
    Require(resolution.resolved.has_value(), absl::StrCat("no slice ", accelerator, " ", topology));
    Add(question, resolution.resolved->slice);
  }

  std::vector<std::string> Accelerators() const {
    std::vector<std::string> ids;
    for (const catalog::Accelerator& accelerator : snapshot_->accelerators()) ids.push_back(accelerator.record.id());
    return ids;
  }

  // Every slice of these accelerators that is sold and has at most so many chips.
  void AddAll(planner::ShardingQuestion& question, const std::vector<std::string>& accelerators, int64_t most_chips) {
    for (const std::string& accelerator : accelerators) {
      const catalog::AcceleratorLookup found = snapshot_->FindAccelerator(accelerator);
      Require(found.accelerator != nullptr, absl::StrCat("no accelerator ", accelerator));
      for (const catalog::v1::SliceRecord* record : found.accelerator->slices) {
        catalog::SliceQuery query;
        query.accelerator = accelerator;
        query.topology = record->topology();
        const catalog::SliceResolution resolution = catalog::ResolveSlice(*snapshot_, query);
        if (!resolution.resolved.has_value() || resolution.resolved->slice.chip_count > most_chips) continue;
        Add(question, resolution.resolved->slice);
      }
    }
  }

 private:
  void Add(planner::ShardingQuestion& question, const hardware::Slice& slice) {
    planner::SearchCandidate candidate;
    candidate.slice = slice;
    candidate.workload = workload_;
    const bool torus = slice.accelerator.fabric == hardware::FabricKind::kTorus;
    if (!torus) {
      candidate.workload.precision.parameters = hardware::DataType::kBf16;
      candidate.workload.precision.master_weights = hardware::DataType::kFp32;
    }
    candidate.usd_per_chip_hour = 4;
    for (const catalog::v1::CalibrationProfile& record : snapshot_->calibration_profiles()) {
      if (record.name() != (torus ? "maxtext-tpu" : "megatron-gpu")) continue;
      catalog::Problems problems;
      catalog::RecordProblems record_problems(problems, "", record.name());
      profiles_.push_back(std::make_unique<roofline::EfficiencyProfile>(
          catalog::EfficiencyOf(record, slice.accelerator_id, record_problems)));
      candidate.profile = profiles_.back().get();
    }
    question.candidates.push_back(std::move(candidate));
  }

  std::unique_ptr<catalog::CatalogStore> store_;
  std::shared_ptr<const catalog::Catalog> snapshot_;
  planner::TrainingWorkload workload_;
  std::vector<std::unique_ptr<transformer::ModelOperations>> models_;
  std::vector<std::unique_ptr<roofline::EfficiencyProfile>> profiles_;
};

// Watches how long a search computes without asking whether to go on.
class Pauses {
 public:
  planner::SearchSignal Ask() {
    const std::clock_t now = std::clock();
    longest_ = std::max(longest_, now - last_);
    last_ = now;
    return planner::SearchSignal::kGoOn;
  }
  double LongestMilliseconds() const { return 1e3 * static_cast<double>(longest_) / CLOCKS_PER_SEC; }

 private:
  std::clock_t last_ = std::clock();
  std::clock_t longest_ = 0;
};

// What a caller waits who gives so long.
void Deadline(benchmark::State& state, const planner::ShardingQuestion& question, absl::Duration time) {
  planner::ShardingAnswer answer;
  double longest = 0;
  for (auto _ : state) {
    planner::MappingCache mappings;
    const absl::Time start = absl::Now();
    answer = planner::ProposeSharding(question, mappings, [end = start + time] {
      return absl::Now() < end ? planner::SearchSignal::kGoOn : planner::SearchSignal::kAnswerNow;
    });
    longest = std::max(longest, absl::ToDoubleMilliseconds(absl::Now() - start));
  }
  state.counters["longest_ms"] = longest;
  state.counters["gap"] = answer.optimality_gap_ratio;
  state.counters["proposals"] = static_cast<double>(answer.proposals.size());
}

void Search(benchmark::State& state, const planner::ShardingQuestion& question, bool warm) {
  auto mappings = std::make_unique<planner::MappingCache>();
  planner::ShardingAnswer answer;
  if (warm) answer = planner::ProposeSharding(question, *mappings, nullptr);
  for (auto _ : state) {
    if (!warm) {
      state.PauseTiming();
      mappings = std::make_unique<planner::MappingCache>();
      state.ResumeTiming();
    }
    answer = planner::ProposeSharding(question, *mappings, nullptr);
  }
  Require(answer.violations.empty(), "violations");
  Pauses pauses;
  planner::ProposeSharding(question, *mappings, [&pauses] { return pauses.Ask(); });
  state.counters["pause_ms"] = pauses.LongestMilliseconds();
  if (!answer.proposals.empty()) {
    const planner::Proposal& best = answer.proposals.front();
    state.SetLabel(absl::StrCat(question.candidates[best.candidate].slice.topology, " fsdp ",
                                best.estimate.parallelism.Degree(planner::LogicalAxis::kFsdp), " tensor ",
                                best.estimate.parallelism.Degree(planner::LogicalAxis::kTensor), " context ",
                                best.estimate.parallelism.Degree(planner::LogicalAxis::kContext), " expert ",
                                best.estimate.parallelism.Degree(planner::LogicalAxis::kExpert), " pipeline ",
                                best.estimate.parallelism.Degree(planner::LogicalAxis::kPipeline), " ",
                                best.estimate.step_time.expected_seconds, " s",
                                answer.exhaustive ? "" : absl::StrCat(" gap ", answer.optimality_gap_ratio)));
  }
  state.counters["plans"] = static_cast<double>(answer.considered_count);
  state.counters["evaluated"] = static_cast<double>(answer.evaluated_count);
  state.counters["too_large"] =
      static_cast<double>(answer.pruned[static_cast<size_t>(planner::PruneReason::kOutOfMemory)]);
}

struct Case {
  const char* name;
  const char* preset;
  int32_t sequence_length;
  int64_t batch;
  const char* accelerator;
  const char* topology;
  int32_t slice_count;
  bool idle;
  bool megatron = false;  // data, tensor and pipeline only, as Calculon searches
};

constexpr Case kCases[] = {
    {"70B/2xv5p-16x16x16", "llama-3-70b", 4096, 1024, "tpu-v5p", "16x16x16", 2, false},
    {"70B/v5p-16x16x24", "llama-3-70b", 4096, 1024, "tpu-v5p", "16x16x24", 1, false},
    {"70B/v5p-16x20x28-idle", "llama-3-70b", 4096, 1024, "tpu-v5p", "16x20x28", 1, true},
    {"405B/8xv5p-16x16x16", "llama-3.1-405b", 8192, 4096, "tpu-v5p", "16x16x16", 8, false},
    {"deepseek-v3/v5p-8x16x16", "deepseek-v3", 4096, 3840, "tpu-v5p", "8x16x16", 1, false},
    {"deepseek-v3/h100-512", "deepseek-v3", 4096, 4096, "h100", "512", 1, false},
    {"gpt-3/a100-512", "gpt-3-175b", 2048, 1536, "a100-80gb", "512", 1, false},
    {"gpt-3/a100-512-calculon", "gpt-3-175b", 2048, 512, "a100-80gb", "512", 1, false, true},
};

void Register() {
  static Questions questions;
  static std::vector<std::unique_ptr<planner::ShardingQuestion>> kept;
  for (const char* kind : {"cold", "two-threads", "warm"}) {
    const bool cold = kind == std::string("cold");
    const bool warm = kind == std::string("warm");
    const auto add = [&](const std::string& name, planner::ShardingQuestion question) {
      question.thread_count = kind == std::string("two-threads") ? 2 : 1;
      kept.push_back(std::make_unique<planner::ShardingQuestion>(std::move(question)));
      const planner::ShardingQuestion* const asked = kept.back().get();
      benchmark::RegisterBenchmark(absl::StrCat(name, "/", kind).c_str(), [asked, warm](benchmark::State& state) {
        Search(state, *asked, warm);
      })->Unit(benchmark::kMillisecond);
    };
    for (const Case& one : kCases) {
      planner::ShardingQuestion question = questions.For(one.preset, one.sequence_length, one.batch);
      question.constraints.allow_idle_chips = one.idle;
      if (one.megatron) {
        for (planner::LogicalAxis axis :
             {planner::LogicalAxis::kFsdp, planner::LogicalAxis::kContext, planner::LogicalAxis::kExpert}) {
          question.constraints.forbidden[static_cast<size_t>(axis)] = true;
        }
      }
      questions.AddSlice(question, one.accelerator, one.topology, one.slice_count);
      add(one.name, std::move(question));
    }
    if (cold) {
      for (const auto& asked : kept) {
        benchmark::RegisterBenchmark(
            absl::StrCat(kCases[&asked - kept.data()].name, "/10ms").c_str(),
            [question = asked.get()](benchmark::State& state) { Deadline(state, *question, absl::Milliseconds(10)); })
            ->Unit(benchmark::kMillisecond);
      }
    }
    planner::ShardingQuestion any = questions.For("llama-3-8b", 8192, 512);
    questions.AddAll(any, {"tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-7x"}, 512);
    add("8B/any-of-four-TPUs", std::move(any));
    planner::ShardingQuestion all = questions.For("llama-3-70b", 4096, 1024);
    questions.AddAll(all, questions.Accelerators(), std::numeric_limits<int64_t>::max());
    add("70B/whole-catalog", std::move(all));
  }
}

}  // namespace
}  // namespace sliceplan

int main(int argc, char** argv) {
  sliceplan::Register();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
