// Answers of the engine as replies, and calls from request to reply.
#include "server/rpc/convert/sharding_reply.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "proto/sliceplan/v1/sharding.pb.h"
#include "proto/sliceplan/v1/training.pb.h"
#include "tests/rpc/testing.h"

namespace sliceplan::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kMethod[] = "PlannerService/ProposeSharding";

// Two pools of which the second has no public price.
constexpr char kRequest[] = R"pb(
  model { preset: "llama-3-8b" }
  training { sequence_length: 4096 total_tokens: 1000000000 }
  capacity {
    pools { accelerator: "v5e" topology: "4x4" name: "batch" zone: "us-west4-a" free_slice_count: 2 }
    pools { accelerator: "v5p" topology: "4x4x4" }
  }
  constraints { hbm_headroom_ratio: 0.25 job_deadline_seconds: 1000 }
)pb";

v1::ProposeShardingResponse Reply(const planner::ShardingAnswer& answer, const char* text = kRequest) {
  const auto request = FromText<v1::ProposeShardingRequest>(text);
  SearchQuestion question;
  Violations violations;
  const FieldPath path;
  const auto catalog = TestEngine().catalogs.Snapshot();
  ToSearchQuestion(request, *catalog, TestEngine().models, TestEngine().profiles, path, question, violations);
  EXPECT_TRUE(violations.empty());
  v1::ProposeShardingResponse response;
  ToProto(question, answer, &response);
  return response;
}

TEST(ShardingReplyTest, CountsAreSortedByReason) {
  planner::ShardingAnswer answer;
  answer.considered_count = 100;
  answer.evaluated_count = 40;
  answer.pruned[static_cast<size_t>(planner::PruneReason::kOutOfMemory)] = 50;
  answer.pruned[static_cast<size_t>(planner::PruneReason::kComputeFloor)] = 10;
  const v1::SearchReport report = Reply(answer).search();
  EXPECT_EQ(report.considered_count(), 100);
  EXPECT_EQ(report.evaluated_count(), 40);
  ASSERT_EQ(report.pruned_size(), 2);
  EXPECT_EQ(report.pruned(0).reason(), "COMPUTE_FLOOR");
  EXPECT_EQ(report.pruned(0).count(), 10);
  EXPECT_EQ(report.pruned(1).reason(), "OUT_OF_MEMORY");
  EXPECT_TRUE(report.exhaustive());
  EXPECT_TRUE(report.has_optimality_gap_ratio());
  EXPECT_EQ(report.optimality_gap_ratio(), 0);
  EXPECT_EQ(report.candidate_slice_count(), 3);
}

TEST(ShardingReplyTest, AnUnknownGapIsAbsent) {
  planner::ShardingAnswer answer;
  answer.exhaustive = false;
  answer.optimality_gap_ratio = std::numeric_limits<double>::infinity();
  const v1::SearchReport report = Reply(answer).search();
  EXPECT_FALSE(report.exhaustive());
  EXPECT_FALSE(report.has_optimality_gap_ratio());
}

TEST(ShardingReplyTest, ProposalsNameTheirPool) {
  planner::ShardingAnswer answer;
  planner::Proposal& proposal = answer.proposals.emplace_back();
  proposal.candidate = 1;
  proposal.estimate.parallelism.ici[planner::LogicalAxis::kFsdp] = 16;
  proposal.estimate.chip_count = 32;
  proposal.beats_next_because = "It is faster.";
  const v1::ProposeShardingResponse response = Reply(answer);
  ASSERT_EQ(response.proposals_size(), 1);
  ASSERT_EQ(response.proposals(0).pools_size(), 1);
  const v1::ProposedPool& pool = response.proposals(0).pools(0);
  EXPECT_EQ(pool.role(), v1::POOL_ROLE_BOTH);
  EXPECT_EQ(pool.capacity_pool(), "batch");
  EXPECT_EQ(pool.zone(), "us-west4-a");
  EXPECT_EQ(pool.replica_count(), 1);
  EXPECT_EQ(pool.price_model(), v1::PRICE_MODEL_ON_DEMAND);
  EXPECT_EQ(pool.slice().slice_count(), 2);
  EXPECT_EQ(pool.slice().slice().topology(), "4x4");
  EXPECT_EQ(pool.parallelism().ici().fsdp(), 16);
  EXPECT_EQ(response.proposals(0).beats_next_because(), "It is faster.");
}

