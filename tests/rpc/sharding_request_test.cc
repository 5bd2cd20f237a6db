// What requests for proposals are refused for, which slices they mean, and which defaults a small one gets.
#include "server/rpc/convert/sharding_request.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/sliceplan/v1/sharding.pb.h"
#include "server/rpc/errors.h"
#include "tests/rpc/testing.h"

namespace sliceplan::rpc {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kMethod[] = "PlannerService/ProposeSharding";
constexpr char kGood[] = "model { preset: 'llama-3-8b' }";

// A request as it is converted, without a search.
struct Converted {
  v1::ProposeShardingRequest request;
  SearchQuestion question;
  Violations violations;

  explicit Converted(const std::string& text, const char* model = "llama-3-8b")
      : request(FromText<v1::ProposeShardingRequest>(text)) {
    request.mutable_model()->set_preset(model);
    const auto catalog = TestEngine().catalogs.Snapshot();
    const FieldPath path;
    ToSearchQuestion(request, *catalog, TestEngine().models, TestEngine().profiles, path, question, violations);
  }

  // "2 x tpu-v5p 4x4x4".
  std::vector<std::string> Slices() const {
    std::vector<std::string> slices;
    for (const planner::SearchCandidate& candidate : question.search.candidates) {
      const hardware::Slice& slice = candidate.slice;
      slices.push_back(absl::StrCat(slice.slice_count, " x ", slice.accelerator_id, " ", slice.topology,
                                    slice.twisted ? " twisted" : ""));
    }
    return slices;
  }
  std::vector<std::string> Fields() const {
    std::vector<std::string> fields;
    for (const FieldError& error : violations.errors()) fields.push_back(error.field);
    return fields;
  }
};

struct Row {
  const char* name;
  const char* text;  // after kGood
  const char* field;
};

const Row kRows[] = {
    {"no sequence", "training { sequence_length: 0 }", "training.sequence_length"},
    {"tokens that are no sequences", "training { sequence_length: 4096 global_batch_tokens: 5000 }",
     "training.global_batch_tokens"},
    {"too many steps", "training { step_count: 9007199254740992 }", "training.step_count"},
    {"format of no meaning", "training { precision { compute: 77 } }", "training.precision.compute"},
    {"infinite capacity", "training { expert_capacity_factor: inf }", "training.expert_capacity_factor"},
    {"no slices", "slices {}", "slices.slices"},
    {"no such topology", "slices { slices { accelerator: 'v5p' topology: '3x3x3' } }", "slices.slices[0].topology"},
    {"a slice without a shape", "slices { slices { accelerator_type: 'v5p-8' } slices { accelerator: 'v5p' } }",
     "slices.slices[1].topology"},
    {"no names", "accelerators {}", "accelerators.names"},
    {"a name of no chip", "accelerators { names: 'v5p' names: '' }", "accelerators.names[1]"},
    {"fewer than none", "accelerators { names: 'v5p' min_chip_count: -1 }", "accelerators.min_chip_count"},
    {"most below least", "accelerators { names: 'v5p' min_chip_count: 64 max_chip_count: 8 }",
     "accelerators.max_chip_count"},
    {"slices without end", "accelerators { names: 'v5p' max_slice_count: 2000 }", "accelerators.max_slice_count"},
    {"a range without slices", "accelerators { names: 'v5e' min_chip_count: 300 }", "accelerators"},
    {"more slices than can be searched",
     "accelerators { names: 'v5p' names: 'tpu-7x' max_slice_count: 512 max_chip_count: 1048576 }", "accelerators"},
    {"no pools", "capacity {}", "capacity.pools"},
    {"a pool of nothing", "capacity { pools { topology: '4x4' } }", "capacity.pools[0].accelerator"},
    {"a pool without a shape", "capacity { pools { accelerator: 'v5e' } }", "capacity.pools[0].topology"},
    {"a pool of no topology", "capacity { pools { accelerator: 'v5e' topology: '3x3' } }",
     "capacity.pools[0].topology"},
    {"a pool of no chips", "capacity { pools { accelerator: 'v5e' chips {} } }", "capacity.pools[0].chips.max_count"},
    {"a pool in debt", "capacity { pools { accelerator: 'v5e' topology: '4x4' free_slice_count: -1 } }",
     "capacity.pools[0].free_slice_count"},
    {"a pool that pays", "capacity { pools { accelerator: 'v5e' topology: '4x4' usd_per_chip_hour: -1 } }",
     "capacity.pools[0].usd_per_chip_hour"},
    {"a pool that never comes",
     "capacity { pools { accelerator: 'v5e' topology: '4x4' available_after_seconds: inf } }",
     "capacity.pools[0].available_after_seconds"},
    {"terms of no meaning", "capacity { pools { accelerator: 'v5e' topology: '4x4' price_model: 50 } }",
     "capacity.pools[0].price_model"},
    {"not the catalog", "entire_catalog: false", "entire_catalog"},
    {"objective of no meaning", "objective: 44", "objective"},
    {"an end of nothing", "objective: OBJECTIVE_MIN_TIME_TO_TRAIN", "training.total_tokens"},
    {"deadline of nothing", "constraints { job_deadline_seconds: 10 }", "constraints.job_deadline_seconds"},
    {"deadline that is no number", "training { total_tokens: 1000000 } constraints { job_deadline_seconds: nan }",
     "constraints.job_deadline_seconds"},
    {"budget of nothing", "training { total_tokens: 1000000 } constraints { budget_usd: 0 }", "constraints.budget_usd"},
    {"latency of a training", "constraints { slo {} }", "constraints.slo"},
    {"no chips allowed", "constraints { max_chip_count: 0 }", "constraints.max_chip_count"},
    {"all memory free", "constraints { hbm_headroom_ratio: 0.95 }", "constraints.hbm_headroom_ratio"},
    {"negative degree", "constraints { fixed_ici { tensor: -2 } }", "constraints.fixed_ici.tensor"},
    {"axis of no meaning", "constraints { forbidden_axes: 9 }", "constraints.forbidden_axes[0]"},
    {"no axis", "constraints { forbidden_axes: PARALLELISM_AXIS_UNSPECIFIED }", "constraints.forbidden_axes[0]"},
    {"fixed and forbidden", "constraints { fixed_dcn { pipeline: 2 } forbidden_axes: PARALLELISM_AXIS_PIPELINE }",
     "constraints.forbidden_axes[0]"},
    {"infinite price", "pricing { usd_per_chip_hour: inf }", "pricing.usd_per_chip_hour"},
    {"price of no date", "pricing { as_of: 'yesterday' }", "pricing.as_of"},
    {"restart that is no number", "reliability { restart_seconds: nan }", "reliability.restart_seconds"},
    {"mode of no meaning", "estimation_mode: 12", "estimation_mode"},
    {"profile of no name", "calibration_profile: 'no-such'", "calibration_profile"},
    {"profile of serving", "calibration_profile: 'vllm-gpu'", "calibration_profile"},
    {"no proposals", "top_k: 0", "top_k"},
    {"proposals without end", "top_k: 101", "top_k"},
    {"target of no meaning", "render: 40", "render[0]"},
    {"no target", "render: RENDER_TARGET_JAX render: RENDER_TARGET_UNSPECIFIED", "render[1]"},
    {"no time", "search_time_limit {}", "search_time_limit"},
    {"time that ran out", "search_time_limit { seconds: -1 }", "search_time_limit"},
};

TEST(ShardingRequestTest, EveryViolationIsNamedByItsField) {
  for (const Row& row : kRows) {
    const Converted converted(row.text);
    EXPECT_THAT(converted.Fields(), ElementsAre(row.field)) << row.name;
    if (converted.violations.empty()) continue;
    // As a call says it: one unknown name alone is NOT_FOUND.
    v1::ProposeShardingResponse response;
    const Result result = Call(kMethod, converted.request, &response);
    ASSERT_FALSE(result.ok()) << row.name;
    EXPECT_TRUE(result.code() == absl::StatusCode::kInvalidArgument || result.code() == absl::StatusCode::kNotFound)
        << row.name;
  }
}

TEST(ShardingRequestTest, EverythingIsSaidAtOnce) {
  v1::ProposeShardingResponse response;
  const Result result = Call(kMethod, FromText<v1::ProposeShardingRequest>(R"pb(
                               model { preset: "llama-3-700b" }
                               training { sequence_length: -1 optimizer: 42 }
                               capacity {
                                 pools { accelerator: "tpu-v5q" topology: "4x4" }
                                 pools { accelerator: "v5e" topology: "9x9" free_slice_count: 70000 }
                               }
                               constraints { hbm_headroom_ratio: 1 }
                               top_k: -1
                             )pb"),
                             &response);
  EXPECT_EQ(result.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(ViolatedFields(result.status()),
              UnorderedElementsAre("model.preset", "training.sequence_length", "training.optimizer",
                                   "capacity.pools[0].accelerator", "capacity.pools[1].topology",
                                   "capacity.pools[1].free_slice_count", "constraints.hbm_headroom_ratio", "top_k"));
}

TEST(ShardingRequestTest, NearNamesOfAccelerators) {
  const Converted converted("accelerators { names: 'tpu-v5q' }");
  ASSERT_EQ(converted.violations.size(), 1u);
  EXPECT_THAT(converted.violations.errors()[0].description, HasSubstr("tpu-v5p"));
}

TEST(CandidatesTest, SlicesKeepTheirOrder) {
  const Converted converted(
      "slices { slices { accelerator_type: 'v5p-128' slice_count: 2 } slices { accelerator: 'h100' chip_count: 16 } }");
  EXPECT_THAT(converted.Slices(), ElementsAre("2 x tpu-v5p 4x4x4", "1 x nvidia-h100-sxm 16"));
}

// Chips of v5e: 1, 4, 8 (2x4), 16 (4x4), 32 (4x8), ...; two names of one chip are one.
TEST(CandidatesTest, RangesHoldEveryLegalShape) {
  const Converted converted(
      "accelerators { names: 'v5e' names: 'tpu-v5e' min_chip_count: 8 max_chip_count: 32 max_slice_count: 2 }");
  EXPECT_THAT(converted.Slices(), ElementsAre("2 x tpu-v5e 2x2", "1 x tpu-v5e 2x4", "2 x tpu-v5e 2x4",
                                              "1 x tpu-v5e 4x4", "2 x tpu-v5e 4x4", "1 x tpu-v5e 4x8"));
}

// 128 chips of v5p: 4x4x8 alone, twisted too, which helps all-to-alls between experts. No listed shape has 704 = 11 x
// 64 chips: the rule of cubes has.
TEST(CandidatesTest, RangesHoldTwistsAndShapesOfTheRule) {
  const char* const range = "accelerators { names: 'v5p' min_chip_count: 128 max_chip_count: 128 }";
  EXPECT_THAT(Converted(range).Slices(), ElementsAre("1 x tpu-v5p 4x4x8"));
  EXPECT_THAT(Converted(range, "mixtral-8x7b").Slices(), ElementsAre("1 x tpu-v5p 4x4x8", "1 x tpu-v5p 4x4x8 twisted"));
  EXPECT_THAT(Converted("accelerators { names: 'v5p' min_chip_count: 704 max_chip_count: 704 }").Slices(),
              ElementsAre("1 x tpu-v5p 4x4x44"));
}

TEST(CandidatesTest, GpusComeInMachinesAndClusters) {
  EXPECT_THAT(Converted("accelerators { names: 'h100' max_chip_count: 64 }").Slices(),
              ElementsAre("1 x nvidia-h100-sxm 1", "1 x nvidia-h100-sxm 2", "1 x nvidia-h100-sxm 4",
                          "1 x nvidia-h100-sxm 8", "1 x nvidia-h100-sxm 16", "1 x nvidia-h100-sxm 24",
                          "1 x nvidia-h100-sxm 32", "1 x nvidia-h100-sxm 48", "1 x nvidia-h100-sxm 64"));
  // NVLink domains of 72, filled whole or to 64 with hosts of 4.
  EXPECT_THAT(Converted("accelerators { names: 'gb200' min_chip_count: 72 max_chip_count: 144 }").Slices(),
              ElementsAre("1 x nvidia-gb200-nvl72 72", "1 x nvidia-gb200-nvl72 96", "1 x nvidia-gb200-nvl72 128",
                          "1 x nvidia-gb200-nvl72 144"));
}

// Every number up to 8, then powers of two.
TEST(CandidatesTest, PoolsJoinWhatIsFree) {
  const Converted converted(R"pb(
    capacity {
      pools { accelerator: "v5e" topology: "4x4" free_slice_count: 40 name: "a" available_after_seconds: 60 }
      pools { accelerator: "v5e" topology: "8x8" free_slice_count: 0 }
      pools {
        accelerator: "v6e"
        chips { min_count: 8 max_count: 16 }
        usd_per_chip_hour: 1.25
      }
    }
  )pb");
  std::vector<int> counts;
  for (const planner::SearchCandidate& candidate : converted.question.search.candidates) {
    if (candidate.slice.accelerator_id == "tpu-v5e") {
      counts.push_back(candidate.slice.slice_count);
      EXPECT_EQ(candidate.available_after_seconds, 60);
    } else {
      EXPECT_EQ(candidate.usd_per_chip_hour, 1.25);
      EXPECT_EQ(candidate.available_after_seconds, 0);
    }
  }
  EXPECT_THAT(counts, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 16, 32));
  EXPECT_THAT(converted.Slices(), Contains("1 x tpu-v6e 2x4"));
  EXPECT_THAT(converted.Slices(), Contains("1 x tpu-v6e 4x4"));
}

TEST(CandidatesTest, PoolsWithNothingFreeAreAnAnswer) {
  const auto request = FromText<v1::ProposeShardingRequest>(
      absl::StrCat(kGood, "capacity { pools { accelerator: 'v5e' topology: '4x4' free_slice_count: 0 } }"));
  v1::ProposeShardingResponse response;
  const Result result = Call(kMethod, request, &response);
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(response.proposals(), IsEmpty());
  EXPECT_EQ(response.search().candidate_slice_count(), 0);
  ASSERT_FALSE(response.warnings().empty());
  EXPECT_EQ(response.warnings(0).code(), "NO_CANDIDATES");
}

TEST(CandidatesTest, TheCatalogHoldsWhatIsSold) {
  const Converted converted("");
  std::set<std::string> accelerators;
  std::set<std::string> seen;
  for (const planner::SearchCandidate& candidate : converted.question.search.candidates) {
    accelerators.insert(candidate.slice.accelerator_id);
    EXPECT_TRUE(candidate.slice.schedulable) << candidate.slice.topology;
    EXPECT_EQ(candidate.slice.slice_count, 1);
    EXPECT_NE(candidate.profile, nullptr) << candidate.slice.accelerator_id;
  }
  for (const std::string& slice : converted.Slices()) EXPECT_TRUE(seen.insert(slice).second) << slice << " twice";
  for (const char* sold : {"tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-7x", "nvidia-h100-sxm", "nvidia-gb200-nvl72"}) {
    EXPECT_THAT(accelerators, Contains(sold));
  }
  for (const char* not_sold : {"tpu-8t", "tpu-8i", "tpu-v4i", "nvidia-rubin"}) {
    EXPECT_FALSE(accelerators.contains(not_sold)) << not_sold;
  }
  EXPECT_THAT(seen, Contains("1 x nvidia-h100-sxm 8"));
  EXPECT_THAT(seen, Contains("1 x nvidia-h100-sxm 1024"));
  EXPECT_LE(converted.question.candidates.size(), kMaxCandidates);
}

// Parameters in fp32 on TPUs, in bf16 with a master copy on GPUs; what both have in common is said once.
TEST(ShardingRequestTest, DefaultsFollowTheChip) {
  const Converted converted(
      "slices { slices { accelerator_type: 'v5p-8' } slices { accelerator: 'h100' chip_count: 8 } }");
  const auto& candidates = converted.question.search.candidates;
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_EQ(candidates[0].workload.precision.parameters, hardware::DataType::kFp32);
  EXPECT_EQ(candidates[1].workload.precision.parameters, hardware::DataType::kBf16);
  EXPECT_EQ(candidates[0].workload.global_batch_size, candidates[1].workload.global_batch_size);
  EXPECT_NE(candidates[0].profile, candidates[1].profile);
  google::protobuf::RepeatedPtrField<v1::Assumption> assumptions;
  converted.question.assumptions.ToProto(&assumptions);
  int of_sequences = 0;
  int of_formats = 0;
  for (const v1::Assumption& assumption : assumptions) {
    of_sequences += assumption.field() == "workload.sequence_length" ? 1 : 0;
    of_formats += assumption.field() == "workload.precision" ? 1 : 0;
  }
  EXPECT_EQ(of_sequences, 1);
  EXPECT_EQ(of_formats, 2);
}

TEST(ShardingRequestTest, PricesAreThoseOfThePool) {
  const Converted converted(R"pb(
    capacity {
      pools { accelerator: "v5e" topology: "4x4" }
      pools { accelerator: "v5e" topology: "4x4" price_model: PRICE_MODEL_SPOT }
      pools { accelerator: "v5e" topology: "4x4" usd_per_chip_hour: 0.5 }
    }
  )pb");
  const auto& candidates = converted.question.search.candidates;
  ASSERT_EQ(candidates.size(), 3u);
  ASSERT_TRUE(candidates[0].usd_per_chip_hour.has_value());
  ASSERT_TRUE(candidates[1].usd_per_chip_hour.has_value());
  EXPECT_LT(*candidates[1].usd_per_chip_hour, *candidates[0].usd_per_chip_hour);
  EXPECT_EQ(candidates[2].usd_per_chip_hour, 0.5);
  EXPECT_EQ(converted.question.terms[1]->price_model, v1::PRICE_MODEL_SPOT);
}

TEST(ShardingRequestTest, ConstraintsReachTheEngine) {
  const Converted converted(R"pb(
    training { total_tokens: 1000000000 }
    objective: OBJECTIVE_MIN_COST
    constraints {
      job_deadline_seconds: 86400
      budget_usd: 1000
      max_chip_count: 64
      hbm_headroom_ratio: 0.1
      fixed_ici { tensor: 8 }
      fixed_dcn { data: 2 }
      forbidden_axes: PARALLELISM_AXIS_PIPELINE
      allow_idle_chips: true
      allow_padding: true
    }
    top_k: 7
    render: RENDER_TARGET_JAX
    render: RENDER_TARGET_JAX
    search_time_limit { nanos: 5000000 }
  )pb");
  ASSERT_TRUE(converted.violations.empty()) << converted.violations.errors()[0].description;
  const planner::ShardingQuestion& search = converted.question.search;
  EXPECT_EQ(search.objective, planner::Objective::kMinCost);
  EXPECT_EQ(search.constraints.deadline_seconds, 86400);
  EXPECT_EQ(search.constraints.budget_usd, 1000);
  EXPECT_EQ(search.constraints.max_chip_count, 64);
  EXPECT_EQ(search.constraints.hbm_headroom_ratio, 0.1);
  EXPECT_EQ(search.constraints.fixed_ici[planner::LogicalAxis::kTensor], 8);
  EXPECT_EQ(search.constraints.fixed_ici[planner::LogicalAxis::kData], 0);
  EXPECT_EQ(search.constraints.fixed_dcn[planner::LogicalAxis::kData], 2);
  EXPECT_TRUE(search.constraints.forbidden[static_cast<size_t>(planner::LogicalAxis::kPipeline)]);
  EXPECT_TRUE(search.constraints.allow_idle_chips);
  EXPECT_TRUE(search.constraints.allow_padding);
  EXPECT_EQ(search.proposal_count, 7u);
  EXPECT_THAT(converted.question.limits.render, ElementsAre(planner::RenderTarget::kJax));
  EXPECT_EQ(converted.question.limits.time_limit, absl::Milliseconds(5));
}

constexpr char kTwoSlices[] = R"pb(
  slices {
    slices { accelerator: "tpu-v5p" topology: "4x4x4" }
    slices { accelerator: "tpu-v6e" topology: "4x4" }
  }
)pb";

