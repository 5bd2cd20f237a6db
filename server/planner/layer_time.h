// Seconds of one layer in one microbatch on one chip: the roofline's two ends and the expected parts.
// Chapters 1, 5 and 12 of "How To Scale Your Model"; the terms of the expected time are those of EfficiencyProfile.
#ifndef SLICEPLAN_SERVER_PLANNER_LAYER_TIME_H_
#define SLICEPLAN_SERVER_PLANNER_LAYER_TIME_H_

#include <array>
#include <optional>

#include "server/planner/plan_laws.h"
#include "server/planner/step_load.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

inline constexpr int kStepResourceCount = 10;

// Seconds that a step would keep each resource busy if nothing else existed.
using BusySeconds = std::array<double, kStepResourceCount>;

// The slowest resource of one group of operations, each collective hidden behind the operation that it feeds or
// follows.
struct BoundPart {
  double seconds = 0;
  StepResource resource = StepResource::kMatrixUnit;
  std::optional<LogicalAxis> axis;  // when a collective binds
};

// Expected seconds by phase.
struct PhaseSeconds {
  double forward = 0;
  double backward = 0;
  double recompute = 0;
  double Total() const { return forward + backward + recompute; }
};

// One layer, one microbatch, one chip.
struct LayerTime {
  std::array<BoundPart, kOpGroupCount> forward_bound;
  std::array<BoundPart, kOpGroupCount> backward_bound;  // recompute included
  double lower_seconds = 0;
  double backward_lower_seconds = 0;
  double upper_seconds = 0;
  BusySeconds busy = {};

  std::array<PhaseSeconds, kOpGroupCount> matrix;  // expected
  std::array<PhaseSeconds, kOpGroupCount> hbm;
  PhaseSeconds attention;
  double gathered_weights_seconds = 0;
  double launch_seconds = 0;
  double host_seconds = 0;      // floor of the layer
  double backward_seconds = 0;  // of matrix, hbm and attention, recompute included
  double compute_seconds = 0;   // matrix + hbm + attention + gathered weights + launch
  double weights_seconds = 0;   // FSDP traffic before overlap
  double tensor_exposed_seconds = 0;
  double context_exposed_seconds = 0;
  double expert_exposed_seconds = 0;
};

// The constants of a chip and a runtime, worked out once per plan.
struct LayerRates {
  double flops_per_second = 0;       // peak of the compute type
  double wide_flops_per_second = 0;  // peak of 16- or 32-bit operands
  double hbm_bytes_per_second = 0;
  // Expected seconds per kernel FLOP of dense matmuls, of matmuls that stay wide, and of the attention kernel.
  double seconds_per_matmul_flop = 0;
  double seconds_per_wide_flop = 0;
  double seconds_per_attention_flop = 0;
  double attention_backward_forwards = 0;
  double operand_passes = 0;  // of matmul operands that show, quantisation included
  double elementwise_bytes_per_second = 0;
  double devices_per_chip = 1;
  double gradient_bytes_per_element = 2;  // on the wire
  bool low_precision = false;
  bool expert_axis_shards_dense_weights = false;

  // Of weights outside experts.
  const roofline::CollectiveLaw& DenseGather(const PlanLaws& laws) const {
    return expert_axis_shards_dense_weights ? laws.weights_gather_with_expert : laws.weights_gather;
  }
  const roofline::CollectiveLaw& DenseScatter(const PlanLaws& laws) const {
    return expert_axis_shards_dense_weights ? laws.weights_scatter_with_expert : laws.weights_scatter;
  }
};

LayerRates RatesOf(const TrainingJob& job);

// What a collective of `seconds` adds to `compute_seconds` beside it when `exposed_ratio` of it shows: at least what
// compute is too short to hide.
double ExposedSeconds(double seconds, double exposed_ratio, double compute_seconds);

// What of a step's time is asked for: all, or only what adds up to the expected seconds before they are raised to the
// lower bound. The second is a lower bound of the first.
enum class TimeTerms { kAll, kExpected };

LayerTime TimeLayer(const TrainingJob& job, const LayerLoad& load, const LayerRates& rates, const PlanLaws& laws,
                    double wide_bytes_per_element, TimeTerms terms = TimeTerms::kAll);

// Replaces the expected network terms of a layer timed under other laws of groups of the same sizes. Calibrated only.
void RetimeNetwork(const LayerLoad& load, const LayerRates& rates, const roofline::EfficiencyProfile& profile,
                   const PlanLaws& laws, double wide_bytes_per_element, LayerTime& time);

StepResource ResourceOf(roofline::Tier tier);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_LAYER_TIME_H_
