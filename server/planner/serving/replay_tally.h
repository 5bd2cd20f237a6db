// What the replay measures.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_REPLAY_TALLY_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_REPLAY_TALLY_H_

#include <cstdint>
#include <vector>

#include "server/planner/serving/engine_replica.h"
#include "server/planner/serving/latency_stats.h"
#include "server/planner/serving/replay.h"

namespace sliceplan::planner {

// Latencies of measured requests.
class ReplayTally {
 public:
  explicit ReplayTally(const LatencyLimits& limits) : limits_(limits) {}

  // Its last token was written at `now`.
  void Record(const ReplayRequest& request, double now);
  void FillLatencies(ReplayResult& result);
  double ShareWithinLimits() const;
  WeightedSeconds& gaps() { return gaps_; }

 private:
  const LatencyLimits limits_;
  std::vector<double> ttft_;
  std::vector<double> tpot_;
  std::vector<double> end_to_end_;
  std::vector<double> normalized_;
  WeightedSeconds gaps_;
  double queueing_seconds_ = 0;
  int64_t within_limits_ = 0;
};

// What has come out up to a moment.
struct Output {
  double seconds = 0;
  int64_t requests = 0;
  double output_tokens = 0;
  double input_tokens = 0;
  StationTotals main;
  double prefill_busy_seconds = 0;
};

// Rates between two moments.
void FillRates(const Output& start, const Output& stop, double replicas, double prefill_replicas, ReplayResult& result);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_REPLAY_TALLY_H_