TEST(ShardingReplyTest, ShortfallsAreInTheUnitOfTheirLimit) {
  planner::ShardingAnswer answer;
  planner::NearMiss& memory = answer.near_misses.emplace_back();
  memory.plan.outcome = planner::Outcome::kOutOfMemory;
  memory.shortfall_amount = 1e9;
  memory.shortfall = "1 GB too much";
  memory.smallest_fix =
      planner::Fix{"REMAT", "Recompute everything.", {{"workload.remat_policy", "REMAT_POLICY_FULL"}}, std::nullopt};
  planner::NearMiss& late = answer.near_misses.emplace_back();
  late.plan.outcome = planner::Outcome::kMissesDeadline;
  late.plan.end_seconds = 1500;
  late.shortfall_amount = 500;
  const v1::ProposeShardingResponse response = Reply(answer);
  ASSERT_EQ(response.near_misses_size(), 2);
  const v1::NearMiss& first = response.near_misses(0);
  EXPECT_EQ(first.lacks().limit(), "hbm_bytes");
  EXPECT_EQ(first.lacks().sentence(), "1 GB too much.");
  EXPECT_DOUBLE_EQ(first.lacks().needed(), first.lacks().available() + 1e9);
  // A quarter of what a v5e can allocate stays free.
  EXPECT_LT(first.lacks().available(), 0.75 * 17.2e9);
  EXPECT_EQ(first.smallest_fix().changes(0).field(), "training.remat_policy");
  const v1::NearMiss& second = response.near_misses(1);
  EXPECT_EQ(second.lacks().limit(), "job_deadline_seconds");
  EXPECT_EQ(second.lacks().available(), 1000);
  EXPECT_EQ(second.lacks().needed(), 1500);
  EXPECT_EQ(second.plan().time_to_train_seconds(), 1500);
}

TEST(ShardingReplyTest, ClosedFormsListTheirAxes) {
  planner::ShardingAnswer answer;
  planner::ClosedFormOptimum& optimum = answer.closed_forms.emplace_back();
  optimum.name = "fsdp and tensor split";
  optimum.degrees[static_cast<size_t>(planner::LogicalAxis::kTensor)] = 3.5;
  optimum.sentence = "as found";
  const v1::ProposeShardingResponse response = Reply(answer);
  ASSERT_EQ(response.closed_forms_size(), 1);
  ASSERT_EQ(response.closed_forms(0).degrees_size(), 1);
  EXPECT_EQ(response.closed_forms(0).degrees(0).axis(), v1::PARALLELISM_AXIS_TENSOR);
  EXPECT_EQ(response.closed_forms(0).degrees(0).degree(), 3.5);
  EXPECT_FALSE(response.closed_forms(0).has_network_seconds());
}

// Fields of assumptions are those of this request, not of EstimateTraining's.
TEST(ShardingReplyTest, AssumptionsNameFieldsOfTheRequest) {
  bool found = false;
  const v1::ProposeShardingResponse response = Reply(planner::ShardingAnswer());
  for (const v1::Assumption& assumption : response.assumptions()) {
    EXPECT_THAT(assumption.field(), testing::Not(HasSubstr("workload")));
    found |= assumption.field() == "training.global_batch_tokens";
  }
  EXPECT_TRUE(found);
}

struct Renamed {
  const char* estimate;
  const char* search;
};

TEST(ShardingReplyTest, FieldsOfEstimatesHaveTheirNameInSearches) {
  for (const Renamed& renamed : {Renamed{"workload.remat_policy", "training.remat_policy"},
                                 Renamed{"job_deadline_seconds", "constraints.job_deadline_seconds"},
                                 Renamed{"budget_usd", "constraints.budget_usd"},
                                 Renamed{"parallelism.ici.tensor", "constraints.fixed_ici.tensor"},
                                 Renamed{"parallelism.dcn", "constraints.fixed_dcn"},
                                 Renamed{"parallelism.allow_padding", "constraints.allow_padding"},
                                 Renamed{"pricing.usd_per_chip_hour", "pricing.usd_per_chip_hour"}, Renamed{"", ""}}) {
    EXPECT_EQ(FieldOfSearch(renamed.estimate), renamed.search);
  }
}

// ---- From request to reply ----

constexpr char kSmallSearch[] = R"pb(
  model { preset: "llama-3-8b" }
  training { sequence_length: 4096 global_batch_tokens: 1048576 total_tokens: 1000000000000 }
  slices {
    slices { accelerator: "v5p" topology: "4x4x4" }
    slices { accelerator: "v5e" topology: "8x8" }
  }
  top_k: 3
)pb";

v1::ProposeShardingResponse Proposed(const char* text) {
  v1::ProposeShardingResponse response;
  const Result result = Call(kMethod, FromText<v1::ProposeShardingRequest>(text), &response);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.status().ShortDebugString());
  return response;
}

