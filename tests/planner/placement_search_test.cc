#include "server/planner/placement_search.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/planner/legality.h"
#include "server/planner/plan_bound.h"
#include "server/planner/plan_evaluator.h"
#include "server/planner/step_time.h"
#include "tests/planner/training_fixture.h"

namespace sliceplan::planner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Placements that nested loops can time in a test.
constexpr size_t kMostPlacements = 20'000;

// Degrees of all axes that multiply to the chips, prime factor by prime factor.
Parallelism RandomPlan(std::mt19937& random, int64_t chips) {
  Parallelism plan;
  for (int64_t prime = 2; chips > 1; ++prime) {
    for (; chips % prime == 0; chips /= prime) {
      plan.ici.degree[random() % kLogicalAxisCount] *= static_cast<int32_t>(prime);
    }
  }
  if (plan.Degree(LogicalAxis::kPipeline) > 1) plan.microbatch_count = 2 * plan.Degree(LogicalAxis::kPipeline);
  plan.data_zero_stage = ZeroStage::k1;
  return plan;
}

class PlacementSearchTest : public ::testing::Test {
 protected:
  PlacementSearchTest() {
    SmallModel small;
    small.layers = 8;
    small.experts = 16;
    small.experts_per_token = 2;
    model_ = Operations(small);
  }

  TrainingJob JobOn(hardware::Slice slice) {
    TrainingJob job;
    job.model = &model_;
    job.slice = std::move(slice);
    job.profile = &profile_;
    job.workload.sequence_length = 4096;
    job.workload.global_batch_size = 4096;
    return job;
  }

  // Counts of a plan that saves everything.
  void Count(const TrainingJob& job, const Parallelism& plan) {
    MappingCache none;
    step_ = PlanEvaluator(job, none).PlanOf(plan, RematPolicy::kNone, 1);
    SplitStages(model_, plan, stages_);
    CountStep(job, step_, load_);
  }

  double Seconds(const TrainingJob& job, const PlanLaws& laws) {
    return TimeStep(job, step_, load_, laws, stages_, details_).expected_seconds;
  }

  transformer::ModelOperations model_;
  const roofline::EfficiencyProfile profile_ = TestProfile();
  StepPlan step_;
  StepLoad load_;
  StageSplit stages_;
  StepDetails details_;
};

