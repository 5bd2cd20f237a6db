#include "server/planner/legality_words.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

using hardware::Violation;

// At most this many legal values are listed, the nearest ones.
constexpr size_t kMaxListed = 12;

Violation Invalid(std::string field, absl::string_view reason, std::string description) {
  return Violation{std::move(field), std::move(description), std::string(reason), Violation::Kind::kInvalid};
}

// Where a degree was given: across slices only when nowhere else.
std::string FieldOf(const Parallelism& parallelism, LogicalAxis axis) {
  const bool across = parallelism.ici[axis] == 1 && parallelism.dcn[axis] > 1;
  return absl::StrCat("parallelism.", across ? "dcn." : "ici.", LogicalAxisName(axis));
}

// "fsdp 512 x tensor 8".
std::string DegreeWords(const AxisDegrees& degrees) {
  std::string words;
  for (const LogicalAxis axis : kLogicalAxes) {
    if (degrees[axis] == 1) continue;
    absl::StrAppend(&words, words.empty() ? "" : " x ", LogicalAxisName(axis), " ", CountWords(degrees[axis]));
  }
  return words.empty() ? "all 1" : words;
}

// "1, 2 or 4".
std::string Alternatives(const std::vector<int64_t>& values) {
  std::string words;
  for (size_t i = 0; i < values.size(); ++i) {
    absl::StrAppend(&words, i == 0 ? "" : i + 1 == values.size() ? " or " : ", ", CountWords(values[i]));
  }
  return words;
}

// Divisors of `count` for which `legal` holds, ascending; when they are many, those nearest to `wanted`.
template <typename Legal>
std::vector<int64_t> DivisorsNear(int64_t count, int64_t wanted, const Legal& legal) {
  std::vector<int64_t> divisors;
  for (int64_t low = 1; low * low <= count; ++low) {
    if (count % low != 0) continue;
    if (legal(low)) divisors.push_back(low);
    if (low * low != count && legal(count / low)) divisors.push_back(count / low);
  }
  if (divisors.size() > kMaxListed) {
    const auto distance = [wanted](int64_t value) {
      return std::abs(std::log(static_cast<double>(value) / static_cast<double>(wanted)));
    };
    std::sort(divisors.begin(), divisors.end(),
              [&](int64_t a, int64_t b) { return distance(a) != distance(b) ? distance(a) < distance(b) : a < b; });
    divisors.resize(kMaxListed);
  }
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}

// The multiples of `unit` around `value`: "8,192 or 8,208".
std::string NearestMultiples(int64_t value, int64_t unit) {
  const int64_t below = value / unit * unit;
  if (below == 0) return CountWords(unit);
  return absl::StrCat(CountWords(below), " or ", CountWords(below + unit));
}

int64_t RoundUp(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

}  // namespace

Violation DegreeOutOfRange(absl::string_view level, LogicalAxis axis, int64_t degree) {
  return Invalid(absl::StrCat("parallelism.", level, ".", LogicalAxisName(axis)), "DEGREE_OUT_OF_RANGE",
                 absl::StrCat("must be 1 to ", CountWords(kMaxDegree), " within and across slices together; got ",
                              CountWords(degree)));
}

Violation ChipsDiffer(const AxisDegrees& ici, int64_t product, int64_t chip_count) {
  std::string description = absl::StrCat("the degrees within a slice (", DegreeWords(ici), ") multiply to ",
                                         CountWords(product), ", but a slice has ", CountWords(chip_count), " chips");
  // The axis that can take any degree is tried first.
  for (const LogicalAxis axis : {LogicalAxis::kFsdp, LogicalAxis::kData, LogicalAxis::kTensor}) {
    const int64_t others = product / ici[axis];
    const int64_t filling = chip_count / others;
    if (chip_count % others == 0 && filling <= kMaxDegree) {
      absl::StrAppend(&description, "; ", LogicalAxisName(axis), " ", CountWords(filling), " would fill it");
      break;
    }
  }
  if (product < chip_count) absl::StrAppend(&description, "; allow_idle_chips leaves the others idle");
  return Invalid("parallelism.ici", "CHIP_COUNT_MISMATCH", std::move(description));
}

Violation SlicesDiffer(const AxisDegrees& dcn, int64_t product, int64_t slice_count) {
  return Invalid("parallelism.dcn", "SLICE_COUNT_MISMATCH",
                 absl::StrCat("the degrees across slices (", DegreeWords(dcn), ") multiply to ", CountWords(product),
                              ", but slice_count is ", CountWords(slice_count)));
}

