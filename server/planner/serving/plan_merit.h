// What a plan of a replica is worth under a load, in the mean, and its place among others: the one order that an
// estimate without a plan and a search over slices share. docs/serving.md, section 4.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_PLAN_MERIT_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_PLAN_MERIT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>

#include "server/planner/serving/replica_plan.h"
#include "server/planner/sharding_search.h"

namespace sliceplan::planner {

enum class PlanTier {
  kCarries,     // the load; with targets at a rate or with users, a replay may find otherwise
  kBusy,        // carries it, busier than kTargetUtilization
  kMisses,      // a target, whatever the number of replicas
  kOverloaded,  // the rate is above what is sustained
  kTooLarge,    // does not fit
};

struct PlanMerit {
  PlanTier tier = PlanTier::kTooLarge;
  int64_t replica_count = 1;
  double tpot_seconds = 0;
  double request_seconds = 0;           // from arrival to the last token; the largest number when overloaded
  double output_tokens_per_second = 0;  // of all replicas
  double sustained_rate = 0;            // at a rate: requests per second of one replica
};

// `most` sequences fit, at least one. `replica_count` unset: as many as a rate needs (LeastReplicas), else one.
PlanMerit MeritOf(const ServingJob& job, const ReplicaPlan& plan, int64_t most, std::optional<int64_t> replica_count);

// The merit at a rate with another number of replicas.
void SetReplicas(const ServingJob& job, const ReplicaPlan& plan, int64_t most, int64_t replica_count, PlanMerit& merit);

// Smaller is better. Beside the objective: the shorter request, fewer chips, the earlier candidate, fewer axes, more
// tensor.
struct PlanRank {
  PlanTier tier = PlanTier::kTooLarge;
  double key = 0;
  double seconds = 0;
  int64_t chip_count = 0;
  size_t candidate = 0;
  int axis_count = 0;
  int32_t tensor_complement = 0;

  void SetPlan(const Parallelism& parallelism);
  auto Order() const {
    return std::make_tuple(tier, key, seconds, chip_count, candidate, axis_count, tensor_complement);
  }
};

// kMinCost: dollars per hour at a rate, else per million output tokens; without a price the largest number.
// kMaxThroughputPerChip: at a rate that is served by all plans alike, so fewest chips. `chip_count` of all replicas.
double KeyOf(Objective objective, const ServingWorkload& workload, const PlanMerit& merit, int64_t chip_count,
             const std::optional<double>& usd_per_chip_hour);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_PLAN_MERIT_H_
