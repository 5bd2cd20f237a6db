#include "server/planner/legality.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "server/planner/legality_words.h"

namespace sliceplan::planner {
namespace {

using hardware::Violation;

// Larger products are cut here, far above every count that they are compared with.
constexpr int64_t kHuge = int64_t{1} << 62;
// Causal context parallelism deals every chip one chunk from each end of the sequence, so that all do the same work.
constexpr int64_t kCausalChunksPerChip = 2;

int64_t SaturatingProduct(int64_t a, int64_t b) { return a > kHuge / b ? kHuge : a * b; }

bool IsDegree(int64_t degree) { return degree >= 1 && degree <= kMaxDegree; }

// The two readers of the rules. Each takes whether a rule holds and how to say that it does not, and returns whether to
// go on.
struct AllViolations {
  std::vector<Violation>& violations;
  template <typename MakeViolation>
  bool operator()(bool holds, MakeViolation&& make) {
    if (!holds) violations.push_back(make());
    return true;
  }
};
struct UntilFirst {
  bool legal = true;
  template <typename MakeViolation>
  bool operator()(bool holds, MakeViolation&&) {
    legal = legal && holds;
    return holds;
  }
};

struct Plan {
  const ModelDivisors& model;
  const hardware::Slice& slice;
  const TrainingWorkload& workload;
  const Parallelism& parallelism;
  LegalityOptions options;
  std::array<int64_t, kLogicalAxisCount> degrees{};  // ici x dcn; 0: out of range, said already

