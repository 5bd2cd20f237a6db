#include "server/planner/serving/frontier.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "server/planner/budget.h"
#include "server/planner/serving/batch_point.h"
#include "server/planner/serving/serving_money.h"

namespace sliceplan::planner {
namespace {

bool Keeps(double seconds, const LatencyTargets& limits) {
  return seconds <= std::min({limits.mean_seconds.value_or(seconds), limits.p50_seconds.value_or(seconds),
                              limits.p95_seconds.value_or(seconds), limits.p99_seconds.value_or(seconds)});
}

}  // namespace

void AddBatches(const ServingJob& job, const ReplicaPlan& plan, int64_t max_batch_size,
                std::vector<ServingPoint>& points) {
  if (max_batch_size < 1) return;
  const ServingPool& pool = plan.pool();
  const double chips = static_cast<double>(plan.chip_count());
  for (int64_t batch = 1;; batch = std::min(batch * 2, max_batch_size)) {
    const BatchPoint point = PointOf(job, plan, batch);
    ServingPoint added;
    added.batch_size = static_cast<int32_t>(batch);
    added.parallelism = plan.parallelism();
    added.tpot_seconds = point.tpot_seconds;
    if (pool.role != PoolRole::kDecode) added.ttft_seconds = point.ttft_seconds;
    added.output_tokens_per_second_per_chip = point.output_tokens_per_second / chips;
    if (pool.usd_per_chip_hour) {
      BilledTokens tokens;
      tokens.output_tokens_per_second = point.output_tokens_per_second;
      tokens.input_tokens_per_second = point.requests_per_second * job.workload.prompt.Mean();
      tokens.prefill_share = point.prefill_share;
      added.usd_per_million_output_tokens =
          CostOf(job.cost_split, *pool.usd_per_chip_hour * chips, tokens).usd_per_million_output_tokens;
    }
    points.push_back(std::move(added));
    if (batch == max_batch_size) return;
  }
}

std::vector<ServingPoint> ParetoOf(std::vector<ServingPoint> points) {
  const auto key = [](const ServingPoint& p) {
    return std::make_tuple(p.tpot_seconds, -p.output_tokens_per_second_per_chip, p.batch_size);
  };
  std::stable_sort(points.begin(), points.end(),
                   [&](const ServingPoint& a, const ServingPoint& b) { return key(a) < key(b); });
  std::vector<ServingPoint> front;
  for (ServingPoint& point : points) {
    if (!front.empty() && point.output_tokens_per_second_per_chip <= front.back().output_tokens_per_second_per_chip) {
      continue;
    }
    front.push_back(std::move(point));
  }
  return front;
}

std::optional<ServingPoint> BestPoint(const ServingJob& job, const std::vector<ServingPoint>& points) {
  const ServingPoint* best = nullptr;
  for (const ServingPoint& point : points) {
    const double ttft = point.ttft_seconds.value_or(0);
    const double all = ttft + (job.workload.output.Mean() - 1) * point.tpot_seconds;
    if (!Keeps(ttft, job.slo.ttft) || !Keeps(point.tpot_seconds, job.slo.tpot) || !Keeps(all, job.slo.end_to_end)) {
      continue;
    }
    if (best == nullptr || point.output_tokens_per_second_per_chip > best->output_tokens_per_second_per_chip) {
      best = &point;
    }
  }
  return best == nullptr ? std::nullopt : std::optional<ServingPoint>(*best);
}

}  // namespace sliceplan::planner
