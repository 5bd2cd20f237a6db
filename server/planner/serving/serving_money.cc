#include "server/planner/serving/serving_money.h"

#include <algorithm>

#include "server/planner/budget.h"

namespace sliceplan::planner {
namespace {

double PerToken(double usd, double tokens) { return tokens > 0 ? usd / tokens : 0; }

}  // namespace

ServingCost CostOf(const CostSplit& split, double usd_per_hour, const BilledTokens& tokens) {
  ServingCost cost;
  cost.usd_per_hour = usd_per_hour;
  const double usd_per_second = usd_per_hour / kSecondsPerHour;
  // Tokens in units of an uncached input token.
  const double inputs =
      tokens.input_tokens_per_second + split.cached_to_input_price_ratio * tokens.cached_tokens_per_second;
  double input_usd = 0;
  double output_usd = 0;
  if (split.fixed_ratio) {
    input_usd = PerToken(usd_per_second, inputs + split.output_to_input_price_ratio * tokens.output_tokens_per_second);
    output_usd = split.output_to_input_price_ratio * input_usd;
  } else {
    const double share = std::clamp(tokens.prefill_share, 0.0, 1.0);
    input_usd = PerToken(share * usd_per_second, inputs);
    output_usd = PerToken((1 - share) * usd_per_second, tokens.output_tokens_per_second);
  }
  cost.usd_per_million_input_tokens = kTokensPerMillion * input_usd;
  cost.usd_per_million_cached_input_tokens = kTokensPerMillion * input_usd * split.cached_to_input_price_ratio;
  cost.usd_per_million_output_tokens = kTokensPerMillion * output_usd;
  return cost;
}

std::optional<double> UsdPerHour(const ServingJob& job) {
  double usd = 0;
  for (const ServingPool& pool : job.pools) {
    if (!pool.usd_per_chip_hour) return std::nullopt;
    usd += *pool.usd_per_chip_hour * static_cast<double>(pool.slice.TotalChips()) * pool.replica_count;
  }
  return usd;
}

}  // namespace sliceplan::planner