Violation HeadsNotDivisible(const ModelDivisors& divisors, const ModelDivisors::Unit& unit,
                            const Parallelism& parallelism, int64_t tensor) {
  const int64_t heads = divisors.HeadDivisor();
  const int64_t common = heads > 0 ? heads : unit.count;
  const std::vector<int64_t> legal = DivisorsNear(common, tensor, [&](int64_t degree) {
    return std::all_of(divisors.units.begin(), divisors.units.end(), [degree](const ModelDivisors::Unit& other) {
      return other.count % degree == 0 || (other.copies && degree % other.count == 0);
    });
  });
  return Invalid(FieldOf(parallelism, LogicalAxis::kTensor), "HEADS_NOT_DIVISIBLE",
                 absl::StrCat(CountWords(unit.count), " ", unit.name, " do not divide over tensor ", CountWords(tensor),
                              unit.copies ? ", nor can each be copied equally often; " : "; ", Alternatives(legal),
                              legal.size() == 1 ? " does" : " do", ", or allow_padding computes ",
                              CountWords(RoundUp(unit.count, tensor))));
}

Violation SequenceNotSharded(int64_t sequence_length, int64_t context, int64_t tensor) {
  const int64_t shards = context * tensor;
  return Invalid(
      "parallelism.sequence_parallel", "SEQUENCE_NOT_DIVISIBLE",
      absl::StrCat("a sequence of ", CountWords(sequence_length), " tokens does not divide over tensor ",
                   CountWords(tensor), context > 1 ? absl::StrCat(" x context ", CountWords(context)) : std::string(),
                   ", which sequence_parallel needs: ", NearestMultiples(sequence_length, shards),
                   " tokens would, or sequence_parallel = false"));
}

Violation ContextNotDivisible(int64_t sequence_length, const Parallelism& parallelism, int64_t context,
                              int64_t chunks) {
  return Invalid(FieldOf(parallelism, LogicalAxis::kContext), "SEQUENCE_NOT_DIVISIBLE",
                 absl::StrCat("context ", CountWords(context), " needs a sequence divisible by ", CountWords(chunks),
                              chunks > context ? " (two chunks per chip balance causal attention)" : "", "; ",
                              CountWords(sequence_length), " tokens are not, ",
                              NearestMultiples(sequence_length, chunks), " would be"));
}

Violation NoExperts(const Parallelism& parallelism, int64_t expert) {
  return Invalid(FieldOf(parallelism, LogicalAxis::kExpert), "NO_EXPERTS",
                 absl::StrCat("expert ", CountWords(expert),
                              " needs a mixture of experts, and this model has none; use data or fsdp"));
}

Violation ExpertsNotDivisible(const ModelDivisors& divisors, int64_t expert_count, const Parallelism& parallelism,
                              int64_t expert) {
  const auto legal = DivisorsNear(divisors.ExpertDivisor(), expert, [](int64_t) { return true; });
  return Invalid(FieldOf(parallelism, LogicalAxis::kExpert), "EXPERTS_NOT_DIVISIBLE",
                 absl::StrCat(CountWords(expert_count), " experts do not divide over expert ", CountWords(expert), "; ",
                              Alternatives(legal), legal.size() == 1 ? " does" : " do", ", or allow_padding holds ",
                              CountWords(RoundUp(expert_count, expert))));
}

Violation VirtualStagesOutOfRange(int64_t virtual_stages) {
  return Invalid("parallelism.virtual_stage_count", "VIRTUAL_STAGES_OUT_OF_RANGE",
                 absl::StrCat("must be 1 to ", CountWords(kMaxVirtualStages), "; got ", CountWords(virtual_stages)));
}

Violation VirtualStagesWithoutPipeline(int64_t virtual_stages) {
  return Invalid("parallelism.virtual_stage_count", "VIRTUAL_STAGES_WITHOUT_PIPELINE",
                 absl::StrCat(CountWords(virtual_stages), " virtual stages need pipeline above 1"));
}

Violation VirtualStagesNeedInterleaving(int64_t virtual_stages) {
  return Invalid("parallelism.schedule", "VIRTUAL_STAGES_NEED_INTERLEAVING",
                 absl::StrCat(CountWords(virtual_stages),
                              " virtual stages per stage are run by the interleaved 1F1B schedule only"));
}

Violation InterleavingNeedsVirtualStages() {
  return Invalid("parallelism.virtual_stage_count", "INTERLEAVING_NEEDS_VIRTUAL_STAGES",
                 "the interleaved schedule needs 2 or more virtual stages; with 1 it is 1F1B");
}