// The search and nested loops over all placements find equally fast ones, on slices whose plans have many.
TEST_F(PlacementSearchTest, FindsTheFastestOfAllPlacements) {
  const std::vector<hardware::Slice> slices = {TorusSlice({4, 4, 8}), TorusSlice({8, 8}), TorusSlice({2, 4, 6}),
                                               TorusSlice({16, 4}), TorusSlice({3, 4, 4})};
  int compared = 0;
  for (int seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(static_cast<uint32_t>(seed));
    TrainingJob job = JobOn(slices[random() % slices.size()]);
    if (random() % 2 == 0) job.slice.accelerator.ici_link_bytes_per_second = 5e9;
    const bool idle = random() % 4 == 0;
    const Parallelism plan = RandomPlan(random, idle ? job.slice.chip_count / 2 : job.slice.chip_count);
    const MappingList all = EnumerateMappings(job.slice, plan.ici, plan.dcn, idle, kMostPlacements);
    if (all.truncated || all.mappings.empty()) continue;
    Count(job, plan);
    double best = kNever;
    for (const MappedAxes& mapped : all.mappings) {
      const absl::StatusOr<PlanLaws> laws = LawsOf(BlockSlice(job.slice, mapped), mapped.groups, plan, false);
      ASSERT_TRUE(laws.ok()) << laws.status();
      best = std::min(best, Seconds(job, *laws));
    }
    PlacementSearch search(job.slice, idle);
    ASSERT_TRUE(search.Open(plan).ok());
    Seconds(job, search.SomeLaws());
    const auto floor = [&](const PlanLaws& laws) { return RetimeStep(job, step_, load_, laws, stages_, details_); };
    const auto seconds = [&](const PlanLaws& laws) { return Seconds(job, laws); };
    ASSERT_TRUE(search.Find(floor, seconds, kNever));
    EXPECT_DOUBLE_EQ(Seconds(job, search.laws()), best);
    // The placement has these laws.
    const MappedAxes found = search.Mapping();
    const absl::StatusOr<PlanLaws> laws = LawsOf(BlockSlice(job.slice, found), found.groups, plan, false);
    ASSERT_TRUE(laws.ok()) << laws.status();
    EXPECT_DOUBLE_EQ(Seconds(job, *laws), best);
    EXPECT_FALSE(search.Find(floor, seconds, best));
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

TEST_F(PlacementSearchTest, SaysWhenDegreesCannotBePlaced) {
  const TrainingJob job = JobOn(TorusSlice({4, 4}));
  Parallelism plan;
  plan.ici[LogicalAxis::kTensor] = 3;
  PlacementSearch search(job.slice, false);
  EXPECT_TRUE(absl::IsInvalidArgument(search.Open(plan)));
}

// RetimeStep is TimeStep before the lower bound, whatever laws the details come from.
TEST_F(PlacementSearchTest, RetimedStepsAreTimedSteps) {
  for (int seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(1000 + static_cast<uint32_t>(seed));
    const TrainingJob job = JobOn(random() % 2 == 0 ? TorusSlice({4, 4, 4}) : SwitchedSlice(64));
    const Parallelism plan = RandomPlan(random, 64);
    Count(job, plan);
    const absl::StatusOr<MappingSet> set = BuildMappingSet(job.slice, plan);
    if (!set.ok()) continue;
    for (const PlanLaws& laws : set->laws) {
      const StepTimes times = TimeStep(job, step_, load_, laws, stages_, details_);
      Seconds(job, set->laws.front());
      const double retimed = RetimeStep(job, step_, load_, laws, stages_, details_);
      ASSERT_DOUBLE_EQ(retimed, times.expected_seconds - times.raised_seconds);
    }
  }
}

bool NowhereSlower(const PlanLaws& a, const PlanLaws& b) {
  return std::all_of(kPlanLawSlots.begin(), kPlanLawSlots.end(), [&](const PlanLawSlot& slot) {
    constexpr double kRounding = 1 + 1e-12;
    const roofline::CollectiveLaw& x = a.*slot.law;
    const roofline::CollectiveLaw& y = b.*slot.law;
    return x.pipelined_seconds_per_byte <= y.pipelined_seconds_per_byte * kRounding &&
           x.dcn_seconds_per_byte <= y.dcn_seconds_per_byte * kRounding &&
           x.latency_seconds <= y.latency_seconds * kRounding;
  });
}

// Each placement behind switches is one of the ways to share out the domains, as a whole plan and as a shape whose
// shards are not split yet.
TEST(SharedDomainsTest, EveryPlacementIsOneOfTheWays) {
  int placements = 0;
  for (int seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(2000 + static_cast<uint32_t>(seed));
    const hardware::Slice slice = SwitchedSlice(seed % 2 == 0 ? 64 : 256);
    const Parallelism plan = RandomPlan(random, slice.chip_count);
    Parallelism shape = plan;
    shape.ici[LogicalAxis::kData] = 1;
    shape.ici[LogicalAxis::kFsdp] = 1;
    IdealLaws ideal(slice);
    const absl::StatusOr<MappingSet> set = BuildMappingSet(slice, plan);
    ASSERT_TRUE(set.ok()) << set.status();
    std::vector<PlanLaws> ways;
    std::vector<PlanLaws> ways_of_shape;
    ideal.InSharedDomains(plan, ways);
    ideal.ShapeInSharedDomains(shape, ways_of_shape);
    const absl::StatusOr<PlanLaws> least = ideal.OfShape(shape);
    ASSERT_TRUE(least.ok()) << least.status();
    for (const PlanLaws& laws : set->laws) {
      const auto is_as_good = [&laws](const PlanLaws& way) { return NowhereSlower(way, laws); };
      EXPECT_TRUE(std::any_of(ways.begin(), ways.end(), is_as_good));
      EXPECT_TRUE(std::any_of(ways_of_shape.begin(), ways_of_shape.end(), is_as_good));
      EXPECT_TRUE(NowhereSlower(*least, laws));
      ++placements;
    }
  }
  EXPECT_GT(placements, 300);
}

// The wraps of a twisted torus make ways that its axes as rings do not have.
TEST(TwistedBoundTest, NoPlacementBeatsTheIdealLaws) {
  for (int seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(3000 + static_cast<uint32_t>(seed));
    hardware::Slice slice = seed % 2 == 0 ? TorusSlice({4, 4, 8}) : TorusSlice({4, 8, 8});
    slice.twisted = true;
    Parallelism plan = RandomPlan(random, slice.chip_count);
    if (seed < 6) {  // everything on one axis
      plan = Parallelism();
      plan.ici.degree[static_cast<size_t>(seed)] = static_cast<int32_t>(slice.chip_count);
    }
    const absl::StatusOr<MappingSet> set = BuildMappingSet(slice, plan);
    ASSERT_TRUE(set.ok()) << set.status();
    IdealLaws ideal(slice);
    const absl::StatusOr<PlanLaws> least = ideal.Of(plan);
    ASSERT_TRUE(least.ok()) << least.status();
    for (const PlanLaws& laws : set->laws) EXPECT_TRUE(NowhereSlower(*least, laws));
  }
}

}  // namespace
}  // namespace sliceplan::planner
