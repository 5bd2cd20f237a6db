#include "server/planner/serving/serving_load.h"

#include <algorithm>
#include <cmath>

#include "server/planner/serving_closed_form.h"

namespace sliceplan::planner {
namespace {

// Beyond, the number of steps is drawn as normal: a few hundred steps are close to it.
constexpr int64_t kCountedTokens = 256;

// Of the tokens that one step writes.
struct Moments {
  double mean = 1;
  double second = 1;
};

// P(more than i written) = a^i.
Moments MomentsOf(int64_t draft_tokens, double acceptance_ratio) {
  Moments moments;
  double power = 1;
  for (int64_t i = 1; i <= draft_tokens; ++i) {
    power *= acceptance_ratio;
    moments.mean += power;
    moments.second += power * static_cast<double>(2 * i + 1);
  }
  return moments;
}

}  // namespace

double RequestMix::TokensPerStep() const {
  return SpeculativeTokensPerPass(acceptance_ratio, static_cast<double>(draft_tokens));
}

double RequestMix::MeanDecodeSteps(double tokens) const {
  if (tokens <= 0) return 0;
  const Moments moments = MomentsOf(draft_tokens, acceptance_ratio);
  // Wald's identity; the last step overshoots by E[X(X - 1)] / 2 E[X] in the limit.
  const double overshoot = (moments.second - moments.mean) / (2 * moments.mean);
  return std::max(1.0, (tokens + overshoot) / moments.mean);
}

int64_t RequestMix::DecodeSteps(int64_t tokens, Random& random) const {
  if (draft_tokens == 0 || acceptance_ratio <= 0 || tokens <= 0) return tokens;
  const int64_t fewest = (tokens + draft_tokens) / (draft_tokens + 1);
  if (acceptance_ratio >= 1) return fewest;
  if (tokens > kCountedTokens) {
    const Moments moments = MomentsOf(draft_tokens, acceptance_ratio);
    const double variance = moments.second - moments.mean * moments.mean;
    const double spread =
        std::sqrt(static_cast<double>(tokens) * variance / (moments.mean * moments.mean * moments.mean));
    const double steps = MeanDecodeSteps(static_cast<double>(tokens)) + spread * random.Normal();
    return std::clamp(static_cast<int64_t>(std::max(steps + 0.5, 0.0)), fewest, tokens);
  }
  const double log_acceptance = std::log(acceptance_ratio);
  int64_t steps = 0;
  for (int64_t left = tokens; left > 0; ++steps) {
    const double accepted = std::log(random.Uniform()) / log_acceptance;
    left -= 1 + std::min(draft_tokens, static_cast<int64_t>(std::min(accepted, 64.0)));
  }
  return steps;
}

}  // namespace sliceplan::planner
