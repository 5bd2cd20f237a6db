// The replicas of a job as one system under its load: what it sustains and how long requests take.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_POOL_SYSTEM_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_POOL_SYSTEM_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "server/planner/serving/batch_point.h"
#include "server/planner/serving/replay.h"
#include "server/planner/serving/replica_plan.h"
#include "server/planner/serving/saturation.h"
#include "server/planner/serving/serving_estimate.h"

namespace sliceplan::planner {

// A pool with its plan. The plan outlives it.
struct PlannedPool {
  const ReplicaPlan* plan = nullptr;
  int64_t replica_count = 1;
  int64_t max_batch_size = 0;  // that fits, per replica
};

// Requests per second from which a queue grows without end: of the replicas of `pool`, alone in its role.
double SustainedRate(const ServingJob& job, const PlannedPool& pool);
// Of `main` with the prompts read by `prefill` where given.
double SustainedRate(const ServingJob& job, const PlannedPool& main, const PlannedPool* prefill);

// One replica of `pool` at a rate, in the mean.
MeanField MeanFieldAt(const ServingJob& job, const PlannedPool& pool, double requests_per_second);
// Its seconds from arrival to the last token; the largest number beyond saturation.
double MeanSeconds(const ServingJob& job, const PlannedPool& pool, double requests_per_second);

// Cache of one prompt, handed from a prefill replica to a decode replica over the data-centre network or, on GPUs, the
// leaf and spine network.
struct CacheTransfer {
  double seconds = 0;
  double bytes = 0;
  roofline::Tier tier = roofline::Tier::kNone;
  bool rate_is_known = true;
};
// Bytes per second out of or into a replica; nullopt when the figure is not public.
std::optional<double> HandOverRate(const hardware::Slice& slice);
CacheTransfer TransferOf(const ServingJob& job, const ReplicaPlan& prefill, const ReplicaPlan& decode);

// What a load does to the system.
struct SystemResult {
  Latency ttft;
  Latency tpot;
  Latency inter_token;
  Latency end_to_end;
  Latency normalized;
  double requests_per_second = 0;
  double output_tokens_per_second = 0;
  double input_tokens_per_second = 0;
  double goodput_requests_per_second = 0;
  double mean_batch_size = 0;
  double queueing_share = 0;
  double place_wait_seconds = 0;  // of the mean TTFT: users beyond the places of a calibrated closed loop
  double busy_ratio = 0;
  double prefill_busy_ratio = 0;
  int64_t preemptions = 0;
  bool unstable = false;
  LatencySamples samples;  // where other pools take the rest of the load; not calibrated
  bool cancelled = false;
  bool missed = false;  // stopped early: a target is missed for certain, nothing else is filled
};

enum class ReplayEnd { kWhenAllIsMeasured, kWhenATargetIsMissed };

// Replays the load (kConcurrency or kRate) on `main`, prompts read by `prefill` where given. `share` of the load goes
// to these replicas. kWhenATargetIsMissed, at a rate only: it may end as soon as the answer to "are all targets met" is
// no; what Calibrate adds only lengthens times.
SystemResult ReplayLoad(const ServingJob& job, const PlannedPool& main, const PlannedPool* prefill, double share,
                        const std::function<bool()>& cancelled, ReplayEnd end = ReplayEnd::kWhenAllIsMeasured);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_POOL_SYSTEM_H_
