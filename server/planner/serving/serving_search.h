// The best ways to serve a load among many slices: which slice, how spread, how many replicas, prompts read apart or
// not. Every legal plan of every slice gets its place in the mean, with the fewest replicas that could do; best first,
// replays say how many it takes, until no bound is better. docs/serving.md, section 4.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_SEARCH_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_SEARCH_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/planner/mapping.h"
#include "server/planner/serving/serving_estimate.h"
#include "server/planner/serving/serving_job.h"
#include "server/planner/sharding_search.h"

namespace sliceplan::planner {

// Where replicas may run: one replica takes the whole slice.
struct ServingCandidate {
  hardware::Slice slice;
  const roofline::ServingEfficiency* efficiency = nullptr;  // outlives the search; required in kCalibrated
  std::optional<double> usd_per_chip_hour;
  int64_t max_replica_count = int64_t{1} << 20;                 // free slices
  std::function<std::vector<hardware::Slice>()> larger_slices;  // as of ServingPool
};

struct ServingQuestion {
  ServedModel model;
  std::vector<ServingCandidate> candidates;  // in the order of the request
  ServingWorkload workload;
  ServingSlo slo;
  EstimationMode mode = EstimationMode::kCalibrated;
  CostSplit cost_split;
  // kMinStepTime: time per output token. kMinCost: dollars per hour at a rate, else per output token. kMinChips: chips
  // of all replicas. Then the shorter request (plan_merit.h). kMinTimeToTrain is not one of serving's.
  Objective objective = Objective::kMinStepTime;
  bool requires_price = true;     // kMinCost leaves out slices without a price; false: they come last
  SearchConstraints constraints;  // deadline and budget are not looked at, padding is always allowed
  size_t proposal_count = 5;
};

struct ServingProposal {
  std::vector<size_t> candidates;  // of each pool of the estimate
  std::vector<PoolRole> roles;
  ServingEstimate estimate;
  std::string beats_next_because;  // a sentence with numbers; empty for the last
};

// One plan in a line.
struct ServingSummary {
  size_t candidate = 0;
  Parallelism parallelism;
  int64_t replica_count = 1;
  int64_t chip_count = 0;  // of all replicas
  ServingOutcome outcome = ServingOutcome::kFeasible;
  double tpot_seconds = 0;
  double output_tokens_per_second_per_chip = 0;
  std::optional<double> usd_per_million_output_tokens;
};

struct ServingMiss {
  ServingSummary plan;
  ServingShortfall shortfall;
  std::optional<Fix> smallest_fix;
};

struct ServingSearchAnswer {
  bool cancelled = false;
  std::vector<ServingProposal> proposals;  // best first, each another (slice, degrees)
  std::vector<ServingSummary> frontier;    // no other is both faster and cheaper (or, unpriced, denser); fastest first
  std::vector<ServingMiss> near_misses;    // nearest first, at most kMaxNearMisses
  int64_t considered_count = 0;            // legal plans
  int64_t evaluated_count = 0;             // estimated in full
  std::array<int64_t, kPruneReasonCount> pruned = {};  // kComputeFloor: behind those proposed
  bool exhaustive = true;                              // the first is proven best
  // How much better a plan could be at most, as a share of the objective; unset when nothing is known.
  std::optional<double> optimality_gap_ratio;
  std::vector<std::string> assumptions;
};

ServingSearchAnswer ProposeServing(const ServingQuestion& question, MappingCache& mappings,
                                   const std::function<SearchSignal()>& signal);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_SEARCH_H_
