#include "server/planner/sharding_search.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/planner/legality.h"
#include "server/planner/plan_bound.h"
#include "server/planner/plan_evaluator.h"
#include "server/planner/plan_space.h"
#include "tests/planner/training_fixture.h"

namespace sliceplan::planner {
namespace {

using ::testing::IsEmpty;

constexpr double kNone = std::numeric_limits<double>::infinity();

// ---- Brute force: all plans, by nested loops that share nothing with the search ----

std::vector<int32_t> DivisorsOfNumber(int64_t number) {
  std::vector<int32_t> divisors;
  for (int32_t d = 1; d <= number; ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return divisors;
}

void ForEachPlan(const TrainingJob& job, const std::function<void(const Parallelism&)>& visit) {
  const ModelDivisors divisors = DivisorsOf(*job.model);
  const int64_t chips = job.slice.chip_count;
  const int64_t slices = job.slice.slice_count;
  for (int32_t data : DivisorsOfNumber(chips)) {
    for (int32_t fsdp : DivisorsOfNumber(chips / data)) {
      for (int32_t tensor : DivisorsOfNumber(chips / data / fsdp)) {
        for (int32_t context : DivisorsOfNumber(chips / data / fsdp / tensor)) {
          for (int32_t expert : DivisorsOfNumber(chips / data / fsdp / tensor / context)) {
            const int32_t pipeline = static_cast<int32_t>(chips / data / fsdp / tensor / context / expert);
            for (int32_t dcn_data : DivisorsOfNumber(slices)) {
              for (int32_t dcn_fsdp : DivisorsOfNumber(slices / dcn_data)) {
                Parallelism plan;
                plan.ici.degree = {data, fsdp, tensor, context, expert, pipeline};
                plan.dcn[LogicalAxis::kData] = dcn_data;
                plan.dcn[LogicalAxis::kFsdp] = dcn_fsdp;
                plan.dcn[LogicalAxis::kPipeline] = static_cast<int32_t>(slices / dcn_data / dcn_fsdp);
                const bool replicas = data * dcn_data * expert > 1 || (context > 1 && fsdp * dcn_fsdp == 1);
                if (replicas) plan.data_zero_stage = ZeroStage::k1;
                if (plan.Degree(LogicalAxis::kPipeline) == 1) {
                  if (IsLegal(divisors, job.slice, job.workload, plan, {})) visit(plan);
                  continue;
                }
                const int64_t shards = int64_t{data} * fsdp * expert * dcn_data * dcn_fsdp;
                for (int32_t size = 1; size <= 8; size *= 2) {
                  if (job.workload.global_batch_size % (shards * size) != 0) continue;
                  for (int32_t chunks = 1; chunks <= 16; chunks *= 2) {
                    plan.microbatch_count = static_cast<int32_t>(job.workload.global_batch_size / shards / size);
                    plan.virtual_stage_count = chunks;
                    plan.schedule = chunks > 1 ? PipelineSchedule::kInterleaved1F1B : PipelineSchedule::kOneFOneB;
                    if (IsLegal(divisors, job.slice, job.workload, plan, {})) visit(plan);
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}

struct Instance {
  transformer::ModelOperations model;
  roofline::EfficiencyProfile profile = TestProfile();
  ShardingQuestion question;
};

template <typename T>
const T& Pick(std::mt19937& random, const std::vector<T>& choices) {
  return choices[random() % choices.size()];
}

void Fill(std::mt19937& random, Instance& instance) {
  SmallModel small;
  small.layers = Pick<int32_t>(random, {2, 6, 8, 12});
  small.query_heads = Pick<int32_t>(random, {8, 12, 16});
  small.kv_heads = Pick<int32_t>(random, {2, 4});
  small.head_dim = 128;
  small.hidden_dim = Pick<int32_t>(random, {1024, 4096, 12288});
  small.ffn_dim = small.hidden_dim * Pick<int32_t>(random, {2, 4});
  small.vocab_size = Pick<int32_t>(random, {32000, 128256});
  if (random() % 3 == 0) {
    small.experts = Pick<int32_t>(random, {4, 8, 16});
    small.experts_per_token = 2;
  }
  instance.model = Operations(small);
  ShardingQuestion& question = instance.question;
  question.model = &instance.model;
  question.mode = random() % 4 == 0 ? EstimationMode::kRoofline : EstimationMode::kCalibrated;
  question.objective =
      Pick<Objective>(random, {Objective::kMinStepTime, Objective::kMinCost, Objective::kMaxThroughputPerChip,
                               Objective::kMinChips, Objective::kMinTimeToTrain});
  question.proposal_count = 1 + random() % 3;
  question.explain_near_misses = false;
  question.constraints.hbm_headroom_ratio = random() % 4 == 0 ? 0.3 : 0;
  TrainingWorkload workload;
  workload.sequence_length = Pick<int32_t>(random, {1024, 8192});
  workload.global_batch_size = Pick<int64_t>(random, {16, 24, 64});
  workload.total_tokens = 1'000'000'000;
  const int candidates = 1 + static_cast<int>(random() % 2);
  for (int i = 0; i < candidates; ++i) {
    SearchCandidate candidate;
    switch (random() % 5) {
      case 0: candidate.slice = TorusSlice({2, 2, 4}); break;
      case 1: candidate.slice = TorusSlice({4, 4}); break;
      case 2: candidate.slice = TorusSlice({2, 4}, 2); break;
      case 3: candidate.slice = SwitchedSlice(16); break;
      default: candidate.slice = TorusSlice({2, 2, 3}); break;
    }
    // Memory that some plans fit and others do not.
    candidate.slice.accelerator.hbm_bytes = Pick<int64_t>(random, {8'000'000'000, 30'000'000'000, 96'000'000'000});
    candidate.slice.accelerator.ici_link_bytes_per_second = Pick<double>(random, {9e10, 5e9});
    candidate.workload = workload;
    candidate.profile = &instance.profile;
    candidate.usd_per_chip_hour = 1 + static_cast<double>(random() % 4);
    candidate.available_after_seconds = random() % 2 == 0 ? 0 : 3600;
    question.candidates.push_back(std::move(candidate));
  }
}

// What the objective is worth, written out once more.
double Worth(const ShardingQuestion& question, size_t candidate, double seconds) {
  const SearchCandidate& where = question.candidates[candidate];
  const double chips = static_cast<double>(where.slice.TotalChips());
  const double tokens =
      static_cast<double>(where.workload.global_batch_size) * static_cast<double>(where.workload.sequence_length);
  const double run = std::ceil(1e9 / tokens) * seconds;
  switch (question.objective) {
    case Objective::kMinStepTime: return seconds;
    case Objective::kMinCost: return *where.usd_per_chip_hour * chips * run / 3600;
    case Objective::kMaxThroughputPerChip: return seconds * chips;
    case Objective::kMinChips: return chips;
    case Objective::kMinTimeToTrain: return where.available_after_seconds + run;
  }
  return 0;
}

struct Found {
  double worth = kNone;
  double seconds = kNone;
  bool operator<(const Found& other) const { return std::tie(worth, seconds) < std::tie(other.worth, other.seconds); }
};

// The best plan of each (candidate, degrees), best first.
std::vector<Found> BruteForce(const ShardingQuestion& question, MappingCache& mappings, int64_t& legal) {
  std::vector<Found> all;
  for (size_t i = 0; i < question.candidates.size(); ++i) {
    const TrainingJob job = JobOf(question, i);
    PlanEvaluator evaluator(job, mappings);
    std::vector<std::pair<std::array<int32_t, 2 * kLogicalAxisCount>, Found>> best;
    ForEachPlan(job, [&](const Parallelism& plan) {
      ++legal;
      EvaluatedPlan evaluated;
      if (!evaluator.Evaluate(plan, evaluated).ok() || !evaluated.fits) return;
      std::array<int32_t, 2 * kLogicalAxisCount> degrees;
      std::copy(plan.ici.degree.begin(), plan.ici.degree.end(), degrees.begin());
      std::copy(plan.dcn.degree.begin(), plan.dcn.degree.end(), degrees.begin() + kLogicalAxisCount);
      const double seconds = evaluated.times.expected_seconds;
      const Found found = {Worth(question, i, seconds), seconds};
      for (auto& [known, theirs] : best) {
        if (known == degrees) {
          theirs = std::min(theirs, found);
          return;
        }
      }
      best.push_back({degrees, found});
    });
    for (const auto& [degrees, found] : best) all.push_back(found);
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST(ShardingSearchTest, FindsWhatBruteForceFinds) {
  constexpr int kInstances = 500;
  int with_proposals = 0;
  int pruned_something = 0;
  for (int seed = 0; seed < kInstances; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(static_cast<uint32_t>(seed));
    Instance instance;
    Fill(random, instance);
    MappingCache mappings;
    int64_t legal = 0;
    const std::vector<Found> expected = BruteForce(instance.question, mappings, legal);
    const ShardingAnswer answer = ProposeSharding(instance.question, mappings, nullptr);
    ASSERT_THAT(answer.violations, IsEmpty());
    ASSERT_EQ(answer.proposals.size(), std::min(expected.size(), instance.question.proposal_count));
    for (size_t i = 0; i < answer.proposals.size(); ++i) {
      const Proposal& proposal = answer.proposals[i];
      const double seconds = proposal.estimate.step_time.expected_seconds;
      ASSERT_DOUBLE_EQ(Worth(instance.question, proposal.candidate, seconds), expected[i].worth) << i;
      ASSERT_DOUBLE_EQ(seconds, expected[i].seconds) << i;
      EXPECT_EQ(proposal.beats_next_because.empty(), i + 1 == answer.proposals.size());
    }
    with_proposals += answer.proposals.empty() ? 0 : 1;
    pruned_something += answer.pruned[static_cast<size_t>(PruneReason::kNetworkFloor)] > 0 ? 1 : 0;
    // Every plan of a slice that was opened is accounted for.
    int64_t accounted = answer.evaluated_count;
    for (size_t reason = 0; reason < answer.pruned.size(); ++reason) {
      if (reason != static_cast<size_t>(PruneReason::kComputeFloor)) accounted += answer.pruned[reason];
    }
    // A slice that is hopelessly small counts as one and is not opened.
    const int64_t hopeless = accounted - answer.considered_count;
    EXPECT_GE(hopeless, 0);
    EXPECT_LE(hopeless, static_cast<int64_t>(instance.question.candidates.size()));
    EXPECT_LE(answer.considered_count, legal);
    if (answer.pruned[static_cast<size_t>(PruneReason::kComputeFloor)] + hopeless == 0) {
      EXPECT_EQ(answer.considered_count, legal);
    }
  }
  // The instances are neither all hopeless nor all trivial.
  EXPECT_GT(with_proposals, kInstances / 2);
  EXPECT_GT(pruned_something, kInstances / 2);
}

// ---- Offload ----

// Hosts that hold all, some or nothing of what may leave the chips, or whose memory is not known.
void FillHosts(std::mt19937& random, Instance& instance) {
  for (SearchCandidate& candidate : instance.question.candidates) {
    candidate.slice.chips_per_host = 4;
    const int64_t bytes = Pick<int64_t>(random, {0, 2'000'000'000, 20'000'000'000, 400'000'000'000, 400'000'000'000});
    if (bytes > 0) candidate.slice.host_memory_bytes = bytes;
    candidate.slice.accelerator.pcie_bytes_per_second = Pick<double>(random, {1.6e10, 6.4e10, 4e11});
  }
}

// The best plan of each (slice, degrees) over what it may offload: variants share their slice's index.
std::vector<Found> BruteForceWithOffload(const ShardingQuestion& question, MappingCache& mappings) {
  std::vector<Found> all;
  for (size_t place = 0; place < question.candidates.size(); ++place) {
    if (question.candidates[place].variant_of) continue;
    std::map<std::array<int32_t, 2 * kLogicalAxisCount>, Found> best;
    for (size_t i = 0; i < question.candidates.size(); ++i) {
      if (PlaceOf(question, i) != place) continue;
      const TrainingJob job = JobOf(question, i);
      PlanEvaluator evaluator(job, mappings);
      ForEachPlan(job, [&](const Parallelism& plan) {
        EvaluatedPlan evaluated;
        if (!evaluator.Evaluate(plan, evaluated).ok() || !evaluated.fits) return;
        std::array<int32_t, 2 * kLogicalAxisCount> degrees;
        std::copy(plan.ici.degree.begin(), plan.ici.degree.end(), degrees.begin());
        std::copy(plan.dcn.degree.begin(), plan.dcn.degree.end(), degrees.begin() + kLogicalAxisCount);
        const double seconds = evaluated.times.expected_seconds;
        Found& known = best[degrees];
        known = std::min(known, Found{Worth(question, i, seconds), seconds});
      });
    }
    for (const auto& [degrees, found] : best) all.push_back(found);
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST(ShardingSearchTest, FindsWhatBruteForceFindsWithOffload) {
  constexpr int kInstances = 300;
  int offloading = 0;
  int only_offloading = 0;
  for (int seed = 0; seed < kInstances; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(5000 + static_cast<uint32_t>(seed));
    Instance instance;
    Fill(random, instance);
    FillHosts(random, instance);
    ShardingQuestion& question = instance.question;
    MappingCache mappings;
    const ShardingAnswer plain = ProposeSharding(question, mappings, nullptr);
    AddOffloadVariants(question);
    const std::vector<Found> expected = BruteForceWithOffload(question, mappings);
    const ShardingAnswer answer = ProposeSharding(question, mappings, nullptr);
    ASSERT_THAT(answer.violations, IsEmpty());
    ASSERT_EQ(answer.proposals.size(), std::min(expected.size(), question.proposal_count));
    for (size_t i = 0; i < answer.proposals.size(); ++i) {
      const Proposal& proposal = answer.proposals[i];
      const double seconds = proposal.estimate.step_time.expected_seconds;
      ASSERT_DOUBLE_EQ(Worth(question, proposal.candidate, seconds), expected[i].worth) << i;
      ASSERT_DOUBLE_EQ(seconds, expected[i].seconds) << i;
      EXPECT_EQ(proposal.estimate.outcome, Outcome::kFeasible) << i;
    }
    EXPECT_GE(answer.proposals.size(), plain.proposals.size());
    const bool offloads = std::any_of(answer.proposals.begin(), answer.proposals.end(), [&](const Proposal& proposal) {
      return question.candidates[proposal.candidate].variant_of.has_value();
    });
    offloading += offloads ? 1 : 0;
    only_offloading += offloads && plain.proposals.empty() ? 1 : 0;
  }
  // Offload decides often enough to be tested, and not always.
  EXPECT_GT(offloading, kInstances / 10);
  EXPECT_LT(offloading, kInstances * 9 / 10);
  EXPECT_GT(only_offloading, 0);
}

// With recompute and accumulation given, what leaves the chip can only cost time.
TEST(ShardingSearchTest, OffloadNeverBeatsTheSamePlanWithout) {
  for (int seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(6000 + static_cast<uint32_t>(seed));
    Instance instance;
    Fill(random, instance);
    FillHosts(random, instance);
    ShardingQuestion& question = instance.question;
    for (SearchCandidate& candidate : question.candidates) {
      candidate.workload.remat_policy = Pick<RematPolicy>(random, {RematPolicy::kNone, RematPolicy::kFull});
      candidate.workload.gradient_accumulation = 1;
    }
    AddOffloadVariants(question);
    MappingCache mappings;
    for (size_t i = 0; i < question.candidates.size(); ++i) {
      if (!question.candidates[i].variant_of) continue;
      const TrainingJob with = JobOf(question, i);
      const TrainingJob without = JobOf(question, PlaceOf(question, i));
      PlanEvaluator offloading(with, mappings);
      PlanEvaluator plain(without, mappings);
      ForEachPlan(with, [&](const Parallelism& plan) {
        EvaluatedPlan theirs, ours;
        if (!offloading.Evaluate(plan, theirs).ok() || !plain.Evaluate(plan, ours).ok()) return;
        ASSERT_GE(theirs.times.expected_seconds, ours.times.expected_seconds * (1 - 1e-12));
        EXPECT_GE(theirs.memory.headroom_bytes, ours.memory.headroom_bytes);
      });
    }
  }
}

TEST(ShardingSearchTest, VariantsAreWhatTheJobDoesNotOffloadYet) {
  Instance instance;
  std::mt19937 random(0);
  Fill(random, instance);
  const SearchCandidate first = instance.question.candidates.front();
  struct Case {
    const char* name;
    std::function<void(SearchCandidate&)> change;
    std::vector<std::pair<bool, bool>> offloads;  // optimizer, activations
    size_t left_out;
  };
  const Case kCases[] = {
      {"nothing", [](SearchCandidate&) {}, {{true, false}, {false, true}, {true, true}}, 0},
      {"optimizer", [](SearchCandidate& c) { c.workload.optimizer_offload = true; }, {{true, true}}, 0},
      {"activations", [](SearchCandidate& c) { c.workload.activation_offload = true; }, {{true, true}}, 0},
      {"both", [](SearchCandidate& c) { c.workload.optimizer_offload = c.workload.activation_offload = true; }, {}, 0},
      {"unknown_host", [](SearchCandidate& c) { c.slice.host_memory_bytes.reset(); }, {}, 1},
      {"unknown_link", [](SearchCandidate& c) { c.slice.accelerator.pcie_bytes_per_second.reset(); }, {}, 1},
  };
  for (const Case& c : kCases) {
    ShardingQuestion question;
    question.candidates.push_back(first);
    question.candidates[0].slice.host_memory_bytes = 400'000'000'000;
    question.candidates[0].slice.chips_per_host = 4;
    c.change(question.candidates[0]);
    EXPECT_EQ(AddOffloadVariants(question).size(), c.left_out) << c.name;
    std::vector<std::pair<bool, bool>> found;
    for (size_t i = 1; i < question.candidates.size(); ++i) {
      EXPECT_EQ(PlaceOf(question, i), 0u) << c.name;
      const TrainingWorkload& workload = question.candidates[i].workload;
      found.push_back({workload.optimizer_offload, workload.activation_offload});
    }
    EXPECT_EQ(found, c.offloads) << c.name;
  }
}

std::string Described(const ShardingAnswer& answer) {
  std::string text = absl::StrCat(answer.considered_count, " ", answer.evaluated_count, " ", answer.exhaustive, " ",
                                  answer.optimality_gap_ratio);
  for (int64_t count : answer.pruned) absl::StrAppend(&text, " ", count);
  const auto add = [&text](size_t candidate, const Parallelism& plan, double seconds) {
    absl::StrAppend(&text, "\n", candidate, " ", absl::StrFormat("%.17g", seconds));
    for (const AxisDegrees* degrees : {&plan.ici, &plan.dcn}) {
      for (int32_t degree : degrees->degree) absl::StrAppend(&text, " ", degree);
    }
    absl::StrAppend(&text, " x", plan.microbatch_count, " v", plan.virtual_stage_count);
    for (const AxisAssignment& piece : plan.mapping) {
      absl::StrAppend(&text, " ", piece.physical_axis, "/", piece.factor, "/", piece.stride);
    }
  };
  for (const Proposal& proposal : answer.proposals) {
    add(proposal.candidate, proposal.estimate.parallelism, proposal.estimate.step_time.expected_seconds);
  }
  for (const PlanSummary& plan : answer.frontier) add(plan.candidate, plan.parallelism, plan.expected_seconds);
  for (const NearMiss& miss : answer.near_misses) {
    add(miss.plan.candidate, miss.plan.parallelism, miss.shortfall_amount);
  }
  return text;
}

TEST(ShardingSearchTest, ThreadsChangeNothing) {
  for (int seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(4000 + static_cast<uint32_t>(seed));
    Instance instance;
    Fill(random, instance);
    MappingCache mappings;
    const std::string alone = Described(ProposeSharding(instance.question, mappings, nullptr));
    for (int threads : {2, 4}) {
      instance.question.thread_count = threads;
      EXPECT_EQ(Described(ProposeSharding(instance.question, mappings, nullptr)), alone) << threads << " threads";
    }
  }
}

// A little recompute may pay because the expected time lets it hide two kinds of traffic at once (docs/training.md).
constexpr double kHiddenTwice = 0.01;

// What Evaluate chooses by itself is the best of all choices made one by one.
TEST(ShardingSearchTest, FreeChoicesAreTheBestOfAll) {
  for (int seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(1000 + static_cast<uint32_t>(seed));
    Instance instance;
    Fill(random, instance);
    const TrainingJob job = JobOf(instance.question, 0);
    MappingCache mappings;
    PlanEvaluator free(job, mappings);
    ForEachPlan(job, [&](const Parallelism& plan) {
      EvaluatedPlan chosen;
      if (!free.Evaluate(plan, chosen).ok() || !chosen.fits) return;
      for (RematPolicy policy : {RematPolicy::kNone, RematPolicy::kMinimalFlash, RematPolicy::kMinimal,
                                 RematPolicy::kSaveQkvProj, RematPolicy::kFull}) {
        for (int32_t accumulation : {1, 2, 4}) {
          TrainingJob fixed = job;
          fixed.workload.remat_policy = policy;
          fixed.workload.gradient_accumulation = accumulation;
          PlanEvaluator evaluator(fixed, mappings);
          EvaluatedPlan evaluated;
          if (!evaluator.Evaluate(plan, evaluated).ok() || !evaluated.fits) continue;
          ASSERT_GE(evaluated.times.expected_seconds, chosen.times.expected_seconds * (1 - kHiddenTwice))
              << "policy " << static_cast<int>(policy) << " accumulation " << accumulation << " against "
              << static_cast<int>(chosen.plan.remat_policy) << " and " << chosen.plan.gradient_accumulation;
        }
      }
    });
  }
}

// Each placement asked for alone is never faster than the one that Evaluate chooses.
TEST(ShardingSearchTest, ThePlacementIsTheBestOfAll) {
  for (int seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(3000 + static_cast<uint32_t>(seed));
    Instance instance;
    Fill(random, instance);
    const TrainingJob job = JobOf(instance.question, 0);
    MappingCache mappings;
    PlanEvaluator evaluator(job, mappings);
    ForEachPlan(job, [&](const Parallelism& plan) {
      EvaluatedPlan chosen;
      if (!evaluator.Evaluate(plan, chosen).ok() || !chosen.fits) return;
      const MappingList all = EnumerateMappings(job.slice, plan.ici, plan.dcn, false, kMostMappings);
      ASSERT_FALSE(all.truncated);
      for (const MappedAxes& mapped : all.mappings) {
        Parallelism given = plan;
        given.mapping = AssignmentsOf(mapped);
        EvaluatedPlan placed;
        ASSERT_TRUE(evaluator.Evaluate(given, placed).ok());
        ASSERT_GE(placed.times.expected_seconds, chosen.times.expected_seconds * (1 - 1e-12));
      }
    });
  }
}

TEST(PlanBoundTest, NoPlacementBeatsTheIdealLaws) {
  for (int seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(2000 + static_cast<uint32_t>(seed));
    Instance instance;
    Fill(random, instance);
    const TrainingJob job = JobOf(instance.question, 0);
    IdealLaws ideal(job.slice);
    MappingCache mappings;
    ForEachPlan(job, [&](const Parallelism& plan) {
      const absl::StatusOr<PlanLaws> bound = ideal.Of(plan);
      ASSERT_TRUE(bound.ok()) << bound.status();
      const auto set = mappings.Find(job.slice, plan);
      if (!set.ok()) return;
      for (const PlanLaws& laws : (*set)->laws) {
        const std::pair<const roofline::CollectiveLaw*, const roofline::CollectiveLaw*> pairs[] = {
            {&bound->weights_gather, &laws.weights_gather},
            {&bound->weights_scatter, &laws.weights_scatter},
            {&bound->tensor_gather, &laws.tensor_gather},
            {&bound->tensor_scatter, &laws.tensor_scatter},
            {&bound->context_gather, &laws.context_gather},
            {&bound->expert_exchange, &laws.expert_exchange},
            {&bound->pipeline_permute, &laws.pipeline_permute},
            {&bound->dense_gradient_reduce, &laws.dense_gradient_reduce},
            {&bound->expert_gradient_reduce, &laws.expert_gradient_reduce},
        };
        for (const auto& [least, real] : pairs) {
          for (double bytes : {1.0, 1e6, 1e9}) {
            ASSERT_LE(least->Seconds(bytes), real->Seconds(bytes) * (1 + 1e-12));
            ASSERT_LE(least->dcn_seconds_per_byte, real->dcn_seconds_per_byte * (1 + 1e-12));
          }
        }
      }
    });
  }
}

}  // namespace
}  // namespace sliceplan::planner
