// What the replay measures.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_REPLAY_TALLY_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_REPLAY_TALLY_H_

#include <array>
#include <cstdint>
#include <vector>

#include "server/planner/serving/engine_replica.h"
#include "server/planner/serving/latency_stats.h"
#include "server/planner/serving/replay.h"

namespace sliceplan::planner {

// Whether a bar is missed for certain, however the rest of at most `count` requests goes.
class BarWatch {
 public:
  BarWatch(const LatencyBar& bar, int64_t count);
  void Add(double seconds);
  bool IsMissed() const { return is_missed_; }

 private:
  // As many requests may be above a percentile's limit.
  struct Percentile {
    double limit_seconds;
    int64_t left;
  };

  double mean_seconds_left_;  // of the sum that the mean allows
  std::array<Percentile, 3> percentiles_;
  bool is_missed_ = false;
};

// Latencies of measured requests, at most `count` of them.
class ReplayTally {
 public:
  ReplayTally(const LatencyLimits& limits, const LatencyBars& bars, int64_t count)
      : limits_(limits), ttft_bar_(bars.ttft, count), tpot_bar_(bars.tpot, count), all_bar_(bars.end_to_end, count) {}

  // Its last token was written at `now`.
  void Record(const ReplayRequest& request, double now);
  void FillLatencies(ReplayResult& result);
  // After FillLatencies; nothing is left here.
  LatencySamples TakeSamples();
  double ShareWithinLimits() const;
  // A bar is missed whatever comes.
  bool IsHopeless() const { return ttft_bar_.IsMissed() || tpot_bar_.IsMissed() || all_bar_.IsMissed(); }
  WeightedSeconds& gaps() { return gaps_; }

 private:
  const LatencyLimits limits_;
  BarWatch ttft_bar_;
  BarWatch tpot_bar_;
  BarWatch all_bar_;
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