  Plan(const ModelDivisors& m, const hardware::Slice& s, const TrainingWorkload& w, const Parallelism& p,
       LegalityOptions o)
      : model(m), slice(s), workload(w), parallelism(p), options(o) {
    for (const LogicalAxis axis : kLogicalAxes) {
      const int64_t ici = p.ici[axis];
      const int64_t dcn = p.dcn[axis];
      const bool legal = IsDegree(ici) && IsDegree(dcn) && ici * dcn <= kMaxDegree;
      degrees[static_cast<size_t>(axis)] = legal ? ici * dcn : 0;
    }
  }
  int64_t operator[](LogicalAxis axis) const { return degrees[static_cast<size_t>(axis)]; }
};

template <typename Check>
bool CheckDegrees(const Plan& plan, Check& check) {
  for (const LogicalAxis axis : kLogicalAxes) {
    const int64_t ici = plan.parallelism.ici[axis];
    const int64_t dcn = plan.parallelism.dcn[axis];
    if (!check(IsDegree(ici), [&] { return DegreeOutOfRange("ici", axis, ici); })) return false;
    if (!check(IsDegree(dcn), [&] { return DegreeOutOfRange("dcn", axis, dcn); })) return false;
    if (!check(!IsDegree(ici) || !IsDegree(dcn) || ici * dcn <= kMaxDegree,
               [&] { return DegreeOutOfRange("ici", axis, ici * dcn); })) {
      return false;
    }
  }
  return true;
}

// 0 when a degree is out of range.
int64_t ProductOf(const AxisDegrees& degrees) {
  int64_t product = 1;
  for (const int32_t degree : degrees.degree) {
    if (!IsDegree(degree)) return 0;
    product = SaturatingProduct(product, degree);
  }
  return product;
}

template <typename Check>
bool CheckProducts(const Plan& plan, Check& check) {
  const int64_t chips = plan.slice.chip_count;
  const int64_t ici = ProductOf(plan.parallelism.ici);
  const bool fills = ici == 0 || ici == chips || (plan.options.allow_idle_chips && ici < chips);
  if (!check(fills, [&] { return ChipsDiffer(plan.parallelism.ici, ici, chips); })) return false;
  const int64_t dcn = ProductOf(plan.parallelism.dcn);
  return check(dcn == 0 || dcn == plan.slice.slice_count,
               [&] { return SlicesDiffer(plan.parallelism.dcn, dcn, plan.slice.slice_count); });
}

template <typename Check>
bool CheckTensor(const Plan& plan, Check& check) {
  const int64_t tensor = plan[LogicalAxis::kTensor];
  if (tensor <= 1) return true;
  if (!plan.options.allow_padding) {
    for (const ModelDivisors::Unit& unit : plan.model.units) {
      const bool divides = unit.count % tensor == 0 || (unit.copies && tensor % unit.count == 0);
      if (!check(divides, [&] { return HeadsNotDivisible(plan.model, unit, plan.parallelism, tensor); })) return false;
    }
  }
  const int64_t context = plan[LogicalAxis::kContext];
  if (!plan.parallelism.sequence_parallel || context == 0) return true;
  const int64_t shards = SaturatingProduct(context, tensor);
  const int64_t sequence = plan.workload.sequence_length;
  return check(sequence < 1 || sequence % shards == 0, [&] { return SequenceNotSharded(sequence, context, tensor); });
}

template <typename Check>
bool CheckContext(const Plan& plan, Check& check) {
  const int64_t context = plan[LogicalAxis::kContext];
  if (context <= 1) return true;
  const bool causal = plan.workload.attention_mask == AttentionMask::kCausal;
  const int64_t chunks = causal ? kCausalChunksPerChip * context : context;
  const int64_t sequence = plan.workload.sequence_length;
  return check(sequence < 1 || sequence % chunks == 0,
               [&] { return ContextNotDivisible(sequence, plan.parallelism, context, chunks); });
}

template <typename Check>
bool CheckExperts(const Plan& plan, Check& check) {
  const int64_t expert = plan[LogicalAxis::kExpert];
  if (expert <= 1) return true;
  if (!check(!plan.model.expert_counts.empty(), [&] { return NoExperts(plan.parallelism, expert); })) return false;
  if (plan.options.allow_padding) return true;
  for (const int32_t count : plan.model.expert_counts) {
    const bool divides = count % expert == 0;
    if (!check(divides, [&] { return ExpertsNotDivisible(plan.model, count, plan.parallelism, expert); })) return false;
  }
  return true;
}

template <typename Check>
bool CheckStages(const Plan& plan, Check& check) {
  const Parallelism& parallelism = plan.parallelism;
  const int64_t stages = plan[LogicalAxis::kPipeline];
  const int64_t chunks_per_stage = parallelism.virtual_stage_count;
  const int64_t layers = plan.model.layer_count;
  const bool virtual_in_range = chunks_per_stage >= 1 && chunks_per_stage <= kMaxVirtualStages;
  if (!check(virtual_in_range, [&] { return VirtualStagesOutOfRange(chunks_per_stage); })) return false;
  if (stages == 0 || !virtual_in_range) return true;

  const bool interleaved = parallelism.schedule == PipelineSchedule::kInterleaved1F1B;
  if (!check(chunks_per_stage == 1 || stages > 1, [&] { return VirtualStagesWithoutPipeline(chunks_per_stage); }) ||
      !check(chunks_per_stage == 1 || stages == 1 || interleaved,
             [&] { return VirtualStagesNeedInterleaving(chunks_per_stage); }) ||
      !check(chunks_per_stage > 1 || stages == 1 || !interleaved, [&] { return InterleavingNeedsVirtualStages(); }) ||
      !check(stages <= layers, [&] { return TooManyStages(parallelism, stages, layers); })) {
    return false;
  }
  if (stages > layers) return true;
  const int64_t chunks = stages * chunks_per_stage;
  if (!check(chunks <= layers, [&] { return TooManyChunks(stages, chunks_per_stage, layers); })) return false;
  const std::vector<int32_t>& given = parallelism.layers_per_stage;
  if (given.empty()) return true;
  const bool positive = std::all_of(given.begin(), given.end(), [](int32_t count) { return count >= 1; });
  const int64_t sum = std::accumulate(given.begin(), given.end(), int64_t{0});
  const bool splits = static_cast<int64_t>(given.size()) == chunks && positive && sum == layers;
  return check(splits, [&] { return LayersDoNotAddUp(given, sum, chunks, layers); });
}

template <typename Check>
bool CheckBatch(const Plan& plan, Check& check) {
  const Parallelism& parallelism = plan.parallelism;
  const int64_t stages = plan[LogicalAxis::kPipeline];
  const int64_t microbatches = parallelism.microbatch_count;
  const bool in_range = microbatches >= 0 && microbatches <= kMaxMicrobatches;
  if (!check(in_range, [&] { return MicrobatchesOutOfRange(microbatches); })) return false;
  const bool piped = stages > 1;
  if (!check(!in_range || microbatches <= 1 || piped || stages == 0,
             [&] { return MicrobatchesWithoutPipeline(microbatches); })) {
    return false;
  }
  const bool interleaved = piped && parallelism.schedule == PipelineSchedule::kInterleaved1F1B;
  const bool rounds = !interleaved || !in_range || microbatches % stages == 0;
  if (!check(rounds, [&] { return MicrobatchesNotInRounds(microbatches, stages); })) return false;

  const int64_t data = plan[LogicalAxis::kData];
  const int64_t fsdp = plan[LogicalAxis::kFsdp];
  const int64_t expert = plan[LogicalAxis::kExpert];
  const int64_t batch = plan.workload.global_batch_size;
  if (data == 0 || fsdp == 0 || expert == 0 || batch < 1) return true;
  const int64_t shards = data * fsdp * expert;
  // What is out of range is reported elsewhere; here it asks for nothing.
  const int64_t accumulation = std::max<int64_t>(1, plan.workload.gradient_accumulation.value_or(1));
  const int64_t given_microbatches = in_range && piped ? std::max<int64_t>(1, microbatches) : 1;
  // One sequence each: as many microbatches as sequences, which interleaving wants in whole rounds of the stages.
  const int64_t rounds_of = interleaved && microbatches == 0 ? stages : 1;
  const int64_t per_shard = batch / shards;
  const int64_t per_pass = per_shard / accumulation;
  const bool shards_divide = batch % shards == 0;
  const bool accumulation_divides = !shards_divide || per_shard % accumulation == 0;
  if (!check(shards_divide,
             [&] {
               const int64_t unit = SaturatingProduct(SaturatingProduct(shards, accumulation),
                                                      SaturatingProduct(given_microbatches, rounds_of));
               return BatchNotDivisible(batch, data, fsdp, expert, unit);
             }) ||
      !check(accumulation_divides, [&] { return AccumulationNotDivisible(per_shard, accumulation); })) {
    return false;
  }
  if (!shards_divide || !accumulation_divides) return true;
  return check(per_pass % given_microbatches == 0,
               [&] { return MicrobatchesNotDivisible(per_pass, given_microbatches, interleaved ? stages : 1); }) &&
         check(per_pass % rounds_of == 0, [&] { return MicrobatchesNotInRounds(per_pass, stages); });
}

template <typename Check>
bool CheckAll(const Plan& plan, Check& check) {
  return CheckDegrees(plan, check) && CheckProducts(plan, check) && CheckTensor(plan, check) &&
         CheckContext(plan, check) && CheckExperts(plan, check) && CheckStages(plan, check) && CheckBatch(plan, check);
}

}  // namespace

void CheckParallelism(const transformer::ModelOperations& model, const hardware::Slice& slice,
                      const TrainingWorkload& workload, const Parallelism& parallelism, bool allow_idle_chips,
                      bool allow_padding, std::vector<Violation>& violations, std::vector<std::string>& notes,
                      std::vector<Padding>* paddings) {
  const ModelDivisors divisors = DivisorsOf(model);
  const size_t before = violations.size();
  AllViolations check{violations};
  CheckAll(Plan(divisors, slice, workload, parallelism, {allow_idle_chips, allow_padding}), check);
  if (violations.size() == before) DescribeUnevenness(divisors, slice, workload, parallelism, notes, paddings);
}

bool IsLegal(const ModelDivisors& divisors, const hardware::Slice& slice, const TrainingWorkload& workload,
             const Parallelism& parallelism, LegalityOptions options) {
  UntilFirst check;
  CheckAll(Plan(divisors, slice, workload, parallelism, options), check);
  return check.legal;
}

}  // namespace sliceplan::planner
