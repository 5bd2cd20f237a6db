// Seconds of one pass of a replica: the roofline's two ends and what to expect. "Time" and "schedule" of count, time,
// schedule. Chapter 7 of "How To Scale Your Model"; the terms of the expected time are those of ServingEfficiency.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_TIMER_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_TIMER_H_

#include "server/hardware/slice.h"
#include "server/planner/mapping.h"
#include "server/planner/serving/pass_counts.h"
#include "server/planner/serving/serving_estimate.h"
#include "server/planner/serving/replica_load.h"
#include "server/planner/serving/step_shape.h"
#include "server/roofline/serving_efficiency.h"

namespace sliceplan::planner {

// Expected seconds of a pass by what they are spent on.
struct PassSeconds {
  double matmul_compute = 0;  // beyond the reading of weights
  double weights = 0;
  double kv = 0;
  double attention = 0;  // of prompts, and of decodes beyond the reading of the cache
  double activations = 0;
  std::array<double, kLogicalAxisCount> network = {};
  double host = 0;
  double Total() const;
};

// Times passes of one plan. Copies what it needs but the load, which must outlive it.
class ReplicaTimer : public StepTimer {
 public:
  // `efficiency` nullptr: ROOFLINE, expected equals the lower bound.
  ReplicaTimer(const ReplicaLoad& load, const hardware::Slice& slice, const PlanLaws& laws,
               const roofline::ServingEfficiency* efficiency);

  double Seconds(const StepShape& shape) const override;
  PassCounts Count(const StepShape& shape) const { return CountPass(load_, laws_, rates_, shape); }
  // In ROOFLINE mode the parts are those of the lower bound.
  PassSeconds Expected(const PassCounts& counts) const;

  // One decode step of `sequences` at a context of `context_tokens`.
  PassTime Decode(int64_t sequences, double context_tokens, int64_t tokens_per_sequence) const;
  // Prompts of `tokens` each, of which `cached_tokens` need no work, in chunks of `chunk_tokens` (0: whole).
  PassTime Prefill(int64_t prompts, double tokens, double cached_tokens, double chunk_tokens) const;
  // The expected time alone.
  double PrefillSeconds(int64_t prompts, double tokens, double cached_tokens, double chunk_tokens) const;

 private:
  double Lower(const PassCounts& counts) const;
  double Upper(const PassCounts& counts) const;
  StepResource Bound(const PassCounts& counts, double extra_hbm_seconds) const;
  void AddParts(const PassCounts& counts, const PassSeconds& seconds, double scale, PassTime& time) const;

  const ReplicaLoad& load_;
  PlanLaws laws_;
  PassRates rates_;
  bool roofline_ = false;
  roofline::ServingEfficiency efficiency_;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_TIMER_H_
