// What follows from a replayed load: means as measured runs have them, several pools together.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_LOAD_RESULT_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_LOAD_RESULT_H_

#include <vector>

#include "server/planner/serving/closed_loop.h"
#include "server/planner/serving/latency_stats.h"
#include "server/planner/serving/pool_system.h"

namespace sliceplan::planner {

// The loop of each replica that has users, and how many have: with fewer users than replicas some stand idle.
struct SharedLoop {
  ClosedLoop one;
  double replica_count = 1;
};
// Of a pool that takes `share` of the users. Requires what ClosedLoopOf does.
SharedLoop SharedLoopOf(const ServingJob& job, const PlannedPool& pool, double share);

// Means as measured runs have them; the replay gives the spread around them. `prefill`: the replicas that read the
// prompts, nullptr when `pool` does. CALIBRATED mode.
void Calibrate(const ServingJob& job, const PlannedPool& pool, const PlannedPool* prefill, double share,
               SystemResult& result);

// Pools side by side, each with its part of the load: their requests are one stream.
class LoadMixture {
 public:
  // The result of a pool, calibrated where it is to be.
  void Add(const SystemResult& result);
  // All of them. Percentiles are those of all requests, in bins of 1% (latency_stats.h).
  SystemResult All() const;

 private:
  struct Mixed {
    WeightedSeconds seconds;
    void Add(const Latency& latency, const std::vector<double>& samples, double weight);
    Latency All() const;
  };

  Mixed ttft_;
  Mixed tpot_;
  Mixed end_to_end_;
  Mixed normalized_;
  Mixed inter_token_;
  SystemResult all_;
  double queueing_seconds_ = 0;
  double place_wait_seconds_ = 0;
  double ttft_seconds_ = 0;
};

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_LOAD_RESULT_H_
