// What is uneven in a legal plan, and which factors of a slice a job cannot use.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/planner/legality.h"
#include "server/planner/legality_words.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

struct Notes {
  std::vector<std::string>& sentences;
  std::vector<Padding>* paddings;

  void Pad(absl::string_view what, int64_t original, int64_t padded, std::string sentence) {
    if (paddings != nullptr) paddings->push_back(Padding{what, original, padded, sentence});
    sentences.push_back(std::move(sentence));
  }
};

int64_t RoundUp(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

void DescribeTensor(const ModelDivisors& divisors, int64_t tensor, Notes& notes) {
  const auto pad = [&](absl::string_view what, int64_t count) {
    if (count % tensor == 0) return;
    const int64_t padded = RoundUp(count, tensor);
    notes.Pad(what, count, padded,
              absl::StrCat(CountWords(count), " ", what, " are padded to ", CountWords(padded), " over tensor ",
                           CountWords(tensor), "."));
  };
  const auto pad_width = [&](absl::string_view what, int64_t size) {
    if (size % tensor == 0) return;
    const int64_t padded = RoundUp(size, tensor);
    notes.Pad(what, size, padded,
              absl::StrCat("The ", what, " of ", CountWords(size), " is padded to ", CountWords(padded),
                           " over tensor ", CountWords(tensor), "."));
  };
  for (const ModelDivisors::Unit& unit : divisors.units) {
    if (unit.copies && tensor > unit.count && tensor % unit.count == 0) {
      notes.Pad("KV heads (copied)", unit.count, tensor,
                absl::StrCat("Each of ", CountWords(unit.count), " KV heads is copied ",
                             CountWords(tensor / unit.count), " times over tensor ", CountWords(tensor), "."));
    } else {
      pad(unit.name, unit.count);
    }
  }
  for (const ModelDivisors::Width& width : divisors.widths) pad_width(width.name, width.size);
  pad_width("vocabulary", divisors.vocab_size);
}

void DescribeStages(const ModelDivisors& divisors, const TrainingWorkload& workload, const Parallelism& parallelism,
                    int64_t shards, int64_t stages, Notes& notes) {
  const int64_t chunks = stages * parallelism.virtual_stage_count;
  const int64_t layers = divisors.layer_count;
  int64_t smallest = layers / chunks;
  int64_t largest = RoundUp(layers, chunks) / chunks;
  if (!parallelism.layers_per_stage.empty()) {
    const auto [low, high] =
        std::minmax_element(parallelism.layers_per_stage.begin(), parallelism.layers_per_stage.end());
    smallest = *low;
    largest = *high;
  }
  if (smallest != largest) {
    notes.Pad("layers (uneven)", layers, largest * chunks,
              absl::StrCat("Pipeline ", CountWords(stages),
                           parallelism.virtual_stage_count > 1
                               ? absl::StrCat(" x ", CountWords(parallelism.virtual_stage_count), " virtual stages")
                               : std::string(),
                           " does not divide ", CountWords(layers), " layers evenly: stages hold ",
                           CountWords(smallest), " to ", CountWords(largest), ", and the largest sets the pace."));
  }
  const int64_t accumulation = workload.gradient_accumulation.value_or(1);
  const int64_t microbatches = parallelism.microbatch_count > 0
                                   ? parallelism.microbatch_count
                                   : workload.global_batch_size / shards / std::max<int64_t>(1, accumulation);
  if (microbatches < stages) {
    notes.sentences.push_back(absl::StrCat("Only ", CountWords(microbatches), " microbatches fill ", CountWords(stages),
                                           " pipeline stages: some always wait."));
  }
}

// Exponent of `prime` in `count`; every power when the count is 0.
int Exponent(int64_t count, int64_t prime) {
  if (count == 0) return std::numeric_limits<int>::max() / 4;
  int exponent = 0;
  for (; count % prime == 0; count /= prime) ++exponent;
  return exponent;
}

std::string PowerWords(int64_t prime, int exponent) {
  return exponent == 1 ? CountWords(prime) : absl::StrCat(CountWords(prime), "^", exponent);
}

}  // namespace

void DescribeUnevenness(const ModelDivisors& divisors, const hardware::Slice& slice, const TrainingWorkload& workload,
                        const Parallelism& parallelism, std::vector<std::string>& sentences,
                        std::vector<Padding>* paddings) {
  Notes notes{sentences, paddings};
  const auto degree = [&](LogicalAxis axis) { return int64_t{parallelism.ici[axis]} * parallelism.dcn[axis]; };
  const int64_t tensor = degree(LogicalAxis::kTensor);
  if (tensor > 1) DescribeTensor(divisors, tensor, notes);
  const int64_t expert = degree(LogicalAxis::kExpert);
  for (const int32_t count : divisors.expert_counts) {
    if (count % expert == 0) continue;
    const int64_t padded = RoundUp(count, expert);
    notes.Pad("experts", count, padded,
              absl::StrCat(CountWords(count), " experts are padded to ", CountWords(padded), " over expert ",
                           CountWords(expert), "."));
  }
  const int64_t stages = degree(LogicalAxis::kPipeline);
  if (stages > 1) {
    const int64_t shards = degree(LogicalAxis::kData) * degree(LogicalAxis::kFsdp) * expert;
    DescribeStages(divisors, workload, parallelism, shards, stages, notes);
  }
  const int64_t used = parallelism.ici.Product();
  if (used < slice.chip_count) {
    sentences.push_back(absl::StrCat(CountWords(slice.chip_count - used), " of ", CountWords(slice.chip_count),
                                     " chips of each slice stay idle; they are paid for and count in MFU."));
  }
}

std::string ExplainOddFactors(const ModelDivisors& divisors, const hardware::Slice& slice,
                              const TrainingWorkload& workload) {
  const int64_t batch = workload.global_batch_size;
  const int64_t sequence = workload.sequence_length;
  if (slice.chip_count < 1 || batch < 1 || sequence < 1) return "";
  const int64_t heads = divisors.HeadDivisor();
  std::string factors;  // of the slice
  std::string missing;  // of the job
  int64_t batch_factor = 1;
  int64_t rest = slice.chip_count;
  for (int64_t prime = 2; rest > 1; ++prime) {
    if (prime * prime > rest) prime = rest;
    const int exponent = Exponent(rest, prime);
    if (exponent == 0) continue;
    absl::StrAppend(&factors, factors.empty() ? "" : " x ", PowerWords(prime, exponent));
    const int lacking = exponent - Exponent(batch, prime) - Exponent(sequence, prime) - Exponent(heads, prime);
    if (lacking > 0) {
      absl::StrAppend(&missing, missing.empty() ? "" : " and ", PowerWords(prime, lacking));
      for (int i = 0; i < lacking; ++i) batch_factor *= prime;
    }
    for (int i = 0; i < exponent; ++i) rest /= prime;
  }
  if (missing.empty()) return "";
  return absl::StrCat("A slice of ", CountWords(slice.chip_count), " chips is ", factors, ", and neither the batch of ",
                      CountWords(batch), " sequences nor ", CountWords(sequence), " tokens nor the heads have its ",
                      missing,
                      ": only pipeline stages could take them, so almost no plan uses every chip. A batch that ",
                      CountWords(batch_factor), " divides would help, or allow_idle_chips.");
}

}  // namespace sliceplan::planner
