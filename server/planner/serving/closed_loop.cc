#include "server/planner/serving/closed_loop.h"

#include <algorithm>
#include <cmath>

#include "server/planner/serving/batch_point.h"

namespace sliceplan::planner {
namespace {

// But for fractions of a token.
bool AreAlike(const TokenLengths& lengths) {
  constexpr double kFraction = 1e-4;
  return lengths.SquaredVariation() < kFraction;
}

}  // namespace

ClosedLoop ClosedLoopOf(const ServingJob& job, const ReplicaPlan& plan, double users, int64_t max_batch_size) {
  const roofline::ServingEfficiency& runtime = *plan.pool().efficiency;
  const ServingWorkload& workload = job.workload;
  const double output = workload.output.Mean();
  const double ranks = plan.load().data_ranks;
  const double capacity = std::max<double>(1, static_cast<double>(max_batch_size));
  ClosedLoop loop;
  loop.batch_size = std::max(1.0, std::min(users, capacity));

  StepShape decode;
  decode.decode_sequences = std::max<int64_t>(1, std::llround(loop.batch_size));
  decode.decode_context_tokens = DecodeContext(workload);
  decode.tokens_per_sequence = plan.tokens_per_sequence();
  const double step = plan.steps().Seconds(decode);
  const double extra = plan.InterferenceSeconds(decode.decode_sequences, decode.decode_context_tokens);

  const double sequences = loop.batch_size / ranks;  // of one data rank: prompts of other ranks run beside
  const bool alike = AreAlike(workload.prompt) && AreAlike(workload.output);
  const bool in_step = runtime.prefill_first && alike;
  // Users in step have read half of the others' prompts, on average, before their first token.
  const double delays = std::max(0.0, sequences - 1) * extra * (in_step ? 0.5 : 1);
  loop.tpot_seconds = step / plan.tokens_per_step() + delays / output;
  const double latent = plan.load().latent_attention ? runtime.latent_prefill_ratio : 1;
  const double prefill = plan.PrefillSeconds(1);
  if (output <= 1) {
    // Nobody writes: prompts only wait for prompts.
    loop.ttft_seconds = runtime.first_token_seconds + std::max(1.0, users / ranks) * prefill;
    loop.requests_per_second = users / loop.ttft_seconds;
    return loop;
  }
  // Requests that are all alike keep meeting the few that they once waited with.
  const double cohort =
      alike && !in_step ? runtime.cohort_wait_ratio * std::min(sequences - 1, runtime.cohort_requests) : 0;
  const double waiting =
      (std::max(0.0, users / ranks - 1) * (in_step ? 1 : runtime.burst_share) + std::max(0.0, cohort)) / 2 * extra;
  const double alone =
      runtime.first_token_seconds + runtime.first_token_steps * step + latent * runtime.prefill_wait_ratio * prefill;
  const double writing = output * loop.tpot_seconds;
  loop.ttft_seconds = alone + latent * waiting;
  // Users beyond the capacity wait for a place: places never stand empty, and users = rate x time (Little).
  if (users > capacity) {
    const double full = users / capacity * (alone + writing) - writing;
    loop.place_wait_seconds = std::max(0.0, full - loop.ttft_seconds);
    loop.ttft_seconds += loop.place_wait_seconds;
  }
  loop.requests_per_second = users / (loop.ttft_seconds + writing);
  return loop;
}

}  // namespace sliceplan::planner
