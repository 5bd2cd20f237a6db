#include "server/planner/serving/serving_advice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/planner/serving/batch_point.h"
#include "server/planner/words.h"

namespace sliceplan::planner {
namespace {

using hardware::BytesPerElement;
using hardware::DataType;

constexpr double kGigabyte = 1e9;
// Changes that gain less are not worth a sentence.
constexpr double kLeastGain = 0.02;

std::string EnumName(DataType type) {
  std::string name = "DATA_TYPE_";
  for (const char c : hardware::DataTypeName(type)) name += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name;
}

// One-byte format that chips of this kind serve in.
DataType NarrowType(const hardware::AcceleratorSpec& accelerator) {
  return accelerator.fp8_flops_per_second ? DataType::kFp8 : DataType::kInt8;
}

struct Best {
  int64_t batch = 0;
  BatchPoint point;
};

Best BestOf(const ServingJob& job, const ReplicaPlan& plan) {
  Best best;
  const int64_t most = plan.memory().MaxBatch(FullContext(job.workload));
  best.batch = job.slo.Any() ? LargestBatchWithin(job, plan, most) : most;
  if (best.batch >= 1) best.point = PointOf(job, plan, best.batch);
  return best;
}

void AddChange(const ServingJob& job, const ServingJob& changed, const ReplicaPlan& plan, MappingCache& mappings,
               std::string code, absl::string_view what, FieldChange change, ServingEstimate& estimate) {
  const Best now = BestOf(job, plan);
  if (now.batch < 1) return;
  auto made = ReplicaPlan::Make(changed, plan.pool(), plan.parallelism(), now.batch, mappings);
  if (!made.ok()) return;
  const Best then = BestOf(changed, **made);
  if (then.batch < 1) return;
  const double gain = then.point.output_tokens_per_second / now.point.output_tokens_per_second;
  const double step = (*made)->TokenSeconds(std::max(1, estimate.batch_size), DecodeContext(job.workload)) /
                      plan.TokenSeconds(std::max(1, estimate.batch_size), DecodeContext(job.workload));
  if (gain < 1 + kLeastGain && step > 1 - kLeastGain) return;
  Advice advice;
  advice.code = std::move(code);
  advice.sentence = absl::StrCat(
      what,
      then.batch > now.batch
          ? absl::StrCat(" raises the largest batch from ", CountWords(now.batch), " to ", CountWords(then.batch), ",")
          : "",
      gain >= 1 + kLeastGain
          ? absl::StrCat(" cuts the cost of a token by ", PercentWords(1 - 1 / gain), " at its best batch,")
          : "",
      " and at the batch and plan of this estimate a token takes ", PercentWords(std::max(0.0, 1 - step)), " less.");
  advice.step_time_ratio = step;
  const int64_t context = FullContext(job.workload);
  advice.memory_bytes = (*made)->memory().Of(std::max(1, estimate.batch_size), context).used_bytes -
                        plan.memory().Of(std::max(1, estimate.batch_size), context).used_bytes;
  advice.changes.push_back(std::move(change));
  estimate.advice.push_back(std::move(advice));
}

void AddMemoryPrice(const ServingJob& job, const ReplicaPlan& plan, int64_t max_batch_size, ServingEstimate& estimate) {
  const int64_t context = FullContext(job.workload);
  const ServingMemory one = plan.memory().Of(static_cast<int64_t>(plan.load().data_ranks), context);
  if (one.kv_cache_bytes <= 0 || max_batch_size < 1) return;
  const double more = kGigabyte / static_cast<double>(one.kv_cache_bytes) * plan.load().data_ranks;
  const int64_t batch = max_batch_size + static_cast<int64_t>(more);
  if (batch <= max_batch_size) return;
  const double gain =
      PointOf(job, plan, batch).output_tokens_per_second / PointOf(job, plan, max_batch_size).output_tokens_per_second;
  Advice advice;
  advice.code = "CACHE_MEMORY_PRICE";
  advice.sentence = absl::StrCat("One more gigabyte for caches on each chip raises the largest batch from ",
                                 CountWords(max_batch_size), " to ", CountWords(batch), " and output by ",
                                 PercentWords(std::max(0.0, gain - 1)), ".");
  estimate.advice.push_back(std::move(advice));
}

void AddNextResource(const ServingJob& job, ServingEstimate& estimate) {
  if (!estimate.critical_batch_size || estimate.batch_size < 1) return;
  const double batch = estimate.batch_size;
  const double critical = *estimate.critical_batch_size;
  const PassTime& decode = estimate.decode;
  Advice advice;
  advice.code = "DECODE_BOUND";
  const double all = decode.kv_seconds + decode.weights_seconds;
  if (batch < critical) {
    advice.sentence = absl::StrCat(
        "Decode reads memory: at batch ", CountWords(estimate.batch_size), " weights take ",
        SecondsWords(decode.weights_seconds), " and the cache ", SecondsWords(decode.kv_seconds), " of ",
        SecondsWords(decode.time.expected_seconds), "; matmuls would bind from a batch of ", NumberWords(critical),
        all > 0 && decode.kv_seconds > decode.weights_seconds ? ". A larger batch adds little: the cache dominates."
                                                              : ". A larger batch shares the weights further.");
  } else {
    advice.sentence =
        absl::StrCat("Decode computes: batch ", CountWords(estimate.batch_size), " is beyond the critical batch of ",
                     NumberWords(critical), "; a larger one no longer shares anything.");
  }
  (void)job;
  estimate.advice.push_back(std::move(advice));
}

}  // namespace

void AddServingAdvice(const ServingJob& job, const ReplicaPlan& plan, int64_t max_batch_size, MappingCache& mappings,
                      ServingEstimate& estimate) {
  const DataType narrow = NarrowType(plan.pool().slice.accelerator);
  if (BytesPerElement(job.workload.precision.kv_cache) > 1) {
    ServingJob changed = job;
    changed.workload.precision.kv_cache = narrow;
    AddChange(job, changed, plan, mappings, "NARROWER_CACHE", absl::StrCat("A cache in ", DataTypeName(narrow)),
              {"workload.precision.kv_cache", EnumName(narrow)}, estimate);
  }
  if (BytesPerElement(estimate.load.weights) > 1) {
    ServingJob changed = job;
    changed.workload.precision.weights = narrow;
    AddChange(job, changed, plan, mappings, "NARROWER_WEIGHTS",
              absl::StrCat("Storing weights in ", DataTypeName(narrow)),
              {"workload.precision.weights", EnumName(narrow)}, estimate);
  }
  std::stable_sort(estimate.advice.begin(), estimate.advice.end(),
                   [](const Advice& a, const Advice& b) { return a.step_time_ratio < b.step_time_ratio; });
  AddMemoryPrice(job, plan, max_batch_size, estimate);
  AddNextResource(job, estimate);
}

}  // namespace sliceplan::planner
