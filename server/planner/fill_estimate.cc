#include "server/planner/fill_estimate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/planner/advice.h"
#include "server/planner/budget.h"
#include "server/planner/closed_form.h"
#include "server/planner/cost.h"
#include "server/planner/goodput.h"
#include "server/planner/host_memory.h"
#include "server/planner/legality.h"
#include "server/planner/pipeline_schedule.h"
#include "server/planner/plan_evaluator.h"
#include "server/planner/remat.h"
#include "server/planner/step_interval.h"
#include "server/planner/thresholds.h"
#include "server/planner/words.h"
#include "server/planner/workload_check.h"

namespace sliceplan::planner {
namespace {

using hardware::Violation;
using transformer::LayerOperations;
using transformer::ModelOperations;
using transformer::WeightMatmul;

// Parameters that one token touches, tables included: what "6 x parameters x tokens" counts.
double ActiveParameterCount(const ModelOperations& model) {
  double count = static_cast<double>(model.embedding_parameter_count + model.head_parameter_count +
                                     model.final_norm_parameter_count);
  for (const LayerOperations& layer : model.layers) {
    double one = static_cast<double>(layer.norm_parameter_count + layer.other_parameter_count);
    for (const WeightMatmul& matmul : layer.matmuls) {
      const double weights = static_cast<double>(matmul.k) * static_cast<double>(matmul.n);
      one += weights * (matmul.expert_count > 0 ? matmul.rows_per_token : 1) + static_cast<double>(matmul.bias_count);
    }
    count += static_cast<double>(layer.count) * one;
  }
  return count;
}

// Width of the widest MLP that a token meets, and its experts, for the thresholds.
void SetFeedForward(const ModelOperations& model, ThresholdQuestion& question) {
  for (const LayerOperations& layer : model.layers) {
    for (const WeightMatmul& matmul : layer.matmuls) {
      if (matmul.component != transformer::Component::kFeedForward || matmul.split != transformer::TensorSplit::kRow) {
        continue;
      }
      const double width = static_cast<double>(matmul.k);
      if (matmul.expert_count > 0) {
        question.ffn_dim = width;
        question.expert_count = matmul.expert_count;
        question.experts_per_token = std::max(1, layer.experts_per_token);
        return;
      }
      question.ffn_dim = std::max(question.ffn_dim, width);
    }
  }
}

void SetThresholds(const TrainingJob& job, const EvaluatedPlan& evaluated, TrainingEstimate& estimate) {
  Thresholds& thresholds = estimate.thresholds;
  const Parallelism& parallelism = evaluated.plan.parallelism;
  thresholds.tokens_per_chip = estimate.tokens_per_step / static_cast<double>(job.slice.TotalChips());
  thresholds.tokens_per_slice = estimate.tokens_per_step / job.slice.slice_count;
  const double slots = static_cast<double>(evaluated.plan.MicrobatchesPerStep()) + evaluated.times.bubble_microbatches;
  if (parallelism.Degree(LogicalAxis::kPipeline) > 1) {
    thresholds.pipeline_bubble_ratio = evaluated.times.bubble_microbatches / slots;
  }
  ThresholdQuestion question;
  SetFeedForward(*job.model, question);
  if (question.ffn_dim <= 0) return;
  question.tensor_degree = parallelism.Degree(LogicalAxis::kTensor);
  question.pipeline_degree = parallelism.Degree(LogicalAxis::kPipeline);
  question.global_batch_tokens = estimate.tokens_per_step;
  question.compute = job.workload.precision.compute;
  const TrainingThresholds found = ThresholdsOf(job.slice, question);
  thresholds.data_tokens_per_chip = found.data_tokens_per_chip;
  thresholds.fsdp_tokens_per_chip = found.own_split_tokens_per_chip;
  thresholds.fsdp_tensor_tokens_per_chip = found.fsdp_tensor_tokens_per_chip;
  thresholds.tensor_degree_limit = found.tensor_degree_limit;
  thresholds.dcn_tokens_per_slice = found.dcn_tokens_per_slice;
  if (job.slice.accelerator.fabric == hardware::FabricKind::kTorus && job.slice.chip_count > 1) {
    const StrategyAxes axes = AxesOf(job.slice);
    if (axes.data > 0 && axes.tensor > 0) {
      thresholds.optimal_fsdp_degree =
          OptimalFsdpDegree(thresholds.tokens_per_slice, question.ffn_dim, static_cast<double>(job.slice.chip_count),
                            axes.data, axes.tensor);
    }
  }
}

void SetBottleneck(const EvaluatedPlan& evaluated, TrainingEstimate& estimate) {
  const BusySeconds& busy = evaluated.times.busy;
  size_t first = 0;
  size_t second = 1;
  for (size_t r = 0; r < busy.size(); ++r) {
    if (busy[r] > busy[first]) first = r;
  }
  second = first == 0 ? 1 : 0;
  for (size_t r = 0; r < busy.size(); ++r) {
    if (r != first && busy[r] > busy[second]) second = r;
  }
  const double step = evaluated.times.lower_seconds;
  if (step <= 0) return;
  estimate.bottleneck.resource = static_cast<StepResource>(first);
  estimate.bottleneck.next_resource = static_cast<StepResource>(second);
  estimate.bottleneck.share_ratio = std::min(1.0, busy[first] / step);
  estimate.bottleneck.next_share_ratio = std::min(1.0, busy[second] / step);
}

double RecomputeFlops(const StepLoad& load, const StageSplit& stages) {
  double flops = 0;
  for (int32_t stage = 0; stage < stages.stage_count; ++stage) {
    const auto counts = stages.OfStage(stage);
    for (size_t kind = 0; kind < counts.size(); ++kind) {
      const LayerLoad& layer = load.layers[kind];
      double one = layer.recomputes_attention ? layer.attention_flops : 0;
      for (const GroupLoad& group : layer.groups) one += group.recompute_flops;
      flops += counts[kind] * one;
    }
  }
  return flops;
}

void SetFlops(const TrainingJob& job, const EvaluatedPlan& evaluated, const StepLoad& load, const StageSplit& stages,
              TrainingEstimate& estimate) {
  const transformer::FlopsPerToken flops =
      transformer::CountFlops(*job.model, job.workload.sequence_length, job.workload.attention_mask);
  estimate.model_flops_per_step = estimate.tokens_per_step * (flops.training() + flops.training_mtp());
  const Parallelism& parallelism = evaluated.plan.parallelism;
  // Counts are of one chip and microbatch: all shards of a stage run the same.
  const double shards = static_cast<double>(parallelism.Degree(LogicalAxis::kData)) *
                        parallelism.Degree(LogicalAxis::kFsdp) * parallelism.Degree(LogicalAxis::kExpert) *
                        parallelism.Degree(LogicalAxis::kContext) * parallelism.Degree(LogicalAxis::kTensor);
  estimate.hardware_flops_per_step =
      estimate.model_flops_per_step +
      RecomputeFlops(load, stages) * shards * static_cast<double>(evaluated.plan.MicrobatchesPerStep());
}

void SetTimes(const TrainingJob& job, const EvaluatedPlan& evaluated, TrainingEstimate& estimate) {
  StepTime& time = estimate.step_time;
  time.roofline_lower_seconds = evaluated.times.lower_seconds;
  time.roofline_upper_seconds = std::max(evaluated.times.upper_seconds, evaluated.times.lower_seconds);
  time.expected_seconds = evaluated.times.expected_seconds;
  if (job.mode != EstimationMode::kCalibrated || job.profile == nullptr) return;
  bool has_experts = false;
  for (const LayerOperations& layer : job.model->layers) has_experts |= layer.expert_count > 0;
  const double low = has_experts ? job.profile->expert_low_ratio : job.profile->dense_low_ratio;
  const double high = has_experts ? job.profile->expert_high_ratio : job.profile->dense_high_ratio;
  SetStepInterval(low, high, time);
}

// Everything that follows from the step time.
void SetRun(const TrainingJob& job, TrainingEstimate& estimate) {
  const double step = estimate.step_time.expected_seconds;
  const double chips = static_cast<double>(estimate.chip_count);
  estimate.peak_flops_per_second_per_chip =
      job.slice.accelerator.MatmulRate(job.workload.precision.compute).value_or(0);
  const double peak_flops = step * chips * estimate.peak_flops_per_second_per_chip;
  estimate.mfu_ratio = estimate.model_flops_per_step / peak_flops;
  estimate.hfu_ratio = estimate.hardware_flops_per_step / peak_flops;
  estimate.tokens_per_second = estimate.tokens_per_step / step;
  estimate.tokens_per_second_per_chip = estimate.tokens_per_second / chips;
  if (job.workload.total_tokens) {
    const double steps = std::ceil(static_cast<double>(*job.workload.total_tokens) / estimate.tokens_per_step);
    estimate.time_to_train_seconds = steps * step;
  }
  estimate.goodput =
      GoodputOf(job.reliability, estimate.chip_count, step, estimate.time_to_train_seconds, estimate.warnings);
  // Unset for a job that does not finish: it has no total.
  const std::optional<double> total_seconds = estimate.goodput.wall_seconds;
  if (total_seconds) estimate.chip_hours = ChipHours(estimate.chip_count, *total_seconds);
  if (job.usd_per_chip_hour) {
    const std::optional<double> useful =
        estimate.goodput.finishes ? std::optional<double>(estimate.goodput.ratio) : std::nullopt;
    estimate.cost =
        CostOf(*job.usd_per_chip_hour, estimate.chip_count, step, estimate.tokens_per_step, useful, total_seconds);
  }
  estimate.energy = EnergyOf(job.slice.accelerator, estimate.chip_count, step, total_seconds, estimate.assumptions);
}

// A step as long as its FLOPs at the assumed rate is those FLOPs: a third forward, the rest backward.
std::vector<BreakdownEntry> AssumedBreakdown(double seconds) {
  BreakdownEntry forward;
  forward.seconds = seconds / 3;
  BreakdownEntry backward = forward;
  backward.phase = Phase::kBackward;
  backward.seconds = seconds - forward.seconds;
  return {backward, forward};
}

void ApplyAssumedMfu(const TrainingJob& job, TrainingEstimate& estimate) {
  // The book's accounting, in which an assumed MFU is meant: every active parameter, no attention.
  estimate.model_flops_per_step = TrainingFlops(ActiveParameterCount(*job.model), estimate.tokens_per_step);
  const double chips = static_cast<double>(estimate.chip_count);
  const double peak = job.slice.accelerator.MatmulRate(job.workload.precision.compute).value_or(0);
  StepTime& time = estimate.step_time;
  time.expected_seconds = SecondsAtMfu(estimate.model_flops_per_step, chips, peak, *job.assumed_mfu_ratio);
  time.p05_seconds.reset();
  time.p95_seconds.reset();
  time.assumed = true;
  estimate.breakdown = AssumedBreakdown(time.expected_seconds);
  estimate.assumptions.push_back(
      absl::StrCat("assumed_mfu_ratio ", NumberWords(*job.assumed_mfu_ratio),
                   ": step time is 6 x active parameters x tokens / (chips x peak x this), attention not counted"));
}

void SetOutcome(const TrainingJob& job, const EvaluatedPlan& evaluated, TrainingEstimate& estimate) {
  if (!evaluated.fits) {
    const int64_t host = HostShortfallBytes(estimate.memory);
    const bool on_host = estimate.memory.headroom_bytes >= 0 && host > 0;
    estimate.outcome = Outcome::kOutOfMemory;
    estimate.shortfall_amount = static_cast<double>(on_host ? host : -estimate.memory.headroom_bytes);
    return;
  }
  if (!estimate.time_to_train_seconds) return;
  // A job that does not finish meets no limit.
  const bool finishes = estimate.goodput.finishes;
  const double seconds = NeededSeconds(estimate.goodput, *estimate.time_to_train_seconds);
  if (job.deadline_seconds && (!finishes || seconds > *job.deadline_seconds)) {
    estimate.outcome = Outcome::kMissesDeadline;
    estimate.shortfall_amount = std::max(0.0, seconds - *job.deadline_seconds);
    return;
  }
  if (!job.budget_usd || !estimate.cost) return;
  const double usd = estimate.cost->usd_per_chip_hour * ChipHours(estimate.chip_count, seconds);
  if (!finishes || usd > *job.budget_usd) {
    estimate.outcome = Outcome::kOverBudget;
    estimate.shortfall_amount = std::max(0.0, usd - *job.budget_usd);
  }
}

roofline::Tier TierOf(const PlanLaws& laws, LogicalAxis axis, const WeightSharding& sharding) {
  const bool data_shards = axis == LogicalAxis::kData && sharding.shards_weights[static_cast<size_t>(axis)];
  return data_shards ? laws.weights_gather.slowest_tier : SlowestTierOf(laws, axis);
}

void SetMapping(const EvaluatedPlan& evaluated, TrainingEstimate& estimate) {
  const Parallelism& parallelism = evaluated.plan.parallelism;
  const WeightSharding sharding = ShardingOf(parallelism);
  for (LogicalAxis axis : kLogicalAxes) {
    if (parallelism.Degree(axis) == 1) continue;
    AxisPlacement placement;
    placement.axis = axis;
    placement.degree = parallelism.Degree(axis);
    placement.group = evaluated.mapping().groups[static_cast<size_t>(axis)];
    placement.slowest_tier = TierOf(evaluated.laws(), axis, sharding);
    estimate.mapping.push_back(std::move(placement));
  }
  estimate.parallelism.mapping = AssignmentsOf(evaluated.mapping());
}

void SetPlan(const TrainingJob& job, const EvaluatedPlan& evaluated, const StageSplit& stages,
             TrainingEstimate& estimate) {
  const StepPlan& plan = evaluated.plan;
  estimate.parallelism = plan.parallelism;
  estimate.parallelism.microbatch_count = plan.microbatch_count;
  estimate.chip_count = job.slice.TotalChips();
  estimate.idle_chip_count = estimate.chip_count - plan.parallelism.ici.Product() * plan.parallelism.dcn.Product();
  estimate.remat_policy = plan.remat_policy;
  estimate.gradient_accumulation = plan.gradient_accumulation;
  estimate.microbatch_count = plan.microbatch_count;
  estimate.microbatch_size = plan.microbatch_size;
  estimate.layers_per_stage.assign(stages.layers_per_chunk.begin(), stages.layers_per_chunk.end());
  estimate.tokens_per_step =
      static_cast<double>(job.workload.global_batch_size) * static_cast<double>(job.workload.sequence_length);
  SetMapping(evaluated, estimate);
}

void AddChoices(const TrainingJob& job, TrainingEstimate& estimate) {
  if (!job.workload.remat_policy && job.workload.checkpoints_per_layer == 0) {
    estimate.assumptions.push_back(
        absl::StrCat("recompute policy ", RematPolicyName(estimate.remat_policy), ": the fastest that fits"));
  }
  if (!job.workload.gradient_accumulation && estimate.gradient_accumulation > 1) {
    estimate.assumptions.push_back(
        absl::StrCat("gradient accumulation over ", estimate.gradient_accumulation, " rounds: the fastest that fits"));
  }
  if (estimate.step_time.expected_seconds > 0 && job.mode == EstimationMode::kCalibrated && job.profile != nullptr &&
      !estimate.step_time.assumed) {
    estimate.assumptions.push_back(absl::StrCat("calibration profile ", job.profile->name, " ", job.profile->version));
  }
}

}  // namespace

void CheckAccelerator(const TrainingJob& job, std::vector<Violation>& violations) {
  const hardware::AcceleratorSpec& chip = job.slice.accelerator;
  const absl::string_view spec = job.slice.accelerator_id.empty() ? "slice.custom." : "slice.override.";
  const auto require = [&](bool known, absl::string_view field, absl::string_view what) {
    if (known) return;
    violations.push_back({absl::StrCat(spec, field),
                          absl::StrCat("the ", what, " of ", chip.name.empty() ? "this chip" : chip.name,
                                       " is not public; set it to plan with it"),
                          "ACCELERATOR_FIGURE_UNKNOWN", Violation::Kind::kInvalid});
  };
  const hardware::DataType compute = job.workload.precision.compute;
  require(chip.MatmulRate(compute).value_or(0) > 0,
          compute == hardware::DataType::kFp32 ? "fp32_flops_per_second" : "bf16_flops_per_second",
          absl::StrCat("matmul rate in ", hardware::DataTypeName(compute)));
  require(chip.hbm_bytes_per_second.value_or(0) > 0, "hbm_bytes_per_second", "HBM bandwidth");
  require(chip.AllocatableBytes().value_or(0) > 0, "hbm_bytes", "HBM capacity");
}

void FillEstimate(const TrainingJob& job, const EvaluatedPlan& evaluated, PlanEvaluator& evaluator,
                  TrainingEstimate& estimate) {
  const TrainingJob& run = evaluator.JobOf(evaluated.plan);
  evaluator.Recount(evaluated);
  SetPlan(job, evaluated, evaluator.stages(), estimate);
  estimate.memory = evaluated.memory;
  SetHostMemory(run, evaluated.plan, evaluator.load(), evaluator.stages(), estimate.memory);
  if (evaluator.stages().stage_count > 1) {
    for (int32_t stage = 0; stage < evaluator.stages().stage_count; ++stage) {
      estimate.stage_memory.push_back(StageMemory(run, evaluated.plan, evaluator.load(), evaluator.stages(), stage));
      SetHostMemory(run, evaluated.plan, evaluator.load(), evaluator.stages(), estimate.stage_memory.back());
    }
  }
  SetFlops(job, evaluated, evaluator.load(), evaluator.stages(), estimate);
  SetTimes(job, evaluated, estimate);
  estimate.breakdown = Breakdown(run, evaluated.plan, evaluator.load(), evaluated.laws(), evaluator.stages(),
                                 evaluator.details(), evaluated.times);
  SetBottleneck(evaluated, estimate);
  if (job.assumed_mfu_ratio) ApplyAssumedMfu(job, estimate);
  SetRun(job, estimate);
  SetThresholds(job, evaluated, estimate);
  SetOutcome(job, evaluated, estimate);
  AddChoices(job, estimate);
  Advise(job, estimate);
}

void FillWithoutPlan(const TrainingJob& job, TrainingEstimate& estimate) {
  estimate.outcome = Outcome::kNoLegalPlan;
  estimate.chip_count = job.slice.TotalChips();
  estimate.tokens_per_step =
      static_cast<double>(job.workload.global_batch_size) * static_cast<double>(job.workload.sequence_length);
  estimate.memory.capacity_bytes = job.slice.accelerator.AllocatableBytes().value_or(0);
  const transformer::FlopsPerToken flops =
      transformer::CountFlops(*job.model, job.workload.sequence_length, job.workload.attention_mask);
  estimate.model_flops_per_step = estimate.tokens_per_step * (flops.training() + flops.training_mtp());
  estimate.hardware_flops_per_step = estimate.model_flops_per_step;
  if (job.assumed_mfu_ratio) {
    ApplyAssumedMfu(job, estimate);
    SetRun(job, estimate);
  }
  Advise(job, estimate);
}

}  // namespace sliceplan::planner
