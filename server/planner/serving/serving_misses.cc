#include "server/planner/serving/serving_misses.h"

#include <algorithm>
#include <utility>

#include "server/planner/serving/batch_point.h"

namespace sliceplan::planner {

void TooLargePlans::Add(const ServingSummary& summary, const ReplicaPlan& plan, const ServingWorkload& workload,
                        int64_t sequences) {
  const ServingMemory memory = plan.memory().Of(sequences, FullContext(workload));
  ServingMiss miss;
  miss.plan = summary;
  miss.plan.outcome = ServingOutcome::kOutOfMemory;
  miss.shortfall.limit = "hbm_bytes";
  miss.shortfall.needed = static_cast<double>(memory.used_bytes);
  miss.shortfall.available = static_cast<double>(memory.capacity_bytes);
  miss.shortfall.missing = std::max(1.0, miss.shortfall.needed - miss.shortfall.available);
  const auto nearer = [](const ServingMiss& a, const ServingMiss& b) {
    return a.shortfall.missing < b.shortfall.missing;
  };
  const auto same = std::find_if(plans_.begin(), plans_.end(),
                                 [&](const ServingMiss& other) { return other.plan.candidate == miss.plan.candidate; });
  if (same != plans_.end()) {
    if (!nearer(miss, *same)) return;
    plans_.erase(same);
  }
  plans_.insert(std::upper_bound(plans_.begin(), plans_.end(), miss, nearer), miss);
  if (plans_.size() > kMaxNearMisses) plans_.pop_back();
}

ServingMiss MissOf(const ServingProposal& proposal) {
  ServingMiss miss;
  miss.plan.candidate = proposal.candidates.back();
  miss.plan.parallelism = proposal.estimate.pools.back().parallelism;
  miss.plan.replica_count = proposal.estimate.pools.back().replica_count;
  miss.plan.chip_count = proposal.estimate.chip_count;
  miss.plan.outcome = proposal.estimate.outcome;
  miss.plan.tpot_seconds = proposal.estimate.tpot ? proposal.estimate.tpot->mean_seconds : 0;
  miss.plan.output_tokens_per_second_per_chip = proposal.estimate.throughput.output_tokens_per_second_per_chip;
  miss.shortfall = *proposal.estimate.shortfall;
  miss.smallest_fix = proposal.estimate.smallest_fix;
  return miss;
}

void AddMiss(ServingMiss miss, std::vector<ServingMiss>& misses) {
  if (misses.size() >= kMaxNearMisses) return;
  for (const ServingMiss& other : misses) {
    if (other.plan.candidate == miss.plan.candidate && other.shortfall.limit == miss.shortfall.limit) return;
  }
  misses.push_back(std::move(miss));
}

}  // namespace sliceplan::planner
