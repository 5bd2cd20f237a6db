#include "server/planner/step_time.h"

#include <algorithm>
#include <cmath>

#include "server/planner/pipeline_schedule.h"
#include "server/planner/stage_time.h"

namespace sliceplan::planner {
namespace {

using roofline::EfficiencyProfile;

const EfficiencyProfile* ProfileOf(const TrainingJob& job) {
  return job.mode == EstimationMode::kCalibrated ? job.profile : nullptr;
}

// Stages between the first and the last with the same layers take as long.
bool IsLikePrevious(const StageSplit& stages, int32_t stage) {
  return stage >= 2 && stage + 1 < stages.stage_count && stages.OfStage(stage) == stages.OfStage(stage - 1);
}

// The slowest stage and the sum of all.
struct StageSum {
  double slowest = -1;
  int32_t slowest_stage = 0;
  double all = 0;

  void Add(double seconds, int32_t stage) {
    all += seconds;
    if (seconds <= slowest) return;
    slowest = seconds;
    slowest_stage = stage;
  }
};

// Microbatch slots of the slowest stage that pass while the others fill and drain.
double WaitsOf(const StageContext& context) {
  const Parallelism& parallelism = context.plan.parallelism;
  const PipelineShape schedule = {parallelism.schedule, context.stages.stage_count, context.plan.microbatch_count,
                                  parallelism.virtual_stage_count};
  return context.plan.gradient_accumulation * BubbleTime(schedule, {}) / StageWork().Total();
}

// The slowest stage waits while the others fill and drain: for their time, which is less than its own.
double BubbleOf(double waits, const StageSplit& stages, double sum, double largest) {
  const double others = static_cast<double>(stages.stage_count - 1);
  return waits * (others > 0 && largest > 0 ? (sum - largest) / (largest * others) : 1);
}

// Activations forward and their gradients back, once per chunk boundary of a stage.
double PermuteSeconds(const StageContext& context) {
  return 2 * static_cast<double>(context.plan.MicrobatchesPerStep()) *
         std::max(1, context.plan.parallelism.virtual_stage_count) *
         context.laws.pipeline_permute.Seconds(context.load.permute_bytes);
}

// Expected terms of the whole step.
void ExpectStep(const StageContext& context, const StageTime& stage, double permute, double bubble_microbatches,
                StepTimes& times) {
  const EfficiencyProfile& profile = *context.profile;
  const double microbatches = static_cast<double>(context.plan.MicrobatchesPerStep());
  const double slots = microbatches + bubble_microbatches;
  times.permute_exposed_seconds =
      ExposedSeconds(permute / profile.collective_ratio, profile.pipeline_exposed_ratio, slots * stage.compute_seconds);
  const int32_t slice_count = context.job.slice.slice_count;
  if (slice_count > 1) {
    times.jitter_seconds =
        profile.dcn_jitter_ratio_per_doubling * std::log2(slice_count) * microbatches * stage.compute_seconds;
  }
  times.expected_seconds = slots * stage.expected_seconds + times.permute_exposed_seconds + times.jitter_seconds +
                           stage.gradient_exposed_seconds + stage.dcn_exposed_seconds + stage.optimizer_seconds +
                           stage.accumulation_seconds + stage.host_transfer_seconds;
}

}  // namespace

StepTimes TimeStep(const TrainingJob& job, const StepPlan& plan, const StepLoad& load, const PlanLaws& laws,
                   const StageSplit& stages, StepDetails& details, TimeTerms terms) {
  details.rates = RatesOf(job);
  const WeightSharding sharding = ShardingOf(plan.parallelism, details.rates.expert_axis_shards_dense_weights);
  const StageContext context = {job, plan, load, laws, stages, sharding, details.rates, ProfileOf(job)};
  const double wide_bytes = load.wide_bytes_per_element;
  details.layers.resize(load.layers.size());
  for (size_t kind = 0; kind < load.layers.size(); ++kind) {
    details.layers[kind] = TimeLayer(job, load.layers[kind], context.rates, laws, wide_bytes, terms);
  }
  if (load.mtp_layer_count > 0) details.mtp = TimeLayer(job, load.mtp, context.rates, laws, wide_bytes, terms);

  StepTimes times;
  details.stages.resize(static_cast<size_t>(stages.stage_count));
  StageSum expected;
  StageSum lower;
  double upper = 0;
  BusySeconds busy;
  for (int32_t s = 0; s < stages.stage_count; ++s) {
    StageTime& stage = details.stages[static_cast<size_t>(s)];
    if (IsLikePrevious(stages, s)) {
      stage = details.stages[static_cast<size_t>(s - 1)];
    } else {
      stage = TimeStage(context, s, details, busy);
    }
    lower.Add(stage.lower_seconds, s);
    upper = std::max(upper, stage.upper_seconds);
    expected.Add(stage.expected_seconds, s);
    if (expected.slowest_stage == s) times.busy = busy;
  }
  times.slowest_stage = expected.slowest_stage;
  const double waits = WaitsOf(context);
  times.bubble_microbatches = BubbleOf(waits, stages, expected.all, expected.slowest);
  const double microbatches = static_cast<double>(plan.MicrobatchesPerStep());

  const StageTime& stage = details.stages[static_cast<size_t>(times.slowest_stage)];
  const double permute = PermuteSeconds(context);
  Busy(times.busy, ResourceOf(laws.pipeline_permute.slowest_tier)) += permute;
  times.lower_seconds = (microbatches + BubbleOf(waits, stages, lower.all, lower.slowest)) * lower.slowest +
                        stage.gradient_lower_seconds + stage.optimizer_lower_seconds + stage.host_transfer_seconds;
  times.upper_seconds = (microbatches + waits) * upper + permute + stage.gradient_seconds +
                        stage.optimizer_lower_seconds + stage.host_transfer_seconds;
  Busy(times.busy, StepResource::kBubble) = times.bubble_microbatches * stage.expected_seconds;
  Busy(times.busy, StepResource::kPcie) = stage.host_transfer_seconds;
  if (context.profile == nullptr) {
    times.expected_seconds = times.lower_seconds;
    return times;
  }
  ExpectStep(context, stage, permute, times.bubble_microbatches, times);
  if (terms == TimeTerms::kExpected) return times;
  // A profile fitted elsewhere must not promise more than the links and units can do.
  times.raised_seconds = std::max(0.0, times.lower_seconds - times.expected_seconds);
  times.expected_seconds += times.raised_seconds;
  return times;
}

double RetimeStep(const TrainingJob& job, const StepPlan& plan, const StepLoad& load, const PlanLaws& laws,
                  const StageSplit& stages, StepDetails& details) {
  const EfficiencyProfile* const profile = ProfileOf(job);
  if (profile == nullptr) return TimeStep(job, plan, load, laws, stages, details).expected_seconds;
  const StageContext context = {job, plan, load, laws, stages, {}, details.rates, profile};
  const double wide_bytes = load.wide_bytes_per_element;
  for (size_t kind = 0; kind < load.layers.size(); ++kind) {
    RetimeNetwork(load.layers[kind], context.rates, *profile, laws, wide_bytes, details.layers[kind]);
  }
  if (load.mtp_layer_count > 0) {
    RetimeNetwork(load.mtp, context.rates, *profile, laws, wide_bytes, details.mtp);
  }
  StageSum expected;
  for (int32_t s = 0; s < stages.stage_count; ++s) {
    StageTime& stage = details.stages[static_cast<size_t>(s)];
    if (IsLikePrevious(stages, s)) {
      stage.expected_seconds = details.stages[static_cast<size_t>(s - 1)].expected_seconds;
      expected.Add(stage.expected_seconds, s);
      continue;
    }
    RetimeStage(context, s, details);
    expected.Add(stage.expected_seconds, s);
  }
  StageTime& stage = details.stages[static_cast<size_t>(expected.slowest_stage)];
  RetimeGradients(context, stage);
  StepTimes times;
  ExpectStep(context, stage, PermuteSeconds(context),
             BubbleOf(WaitsOf(context), stages, expected.all, expected.slowest), times);
  return times.expected_seconds;
}

}  // namespace sliceplan::planner
