#include "server/planner/advice.h"

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/planner/goodput.h"
#include "tests/planner/small_models.h"

namespace sliceplan::planner {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// The book's plan on two slices of 16 x 16 x 16 chips at 512 tokens a chip: FSDP 512 x context 8, data over slices.
struct Asked {
  transformer::ModelOperations model = Operations(SmallModel());
  TrainingJob job;
  TrainingEstimate estimate;

  Asked() {
    job.model = &model;
    job.slice = Torus({16, 16, 16}, 2);
    job.slice.accelerator.bf16_flops_per_second = 4.59e14;
    job.workload.sequence_length = 4096;
    job.workload.global_batch_size = 1024;
    Parallelism& plan = estimate.parallelism;
    plan.ici[LogicalAxis::kFsdp] = 512;
    plan.ici[LogicalAxis::kContext] = 8;
    plan.dcn[LogicalAxis::kData] = 2;
    job.parallelism = plan;
    estimate.chip_count = 8192;
    estimate.step_time.expected_seconds = 10;
    estimate.tokens_per_step = 1024 * 4096;
    estimate.thresholds.tokens_per_chip = 512;
    estimate.thresholds.tokens_per_slice = 512 * 4096;
    estimate.thresholds.data_tokens_per_chip = 850;
    estimate.thresholds.fsdp_tokens_per_chip = 850;
    estimate.thresholds.fsdp_tensor_tokens_per_chip = 113;
    estimate.thresholds.tensor_degree_limit = 11;
    estimate.memory.capacity_bytes = 95'000'000'000;
    estimate.memory.used_bytes = 55'000'000'000;
    estimate.memory.headroom_bytes = 40'000'000'000;
    estimate.bottleneck = {StepResource::kIci, 1, StepResource::kMatrixUnit, 0.6, ""};
    Add(StepResource::kMatrixUnit, 7, Phase::kForward, transformer::Component::kFeedForward);
  }

