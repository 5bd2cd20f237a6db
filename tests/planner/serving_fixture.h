// Step times that a test can follow by hand, and requests of one length.
#ifndef SLICEPLAN_TESTS_PLANNER_SERVING_FIXTURE_H_
#define SLICEPLAN_TESTS_PLANNER_SERVING_FIXTURE_H_

#include <cstdint>

#include "server/planner/serving/serving_load.h"
#include "server/planner/serving/step_shape.h"

namespace sliceplan::planner {

// Seconds grow with every field; with the defaults every step takes a second.
struct LinearTimer : StepTimer {
  double step = 1;
  double per_decode = 0;
  double per_decode_context = 0;
  double per_prompt_token = 0;
  double per_prompt_context = 0;  // token x key

  double Seconds(const StepShape& shape) const override {
    const double decodes = static_cast<double>(shape.decode_sequences);
    const double prompt = static_cast<double>(shape.prefill_tokens);
    return step + per_decode * decodes * static_cast<double>(shape.tokens_per_sequence) +
           per_decode_context * decodes * shape.decode_context_tokens + per_prompt_token * prompt +
           per_prompt_context * prompt * shape.prefill_context_tokens;
  }
};

// About a 70B model on a few chips.
inline LinearTimer PlausibleTimer() {
  LinearTimer timer;
  timer.step = 10e-3;
  timer.per_decode = 20e-6;
  timer.per_decode_context = 1e-8;
  timer.per_prompt_token = 60e-6;
  timer.per_prompt_context = 1e-9;
  return timer;
}

inline RequestMix ConstantMix(double prompt, double output) {
  RequestMix mix;
  mix.prompt = TokenLengths::Constant(prompt);
  mix.output = TokenLengths::Constant(output);
  return mix;
}

inline RequestMix VariedMix(double prompt, double output) {
  RequestMix mix;
  mix.prompt = TokenLengths::LogNormal(prompt, 0.8);
  mix.output = TokenLengths::LogNormal(output, 1.2);
  return mix;
}

inline ServingSystem OneReplica(const StepTimer& timer, BatchPolicy policy) {
  ServingSystem system;
  system.main.timer = &timer;
  system.main.limits.policy = policy;
  return system;
}

inline constexpr BatchPolicy kPolicies[] = {BatchPolicy::kStatic, BatchPolicy::kWholePrefill,
                                            BatchPolicy::kChunkedPrefill};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_TESTS_PLANNER_SERVING_FIXTURE_H_
