// The mean field of a serving system: every quantity replaced by its mean, in microseconds instead of the replay's
// milliseconds. Where a replica saturates, and what it does below that. docs of the terms: replay.h.
//
// Good to a few percent for rates and batches, to a tenth for TPOT; TTFT near saturation is an order of magnitude
// (tests/planner/saturation_test.cc has the distances from the replay). Means only: percentiles are the replay's. A
// closed loop of requests that are all the same marches in step, which a mean field does not see: prompts then wait for
// each other, and decodes are disturbed less.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_SATURATION_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_SATURATION_H_

#include <cstdint>

#include "server/planner/serving/serving_load.h"

namespace sliceplan::planner {

// What keeps a system from more requests.
enum class ServingLimit {
  kBatchSize,  // sequences resident
  kKvCache,    // blocks of the cache
  kPrefill,    // reading prompts: the step's token budget, or the prefill replicas
};

// Of the whole system, except where a replica is named.
struct Saturation {
  // From here on the queue grows without end. 0 when the mean request fits no replica.
  double requests_per_second = 0;
  ServingLimit limit = ServingLimit::kBatchSize;
  double batch_size = 0;    // resident per replica that decodes
  double tpot_seconds = 0;  // with that batch
};

struct MeanField {
  bool is_stable = true;  // otherwise everything else describes the saturated system, TTFT is infinite in an open loop
  double requests_per_second = 0;
  double batch_size = 0;    // resident per replica that decodes, mean
  double tpot_seconds = 0;  // interference of prompts included
  double ttft_seconds = 0;
  double queueing_seconds = 0;  // of ttft_seconds
  double end_to_end_seconds = 0;
  // Closed loop: mean TTFT of the users' first requests, which all start at once.
  double startup_ttft_seconds = 0;
};

// Requires what the structs ask for.
Saturation SaturationOf(const ServingSystem& system, const RequestMix& mix);

// At `requests_per_second` >= 0 over all replicas.
MeanField OpenLoopMeanField(const ServingSystem& system, const RequestMix& mix, double requests_per_second,
                            double arrival_burstiness);

// `users` >= 1 over all replicas, spread evenly.
MeanField ClosedLoopMeanField(const ServingSystem& system, const RequestMix& mix, int64_t users);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_SATURATION_H_