  void Add(StepResource resource, double seconds, Phase phase = Phase::kForward,
           transformer::Component component = transformer::Component::kOther,
           std::optional<LogicalAxis> axis = std::nullopt) {
    BreakdownEntry entry;
    entry.resource = resource;
    entry.seconds = seconds;
    entry.phase = phase;
    entry.component = component;
    entry.axis = axis;
    estimate.breakdown.push_back(entry);
  }
  void AddTraffic(LogicalAxis axis, double seconds, StepResource resource = StepResource::kIci) {
    Add(resource, seconds, Phase::kForward, transformer::Component::kOther, axis);
  }
  // Eight stages of an 8 x 8 x 8 slice, 8 microbatches of 4 sequences, of 10 s 3 s of bubble.
  void Pipe() {
    const hardware::AcceleratorSpec accelerator = job.slice.accelerator;
    job.slice = Torus({8, 8, 8});
    job.slice.accelerator = accelerator;
    estimate.chip_count = 512;
    estimate.parallelism = Parallelism();
    estimate.parallelism.ici[LogicalAxis::kFsdp] = 64;
    estimate.parallelism.ici[LogicalAxis::kPipeline] = 8;
    estimate.microbatch_count = 8;
    estimate.microbatch_size = 4;
    estimate.thresholds = Thresholds();
    Add(StepResource::kBubble, 3, Phase::kSchedule);
  }
};

std::vector<std::string> Fields(const Advice& advice) {
  std::vector<std::string> fields;
  for (const FieldChange& change : advice.changes) fields.push_back(change.field + "=" + change.value);
  return fields;
}

struct AdviceCase {
  const char* name;
  std::function<void(Asked&)> change;
  const char* code;
  double step_time_ratio;
  double memory_bytes;
  std::vector<std::string> fields;
  std::vector<const char*> says;
};

const AdviceCase kCases[] = {
    // Rings of three axes, of which tensor takes one: 850 x 3 / 2 / 4 = 319 is the first below 512.
    {"tensor_beside_fsdp",
     [](Asked& asked) { asked.AddTraffic(LogicalAxis::kFsdp, 3); },
     "ADD_TENSOR_PARALLELISM",
     1 - 0.3 * (1 - 850 * 1.5 / 4 / 850),
     0,
     {"parallelism.ici.tensor=4", "parallelism.ici.context=2"},
     {"512 tokens per chip", "needs 850", "tensor 4 with context 2 instead of 8", "needs 319"}},
    {"batch_when_tensor_is_no_use",
     [](Asked& asked) {
       asked.AddTraffic(LogicalAxis::kFsdp, 3);
       asked.estimate.thresholds.tensor_degree_limit = 1.5;
     },
     "LARGER_BATCH",
     1,
     0,
     {"workload.global_batch_size=2048"},
     {"850 tokens per chip", "there are 512", "2,048 sequences"}},
    {"too_much_tensor",
     [](Asked& asked) {
       asked.estimate.parallelism = Parallelism();
       asked.estimate.parallelism.ici[LogicalAxis::kFsdp] = 256;
       asked.estimate.parallelism.ici[LogicalAxis::kTensor] = 16;
       asked.estimate.parallelism.dcn[LogicalAxis::kData] = 2;
       asked.estimate.thresholds.fsdp_tokens_per_chip = 80;
       asked.AddTraffic(LogicalAxis::kTensor, 2);
     },
     "REDUCE_TENSOR_PARALLELISM",
     1 - 0.2 / 2,
     0,
     {"parallelism.ici.tensor=8", "parallelism.ici.fsdp=512"},
     {"Tensor 16 is beyond the 11", "20% of the step", "10% less step time"}},
    {"slices_too_small",
     [](Asked& asked) {
       asked.estimate.thresholds.data_tokens_per_chip = 100;
       asked.estimate.thresholds.dcn_tokens_per_slice = 5e6;
       asked.AddTraffic(LogicalAxis::kData, 1, StepResource::kDcn);
     },
     "LARGER_BATCH_PER_SLICE",
     1,
     0,
     {"workload.global_batch_size=3072"},
     {"5,000,000 tokens per slice", "2,097,152"}},
    // A quarter of the bubble is left: 0.75 of 7.75 s.
    {"bubble",
     [](Asked& asked) { asked.Pipe(); },
     "MORE_MICROBATCHES",
     0.775,
     0,
     {"parallelism.microbatch_count=32"},
     {"idles 30%", "32 microbatches instead of 8", "leave 9.7%"}},
    {"bubble_of_each_pass",
     [](Asked& asked) {
       asked.Pipe();
       asked.estimate.microbatch_size = 1;
       asked.estimate.gradient_accumulation = 2;
     },
     "MERGE_ACCUMULATION",
     0.85,
     0,
     {"workload.gradient_accumulation=1", "parallelism.microbatch_count=16"},
     {"16 microbatches in one pass", "2 passes of 8"}},
    {"bubble_halved_by_interleaving",
     [](Asked& asked) {
       asked.Pipe();
       asked.estimate.microbatch_size = 1;
     },
     "INTERLEAVE_STAGES",
     0.85,
     0,
     {"parallelism.schedule=PIPELINE_SCHEDULE_INTERLEAVED_1F1B", "parallelism.virtual_stage_count=2"},
     {"2 virtual stages"}},
    // (F + B - W) / (F + B + W) of equal parts is a third.
    {"bubble_filled_with_weight_gradients",
     [](Asked& asked) {
       asked.Pipe();
       asked.estimate.microbatch_size = 1;
       asked.estimate.microbatch_count = 7;
     },
     "ZERO_BUBBLE_SCHEDULE",
     1 - 0.3 * 2 / 3,
     0,
     {"parallelism.schedule=PIPELINE_SCHEDULE_ZERO_BUBBLE"},
     {"zero-bubble"}},
    // Query, key and value of each layer are 1.25 times its input.
    {"room_for_activations",
     [](Asked& asked) {
       asked.job.workload.remat_policy = RematPolicy::kFull;
       asked.estimate.remat_policy = RematPolicy::kFull;
       asked.estimate.memory.activations_bytes = 10'000'000'000;
       asked.estimate.memory.headroom_bytes = 13'000'000'000;
       asked.estimate.model_flops_per_step = 1e18;
       asked.estimate.hardware_flops_per_step = 1.25e18;
       asked.Add(StepResource::kMatrixUnit, 2, Phase::kRecompute);
     },
     "KEEP_MORE_ACTIVATIONS",
     -1,
     12.5e9,
     {"workload.remat_policy=REMAT_POLICY_SAVE_QKV_PROJ"},
     {"Recompute of 250 PFLOP takes 20%", "12.1 GiB per chip are free", "save_qkv_proj", "11.6 GiB"}},
    {"less_accumulation",
     [](Asked& asked) {
       asked.job.workload.gradient_accumulation = 4;
       asked.estimate.gradient_accumulation = 4;
       asked.estimate.memory.activations_bytes = 10'000'000'000;
       asked.estimate.memory.logits_bytes = 2'000'000'000;
       asked.estimate.thresholds.data_tokens_per_chip = 100;
       asked.AddTraffic(LogicalAxis::kFsdp, 2);
     },
     "LESS_ACCUMULATION",
     0.9,
     12e9,
     {"workload.gradient_accumulation=2"},
     {"4 accumulation steps", "20% of the step"}},
    {"optimizer_over_data",
     [](Asked& asked) {
       asked.estimate.outcome = Outcome::kOutOfMemory;
       asked.estimate.memory.headroom_bytes = -1'000'000'000;
       asked.estimate.memory.optimizer_bytes = 20'000'000'000;
     },
     "SHARD_OPTIMIZER_STATE",
     1,
     -10e9,
     {"parallelism.data_zero_stage=ZERO_STAGE_1"},
     {"data 2", "9.31 GiB"}},
    {"narrow_type",
     [](Asked& asked) { asked.job.slice.accelerator.int8_ops_per_second = 9.18e14; },
     "LOWER_PRECISION",
     1 - 0.7 / 2,
     0,
     {"workload.precision.compute=DATA_TYPE_INT8"},
     {"int8 2 times as fast", "35% less"}},
    {"idle",
     [](Asked& asked) { asked.estimate.idle_chip_count = 2048; },
     "IDLE_CHIPS",
     1,
     0,
     {},
     {"2,048 of 8,192 chips", "25% of the cost"}},
    {"checkpoints",
     [](Asked& asked) {
       asked.job.reliability.mean_seconds_between_failures_per_chip = 8192 * 3600.0;
       std::vector<std::string> warnings;
       asked.estimate.goodput = GoodputOf(asked.job.reliability, 8192, 10, std::nullopt, warnings);
     },
     "FASTER_CHECKPOINTS",
     1,
     0,
     {"reliability.checkpoint_write_seconds=15"},
     {"15 s instead of 60 s"}},
    {"host",
     [](Asked& asked) {
       asked.estimate.gradient_accumulation = 16;
       asked.Add(StepResource::kHost, 2, Phase::kSchedule);
     },
     "LARGER_MICROBATCHES",
     0.9,
     0,
     {},
     {"16 microbatches", "20%"}},
};

TEST(AdviceTest, EachSituationHasItsAdviceWithNumbers) {
  for (const AdviceCase& test : kCases) {
    SCOPED_TRACE(test.name);
    Asked asked;
    test.change(asked);
    Advise(asked.job, asked.estimate);
    ASSERT_THAT(asked.estimate.advice, SizeIs(1))
        << asked.estimate.advice[0].sentence << asked.estimate.advice[1].sentence;
    const Advice& advice = asked.estimate.advice[0];
    EXPECT_EQ(advice.code, test.code);
    if (test.step_time_ratio > 0) {
      EXPECT_NEAR(advice.step_time_ratio, test.step_time_ratio, 1e-9);
    }
    EXPECT_NEAR(static_cast<double>(advice.memory_bytes), test.memory_bytes, 1);
    EXPECT_EQ(Fields(advice), test.fields);
    for (const char* words : test.says) EXPECT_THAT(advice.sentence, HasSubstr(words));
  }
}

TEST(AdviceTest, NothingToSayOfAGoodPlan) {
  Asked asked;
  Advise(asked.job, asked.estimate);
  EXPECT_THAT(asked.estimate.advice, IsEmpty());
  EXPECT_THAT(asked.estimate.shortfall, IsEmpty());
}

TEST(AdviceTest, AtMostFourBestFirst) {
  Asked asked;
  asked.Pipe();
  asked.estimate.idle_chip_count = 8;
  asked.job.slice.accelerator.int8_ops_per_second = 9.18e14;
  asked.job.workload.gradient_accumulation = 4;
  asked.estimate.gradient_accumulation = 4;
  asked.AddTraffic(LogicalAxis::kFsdp, 2);
  asked.Add(StepResource::kHost, 2, Phase::kSchedule);
  Advise(asked.job, asked.estimate);
  ASSERT_THAT(asked.estimate.advice, SizeIs(kMaxAdvice));
  for (size_t i = 1; i < asked.estimate.advice.size(); ++i) {
    EXPECT_LE(asked.estimate.advice[i - 1].step_time_ratio, asked.estimate.advice[i].step_time_ratio);
  }
  EXPECT_THAT(asked.estimate.advice, Not(Contains(::testing::Field(&Advice::code, "IDLE_CHIPS"))));
}

TEST(AdviceTest, AssumedTimesHaveNoAdviceOnTime) {
  Asked asked;
  asked.estimate.breakdown.clear();
  asked.estimate.step_time.assumed = true;
  Advise(asked.job, asked.estimate);
  EXPECT_THAT(asked.estimate.advice, IsEmpty());
}

TEST(AdviceTest, EffectsStayWithinTheStepWhateverTheNumbers) {
  std::mt19937_64 random(11);
  const auto pick = [&](std::initializer_list<double> values) {
    return values.begin()[std::uniform_int_distribution<size_t>(0, values.size() - 1)(random)];
  };
  int given = 0;
  for (int round = 0; round < 20000; ++round) {
    Asked asked;
    if (round % 2 == 0) asked.Pipe();
    TrainingEstimate& estimate = asked.estimate;
    estimate.outcome = static_cast<Outcome>(static_cast<int>(pick({0, 0, 0, 1, 2, 3, 4})));
    estimate.step_time.expected_seconds = pick({0, 1e-9, 10, 1e15});
    for (int i = 0; i < 8; ++i) {
      asked.Add(static_cast<StepResource>(i), pick({0, 1e-12, 0.5, 3, 1e15}), static_cast<Phase>(i % 6),
                static_cast<transformer::Component>(i), kLogicalAxes[static_cast<size_t>(i % 6)]);
    }
    estimate.thresholds.tokens_per_chip = pick({1e-9, 512, 1e15});
    estimate.thresholds.tokens_per_slice = pick({1e-9, 512, 1e15});
    estimate.thresholds.dcn_tokens_per_slice = pick({1e-9, 512, 1e15});
    estimate.thresholds.data_tokens_per_chip = pick({0, 850, 1e15});
    estimate.thresholds.tensor_degree_limit = pick({0, 11, 1e15});
    estimate.memory.optimizer_bytes = static_cast<int64_t>(pick({0, 1e9, 4e18}));
    estimate.memory.activations_bytes = static_cast<int64_t>(pick({0, 1e9, 4e18}));
    estimate.memory.headroom_bytes = static_cast<int64_t>(pick({-4e18, -1, 0, 1e9, 4e18}));
    estimate.microbatch_size = static_cast<int64_t>(pick({1, 7, 1e12}));
    estimate.gradient_accumulation = static_cast<int32_t>(pick({1, 3, 4, 1 << 20}));
    asked.job.workload.gradient_accumulation = estimate.gradient_accumulation;
    asked.job.workload.remat_policy = RematPolicy::kFull;
    estimate.remat_policy = RematPolicy::kFull;
    Advise(asked.job, estimate);
    ASSERT_LE(estimate.advice.size(), static_cast<size_t>(kMaxAdvice));
    for (const Advice& advice : estimate.advice) {
      ASSERT_TRUE(advice.step_time_ratio > 0 - 1e-12 && advice.step_time_ratio <= 1) << advice.sentence;
      ASSERT_FALSE(advice.code.empty());
      ASSERT_THAT(advice.sentence, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf")), Not(HasSubstr("unknown"))));
      ++given;
    }
    ASSERT_EQ(estimate.shortfall.empty(), estimate.outcome == Outcome::kFeasible);
  }
  EXPECT_GT(given, 5000);
}

}  // namespace
}  // namespace sliceplan::planner
