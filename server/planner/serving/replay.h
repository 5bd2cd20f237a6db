// A deterministic discrete-event replay of a serving system: every request, every step of every engine, with runs of
// decode steps in which nobody comes or goes taken in one go. docs of the terms: proto/sliceplan/v1/serving.proto.
//
// Order: at one instant arrivals come before the end of a step, and an engine starts its next step after everybody has
// been told of the last one. The first token is written by the step that ends the prompt; with separate prefill
// replicas it is out when the transfer ends. A sequence that finds no free block sends the youngest resident sequence
// back to the head of the queue, whose cache is then computed again (vLLM's recompute); the oldest always goes on.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_REPLAY_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_REPLAY_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "server/planner/serving/latency_stats.h"
#include "server/planner/serving/serving_load.h"

namespace sliceplan::planner {

// Upper limits of one request, seconds.
struct LatencyLimits {
  double ttft_seconds = std::numeric_limits<double>::infinity();
  double tpot_seconds = std::numeric_limits<double>::infinity();
  double end_to_end_seconds = std::numeric_limits<double>::infinity();
};

// Upper limits of all requests together, seconds.
struct LatencyBar {
  double mean_seconds = std::numeric_limits<double>::infinity();
  double p50_seconds = std::numeric_limits<double>::infinity();
  double p95_seconds = std::numeric_limits<double>::infinity();
  double p99_seconds = std::numeric_limits<double>::infinity();
};
struct LatencyBars {
  LatencyBar ttft;
  LatencyBar tpot;
  LatencyBar end_to_end;
};

struct ReplayOptions {
  int64_t request_count = 10'000;  // measured; 1 to 2^24
  uint64_t seed = 1;
  // Measure from an empty system to an empty one, as a benchmark tool with so many prompts does. Otherwise requests are
  // not measured that arrive before W others have finished: W = request_count / 10, in a closed loop at least the
  // users' first requests, at most request_count; an open loop measures after request_count arrivals at the latest. The
  // load then goes on until the last measured request is finished, for 2 x request_count more arrivals at most. Rates
  // are taken from the end of the warm-up until request_count requests have finished.
  bool include_startup = false;
  LatencyLimits limits;
  // It stops as soon as one of these is missed whatever the rest of the requests does, `is_hopeless` true.
  LatencyBars bars;
  bool keep_samples = false;        // fills ReplayResult::samples
  int64_t max_events = 50'000'000;  // then it stops, `complete` false
};

// Every measured latency, in no order; seconds between tokens in bins.
struct LatencySamples {
  std::vector<double> ttft;
  std::vector<double> tpot;
  std::vector<double> end_to_end;
  std::vector<double> normalized_time_per_output_token;
  std::optional<WeightedSeconds> inter_token;
};

struct ReplayResult {
  // Latencies per measured request, from its arrival.
  LatencySummary ttft;        // queueing, prefill and transfer
  LatencySummary tpot;        // (last token - first token) / (output - 1); outputs of 1 do not count
  LatencySummary end_to_end;  // to the last token
  LatencySummary normalized_time_per_output_token;  // end_to_end / output
  // Per token written after the warm-up. Tokens of one speculative step split its time evenly.
  LatencySummary inter_token;
  LatencySamples samples;             // with keep_samples
  double queueing_share_of_ttft = 0;  // time before the first step that reads the prompt / TTFT, means

  double requests_per_second = 0;
  double output_tokens_per_second = 0;
  double input_tokens_per_second = 0;      // cached ones included
  double goodput_requests_per_second = 0;  // requests_per_second x share of measured requests within all limits

  // Of the replicas that decode, after the warm-up, per replica.
  double mean_batch_size = 0;  // resident sequences over time
  double mean_step_seconds = 0;
  double busy_ratio = 0;
  double prefill_busy_ratio = 0;  // of the prefill replicas, where there are

  // More requests queued up in the measured part than chance explains: growth above three standard deviations of the
  // number of arrivals, Poisson's at least. Closed loops are never unstable. Just above saturation a short replay
  // cannot tell: see saturation.h.
  bool is_unstable = false;
  bool is_complete = true;   // false when cancelled or out of events: figures are of what was replayed
  bool is_hopeless = false;  // a bar is missed; figures are of what was replayed

  // Counters from the start, warm-up included.
  int64_t measured_requests = 0;  // that finished
  int64_t finished_requests = 0;
  int64_t unservable_requests = 0;  // whose cache fits no empty replica; turned away on arrival
  int64_t max_batch_size = 0;       // most resident on one replica that decodes
  int64_t preemptions = 0;
  int64_t engine_steps = 0;
  int64_t events = 0;                      // arrivals, admissions, prompt chunks, runs of steps, finished requests
  int64_t written_tokens = 0;              // output tokens of finished requests
  int64_t computed_prompt_tokens = 0;      // by prefill, recomputed ones included
  int64_t largest_prompt_step_tokens = 0;  // prompt tokens and tokens of decodes beside them, most in one step
  int64_t peak_kv_blocks = 0;              // most in use on one replica
  double simulated_seconds = 0;
  double mean_requests_in_system = 0;  // over the simulated time
};

// Replays `load` on `system`. Equal arguments give equal results. `cancelled` is asked every few thousand events.
// Requires what the structs ask for.
ReplayResult Replay(const ServingSystem& system, const RequestMix& mix, const Load& load,
                    const ReplayOptions& options = {}, const std::function<bool()>& cancelled = nullptr);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_REPLAY_H_
