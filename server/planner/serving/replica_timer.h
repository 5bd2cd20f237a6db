// Seconds of one pass of a replica: the roofline's two ends and what to expect. "Time" and "schedule" of count, time,
// schedule. Chapter 7 of "How To Scale Your Model"; the terms of the expected time are those of ServingEfficiency
// (docs/serving.md).
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_TIMER_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_TIMER_H_

#include <array>

#include "server/hardware/slice.h"
#include "server/planner/plan_laws.h"
#include "server/planner/serving/pass_counts.h"
#include "server/planner/serving/replica_load.h"
#include "server/planner/serving/serving_estimate.h"
#include "server/planner/serving/step_shape.h"
#include "server/roofline/serving_efficiency.h"

namespace sliceplan::planner {

// Expected seconds of a pass by what they are spent on.
struct PassSeconds {
  double weights = 0;         // reading them
  double matmul_compute = 0;  // beyond that
  double kv = 0;              // reading the cache
  double attention = 0;       // of prompts, and of decodes beyond the reading of the cache
  double kernels = 0;         // between the matmuls of prompts
  std::array<double, kLogicalAxisCount> network = {};
  double host = 0;
  double Total() const;
};

// Times passes of one plan. The load must outlive it.
class ReplicaTimer : public StepTimer {
 public:
  // `efficiency` nullptr: ROOFLINE, expected equals the lower bound.
  ReplicaTimer(const ReplicaLoad& load, const hardware::Slice& slice, const PlanLaws& laws,
               const roofline::ServingEfficiency* efficiency);

  double Seconds(const StepShape& shape) const override;

  // One decode step of `sequences` at a context of `context_tokens`.
  PassTime Decode(int64_t sequences, double context_tokens, int64_t tokens_per_sequence) const;
  // Prompts of `tokens` each on an idle replica, of which `cached_tokens` need no work, in chunks of `chunk_tokens` (0:
  // whole).
  PassTime Prefill(int64_t prompts, double tokens, double cached_tokens, double chunk_tokens) const;
  // The expected time alone.
  double PrefillSeconds(int64_t prompts, double tokens, double cached_tokens, double chunk_tokens) const;
  // Of collectives alone, for the choice between placements.
  double NetworkSeconds(const StepShape& shape) const;

 private:
  // A pass with its counts.
  struct Pass {
    StepShape shape;
    PassCounts counts;
    PassBounds bounds;
  };
  // Equal passes that read prompts.
  struct Chunks {
    double count = 0;
    StepShape shape;
  };
  std::array<Chunks, 2> ChunksOf(int64_t prompts, double tokens, double cached_tokens, double chunk_tokens) const;
  double PipelineShare(int64_t prompts, const std::array<Chunks, 2>& chunks) const;
  double PromptSeconds(const StepShape& shape) const;
  Pass PassOf(const StepShape& shape) const;
  double Lower(const Pass& pass) const;
  double Upper(const Pass& pass) const;
  StepResource Bound(const Pass& pass) const;
  PassSeconds Expected(const PassCounts& counts) const;
  double NetworkOf(LogicalAxis axis, const PassTraffic& traffic, bool decodes) const;
  PassSeconds Ideal(const Pass& pass) const;  // parts of the lower bound
  double ClassTime(const ClassSeconds& seconds, double ratio) const;
  void AddParts(const PassCounts& counts, const PassSeconds& seconds, double scale, PassTime& time) const;
  LogicalAxis BusiestAxis(const PassBounds& bounds) const;

  const ReplicaLoad& load_;
  PlanLaws laws_;
  TrafficSums traffic_;
  double host_seconds_per_step_ = 0;     // with decodes: all layers
  double eager_seconds_per_prompt_ = 0;  // without
  PassRates rates_;
  bool roofline_ = false;
  roofline::ServingEfficiency efficiency_;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_REPLICA_TIMER_H_