Violation TooManyStages(const Parallelism& parallelism, int64_t stages, int64_t layer_count) {
  return Invalid(FieldOf(parallelism, LogicalAxis::kPipeline), "TOO_MANY_STAGES",
                 absl::StrCat("pipeline ", CountWords(stages), " needs a layer per stage, and the model has ",
                              CountWords(layer_count)));
}

Violation TooManyChunks(int64_t stages, int64_t virtual_stages, int64_t layer_count) {
  return Invalid(
      "parallelism.virtual_stage_count", "TOO_MANY_STAGES",
      absl::StrCat("pipeline ", CountWords(stages), " x ", CountWords(virtual_stages), " virtual stages are ",
                   CountWords(stages * virtual_stages), " chunks, and the model has ", CountWords(layer_count),
                   " layers; at most ", CountWords(layer_count / stages), " virtual stages"));
}

Violation LayersDoNotAddUp(const std::vector<int32_t>& given, int64_t sum, int64_t chunks, int64_t layer_count) {
  return Invalid(
      "parallelism.layers_per_stage", "LAYERS_DO_NOT_ADD_UP",
      absl::StrCat("needs one entry of at least 1 for each of ", CountWords(chunks),
                   " chunks (pipeline x virtual stages), together ", CountWords(layer_count), " layers; got ",
                   CountWords(static_cast<int64_t>(given.size())), " that add up to ", CountWords(sum)));
}

Violation MicrobatchesOutOfRange(int64_t microbatches) {
  return Invalid(
      "parallelism.microbatch_count", "MICROBATCHES_OUT_OF_RANGE",
      absl::StrCat("must be 1 to ", CountWords(kMaxMicrobatches), ", or absent; got ", CountWords(microbatches)));
}

Violation MicrobatchesWithoutPipeline(int64_t microbatches) {
  return Invalid("parallelism.microbatch_count", "MICROBATCHES_WITHOUT_PIPELINE",
                 absl::StrCat(CountWords(microbatches),
                              " microbatches are for pipelines; without one use workload.gradient_accumulation"));
}

Violation MicrobatchesNotInRounds(int64_t microbatches, int64_t stages) {
  return Invalid("parallelism.microbatch_count", "MICROBATCHES_NOT_IN_ROUNDS",
                 absl::StrCat("the interleaved schedule runs whole rounds of its ", CountWords(stages),
                              " stages: microbatches must be a multiple of ", CountWords(stages), "; there are ",
                              CountWords(microbatches)));
}

Violation BatchNotDivisible(int64_t batch, int64_t data, int64_t fsdp, int64_t expert, int64_t unit) {
  AxisDegrees degrees;
  degrees[LogicalAxis::kData] = static_cast<int32_t>(data);
  degrees[LogicalAxis::kFsdp] = static_cast<int32_t>(fsdp);
  degrees[LogicalAxis::kExpert] = static_cast<int32_t>(expert);
  return Invalid("workload.global_batch_size", "BATCH_NOT_DIVISIBLE",
                 absl::StrCat("a batch of ", CountWords(batch), " sequences does not divide over the ",
                              CountWords(data * fsdp * expert), " shards of the plan (", DegreeWords(degrees), "); ",
                              NearestMultiples(batch, unit), " would"));
}

Violation AccumulationNotDivisible(int64_t sequences_per_shard, int64_t accumulation) {
  const auto legal = DivisorsNear(sequences_per_shard, accumulation, [](int64_t) { return true; });
  return Invalid("workload.gradient_accumulation", "ACCUMULATION_NOT_DIVISIBLE",
                 absl::StrCat(CountWords(sequences_per_shard), " sequences per data shard do not divide into ",
                              CountWords(accumulation), " accumulation steps; ", Alternatives(legal),
                              legal.size() == 1 ? " does" : " do"));
}

Violation MicrobatchesNotDivisible(int64_t sequences, int64_t microbatches, int64_t multiple_of) {
  const auto legal =
      DivisorsNear(sequences, microbatches, [multiple_of](int64_t count) { return count % multiple_of == 0; });
  std::string description =
      absl::StrCat(CountWords(sequences), " sequences per data shard and accumulation step do not divide into ",
                   CountWords(microbatches), " microbatches");
  if (!legal.empty()) absl::StrAppend(&description, "; ", Alternatives(legal), legal.size() == 1 ? " does" : " do");
  return Invalid("parallelism.microbatch_count", "MICROBATCHES_NOT_DIVISIBLE", std::move(description));
}

}  // namespace sliceplan::planner
