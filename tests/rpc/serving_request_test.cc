// What serving requests are refused for, and what a good one becomes.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/sliceplan/v1/serving.pb.h"
#include "server/rpc/convert/serving_job.h"
#include "tests/rpc/testing.h"

namespace sliceplan::rpc {
namespace {

using planner::PoolRole;
using planner::ServingLoadKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Requests with which nothing is wrong.
constexpr char kSlice[] = R"pb(
  model { preset: "llama-3-8b" }
  slice { accelerator: "tpu-v5e" topology: "2x4" }
)pb";
constexpr char kPools[] = R"pb(
  model { preset: "llama-3-8b" }
  pools {
    role: POOL_ROLE_PREFILL
    slice { accelerator: "tpu-v6e" topology: "2x2" }
  }
  pools {
    role: POOL_ROLE_DECODE
    slice { accelerator: "h100" chip_count: 8 }
    replica_count: 3
  }
)pb";

v1::EstimateServingRequest Merged(absl::string_view base, absl::string_view text) {
  auto request = FromText<v1::EstimateServingRequest>(base);
  request.MergeFrom(FromText<v1::EstimateServingRequest>(text));
  return request;
}

// A request converted, with all that it points to.
struct Converted {
  explicit Converted(v1::EstimateServingRequest asked) : request(std::move(asked)) {
    Engine& engine = TestEngine();
    ToServingJob(request, *engine.catalogs.Snapshot(), engine.models, engine.profiles, FieldPath(), question, &prices,
                 violations);
  }
  Converted(absl::string_view base, absl::string_view text) : Converted(Merged(base, text)) {}

  std::vector<std::string> fields() const {
    std::vector<std::string> fields;
    for (const FieldError& error : violations.errors()) fields.push_back(error.field);
    return fields;
  }
  const planner::ServingJob& job() const { return question.job; }
  bool Assumes(absl::string_view field) const {
    google::protobuf::RepeatedPtrField<v1::Assumption> lines;
    question.assumptions.ToProto(&lines);
    return std::any_of(lines.begin(), lines.end(), [&](const v1::Assumption& line) { return line.field() == field; });
  }

  v1::EstimateServingRequest request;
  ServingQuestion question;
  google::protobuf::RepeatedPtrField<v1::PriceUsed> prices;
  Violations violations;
};

struct Row {
  const char* name;
  const char* text;   // merged into kSlice
  const char* field;  // the only one that is wrong
};