TEST(ProposeShardingTest, ProposesAndRendersTheFirst) {
  const v1::ProposeShardingResponse response = Proposed(kSmallSearch);
  ASSERT_EQ(response.proposals_size(), 3);
  double last_seconds = 0;
  for (int i = 0; i < response.proposals_size(); ++i) {
    const v1::Proposal& proposal = response.proposals(i);
    EXPECT_EQ(proposal.training().outcome(), v1::OUTCOME_FEASIBLE);
    EXPECT_GE(proposal.training().step_time().expected_seconds(), last_seconds);
    last_seconds = proposal.training().step_time().expected_seconds();
    EXPECT_EQ(proposal.beats_next_because().empty(), i == 2);
    EXPECT_EQ(proposal.renderings().empty(), i > 0);
    EXPECT_TRUE(proposal.pools(0).slice().has_slice());
  }
  EXPECT_TRUE(response.search().exhaustive());
  EXPECT_GT(response.search().considered_count(), response.search().evaluated_count());
  EXPECT_GT(response.search().elapsed_seconds(), 0);
  EXPECT_FALSE(response.engine_version().empty());
  EXPECT_FALSE(response.catalog_version().empty());
}

// A proposal is what EstimateTraining says of the same plan on the same slice.
TEST(ProposeShardingTest, ProposalsAreSingleEstimates) {
  const v1::ProposeShardingResponse response = Proposed(kSmallSearch);
  ASSERT_FALSE(response.proposals().empty());
  for (const v1::Proposal& proposal : response.proposals()) {
    v1::EstimateTrainingRequest request;
    request.mutable_model()->set_preset("llama-3-8b");
    *request.mutable_workload() = FromText<v1::ProposeShardingRequest>(kSmallSearch).training();
    request.mutable_slice()->set_accelerator(proposal.training().slice().slice().accelerator());
    request.mutable_slice()->set_topology(proposal.training().slice().slice().topology());
    *request.mutable_parallelism() = proposal.training().parallelism();
    v1::EstimateTrainingResponse single;
    ASSERT_TRUE(Call("PlannerService/EstimateTraining", request, &single).ok());
    // Their words may differ: where defaults are said, what was searched.
    v1::TrainingEstimate expected = single.estimate();
    v1::TrainingEstimate found = proposal.training();
    for (v1::TrainingEstimate* estimate : {&expected, &found}) {
      estimate->clear_assumptions();
      estimate->clear_warnings();
      estimate->clear_advice();
      estimate->clear_evaluated_plan_count();
    }
    google::protobuf::util::MessageDifferencer differencer;
    std::string differences;
    differencer.ReportDifferencesToString(&differences);
    EXPECT_TRUE(differencer.Compare(expected, found)) << differences;
  }
}

TEST(ProposeShardingTest, RendersWhatIsAskedForAndSaysWhatCannotBe) {
  const v1::ProposeShardingResponse response =
      Proposed(absl::StrCat(kSmallSearch, "render: RENDER_TARGET_JAX render: RENDER_TARGET_VLLM").c_str());
  for (const v1::Proposal& proposal : response.proposals()) {
    ASSERT_EQ(proposal.renderings_size(), 1);
    EXPECT_EQ(proposal.renderings(0).target(), v1::RENDER_TARGET_JAX);
    EXPECT_FALSE(proposal.renderings(0).text().empty());
  }
  int warnings = 0;
  for (const v1::Warning& warning : response.warnings()) warnings += warning.code() == "NOT_RENDERED" ? 1 : 0;
  EXPECT_EQ(warnings, 1);
}

// 8B parameters with fp32 state on four v5e: too much for the chips, not for their host.
constexpr char kNeedsTheHost[] = R"pb(
  model { preset: "llama-3-8b" }
  training {
    sequence_length: 4096
    global_batch_tokens: 262144
    precision { parameters: DATA_TYPE_BF16 gradients: DATA_TYPE_BF16 }
  }
  slices {
    slices { accelerator: "tpu-v5e" topology: "1x1" }
    slices { accelerator: "tpu-v5e" topology: "2x2" }
  }
  constraints { allow_offload: true }
  pricing { usd_per_chip_hour: 1 }
  render: RENDER_TARGET_JAX
  render: RENDER_TARGET_MAXTEXT
)pb";

