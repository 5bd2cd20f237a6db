// One pass of a replica in numbers: what its busiest chip reads, computes and sends. A pass is one decode step, the
// prefill of prompts, or both together.
#ifndef SLICEPLAN_SERVER_PLANNER_SERVING_PASS_COUNTS_H_
#define SLICEPLAN_SERVER_PLANNER_SERVING_PASS_COUNTS_H_

#include <array>

#include "server/hardware/accelerator.h"
#include "server/planner/parallelism.h"
#include "server/planner/plan_laws.h"
#include "server/planner/serving/replica_load.h"
#include "server/planner/serving/step_shape.h"

namespace sliceplan::planner {

// Collectives over one logical axis.
struct PassTraffic {
  double decode_seconds = 0;   // of decoding tokens, at link rate
  double prefill_seconds = 0;  // of prompt tokens
  double count = 0;            // collectives; a gather and a reduction of one branch count as one
};

// What every token of a pass sends over one axis, all layers together.
struct AxisTraffic {
  double seconds_per_token = 0;  // at link rate
  double count = 0;              // collectives of a pass
};
using TrafficSums = std::array<AxisTraffic, kLogicalAxisCount>;
TrafficSums TrafficOf(const ReplicaLoad& load, const PlanLaws& laws);

struct PassCounts {
  double decode_rows = 0;         // tokens on the chip
  double decode_sequences = 0;    // whose caches it reads, of one microbatch
  double resident_sequences = 0;  // on the data rank, all microbatches
  double prefill_rows = 0;
  double prefill_sequences = 0;
  double dense_weight_bytes = 0;    // head included
  double widened_weight_bytes = 0;  // the part of it in integers that are multiplied in 16 bits
  double expert_weight_bytes = 0;
  double unpacked_expert_weight_bytes = 0;  // the part of four-bit experts that are unpacked
  double kv_bytes = 0;
  double activation_bytes = 0;       // operands of matmuls and elementwise work, each once
  double kernel_bytes = 0;           // of prompts, between the matmuls
  ClassSeconds decode_seconds = {};  // matmuls with weights
  ClassSeconds prefill_seconds = {};
  double decode_attention_flops = 0;
  double prefill_attention_flops = 0;
  std::array<PassTraffic, kLogicalAxisCount> traffic;

  double WeightBytes() const { return dense_weight_bytes + expert_weight_bytes; }
  double ComputeSeconds() const;  // at peak
};

// What the roofline adds: every collective at least its latency, and operations one after the other.
struct PassBounds {
  std::array<double, kLogicalAxisCount> network_seconds = {};
  // The sum over dependent operations of the slowest resource of each, the cache of decodes left out.
  double lower_seconds = 0;
  double NetworkSeconds() const;
};

// The rates of a chip that a pass needs.
struct PassRates {
  double hbm_bytes_per_second = 0;
  double flops_per_second = 0;  // of 16-bit operands: attention
};

PassRates PassRatesOf(const hardware::AcceleratorSpec& accelerator);

// `shape` is of the whole replica. `expert_choice_ratio` as in ServingEfficiency.
PassCounts CountPass(const ReplicaLoad& load, const TrafficSums& traffic, double expert_choice_ratio,
                     const StepShape& shape);

PassBounds BoundPass(const ReplicaLoad& load, const PlanLaws& laws, const PassRates& rates, const StepShape& shape,
                     const PassCounts& counts);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_SERVING_PASS_COUNTS_H_
