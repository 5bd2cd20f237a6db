// Proposals of serving: what requests become, and replies from answers of the engine written by hand.
#include "server/rpc/convert/serving_search.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/convert/search_reply.h"
#include "tests/rpc/testing.h"

namespace sliceplan::rpc {
namespace {

using planner::PoolRole;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// With nothing wrong: 8 TPUs or 8 GPUs.
constexpr char kGood[] = R"pb(
  model { preset: "llama-3-8b" }
  serving { prompt_tokens: 2000 requests_per_second: 20 }
  slices {
    slices { accelerator: "tpu-v5e" topology: "2x4" }
    slices { accelerator: "h100" chip_count: 8 }
  }
)pb";

struct Converted {
  explicit Converted(absl::string_view text = "") : request(FromText<v1::ProposeShardingRequest>(kGood)) {
    request.MergeFrom(FromText<v1::ProposeShardingRequest>(text));
    Engine& engine = TestEngine();
    ToServingSearch(request, *engine.catalogs.Snapshot(), engine.models, engine.profiles, FieldPath(), question,
                    violations);
  }
  std::vector<std::string> fields() const {
    std::vector<std::string> fields;
    for (const FieldError& error : violations.errors()) fields.push_back(error.field);
    return fields;
  }

  v1::ProposeShardingRequest request;
  ServingSearchQuestion question;
  Violations violations;
};

struct Row {
  const char* name;
  const char* text;
  const char* field;
};

TEST(ServingSearchRequestTest, EveryViolationIsNamedByItsField) {
  const Row rows[] = {
      {"no such model", "model { preset: 'none' }", "model.preset"},
      {"prompt of nothing", "serving { prompt_tokens: 0 }", "serving.prompt_tokens"},
      {"format of no meaning", "serving { precision { weights: 99 } }", "serving.precision.weights"},
      {"target of nothing", "constraints { slo { tpot { p95_seconds: 0 } } }", "constraints.slo.tpot.p95_seconds"},
      {"end of a training", "constraints { job_deadline_seconds: 10 }", "constraints.job_deadline_seconds"},
      {"budget of a training", "constraints { budget_usd: 10 }", "constraints.budget_usd"},
      {"offload of a training", "constraints { allow_offload: true }", "constraints.allow_offload"},
      {"failures of a training", "reliability { restart_seconds: 5 }", "reliability"},
      {"end of a training first", "objective: OBJECTIVE_MIN_TIME_TO_TRAIN", "objective"},
      {"objective of no meaning", "objective: 77", "objective"},
      {"too many proposals", "top_k: 101", "top_k"},
      {"no headroom at all", "constraints { hbm_headroom_ratio: 1 }", "constraints.hbm_headroom_ratio"},
      {"axis of no meaning", "constraints { forbidden_axes: 9 }", "constraints.forbidden_axes[0]"},
      {"target of no meaning", "render: 99", "render[0]"},
      {"profile of training", "calibration_profile: 'maxtext-tpu'", "calibration_profile"},
      {"infinite price", "pricing { usd_per_chip_hour: inf }", "pricing.usd_per_chip_hour"},
      {"no such shape", "slices { slices { accelerator: 'tpu-v5e' topology: '3x3' } }", "slices.slices[2].topology"},
  };
  for (const Row& row : rows) EXPECT_THAT(Converted(row.text).fields(), ElementsAre(row.field)) << row.name;
}

TEST(ServingSearchRequestTest, BecomesAQuestion) {
  const Converted converted(R"pb(
    constraints {
      slo { ttft { p95_seconds: 1 } }
      max_chip_count: 64
      fixed_ici { tensor: 8 }
      allow_idle_chips: true
    }
    objective: OBJECTIVE_MIN_COST
    top_k: 3
    search_time_limit { seconds: 2 }
  )pb");
  ASSERT_THAT(converted.fields(), IsEmpty());
  const planner::ServingQuestion& search = converted.question.search;
  EXPECT_NE(search.model.operations, nullptr);
  EXPECT_EQ(search.workload.prompt.Mean(), 2000);
  EXPECT_EQ(search.workload.load, planner::ServingLoadKind::kRate);
  EXPECT_EQ(search.slo.ttft.p95_seconds, 1);
  EXPECT_EQ(search.objective, planner::Objective::kMinCost);
  EXPECT_EQ(search.proposal_count, 3u);
  EXPECT_EQ(search.constraints.max_chip_count, 64);
  EXPECT_EQ(search.constraints.fixed_ici[planner::LogicalAxis::kTensor], 8);
  EXPECT_TRUE(search.constraints.allow_idle_chips);
  EXPECT_EQ(converted.question.limits.time_limit, absl::Seconds(2));
  ASSERT_EQ(search.candidates.size(), 2u);
  EXPECT_EQ(search.candidates[0].efficiency->name, "jax-serving-tpu");
  EXPECT_EQ(search.candidates[1].efficiency->name, "vllm-gpu");
  EXPECT_TRUE(search.candidates[0].usd_per_chip_hour.has_value());
}

TEST(ServingSearchRequestTest, WithoutAnObjectiveTheCheapestIsBest) {
  const Converted priced;
  EXPECT_EQ(priced.question.search.objective, planner::Objective::kMinCost);
  EXPECT_FALSE(priced.question.search.requires_price);
  google::protobuf::RepeatedPtrField<v1::Assumption> lines;
  priced.question.assumptions.ToProto(&lines);
  bool found = false;
  for (const v1::Assumption& line : lines) found |= line.field() == "objective" && line.value() == "OBJECTIVE_MIN_COST";
  EXPECT_TRUE(found);
  const Converted asked("objective: OBJECTIVE_MIN_COST");
  EXPECT_TRUE(asked.question.search.requires_price);
  EXPECT_EQ(Converted("objective: OBJECTIVE_MIN_STEP_TIME").question.search.objective,
            planner::Objective::kMinStepTime);
}

TEST(ServingSearchRequestTest, FreeSlicesBoundTheReplicas) {
  const Converted converted(
      "capacity { pools { accelerator: 'tpu-v5e' topology: '2x4' free_slice_count: 5 name: 'spare' } }");
  ASSERT_THAT(converted.fields(), IsEmpty());
  for (const planner::ServingCandidate& candidate : converted.question.search.candidates) {
    EXPECT_EQ(candidate.max_replica_count, 5 / candidate.slice.slice_count);
  }
}

TEST(ServingSearchRequestTest, FieldsOfOneEstimateHaveTheirPlace) {
  EXPECT_EQ(FieldOfServingSearch("workload.batch_size"), "serving.batch_size");
  EXPECT_EQ(FieldOfServingSearch("slo.ttft.p95_seconds"), "constraints.slo.ttft.p95_seconds");
  EXPECT_EQ(FieldOfServingSearch("parallelism.ici.tensor"), "constraints.fixed_ici.tensor");
  EXPECT_EQ(FieldOfServingSearch("pools[1].parallelism.ici.tensor"), "constraints.fixed_ici.tensor");
  EXPECT_EQ(FieldOfServingSearch("pools[0].parallelism.allow_padding"), "constraints.allow_padding");
  EXPECT_EQ(FieldOfServingSearch("pricing"), "pricing");
  EXPECT_EQ(FieldOfServingSearch("pools["), "pools[");
}

// ---- Replies ----

planner::ServingSearchAnswer Answer() {
  planner::ServingSearchAnswer answer;
  planner::ServingProposal apart;
  apart.candidates = {0, 1};
  apart.roles = {PoolRole::kPrefill, PoolRole::kDecode};
  apart.estimate.pools.resize(2);
  for (planner::PoolEstimate& pool : apart.estimate.pools) pool.parallelism.ici[planner::LogicalAxis::kTensor] = 8;
  apart.estimate.pools[1].replica_count = 3;
  apart.estimate.disaggregation.emplace();
  apart.estimate.batch_size = 16;
  apart.estimate.chip_count = 40;
  apart.estimate.load.prefill_chunk_tokens = 512;
  apart.estimate.decode.time.expected_seconds = 0.02;
  planner::Advice advice;
  advice.code = "FP8_KV";
  advice.changes = {{"workload.precision.kv_cache", "DATA_TYPE_FP8"}};
  apart.estimate.advice = {advice};
  apart.beats_next_because = "2 ms less per token.";
  planner::ServingProposal alone;
  alone.candidates = {1};
  alone.roles = {PoolRole::kBoth};
  alone.estimate.pools.resize(1);
  alone.estimate.pools[0].parallelism.ici[planner::LogicalAxis::kTensor] = 8;
  answer.proposals = {apart, alone};
  planner::ServingSummary summary;
  summary.candidate = 1;
  summary.replica_count = 4;
  summary.tpot_seconds = 0.022;
  summary.output_tokens_per_second_per_chip = 300;
  summary.chip_count = 32;
  answer.frontier = {summary};
  planner::ServingMiss miss;
  miss.plan = summary;
  miss.plan.outcome = planner::ServingOutcome::kMissesSlo;
  miss.shortfall = {"slo.tpot.p95_seconds", 0.05, 0.04, 0.01, std::nullopt, "10 ms too slow"};
  miss.smallest_fix = planner::Fix{"SMALLER_BATCH", "A batch of 24.", {{"workload.batch_size", "24"}}, std::nullopt};
  answer.near_misses = {miss};
  answer.considered_count = 100;
  answer.evaluated_count = 90;
  answer.pruned[static_cast<size_t>(planner::PruneReason::kOutOfMemory)] = 10;
  answer.assumptions = {"workload.kv_block_tokens: blocks of 16 tokens"};
  return answer;
}

v1::ProposeShardingResponse Reply(const Converted& converted, const planner::ServingSearchAnswer& answer) {
  EXPECT_THAT(converted.fields(), IsEmpty());
  v1::ProposeShardingResponse response;
  ToProto(converted.question, answer, &response);
  return response;
}

TEST(ServingSearchReplyTest, ProposalsHavePoolsAndEstimates) {
  const v1::ProposeShardingResponse reply = Reply(Converted(), Answer());
  ASSERT_EQ(reply.proposals_size(), 2);
  const v1::Proposal& first = reply.proposals(0);
  ASSERT_EQ(first.pools_size(), 2);
  EXPECT_EQ(first.pools(0).role(), v1::POOL_ROLE_PREFILL);
  EXPECT_EQ(first.pools(0).slice().slice().accelerator(), "tpu-v5e");
  EXPECT_EQ(first.pools(1).role(), v1::POOL_ROLE_DECODE);
  EXPECT_EQ(first.pools(1).replica_count(), 3);
  EXPECT_EQ(first.pools(1).parallelism().ici().tensor(), 8);
  EXPECT_EQ(first.pools(1).price_model(), v1::PRICE_MODEL_ON_DEMAND);
  ASSERT_TRUE(first.has_serving());
  EXPECT_EQ(first.serving().batch_size(), 16);
  EXPECT_EQ(first.serving().pools_size(), 2);
  EXPECT_EQ(first.serving().cost().prices_size(), 2);
  EXPECT_EQ(first.serving().workload().prompt_tokens(), 2000);
  EXPECT_EQ(first.serving().calibration_profile(), "jax-serving-tpu, vllm-gpu");
  EXPECT_EQ(first.serving().advice(0).changes(0).field(), "serving.precision.kv_cache");
  EXPECT_EQ(first.beats_next_because(), "2 ms less per token.");
}

TEST(ServingSearchReplyTest, FixesNameFieldsThatTheRequestHas) {
  planner::ServingSearchAnswer answer = Answer();
  answer.near_misses[0].smallest_fix =
      planner::Fix{"MORE_CHIPS", "It fits on 4x4.", {{"slice.topology", "4x4"}}, std::nullopt};
  const v1::ProposeShardingResponse reply = Reply(Converted(), answer);
  EXPECT_EQ(reply.near_misses(0).smallest_fix().sentence(), "It fits on 4x4.");
  EXPECT_THAT(reply.near_misses(0).smallest_fix().changes(), IsEmpty());
  EXPECT_TRUE(IsFieldOfSearch("serving.precision.kv_cache"));
  EXPECT_TRUE(IsFieldOfSearch("slices.slices[2].topology"));
  EXPECT_FALSE(IsFieldOfSearch("pools[0].replica_count"));
  EXPECT_FALSE(IsFieldOfSearch("parallelism.microbatch_count"));
  EXPECT_FALSE(IsFieldOfSearch("top_k.more"));
}

TEST(ServingSearchReplyTest, TheFirstIsWrittenForVllm) {
  const v1::ProposeShardingResponse reply = Reply(Converted(), Answer());
  // GKE has no label for the second slice: only vLLM is left.
  ASSERT_EQ(reply.proposals(0).renderings_size(), 1);
  EXPECT_EQ(reply.proposals(0).renderings(0).target(), v1::RENDER_TARGET_VLLM);
  EXPECT_THAT(reply.proposals(0).renderings(0).text(), HasSubstr("--tensor-parallel-size 8"));
  EXPECT_THAT(reply.proposals(1).renderings(), IsEmpty());
  const v1::ProposeShardingResponse other = Reply(Converted("render: RENDER_TARGET_MEGATRON"), Answer());
  EXPECT_THAT(other.proposals(0).renderings(), IsEmpty());
  EXPECT_EQ(other.warnings(0).code(), "NOT_RENDERED");
  EXPECT_THAT(other.warnings(0).sentence(),
              HasSubstr("Megatron: plans of serving are written for vLLM, GKE and Kueue"));
}

TEST(ServingSearchReplyTest, SummariesMissesAndCounts) {
  const v1::ProposeShardingResponse reply = Reply(Converted(), Answer());
  EXPECT_EQ(reply.frontier(0).replica_count(), 4);
  EXPECT_EQ(reply.frontier(0).expected_seconds(), 0.022);
  EXPECT_EQ(reply.frontier(0).chip_count(), 32);
  EXPECT_EQ(reply.near_misses(0).plan().outcome(), v1::OUTCOME_MISSES_SLO);
  EXPECT_EQ(reply.near_misses(0).lacks().limit(), "slo.tpot.p95_seconds");
  EXPECT_EQ(reply.near_misses(0).smallest_fix().changes(0).field(), "serving.batch_size");
  EXPECT_EQ(reply.search().considered_count(), 100);
  EXPECT_EQ(reply.search().pruned(0).reason(), "OUT_OF_MEMORY");
  EXPECT_EQ(reply.search().candidate_slice_count(), 2);
  EXPECT_TRUE(reply.search().exhaustive());
  bool found = false;
  for (const v1::Assumption& line : reply.assumptions()) found = found || line.field() == "serving.kv_block_tokens";
  EXPECT_TRUE(found);
}

// ---- The RPC ----

TEST(ProposeServingTest, PlansOfTwoChips) {
  auto request = FromText<v1::ProposeShardingRequest>(kGood);
  request.set_top_k(2);
  v1::ProposeShardingResponse response;
  const Result result = Call("PlannerService/ProposeSharding", request, &response);
  ASSERT_TRUE(result.ok()) << result.status().DebugString();
  ASSERT_GT(response.proposals_size(), 0);
  for (const v1::Proposal& proposal : response.proposals()) {
    EXPECT_EQ(proposal.serving().outcome(), v1::OUTCOME_FEASIBLE);
    EXPECT_EQ(proposal.pools_size(), proposal.serving().pools_size());
    EXPECT_GT(proposal.serving().tpot().mean_seconds(), 0);
  }
  EXPECT_GT(response.search().considered_count(), 0);
  EXPECT_FALSE(response.catalog_version().empty());
}

TEST(ProposeServingTest, StopsWhenTheCallerIsGone) {
  CallContext gone;
  gone.caller_gone = [] { return true; };
  v1::ProposeShardingResponse response;
  EXPECT_EQ(Call("PlannerService/ProposeSharding", FromText<v1::ProposeShardingRequest>(kGood), &response, gone).code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace sliceplan::rpc