const Row kRows[] = {
    {"no such topology", "slice { topology: '3x3' }", "slice.topology"},
    {"no such model", "model { preset: 'no-such' }", "model.preset"},
    {"prompt of nothing", "workload { prompt_tokens: 0 }", "workload.prompt_tokens"},
    {"prompt without end", "workload { prompt_tokens: 2000000000 }", "workload.prompt_tokens"},
    {"negative output", "workload { output_tokens: -1 }", "workload.output_tokens"},
    {"lengths of no shape", "workload { prompt_distribution {} }", "workload.prompt_distribution"},
    {"no bins", "workload { output_distribution { histogram {} } }", "workload.output_distribution.histogram.bins"},
    {"bin of no length",
     "workload { prompt_distribution { histogram { bins { tokens: 5 weight: 1 } bins { weight: 1 } } } }",
     "workload.prompt_distribution.histogram.bins[1].tokens"},
    {"bin of no weight", "workload { prompt_distribution { histogram { bins { tokens: 5 } } } }",
     "workload.prompt_distribution.histogram.bins[0].weight"},
    {"bin of no number", "workload { prompt_distribution { histogram { bins { tokens: 5 weight: nan } } } }",
     "workload.prompt_distribution.histogram.bins[0].weight"},
    {"mean below a token", "workload { output_distribution { moments { mean_tokens: 0.5 } } }",
     "workload.output_distribution.moments.mean_tokens"},
    {"infinite mean", "workload { output_distribution { moments { mean_tokens: inf } } }",
     "workload.output_distribution.moments.mean_tokens"},
    {"negative spread", "workload { output_distribution { moments { mean_tokens: 9 coefficient_of_variation: -1 } } }",
     "workload.output_distribution.moments.coefficient_of_variation"},
    {"batch of nothing", "workload { batch_size: 0 }", "workload.batch_size"},
    {"batch without end", "workload { batch_size: 1048577 }", "workload.batch_size"},
    {"no users", "workload { concurrency: 0 }", "workload.concurrency"},
    {"no requests", "workload { requests_per_second: 0 }", "workload.requests_per_second"},
    {"rate of no number", "workload { requests_per_second: nan }", "workload.requests_per_second"},
    {"batch above its limit", "workload { batch_size: 9 max_batch_size: 8 }", "workload.max_batch_size"},
    {"limit of nothing", "workload { max_batch_size: 0 }", "workload.max_batch_size"},
    {"format of no meaning", "workload { precision { kv_cache: 77 } }", "workload.precision.kv_cache"},
    {"negative burstiness", "workload { arrival_burstiness: -1 }", "workload.arrival_burstiness"},
    {"everything cached", "workload { prefix_cache_hit_ratio: 1 }", "workload.prefix_cache_hit_ratio"},
    {"chunk of nothing", "workload { prefill_chunk_tokens: 0 }", "workload.prefill_chunk_tokens"},
    {"block without end", "workload { kv_block_tokens: 65537 }", "workload.kv_block_tokens"},
    {"no memory at all", "workload { hbm_utilization_ratio: 0 }", "workload.hbm_utilization_ratio"},
    {"more memory than there is", "workload { hbm_utilization_ratio: 1.1 }", "workload.hbm_utilization_ratio"},
    {"split of no meaning", "workload { kv_cache_split: 9 }", "workload.kv_cache_split"},
    {"policy of no meaning", "workload { windowed_kv_policy: 9 }", "workload.windowed_kv_policy"},
    {"balance better than even", "workload { expert_load_imbalance_ratio: 0.9 }",
     "workload.expert_load_imbalance_ratio"},
    {"too many drafts", "workload { speculative { draft_tokens: 65 acceptance_ratio: 0.7 } }",
     "workload.speculative.draft_tokens"},
    {"drafts without a chance", "workload { speculative { draft_tokens: 3 } }",
     "workload.speculative.acceptance_ratio"},
    {"drafts better than right", "workload { speculative { draft_tokens: 3 acceptance_ratio: 1.5 } }",
     "workload.speculative.acceptance_ratio"},
    {"negative drafting", "workload { speculative { draft_tokens: 3 acceptance_ratio: 0.5 draft_cost_ratio: -0.1 } }",
     "workload.speculative.draft_cost_ratio"},
    {"drafts of no model",
     "workload { speculative { draft_tokens: 3 acceptance_ratio: 0.5 draft_model { preset: 'none' } } }",
     "workload.speculative.draft_model.preset"},
    {"target of nothing", "slo { ttft { p95_seconds: 0 } }", "slo.ttft.p95_seconds"},
    {"target of no number", "slo { tpot { mean_seconds: nan } }", "slo.tpot.mean_seconds"},
    {"target without end", "slo { end_to_end { p99_seconds: 1e7 } }", "slo.end_to_end.p99_seconds"},
    {"mode of no meaning", "estimation_mode: 12", "estimation_mode"},
    {"no such profile", "calibration_profile: 'no-such'", "calibration_profile"},
    {"profile of training", "calibration_profile: 'maxtext-tpu'", "calibration_profile"},
    {"infinite price", "pricing { usd_per_chip_hour: inf }", "pricing.usd_per_chip_hour"},
    {"price of no date", "pricing { as_of: 'yesterday' }", "pricing.as_of"},
    {"split of the bill of no meaning", "cost_split { kind: 7 }", "cost_split.kind"},
    {"fixed ratio without one", "cost_split { kind: COST_SPLIT_KIND_FIXED_RATIO }",
     "cost_split.output_to_input_price_ratio"},
    {"ratio by time", "cost_split { output_to_input_price_ratio: 4 }", "cost_split.output_to_input_price_ratio"},
    {"cached tokens that cost more", "cost_split { cached_to_input_price_ratio: 2 }",
     "cost_split.cached_to_input_price_ratio"},
    {"stages of stages", "parallelism { ici { tensor: 8 } virtual_stage_count: 2 }", "parallelism.virtual_stage_count"},
    {"optimizer state shared", "parallelism { ici { tensor: 8 } data_zero_stage: ZERO_STAGE_1 }",
     "parallelism.data_zero_stage"},
    {"backward passes", "parallelism { ici { tensor: 8 } schedule: PIPELINE_SCHEDULE_ZERO_BUBBLE }",
     "parallelism.schedule"},
    {"plan without degrees", "parallelism { microbatch_count: 4 }", "parallelism.microbatch_count"},
    {"axis out of the slice",
     "parallelism { ici { tensor: 8 } mapping { axis: PARALLELISM_AXIS_TENSOR physical_axis: 7 factor: 8 } }",
     "parallelism.mapping[0].physical_axis"},
    {"slice and pools", "pools { slice { accelerator: 'tpu-v5e' topology: '2x4' } }", "slice"},
};

