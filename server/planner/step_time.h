// Seconds of a training step from its counts: the roofline's two ends and what a runtime is expected to reach.
// "Time" and "schedule" of count, time, schedule. Chapters 1, 5 and 12 of "How To Scale Your Model"; the terms of the
// expected time are those of EfficiencyProfile, derived in docs/training.md.
#ifndef SLICEPLAN_SERVER_PLANNER_STEP_TIME_H_
#define SLICEPLAN_SERVER_PLANNER_STEP_TIME_H_

#include <vector>

#include "absl/container/inlined_vector.h"
#include "server/planner/layer_time.h"
#include "server/planner/plan_laws.h"
#include "server/planner/stage_split.h"
#include "server/planner/step_load.h"
#include "server/planner/training_estimate.h"
#include "server/planner/training_job.h"

namespace sliceplan::planner {

// One microbatch through one pipeline stage.
struct StageTime {
  double lower_seconds = 0;
  double upper_seconds = 0;
  double compute_seconds = 0;     // with the host floor
  double host_extra_seconds = 0;  // what the floor added
  double weights_seconds = 0;
  double weights_exposed_seconds = 0;
  double expected_seconds = 0;
  double backward_seconds = 0;  // of compute
  // Once per step.
  double dense_reduced_bytes = 0;  // gradients of one chip that are all-reduced
  double expert_reduced_bytes = 0;
  double gradient_seconds = 0;          // all-reduce before overlap
  double gradient_lower_seconds = 0;    // what cannot hide behind the backward pass
  double gradient_exposed_seconds = 0;  // expected, inside a slice
  double dcn_exposed_seconds = 0;       // expected, between slices
  double optimizer_seconds = 0;
  double optimizer_lower_seconds = 0;
  double accumulation_seconds = 0;
  double host_transfer_seconds = 0;        // PCIe time that nothing hides
  double activation_transfer_seconds = 0;  // of it, for saved activations
};

struct StepTimes {
  double lower_seconds = 0;
  double upper_seconds = 0;
  double expected_seconds = 0;
  BusySeconds busy = {};  // of the slowest stage
  int32_t slowest_stage = 0;
  double bubble_microbatches = 0;  // idle microbatch slots per step
  double jitter_seconds = 0;       // between slices
  double permute_exposed_seconds = 0;
  double raised_seconds = 0;  // added so that the expectation is not below the lower bound
};

// Working memory of TimeStep, reused between plans, and its details for the breakdown.
struct StepDetails {
  LayerRates rates;
  absl::InlinedVector<LayerTime, 4> layers;  // by kind
  LayerTime mtp;
  absl::InlinedVector<StageTime, 8> stages;
  PhaseSeconds head;          // matrix unit, one microbatch
  double logits_seconds = 0;  // HBM, one microbatch
  double embedding_seconds = 0;
  BoundPart head_bound;  // forward and backward together
  BoundPart embedding_bound;
};

// Requires a legal plan, the counts of CountStep and the laws of its mapping. The accelerator must have a matmul rate
// for the compute type and an HBM rate (checked by EstimateTraining).
StepTimes TimeStep(const TrainingJob& job, const StepPlan& plan, const StepLoad& load, const PlanLaws& laws,
                   const StageSplit& stages, StepDetails& details, TimeTerms terms = TimeTerms::kAll);

// The expected seconds of the plan that TimeStep timed last with `details`, under other laws of groups of the same
// sizes and before they are raised to the lower bound: never more than TimeStep's, at a tenth of its price. Only
// network terms of `details` change; the rest stays for further laws. In roofline mode TimeStep's.
double RetimeStep(const TrainingJob& job, const StepPlan& plan, const StepLoad& load, const PlanLaws& laws,
                  const StageSplit& stages, StepDetails& details);

// Parts that sum to expected_seconds, largest first within each layer group; zero parts are left out.
std::vector<BreakdownEntry> Breakdown(const TrainingJob& job, const StepPlan& plan, const StepLoad& load,
                                      const PlanLaws& laws, const StageSplit& stages, const StepDetails& details,
                                      const StepTimes& times);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_STEP_TIME_H_