// Without offload first, then the variants of each slice: further candidates of the engine, not of the request.
TEST(ShardingRequestTest, OffloadAddsVariants) {
  EXPECT_EQ(Converted(kTwoSlices).question.search.candidates.size(), 2u);
  const Converted converted(absl::StrCat(kTwoSlices, "constraints { allow_offload: true }"));
  ASSERT_TRUE(converted.violations.empty()) << converted.violations.errors()[0].description;
  const planner::ShardingQuestion& search = converted.question.search;
  EXPECT_EQ(converted.question.candidates.size(), 2u);
  ASSERT_EQ(search.candidates.size(), 8u);
  for (size_t i = 0; i < search.candidates.size(); ++i) {
    const size_t place = planner::PlaceOf(search, i);
    ASSERT_LT(place, 2u);
    const planner::TrainingWorkload& workload = search.candidates[i].workload;
    EXPECT_EQ(workload.optimizer_offload || workload.activation_offload, i >= 2) << i;
    EXPECT_EQ(search.candidates[i].slice.accelerator_id,
              converted.question.candidates[place].slice.slice.accelerator_id);
  }
  const Converted given(
      absl::StrCat(kTwoSlices, "training { optimizer_offload: true } constraints { allow_offload: true }"));
  EXPECT_EQ(given.question.search.candidates.size(), 4u);
}

TEST(ShardingRequestTest, AHostOfUnknownMemoryIsSaid) {
  const Converted converted(R"pb(
    slices {
      slices {
        custom {
          name: "what-if"
          bf16_flops_per_second: 1e15
          hbm_bytes: 200000000000
          hbm_bytes_per_second: 4e12
          ici_torus_dims: 2
          ici_link_bytes_per_second: 1e11
        }
        topology: "8x8"
      }
    }
    constraints { allow_offload: true }
  )pb");
  ASSERT_TRUE(converted.violations.empty()) << converted.violations.errors()[0].description;
  EXPECT_EQ(converted.question.search.candidates.size(), 1u);
  google::protobuf::RepeatedPtrField<v1::Assumption> assumptions;
  converted.question.assumptions.ToProto(&assumptions);
  int said = 0;
  for (const v1::Assumption& assumption : assumptions) {
    said += assumption.field() == "constraints.allow_offload" ? 1 : 0;
  }
  EXPECT_EQ(said, 1);
}

}  // namespace
}  // namespace sliceplan::rpc