TEST(ServingRequestTest, EveryViolationIsNamedByItsField) {
  for (const Row& row : kRows) {
    const Converted converted(kSlice, row.text);
    EXPECT_THAT(converted.fields(), ElementsAre(row.field)) << row.name;
  }
}

// A pool that does both, to which each row adds one.
constexpr char kOnePool[] = R"pb(
  model { preset: "llama-3-8b" }
  pools { slice { accelerator: "tpu-v6e" topology: "2x2" } }
)pb";

const Row kPoolRows[] = {
    {"role of no meaning", "pools { role: 7 slice { accelerator: 'h100' chip_count: 8 } }", "pools[1].role"},
    {"pool without a slice", "pools { replica_count: 2 }", "pools[1].slice"},
    {"no replicas", "pools { slice { accelerator: 'h100' chip_count: 8 } replica_count: 0 }", "pools[1].replica_count"},
    {"decode beside both", "pools { role: POOL_ROLE_DECODE slice { accelerator: 'h100' chip_count: 8 } }", "pools"},
    {"chips without end", "pools { slice { accelerator: 'tpu-v5p' topology: '16x16x16' } replica_count: 1048576 }",
     "pools"},
    {"plan beside pools", "parallelism { ici { tensor: 4 } }", "parallelism"},
    {"no such topology", "pools { slice { accelerator: 'tpu-v5e' topology: '5x5' } }", "pools[1].slice.topology"},
    {"plan of training",
     "pools { slice { accelerator: 'h100' chip_count: 8 } parallelism { ici { tensor: 8 } data_zero_stage: 4 } }",
     "pools[1].parallelism.data_zero_stage"},
};

TEST(ServingRequestTest, PoolsAreNamedByIndex) {
  for (const Row& row : kPoolRows) {
    const Converted converted(kOnePool, row.text);
    EXPECT_THAT(converted.fields(), ElementsAre(row.field)) << row.name;
  }
}

TEST(ServingRequestTest, RolesThatGoTogether) {
  struct Roles {
    std::vector<v1::PoolRole> roles;
    bool good;
  };
  const Roles rows[] = {{{v1::POOL_ROLE_UNSPECIFIED}, true},
                        {{v1::POOL_ROLE_BOTH, v1::POOL_ROLE_UNSPECIFIED}, true},
                        {{v1::POOL_ROLE_DECODE}, true},
                        {{v1::POOL_ROLE_DECODE, v1::POOL_ROLE_PREFILL}, true},
                        {{v1::POOL_ROLE_DECODE, v1::POOL_ROLE_PREFILL, v1::POOL_ROLE_DECODE}, false},
                        {{v1::POOL_ROLE_PREFILL, v1::POOL_ROLE_PREFILL, v1::POOL_ROLE_DECODE}, false},
                        {{v1::POOL_ROLE_PREFILL}, false},
                        {{v1::POOL_ROLE_PREFILL, v1::POOL_ROLE_BOTH}, false},
                        {{v1::POOL_ROLE_DECODE, v1::POOL_ROLE_BOTH}, false}};
  for (const Roles& row : rows) {
    auto request = FromText<v1::EstimateServingRequest>("model { preset: 'llama-3-8b' }");
    for (const v1::PoolRole role : row.roles) {
      v1::Pool* const pool = request.add_pools();
      pool->set_role(role);
      *pool->mutable_slice() = FromText<v1::Slice>("accelerator: 'tpu-v5e' topology: '2x4'");
    }
    const Converted converted(request);
    if (row.good) {
      EXPECT_THAT(converted.fields(), IsEmpty()) << request.ShortDebugString();
    } else {
      EXPECT_THAT(converted.fields(), ElementsAre("pools")) << request.ShortDebugString();
    }
  }
}

TEST(ServingRequestTest, ManyPoolsAreTooMany) {
  auto request = FromText<v1::EstimateServingRequest>("model { preset: 'llama-3-8b' }");
  for (int i = 0; i < 17; ++i) {
    *request.add_pools()->mutable_slice() = FromText<v1::Slice>("accelerator: 'tpu-v5e' topology: '2x4'");
  }
  EXPECT_THAT(Converted(request).fields(), ElementsAre("pools"));
}

