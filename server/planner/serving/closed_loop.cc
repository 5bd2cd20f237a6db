#include "server/planner/serving/closed_loop.h"

#include <algorithm>
#include <cmath>

#include "server/planner/serving/batch_point.h"

namespace sliceplan::planner {

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
  loop.tpot_seconds = step / plan.tokens_per_step() + std::max(0.0, sequences - 1) / output * extra;
  const double latent = plan.load().latent_attention ? runtime.latent_prefill_ratio : 1;
  const double waiting = (users / ranks - 1) / 2 * extra * runtime.burst_share;
  const double own = runtime.prefill_wait_ratio * plan.PrefillSeconds(1);
  const double first =
      runtime.first_token_seconds + runtime.first_token_steps * step + latent * (own + std::max(0.0, waiting));
  // Users beyond the capacity wait for a whole request of another.
  const double beyond = std::max(0.0, users - capacity) / loop.batch_size;
  loop.ttft_seconds = first + beyond * (first + output * loop.tpot_seconds);
  loop.requests_per_second = users / (loop.ttft_seconds + output * loop.tpot_seconds);
  return loop;
}

}  // namespace sliceplan::planner
