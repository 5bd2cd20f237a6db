#include "server/planner/legality.h"

#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/small_models.h"

namespace sliceplan::planner {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// A question about a plan, legal as it stands: 64 chips, fsdp 8 x tensor 8.
struct Question {
  SmallModel model;
  hardware::Slice slice = Torus({4, 4, 4});
  TrainingWorkload workload;
  Parallelism parallelism;
  LegalityOptions options;

  Question() {
    workload.sequence_length = 8192;
    workload.global_batch_size = 64;
    parallelism.ici[LogicalAxis::kFsdp] = 8;
    parallelism.ici[LogicalAxis::kTensor] = 8;
  }
};

struct Answer {
  std::vector<hardware::Violation> violations;
  std::vector<std::string> notes;
  std::vector<Padding> paddings;
  bool is_legal = false;
};

Answer Ask(const Question& question) {
  Answer answer;
  const transformer::ModelOperations model = Operations(question.model);
  CheckParallelism(model, question.slice, question.workload, question.parallelism, question.options.allow_idle_chips,
                   question.options.allow_padding, answer.violations, answer.notes, &answer.paddings);
  answer.is_legal =
      IsLegal(DivisorsOf(model), question.slice, question.workload, question.parallelism, question.options);
  return answer;
}

struct ViolationCase {
  const char* name;
  std::function<void(Question&)> change;
  const char* field;
  const char* reason;
  std::vector<const char*> says;
};

void Degrees(Question& question, int32_t fsdp, int32_t tensor, int32_t context = 1, int32_t expert = 1,
             int32_t pipeline = 1) {
  AxisDegrees& ici = question.parallelism.ici;
  ici[LogicalAxis::kFsdp] = fsdp;
  ici[LogicalAxis::kTensor] = tensor;
  ici[LogicalAxis::kContext] = context;
  ici[LogicalAxis::kExpert] = expert;
  ici[LogicalAxis::kPipeline] = pipeline;
}

const ViolationCase kViolationCases[] = {
    {"heads",
     [](Question& q) {
       q.model.query_heads = q.model.kv_heads = 40;
       Degrees(q, 4, 16);
     },
     "parallelism.ici.tensor",
     "HEADS_NOT_DIVISIBLE",
     {"40 query heads do not divide over tensor 16", "1, 2, 4, 5, 8, 10, 20 or 40 do", "computes 48"}},
    {"kv_heads",
     [](Question& q) {
       q.model.query_heads = 96;
       q.slice = Torus({4, 3, 4});
       Degrees(q, 4, 12);
       q.workload.sequence_length = 1536;
     },
     "parallelism.ici.tensor",
     "HEADS_NOT_DIVISIBLE",
     {"8 KV heads do not divide over tensor 12", "1, 2, 4, 8, 16, 24, 32, 48 or 96 do"}},
    {"causal_context",
     [](Question& q) {
       Degrees(q, 8, 1, 8);
       q.workload.sequence_length = 8200;
     },
     "parallelism.ici.context",
     "SEQUENCE_NOT_DIVISIBLE",
     {"context 8 needs a sequence divisible by 16", "8,192 or 8,208"}},
    {"full_context",
     [](Question& q) {
       Degrees(q, 8, 1, 8);
       q.workload.sequence_length = 8196;
       q.workload.attention_mask = AttentionMask::kFull;
     },
     "parallelism.ici.context",
     "SEQUENCE_NOT_DIVISIBLE",
     {"divisible by 8;", "8,192 or 8,200"}},
    {"sequence_parallel",
     [](Question& q) { q.workload.sequence_length = 1001; },
     "parallelism.sequence_parallel",
     "SEQUENCE_NOT_DIVISIBLE",
     {"1,001 tokens", "over tensor 8", "1,000 or 1,008"}},
    {"batch",
     [](Question& q) { q.workload.global_batch_size = 100; },
     "workload.global_batch_size",
     "BATCH_NOT_DIVISIBLE",
     {"100 sequences", "8 shards", "fsdp 8", "96 or 104"}},
    {"batch_below_shards",
     [](Question& q) {
       Degrees(q, 64, 1);
       q.workload.global_batch_size = 32;
     },
     "workload.global_batch_size",
     "BATCH_NOT_DIVISIBLE",
     {"64 shards", "; 64 would"}},
    {"batch_with_accumulation",
     [](Question& q) {
       q.workload.global_batch_size = 20;
       q.workload.gradient_accumulation = 3;
     },
     "workload.global_batch_size",
     "BATCH_NOT_DIVISIBLE",
     {"; 24 would"}},
    {"accumulation",
     [](Question& q) { q.workload.gradient_accumulation = 3; },
     "workload.gradient_accumulation",
     "ACCUMULATION_NOT_DIVISIBLE",
     {"8 sequences per data shard", "3 accumulation steps", "1, 2, 4 or 8 do"}},
    {"microbatches",
     [](Question& q) {
       Degrees(q, 8, 1, 1, 1, 8);
       q.parallelism.microbatch_count = 3;
     },
     "parallelism.microbatch_count",
     "MICROBATCHES_NOT_DIVISIBLE",
     {"8 sequences", "3 microbatches", "1, 2, 4 or 8 do"}},
    {"microbatches_without_pipeline",
     [](Question& q) { q.parallelism.microbatch_count = 8; },
     "parallelism.microbatch_count",
     "MICROBATCHES_WITHOUT_PIPELINE",
     {"workload.gradient_accumulation"}},
    {"negative_microbatches",
     [](Question& q) { q.parallelism.microbatch_count = -1; },
     "parallelism.microbatch_count",
     "MICROBATCHES_OUT_OF_RANGE",
     {"got -1"}},
    {"interleaved_rounds",
     [](Question& q) {
       Degrees(q, 8, 1, 1, 1, 8);
       q.parallelism.schedule = PipelineSchedule::kInterleaved1F1B;
       q.parallelism.virtual_stage_count = 2;
       q.parallelism.microbatch_count = 4;
     },
     "parallelism.microbatch_count",
     "MICROBATCHES_NOT_IN_ROUNDS",
     {"multiple of 8", "there are 4"}},
    {"interleaved_rounds_of_single_sequences",
     [](Question& q) {
       Degrees(q, 8, 1, 1, 1, 8);
       q.parallelism.schedule = PipelineSchedule::kInterleaved1F1B;
       q.parallelism.virtual_stage_count = 2;
       q.workload.global_batch_size = 96;
     },
     "parallelism.microbatch_count",
     "MICROBATCHES_NOT_IN_ROUNDS",
     {"multiple of 8", "there are 12"}},
    {"interleaving_needs_virtual_stages",
     [](Question& q) {
       Degrees(q, 8, 1, 1, 1, 8);
       q.parallelism.schedule = PipelineSchedule::kInterleaved1F1B;
     },
     "parallelism.virtual_stage_count",
     "INTERLEAVING_NEEDS_VIRTUAL_STAGES",
     {"2 or more"}},
    {"virtual_stages_need_interleaving",
     [](Question& q) {
       Degrees(q, 8, 1, 1, 1, 8);
       q.parallelism.virtual_stage_count = 2;
     },
     "parallelism.schedule",
     "VIRTUAL_STAGES_NEED_INTERLEAVING",
     {"interleaved"}},
    {"virtual_stages_without_pipeline",
     [](Question& q) { q.parallelism.virtual_stage_count = 2; },
     "parallelism.virtual_stage_count",
     "VIRTUAL_STAGES_WITHOUT_PIPELINE",
     {"pipeline above 1"}},
    {"virtual_stages_out_of_range",
     [](Question& q) { q.parallelism.virtual_stage_count = 0; },
     "parallelism.virtual_stage_count",
     "VIRTUAL_STAGES_OUT_OF_RANGE",
     {"1 to 1,024", "got 0"}},
    {"too_many_stages",
     [](Question& q) {
       q.model.layers = 7;
       Degrees(q, 8, 1, 1, 1, 8);
     },
     "parallelism.ici.pipeline",
     "TOO_MANY_STAGES",
     {"pipeline 8", "the model has 7"}},
    {"too_many_chunks",
     [](Question& q) {
       q.model.layers = 30;
       Degrees(q, 8, 1, 1, 1, 8);
       q.parallelism.schedule = PipelineSchedule::kInterleaved1F1B;
       q.parallelism.virtual_stage_count = 4;
     },
     "parallelism.virtual_stage_count",
     "TOO_MANY_STAGES",
     {"32 chunks", "30 layers", "at most 3"}},
    {"layers_per_stage",
     [](Question& q) {
       Degrees(q, 8, 1, 1, 1, 8);
       q.parallelism.layers_per_stage = {10, 10, 10, 10, 10, 10, 10, 9};
     },
     "parallelism.layers_per_stage",
     "LAYERS_DO_NOT_ADD_UP",
     {"8 chunks", "80 layers", "add up to 79"}},
    {"empty_stage",
     [](Question& q) {
       Degrees(q, 8, 1, 1, 1, 8);
       q.parallelism.layers_per_stage = {20, 0, 10, 10, 10, 10, 10, 10};
     },
     "parallelism.layers_per_stage",
     "LAYERS_DO_NOT_ADD_UP",
     {"at least 1"}},
    {"no_experts",
     [](Question& q) { Degrees(q, 1, 8, 1, 8); },
     "parallelism.ici.expert",
     "NO_EXPERTS",
     {"expert 8", "data or fsdp"}},
    {"experts",
     [](Question& q) {
       q.model.experts = 36;
       q.model.experts_per_token = 2;
       Degrees(q, 1, 8, 1, 8);
     },
     "parallelism.ici.expert",
     "EXPERTS_NOT_DIVISIBLE",
     {"36 experts", "expert 8", "1, 2, 3, 4, 6, 9, 12, 18 or 36 do"}},
    {"chips_short",
     [](Question& q) { Degrees(q, 4, 8); },
     "parallelism.ici",
     "CHIP_COUNT_MISMATCH",
     {"fsdp 4 x tensor 8", "multiply to 32", "64 chips", "fsdp 8 would fill it", "allow_idle_chips"}},
    {"chips_beyond",
     [](Question& q) {
       Degrees(q, 8, 16);
       q.options.allow_idle_chips = true;
       q.model.kv_heads = 16;
     },
     "parallelism.ici",
     "CHIP_COUNT_MISMATCH",
     {"multiply to 128", "fsdp 4 would fill it"}},
    {"slices",
     [](Question& q) { q.parallelism.dcn[LogicalAxis::kData] = 2; },
     "parallelism.dcn",
     "SLICE_COUNT_MISMATCH",
     {"data 2", "slice_count is 1"}},
    {"degree_zero",
     [](Question& q) { q.parallelism.dcn[LogicalAxis::kContext] = 0; },
     "parallelism.dcn.context",
     "DEGREE_OUT_OF_RANGE",
     {"1 to 1,048,576", "got 0"}},
    {"field_across_slices",
     [](Question& q) {
       q.slice = Torus({4, 4, 4}, 3);
       q.parallelism.dcn[LogicalAxis::kExpert] = 3;
       q.workload.global_batch_size = 48;
     },
     "parallelism.dcn.expert",
     "NO_EXPERTS",
     {}},
};

TEST(LegalityTest, TheQuestionItselfIsLegal) {
  const Answer answer = Ask(Question());
  EXPECT_THAT(answer.violations, IsEmpty());
  EXPECT_THAT(answer.notes, IsEmpty());
  EXPECT_TRUE(answer.is_legal);
}

TEST(LegalityTest, EachMistakeIsOneViolationThatSaysWhatWouldDo) {
  for (const ViolationCase& test : kViolationCases) {
    SCOPED_TRACE(test.name);
    Question question;
    test.change(question);
    const Answer answer = Ask(question);
    EXPECT_FALSE(answer.is_legal);
    ASSERT_THAT(answer.violations, SizeIs(1)) << answer.violations.front().description;
    EXPECT_EQ(answer.violations[0].field, test.field);
    EXPECT_EQ(answer.violations[0].reason, test.reason);
    for (const char* words : test.says) EXPECT_THAT(answer.violations[0].description, HasSubstr(words));
  }
}

TEST(LegalityTest, AllMistakesAreFoundAtOnce) {
  Question question;
  question.model.query_heads = question.model.kv_heads = 40;
  Degrees(question, 3, 16, 8, 2);
  question.workload.sequence_length = 1000;
  question.workload.global_batch_size = 7;
  question.parallelism.virtual_stage_count = 2;
  question.parallelism.dcn[LogicalAxis::kData] = 5;
  std::vector<std::string> reasons;
  for (const hardware::Violation& violation : Ask(question).violations) reasons.push_back(violation.reason);
  EXPECT_THAT(reasons, UnorderedElementsAre("CHIP_COUNT_MISMATCH", "SLICE_COUNT_MISMATCH", "HEADS_NOT_DIVISIBLE",
                                            "SEQUENCE_NOT_DIVISIBLE", "SEQUENCE_NOT_DIVISIBLE", "NO_EXPERTS",
                                            "VIRTUAL_STAGES_WITHOUT_PIPELINE", "BATCH_NOT_DIVISIBLE"));
}

TEST(LegalityTest, HugeDegreesDoNotOverflow) {
  Question question;
  for (const LogicalAxis axis : kLogicalAxes) {
    question.parallelism.ici[axis] = 1 << 20;
    question.parallelism.dcn[axis] = 1 << 20;
  }
  EXPECT_FALSE(Ask(question).is_legal);
  for (const LogicalAxis axis : kLogicalAxes) {
    question.parallelism.ici[axis] = std::numeric_limits<int32_t>::max();
    question.parallelism.dcn[axis] = std::numeric_limits<int32_t>::min();
  }
  question.parallelism.microbatch_count = std::numeric_limits<int32_t>::min();
  question.parallelism.virtual_stage_count = std::numeric_limits<int32_t>::max();
  question.workload.gradient_accumulation = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(Ask(question).violations, SizeIs(2 * kLogicalAxisCount + 2));
}

TEST(LegalityTest, UnevenStagesAreAllowedAndSaid) {
  Question question;
  question.slice = Torus({8, 7});
  Degrees(question, 8, 1, 1, 1, 7);
  const Answer answer = Ask(question);
  EXPECT_TRUE(answer.is_legal);
  ASSERT_THAT(answer.notes, SizeIs(1));
  EXPECT_THAT(answer.notes[0], AllOf(HasSubstr("Pipeline 7 does not divide 80 layers evenly"), HasSubstr("11 to 12")));
  ASSERT_THAT(answer.paddings, SizeIs(1));
  EXPECT_EQ(answer.paddings[0].original_count, 80);
  EXPECT_EQ(answer.paddings[0].padded_count, 7 * 12);
}

TEST(LegalityTest, FewMicrobatchesAreSaid) {
  Question question;
  Degrees(question, 8, 1, 1, 1, 8);
  question.parallelism.microbatch_count = 4;
  EXPECT_THAT(Ask(question).notes, ElementsAre(HasSubstr("Only 4 microbatches fill 8 pipeline stages")));
}

TEST(LegalityTest, KvHeadsAreCopiedBeyondTheirCount) {
  Question question;
  Degrees(question, 4, 16);
  const Answer answer = Ask(question);
  EXPECT_TRUE(answer.is_legal);
  EXPECT_THAT(answer.notes, ElementsAre(HasSubstr("Each of 8 KV heads is copied 2 times over tensor 16")));
  ASSERT_THAT(answer.paddings, SizeIs(1));
  EXPECT_EQ(answer.paddings[0].padded_count, 16);
}

TEST(LegalityTest, VocabularyAndFfnArePaddedWithoutAsking) {
  Question question;
  question.model.vocab_size = 50257;
  question.model.ffn_dim = 11007;
  const Answer answer = Ask(question);
  EXPECT_TRUE(answer.is_legal);
  // The next multiples of 8.
  EXPECT_THAT(answer.notes, UnorderedElementsAre(HasSubstr("vocabulary of 50,257 is padded to 50,264"),
                                                 HasSubstr("FFN width of 11,007 is padded to 11,008")));
}

TEST(LegalityTest, HeadsAndExpertsArePaddedWhenAllowed) {
  Question question;
  question.model.query_heads = question.model.kv_heads = 40;
  question.model.experts = 36;
  question.model.experts_per_token = 2;
  Degrees(question, 1, 16, 1, 4);
  question.options.allow_padding = true;
  Answer answer = Ask(question);
  EXPECT_TRUE(answer.is_legal);
  EXPECT_THAT(answer.notes, ElementsAre(HasSubstr("40 query heads are padded to 48 over tensor 16")));
  Degrees(question, 1, 8, 1, 8);
  answer = Ask(question);
  EXPECT_TRUE(answer.is_legal);
  EXPECT_THAT(answer.notes, ElementsAre(HasSubstr("36 experts are padded to 40 over expert 8")));
}

TEST(LegalityTest, IdleChipsAreAllowedOnRequestAndSaid) {
  Question question;
  Degrees(question, 4, 8);
  question.options.allow_idle_chips = true;
  const Answer answer = Ask(question);
  EXPECT_TRUE(answer.is_legal);
  EXPECT_THAT(answer.notes, ElementsAre(HasSubstr("32 of 64 chips of each slice stay idle")));
}

TEST(LegalityTest, FactorsThatNothingHasAreNamed) {
  // A whole pod of 16 x 20 x 28 chips and a job of powers of two.
  const ModelDivisors divisors = DivisorsOf(Operations(SmallModel()));
  TrainingWorkload workload;
  EXPECT_THAT(ExplainOddFactors(divisors, Torus({16, 20, 28}), workload),
              AllOf(HasSubstr("8,960 chips is 2^8 x 5 x 7"), HasSubstr("have its 5 and 7:"),
                    HasSubstr("A batch that 35 divides")));
  workload.global_batch_size = 35 * 16;
  EXPECT_EQ(ExplainOddFactors(divisors, Torus({16, 20, 28}), workload), "");
  EXPECT_EQ(ExplainOddFactors(divisors, Torus({16, 16, 16}), TrainingWorkload()), "");
}

// The rules again, in the words of the contract and nothing else.
bool LegalByTheBook(const Question& q) {
  const Parallelism& p = q.parallelism;
  const auto degree = [&](LogicalAxis axis) { return int64_t{p.ici[axis]} * p.dcn[axis]; };
  for (const int32_t d : p.ici.degree) {
    if (d < 1) return false;
  }
  for (const int32_t d : p.dcn.degree) {
    if (d < 1) return false;
  }
  if (p.dcn.Product() != q.slice.slice_count) return false;
  if (q.options.allow_idle_chips ? p.ici.Product() > q.slice.chip_count : p.ici.Product() != q.slice.chip_count) {
    return false;
  }
  const int64_t tensor = degree(LogicalAxis::kTensor);
  const int64_t context = degree(LogicalAxis::kContext);
  const int64_t expert = degree(LogicalAxis::kExpert);
  const int64_t pipeline = degree(LogicalAxis::kPipeline);
  if (!q.options.allow_padding) {
    if (q.model.query_heads % tensor != 0) return false;
    if (q.model.kv_heads % tensor != 0 && tensor % q.model.kv_heads != 0) return false;
    if (expert > 1 && q.model.experts % expert != 0) return false;
  }
  if (expert > 1 && q.model.experts == 0) return false;
  if (tensor > 1 && p.sequence_parallel && q.workload.sequence_length % (tensor * context) != 0) return false;
  const bool causal = q.workload.attention_mask == AttentionMask::kCausal;
  if (context > 1 && q.workload.sequence_length % (causal ? 2 * context : context) != 0) return false;
  const bool interleaved = p.schedule == PipelineSchedule::kInterleaved1F1B;
  if (p.virtual_stage_count < 1 || pipeline * p.virtual_stage_count > q.model.layers) return false;
  if (pipeline == 1 ? p.virtual_stage_count != 1 : interleaved != (p.virtual_stage_count > 1)) return false;
  if (!p.layers_per_stage.empty()) {
    int64_t sum = 0;
    for (const int32_t layers : p.layers_per_stage) {
      if (layers < 1) return false;
      sum += layers;
    }
    if (sum != q.model.layers) return false;
    if (static_cast<int64_t>(p.layers_per_stage.size()) != pipeline * p.virtual_stage_count) return false;
  }
  if (p.microbatch_count < 0 || (pipeline == 1 && p.microbatch_count > 1)) return false;
  const int64_t shards = degree(LogicalAxis::kData) * degree(LogicalAxis::kFsdp) * expert;
  const int64_t passes = shards * q.workload.gradient_accumulation.value_or(1);
  if (q.workload.global_batch_size % passes != 0) return false;
  const int64_t sequences = q.workload.global_batch_size / passes;
  const int64_t microbatches = pipeline == 1 ? 1 : p.microbatch_count > 0 ? p.microbatch_count : sequences;
  if (sequences % microbatches != 0) return false;
  return pipeline == 1 || !interleaved || microbatches % pipeline == 0;
}

TEST(LegalityTest, CheckAndLoopVersionAndTheContractAgreeOnRandomPlans) {
  std::mt19937 random(7);
  const auto pick = [&](std::initializer_list<int32_t> values) {
    return values.begin()[std::uniform_int_distribution<size_t>(0, values.size() - 1)(random)];
  };
  int legal = 0;
  int illegal = 0;
  for (int round = 0; round < 200000; ++round) {
    Question question;
    question.model.layers = pick({1, 7, 30, 80});
    question.model.query_heads = pick({8, 40, 64, 96});
    question.model.kv_heads = pick({1, 8, 8, 40});
    question.model.experts = pick({0, 8, 36});
    question.model.experts_per_token = question.model.experts > 0 ? 2 : 0;
    question.workload.sequence_length = pick({1000, 4096, 8192, 12288});
    question.workload.global_batch_size = pick({1, 48, 64, 100, 384, 4096});
    question.workload.attention_mask = pick({0, 1}) != 0 ? AttentionMask::kFull : AttentionMask::kCausal;
    if (pick({0, 0, 1}) != 0) question.workload.gradient_accumulation = pick({1, 2, 3, 8});
    Parallelism& parallelism = question.parallelism;
    for (const LogicalAxis axis : kLogicalAxes) {
      parallelism.ici[axis] = pick({1, 1, 1, 1, 2, 3, 4, 8, 16, pick({0, 1, 1, -1, 1, 1, 1, 1})});
      parallelism.dcn[axis] = pick({1, 1, 1, 1, 1, 1, 1, 1, 2, 3});
    }
    // Mostly slices that the plan fills.
    const bool fits = pick({0, 1, 1, 1, 1}) != 0;
    question.slice = fits ? Torus({static_cast<int32_t>(std::max<int64_t>(1, parallelism.ici.Product()))},
                                  static_cast<int32_t>(std::max<int64_t>(1, parallelism.dcn.Product())))
                          : Torus({4, 4, 4}, pick({1, 2}));
    question.options.allow_idle_chips = pick({0, 1}) != 0;
    question.options.allow_padding = pick({0, 1}) != 0;
    parallelism.sequence_parallel = pick({0, 1}) != 0;
    parallelism.schedule = static_cast<PipelineSchedule>(pick({0, 1, 2, 3}));
    parallelism.virtual_stage_count = pick({1, 1, 1, 2, 4, pick({0, 1, 1, 5})});
    parallelism.microbatch_count = pick({0, 0, 0, 1, 4, 8, 16, pick({-1, 0, 5})});
    if (pick({0, 0, 0, 0, 0, 1}) != 0) {
      parallelism.layers_per_stage.assign(static_cast<size_t>(pick({1, 2, 4})),
                                          question.model.layers / pick({1, 2, 4}));
    }
    const Answer answer = Ask(question);
    ASSERT_EQ(answer.is_legal, answer.violations.empty());
    ASSERT_EQ(answer.is_legal, LegalByTheBook(question))
        << (answer.violations.empty() ? "" : answer.violations[0].description);
    for (const hardware::Violation& violation : answer.violations) {
      ASSERT_FALSE(violation.field.empty());
      ASSERT_FALSE(violation.description.empty());
    }
    ++(answer.is_legal ? legal : illegal);
  }
  EXPECT_GT(legal, 5000);
  EXPECT_GT(illegal, 5000);
}

}  // namespace
}  // namespace sliceplan::planner