TEST(ProposeShardingTest, OffloadIsSaidAndRendered) {
  auto without = FromText<v1::ProposeShardingRequest>(kNeedsTheHost);
  without.clear_constraints();
  without.clear_render();
  v1::ProposeShardingResponse nothing;
  ASSERT_TRUE(Call(kMethod, without, &nothing).ok());
  EXPECT_THAT(nothing.proposals(), IsEmpty());
  const v1::ProposeShardingResponse response = Proposed(kNeedsTheHost);
  ASSERT_FALSE(response.proposals().empty());
  EXPECT_EQ(response.search().candidate_slice_count(), 2);
  const v1::TrainingEstimate& first = response.proposals(0).training();
  EXPECT_EQ(first.outcome(), v1::OUTCOME_FEASIBLE);
  EXPECT_TRUE(first.workload().optimizer_offload());
  EXPECT_GT(first.memory().host_bytes(), 0);
  int said = 0;
  for (const v1::Assumption& assumption : first.assumptions()) {
    said += assumption.field() == "workload.optimizer_offload" ? 1 : 0;
  }
  EXPECT_EQ(said, 1);
  ASSERT_EQ(response.proposals(0).renderings_size(), 2);
  EXPECT_THAT(response.proposals(0).renderings(0).text(), HasSubstr("pinned_host"));
  EXPECT_THAT(response.proposals(0).renderings(1).text(), HasSubstr("optimizer_memory_host_offload: true"));
  ASSERT_FALSE(response.frontier().empty());
  EXPECT_TRUE(response.frontier(0).optimizer_offload());
  EXPECT_EQ(response.frontier(0).slice().slice().topology(), first.slice().slice().topology());
  // It is what EstimateTraining says of the same job.
  v1::EstimateTrainingRequest single;
  single.mutable_model()->set_preset("llama-3-8b");
  *single.mutable_workload() = FromText<v1::ProposeShardingRequest>(kNeedsTheHost).training();
  single.mutable_workload()->set_optimizer_offload(true);
  single.mutable_workload()->set_activation_offload(first.workload().activation_offload());
  single.mutable_slice()->set_accelerator("tpu-v5e");
  single.mutable_slice()->set_topology(first.slice().slice().topology());
  *single.mutable_parallelism() = first.parallelism();
  v1::EstimateTrainingResponse again;
  ASSERT_TRUE(Call("PlannerService/EstimateTraining", single, &again).ok());
  EXPECT_DOUBLE_EQ(again.estimate().step_time().expected_seconds(), first.step_time().expected_seconds());
}

TEST(ProposeShardingTest, ACallerThatLeftIsNotAnswered) {
  CallContext call;
  call.caller_gone = [] { return true; };
  v1::ProposeShardingResponse response;
  const Result result = Call(kMethod, FromText<v1::ProposeShardingRequest>(kSmallSearch), &response, call);
  EXPECT_EQ(result.code(), absl::StatusCode::kCancelled);
}

TEST(ProposeShardingTest, ADeadlineIsAnsweredBeforeItPasses) {
  CallContext call;
  call.deadline = absl::Now() + absl::Seconds(30);
  v1::ProposeShardingResponse response;
  const auto request = FromText<v1::ProposeShardingRequest>(
      absl::StrCat("model { preset: 'deepseek-v3' } search_time_limit { nanos: 30000000 }"));
  const absl::Time start = absl::Now();
  const Result result = Call(kMethod, request, &response, call);
  ASSERT_TRUE(result.ok()) << result.status().message();
  // Far from the deadline also under a sanitizer.
  EXPECT_LT(absl::Now() - start, absl::Seconds(15));
}

// 3 divides neither the chips nor the heads.
TEST(ProposeShardingTest, NothingLegalIsAnAnswerThatSaysSo) {
  const v1::ProposeShardingResponse response = Proposed(R"pb(
    model { preset: "llama-3-8b" }
    slices { slices { accelerator: "v5p" topology: "4x4x4" } }
    constraints { fixed_ici { tensor: 3 } }
  )pb");
  EXPECT_THAT(response.proposals(), IsEmpty());
  ASSERT_FALSE(response.warnings().empty());
  EXPECT_EQ(response.warnings(0).code(), "NO_LEGAL_PLAN");
}

TEST(ProposeShardingTest, NothingFeasibleIsAnAnswerWithNearMisses) {
  const v1::ProposeShardingResponse response = Proposed(R"pb(
    model { preset: "llama-3-70b" }
    slices { slices { accelerator: "v5e" topology: "2x2" } }
  )pb");
  EXPECT_THAT(response.proposals(), IsEmpty());
  ASSERT_FALSE(response.near_misses().empty());
  EXPECT_EQ(response.near_misses(0).plan().outcome(), v1::OUTCOME_OUT_OF_MEMORY);
  EXPECT_GT(response.near_misses(0).lacks().missing(), 0);
}

}  // namespace
}  // namespace sliceplan::rpc