TEST(ServingRequestTest, ManyBinsAreTooMany) {
  auto request = FromText<v1::EstimateServingRequest>(kSlice);
  v1::TokenHistogram* const histogram = request.mutable_workload()->mutable_prompt_distribution()->mutable_histogram();
  for (int i = 1; i <= 1025; ++i) {
    histogram->add_bins()->set_tokens(i);
    histogram->mutable_bins(i - 1)->set_weight(1);
  }
  EXPECT_THAT(Converted(request).fields(), ElementsAre("workload.prompt_distribution.histogram.bins"));
  histogram->mutable_bins()->RemoveLast();
  EXPECT_DOUBLE_EQ(Converted(request).job().workload.prompt.Mean(), 512.5);
}

TEST(ServingRequestTest, FiveViolationsAtOnce) {
  const Converted converted(FromText<v1::EstimateServingRequest>(R"pb(
    model { preset: "llama-3-700b" }
    slice { accelerator: "tpu-v5e" topology: "3x3" }
    workload {
      prompt_tokens: 0
      precision { weights: 99 }
    }
    slo { ttft { p95_seconds: -1 } }
  )pb"));
  EXPECT_THAT(converted.fields(), UnorderedElementsAre("model.preset", "slice.topology", "workload.prompt_tokens",
                                                       "workload.precision.weights", "slo.ttft.p95_seconds"));
}

// The engine's own findings come together with those of the conversion.
TEST(ServingRequestTest, PlanAndWorkloadAreCheckedTogether) {
  const Converted converted(kSlice, R"pb(
    parallelism { ici { tensor: 3 } }
    workload { batch_size: 0 }
  )pb");
  EXPECT_THAT(converted.fields(), ::testing::IsSupersetOf({"workload.batch_size", "parallelism.ici"}));
}

TEST(ServingRequestTest, NothingAtAll) {
  EXPECT_THAT(Converted(v1::EstimateServingRequest()).fields(), ElementsAre("model", "slice"));
}

// ---- What a good request becomes ----

TEST(ServingJobTest, DefaultsAreSaid) {
  const Converted converted(kSlice, "");
  ASSERT_THAT(converted.fields(), IsEmpty());
  const planner::ServingJob& job = converted.job();
  EXPECT_EQ(job.workload.prompt.Mean(), 1024);
  EXPECT_EQ(job.workload.output.Mean(), 256);
  EXPECT_EQ(job.workload.load, ServingLoadKind::kLargestBatch);
  EXPECT_EQ(job.mode, planner::EstimationMode::kCalibrated);
  EXPECT_FALSE(job.workload.precision.weights.has_value());
  EXPECT_FALSE(job.pools_given);
  ASSERT_EQ(job.pools.size(), 1u);
  EXPECT_EQ(job.pools[0].role, PoolRole::kBoth);
  EXPECT_EQ(job.pools[0].slice.TotalChips(), 8);
  ASSERT_NE(job.pools[0].efficiency, nullptr);
  EXPECT_EQ(job.pools[0].efficiency->name, "jax-serving-tpu");
  EXPECT_TRUE(job.pools[0].usd_per_chip_hour.has_value());
  ASSERT_EQ(converted.prices.size(), 1);
  EXPECT_EQ(converted.prices[0].row().accelerator(), "tpu-v5e");
  for (const char* field : {"workload.prompt_tokens", "workload.output_tokens", "workload.batch_size",
                            "workload.precision.kv_cache", "estimation_mode", "pricing"}) {
    EXPECT_TRUE(converted.Assumes(field)) << field;
  }
}

TEST(ServingJobTest, GivenFieldsAreTaken) {
  const Converted converted(kSlice, R"pb(
    parallelism {
      ici { tensor: 4 }
      allow_idle_chips: true
    }
    workload {
      prompt_distribution { moments { mean_tokens: 2000 coefficient_of_variation: 1.5 } }
      output_tokens: 500
      requests_per_second: 20
      precision { weights: DATA_TYPE_INT8 kv_cache: DATA_TYPE_INT8 activations: DATA_TYPE_BF16 compute: DATA_TYPE_BF16 }
      arrival_burstiness: 2
      prefix_cache_hit_ratio: 0.5
      speculative {
        draft_tokens: 4
        acceptance_ratio: 0.7
        draft_model { preset: "llama-3-8b" }
      }
      prefill_chunk_tokens: 512
      kv_block_tokens: 32
      hbm_utilization_ratio: 0.8
      kv_cache_split: KV_CACHE_SPLIT_SEQUENCE
      windowed_kv_policy: WINDOWED_KV_POLICY_KEEP
      max_batch_size: 64
    }
    slo {
      ttft { p95_seconds: 1 }
      tpot { p95_seconds: 0.04 }
    }
    estimation_mode: ESTIMATION_MODE_ROOFLINE
    pricing { usd_per_chip_hour: 1.5 }
    cost_split { kind: COST_SPLIT_KIND_FIXED_RATIO output_to_input_price_ratio: 4 }
  )pb");
  ASSERT_THAT(converted.fields(), IsEmpty());
  const planner::ServingJob& job = converted.job();
  EXPECT_EQ(job.workload.prompt.Mean(), 2000);
  EXPECT_NEAR(job.workload.prompt.SquaredVariation(), 2.25, 1e-9);
  EXPECT_EQ(job.workload.load, ServingLoadKind::kRate);
  EXPECT_EQ(job.workload.requests_per_second, 20);
  EXPECT_EQ(job.workload.precision.weights, hardware::DataType::kInt8);
  EXPECT_EQ(job.workload.arrival_burstiness, 2);
  EXPECT_EQ(job.workload.prefix_cache_hit_ratio, 0.5);
  ASSERT_TRUE(job.workload.speculation.has_value());
  EXPECT_EQ(job.workload.speculation->draft_tokens, 4);
  ASSERT_TRUE(job.workload.speculation->draft_model.has_value());
  EXPECT_NE(job.workload.speculation->draft_model->operations, nullptr);
  EXPECT_EQ(job.workload.prefill_chunk_tokens, 512);
  EXPECT_EQ(job.workload.kv_block_tokens, 32);
  EXPECT_EQ(job.workload.hbm_utilization_ratio, 0.8);
  EXPECT_EQ(job.workload.kv_cache_split, planner::KvCacheSplit::kSequence);
  EXPECT_EQ(job.workload.windowed_kv_policy, planner::WindowedKvPolicy::kKeep);
  EXPECT_EQ(job.workload.max_batch_size, 64);
  EXPECT_EQ(job.slo.tpot.p95_seconds, 0.04);
  EXPECT_EQ(job.pools[0].efficiency, nullptr);
  EXPECT_TRUE(job.pools[0].allow_idle_chips);
  EXPECT_EQ(job.pools[0].parallelism->ici[planner::LogicalAxis::kTensor], 4);
  EXPECT_EQ(job.pools[0].usd_per_chip_hour, 1.5);
  EXPECT_TRUE(job.cost_split.fixed_ratio);
  EXPECT_EQ(job.cost_split.cached_to_input_price_ratio, 0.1);
  for (const char* field : {"workload.prompt_tokens", "workload.output_tokens", "workload.batch_size",
                            "workload.precision.kv_cache", "estimation_mode", "pricing"}) {
    EXPECT_FALSE(converted.Assumes(field)) << field;
  }
}

TEST(ServingJobTest, PoolsHaveTheirOwnChipsProfilesAndPrices) {
  const Converted converted(kPools, "");
  ASSERT_THAT(converted.fields(), IsEmpty());
  const std::vector<planner::ServingPool>& pools = converted.job().pools;
  ASSERT_EQ(pools.size(), 2u);
  EXPECT_EQ(pools[0].role, PoolRole::kPrefill);
  EXPECT_EQ(pools[1].replica_count, 3);
  EXPECT_EQ(pools[0].efficiency->name, "jax-serving-tpu");
  EXPECT_EQ(pools[1].efficiency->name, "vllm-gpu");
  EXPECT_EQ(converted.prices[1].row().accelerator(), "nvidia-h100-sxm");
  const Converted named(kPools, "calibration_profile: 'sglang-gpu'");
  EXPECT_EQ(named.job().pools[0].efficiency->name, "sglang-gpu");
}

// A plan as replies fill it in can be sent back.
TEST(ServingJobTest, FilledInPlansAreLetThrough) {
  const Converted converted(kSlice, R"pb(
    parallelism {
      ici { data: 1 fsdp: 1 tensor: 8 context: 1 expert: 1 pipeline: 1 }
      dcn { data: 1 fsdp: 1 tensor: 1 context: 1 expert: 1 pipeline: 1 }
      sequence_parallel: true
      data_zero_stage: ZERO_STAGE_0
      schedule: PIPELINE_SCHEDULE_ONE_F_ONE_B
      virtual_stage_count: 1
    }
  )pb");
  EXPECT_THAT(converted.fields(), IsEmpty());
}

}  // namespace
}  // namespace sliceplan::rpc
