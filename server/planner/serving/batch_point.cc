#include "server/planner/serving/batch_point.h"

#include <algorithm>
#include <cmath>

namespace sliceplan::planner {
namespace {

constexpr double kLeastSeconds = 1e-12;

bool Within(double seconds, const LatencyTargets& limits) {
  for (const std::optional<double>& limit :
       {limits.mean_seconds, limits.p50_seconds, limits.p95_seconds, limits.p99_seconds}) {
    if (limit && seconds > *limit) return false;
  }
  return true;
}

}  // namespace

double DecodeContext(const ServingWorkload& workload) { return workload.prompt.Mean() + workload.output.Mean() / 2; }

int64_t FullContext(const ServingWorkload& workload) {
  return static_cast<int64_t>(std::ceil(workload.prompt.Mean() + workload.output.Mean()));
}

BatchPoint PointOf(const ServingJob& job, const ReplicaPlan& plan, int64_t batch_size) {
  const double output = job.workload.output.Mean();
  const auto sequences = static_cast<double>(batch_size);
  const bool reads_prompts = plan.pool().role != PoolRole::kDecode;
  const bool together = job.workload.load == ServingLoadKind::kBatch;
  const bool roofline = job.mode == EstimationMode::kRoofline;
  BatchPoint point;
  point.batch_size = batch_size;
  const double token_seconds = plan.TokenSeconds(batch_size, DecodeContext(job.workload));
  point.tpot_seconds = token_seconds;
  if (reads_prompts) point.ttft_seconds = plan.PrefillSeconds(together ? batch_size : 1) + plan.RequestSeconds();
  if (reads_prompts && !together && !roofline) {
    const double others = std::max(0.0, sequences / plan.load().data_ranks - 1);
    point.tpot_seconds += others / output * plan.InterferenceSeconds(batch_size, DecodeContext(job.workload));
  }
  // The first token comes with the prompt.
  const double decode_seconds = (output - (reads_prompts ? 1 : 0)) * point.tpot_seconds;
  point.end_to_end_seconds = point.ttft_seconds + decode_seconds;
  const double busy_seconds = roofline ? output * point.tpot_seconds : point.end_to_end_seconds;
  point.requests_per_second = sequences / std::max(busy_seconds, kLeastSeconds);
  point.output_tokens_per_second = point.requests_per_second * output;
  if (reads_prompts && !roofline) {
    point.prefill_share =
        std::clamp(1 - (output - 1) * token_seconds / std::max(busy_seconds, kLeastSeconds), 0.0, 1.0);
  }
  return point;
}

bool Meets(const BatchPoint& point, const ServingSlo& slo) {
  return Within(point.ttft_seconds, slo.ttft) && Within(point.tpot_seconds, slo.tpot) &&
         Within(point.end_to_end_seconds, slo.end_to_end);
}

int64_t LargestBatchWithin(const ServingJob& job, const ReplicaPlan& plan, int64_t most) {
  if (most < 1 || !Meets(PointOf(job, plan, 1), job.slo)) return 0;
  int64_t low = 1;
  int64_t high = most;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (Meets(PointOf(job, plan, middle), job.slo)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace sliceplan::planner
