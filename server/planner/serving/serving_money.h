// What serving costs per hour and per token.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_MONEY_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_MONEY_H_

#include <optional>

#include "server/planner/serving/serving_estimate.h"
#include "server/planner/serving/serving_job.h"

namespace sliceplan::planner {

// Tokens that a bill is split over, and the shares of it that prompts and output take.
struct BilledTokens {
  double input_tokens_per_second = 0;  // cached ones left out
  double cached_tokens_per_second = 0;
  double output_tokens_per_second = 0;
  double prefill_share = 0;  // of the bill by time, 0 to 1: the rest is decode's
};

// The three prices times their tokens add up to the bill. By time, a cached token costs `cached_to_input_price_ratio`
// of an uncached one, which then costs less; by a fixed ratio all follow from the ratios.
ServingCost CostOf(const CostSplit& split, double usd_per_hour, const BilledTokens& tokens);

// Unset when a pool has no price.
std::optional<double> UsdPerHour(const ServingJob& job);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SERVING_MONEY_H_
