#include "server/planner/plan_evaluator.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "server/planner/host_memory.h"
#include "server/planner/legality.h"

namespace sliceplan::planner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Of more than these, those that cannot win are found faster than they are timed.
constexpr size_t kFewMappings = 4;

// Fewest operations run again first.
constexpr std::array<RematPolicy, 7> kPoliciesByRecompute = {
    RematPolicy::kNone,    RematPolicy::kMinimalFlash,     RematPolicy::kSaveDotWithContextExceptMlp,
    RematPolicy::kMinimal, RematPolicy::kSaveDotExceptMlp, RematPolicy::kSaveQkvProj,
    RematPolicy::kFull};

}  // namespace

int64_t MicrobatchSize(const TrainingWorkload& workload, const Parallelism& parallelism, int32_t accumulation,
                       int32_t microbatch_count) {
  const int64_t parts = static_cast<int64_t>(parallelism.Degree(LogicalAxis::kData)) *
                        parallelism.Degree(LogicalAxis::kFsdp) * parallelism.Degree(LogicalAxis::kExpert) *
                        accumulation * microbatch_count;
  return workload.global_batch_size % parts == 0 ? workload.global_batch_size / parts : 0;
}

const PlanLaws& EvaluatedPlan::laws() const { return mappings->laws[mapping_index]; }
const MappedAxes& EvaluatedPlan::mapping() const { return mappings->mappings[mapping_index]; }

bool PlanEvaluator::ChooseMapping(EvaluatedPlan& evaluated, double limit_seconds) {
  if (evaluated.mappings == nullptr) return SearchMapping(evaluated, limit_seconds);
  const TrainingJob& job = JobOf(evaluated.plan);
  const std::vector<PlanLaws>& laws = evaluated.mappings->laws;
  bool found = false;
  const bool many = laws.size() > kFewMappings;
  if (many) TimeStep(job, evaluated.plan, *load_, laws.front(), stages_, details_, TimeTerms::kExpected);
  for (size_t i = 0; i < laws.size(); ++i) {
    if (many && RetimeStep(job, evaluated.plan, *load_, laws[i], stages_, details_) >= limit_seconds) continue;
    const StepTimes times = TimeStep(job, evaluated.plan, *load_, laws[i], stages_, details_);
    if (times.expected_seconds >= limit_seconds) continue;
    limit_seconds = times.expected_seconds;
    evaluated.times = times;
    evaluated.mapping_index = i;
    found = true;
  }
  return found;
}

bool PlanEvaluator::SearchMapping(EvaluatedPlan& evaluated, double limit_seconds) {
  const TrainingJob& job = JobOf(evaluated.plan);
  const StepPlan& plan = evaluated.plan;
  TimeStep(job, plan, *load_, placements_.SomeLaws(), stages_, details_, TimeTerms::kExpected);
  const auto floor = [&](const PlanLaws& laws) { return RetimeStep(job, plan, *load_, laws, stages_, details_); };
  const auto seconds = [&](const PlanLaws& laws) {
    const StepTimes times = TimeStep(job, plan, *load_, laws, stages_, details_);
    if (times.expected_seconds < limit_seconds) {
      limit_seconds = times.expected_seconds;
      evaluated.times = times;
    }
    return times.expected_seconds;
  };
  if (!placements_.Find(floor, seconds, limit_seconds)) return false;
  auto set = std::make_shared<MappingSet>();
  set->mappings.push_back(placements_.Mapping());
  set->laws.push_back(placements_.laws());
  set->enumerated_count = 1;
  set->truncated = placements_.truncated();
  evaluated.mappings = std::move(set);
  evaluated.mapping_index = 0;
  return true;
}

PlanEvaluator::PlanEvaluator(const TrainingJob& job, MappingCache& mappings, StepLoadCache* loads)
    : job_(job), mappings_(mappings), placements_(job.slice, job.allow_idle_chips), loads_(loads) {
  if (const auto& format = job.workload.precision.accumulated_gradients) {
    accumulating_job_ = job;
    TrainingPrecision& precision = accumulating_job_->workload.precision;
    if (precision.gradient_reduction == precision.gradients) precision.gradient_reduction = *format;
    precision.gradients = *format;
  }
}

const TrainingJob& PlanEvaluator::JobOf(const StepPlan& plan) const {
  return plan.gradient_accumulation > 1 && accumulating_job_ ? *accumulating_job_ : job_;
}

StepPlan PlanEvaluator::PlanOf(Parallelism parallelism, RematPolicy policy, int32_t accumulation) const {
  const bool whole_layer =
      job_.mode == EstimationMode::kCalibrated && job_.profile != nullptr && job_.profile->whole_layer_recompute;
  StepPlan plan;
  plan.remat_policy = policy;
  plan.remat = PlanRemat(policy, job_.workload, whole_layer);
  plan.gradient_accumulation = accumulation;
  plan.microbatch_count = parallelism.microbatch_count;
  if (plan.microbatch_count == 0) {
    const bool pipelined = parallelism.Degree(LogicalAxis::kPipeline) > 1;
    plan.microbatch_count = pipelined
                                ? static_cast<int32_t>(std::min<int64_t>(
                                      MicrobatchSize(job_.workload, parallelism, accumulation, 1), kMaxMicrobatches))
                                : 1;
  }
  plan.microbatch_size =
      plan.microbatch_count < 1 ? 0 : MicrobatchSize(job_.workload, parallelism, accumulation, plan.microbatch_count);
  plan.parallelism = std::move(parallelism);
  return plan;
}

bool PlanEvaluator::Fits(const MemoryUse& memory) const {
  return HostShortfallBytes(memory) == 0 && static_cast<double>(memory.headroom_bytes) >=
                                                job_.min_headroom_ratio * static_cast<double>(memory.capacity_bytes);
}

bool PlanEvaluator::CanBeBelow(const EvaluatedPlan& evaluated, double limit_seconds, const PlanLaws* ideal) {
  if (ideal == nullptr || limit_seconds == kNever) return true;
  const TrainingJob& job = JobOf(evaluated.plan);
  return TimeStep(job, evaluated.plan, *load_, *ideal, stages_, details_).expected_seconds < limit_seconds;
}

void PlanEvaluator::Count(const StepPlan& plan) {
  if (loads_ != nullptr) {
    load_ = &loads_->Of(job_, plan);
  } else {
    CountStep(job_, plan, own_load_);
  }
}

PlanEvaluator::Trial PlanEvaluator::TryPolicy(RematPolicy policy, int32_t accumulation, const EvaluatedPlan& base,
                                              double least_seconds, double limit_seconds, const PlanLaws* ideal,
                                              std::optional<Choice>& best) {
  Choice choice{base};
  EvaluatedPlan& candidate = choice.evaluated;
  candidate.plan = PlanOf(base.plan.parallelism, policy, accumulation);
  if (candidate.plan.microbatch_size < 1) return Trial::kNotBetter;

  Count(candidate.plan);
  candidate.memory = FullestStageMemory(JobOf(candidate.plan), candidate.plan, *load_, stages_);
  candidate.fits = Fits(candidate.memory);
  const bool best_fits = best && best->evaluated.fits;
  if (!candidate.fits) {
    if (best && (best_fits || SlackBytes(candidate.memory) <= SlackBytes(best->evaluated.memory))) {
      return Trial::kNotBetter;
    }
    best = std::move(choice);
    // Where a plan that does not fit lies is asked once, when nothing fits.
    return Trial::kNotBetter;
  }
  ++evaluated_count_;
  const bool has_time = best_fits && best->below;
  const double limit = has_time ? best->evaluated.times.expected_seconds : limit_seconds;
  if (!CanBeBelow(candidate, limit, ideal) || !ChooseMapping(candidate, limit)) {
    if (has_time) return Trial::kNotBetter;
    if (best_fits) return Trial::kUnclear;
    choice.below = false;
  }
  if (choice.below && candidate.times.expected_seconds < least_seconds) return Trial::kNotBetter;
  best = std::move(choice);
  return Trial::kBetter;
}

MemoryUse PlanEvaluator::LeastMemory(const Parallelism& parallelism) {
  const TrainingWorkload& workload = job_.workload;
  int64_t accumulation = workload.gradient_accumulation.value_or(1);
  if (!workload.gradient_accumulation) {
    const int64_t sequences = MicrobatchSize(workload, parallelism, 1, std::max(1, parallelism.microbatch_count));
    while (accumulation <= std::min(sequences, kMaxAccumulation) / 2 && sequences % (accumulation * 2) == 0) {
      accumulation *= 2;
    }
  }
  SplitStages(*job_.model, parallelism, stages_);
  const auto memory_of = [&](int64_t rounds) {
    const StepPlan plan =
        PlanOf(parallelism, workload.remat_policy.value_or(RematPolicy::kFull), static_cast<int32_t>(rounds));
    const TrainingJob& job = JobOf(plan);
    Count(plan);
    return FullestStageMemory(job, plan, *load_, stages_);
  };
  MemoryUse least = memory_of(accumulation);
  // Accumulated gradients may be wider.
  if (accumulating_job_ && accumulation > 1) {
    const MemoryUse at_once = memory_of(1);
    if (SlackBytes(at_once) > SlackBytes(least)) least = at_once;
  }
  return least;
}

std::optional<double> PlanEvaluator::FloorSeconds(const Parallelism& parallelism, const PlanLaws& ideal,
                                                  absl::Span<const PlanLaws> ways) {
  const TrainingWorkload& workload = job_.workload;
  const bool fixed_policy = workload.remat_policy.has_value() || workload.checkpoints_per_layer > 0;
  const int64_t sequences = MicrobatchSize(workload, parallelism, 1, std::max(1, parallelism.microbatch_count));
  SplitStages(*job_.model, parallelism, stages_);
  std::optional<double> floor;
  bool waits_for_host = false;
  StepPlan plan;
  const auto fits = [&](RematPolicy policy, int32_t accumulation) {
    plan = PlanOf(parallelism, policy, accumulation);
    if (plan.microbatch_size < 1) return false;
    Count(plan);
    return Fits(FullestStageMemory(JobOf(plan), plan, *load_, stages_));
  };
  const auto consider = [&](RematPolicy policy, int32_t accumulation) {
    if (!fits(policy, accumulation)) return false;
    const TrainingJob& job = JobOf(plan);
    double seconds = TimeStep(job, plan, *load_, ideal, stages_, details_).expected_seconds;
    waits_for_host = workload.activation_offload && WaitsForHost();
    if (seconds < floor.value_or(kNever) && !ways.empty()) {
      double least = kNever;
      for (const PlanLaws& laws : ways) {
        least = std::min(least, RetimeStep(job, plan, *load_, laws, stages_, details_));
        if (least <= seconds) break;
      }
      seconds = std::max(seconds, least);
    }
    floor = std::min(floor.value_or(kNever), seconds);
    return true;
  };
  int32_t accumulation = workload.gradient_accumulation.value_or(1);
  while (true) {
    bool cheapest_fits = false;
    if (fixed_policy) {
      cheapest_fits = consider(workload.remat_policy.value_or(RematPolicy::kFull), accumulation);
    } else {
      for (RematPolicy policy : kPoliciesByRecompute) {
        // What recomputes everything holds least.
        const bool on_chip = !workload.activation_offload;
        if (on_chip && policy == kPoliciesByRecompute.front() && !fits(RematPolicy::kFull, accumulation)) break;
        if (!consider(policy, accumulation)) continue;
        cheapest_fits = cheapest_fits || policy == RematPolicy::kNone;
        if (policy != RematPolicy::kSaveDotWithContextExceptMlp && !waits_for_host) break;
      }
    }
    if (workload.gradient_accumulation.has_value() || cheapest_fits) break;
    if (accumulation > std::min(sequences, kMaxAccumulation) / 2 || sequences % (int64_t{accumulation} * 2) != 0) break;
    accumulation *= 2;
  }
  return floor;
}

bool PlanEvaluator::WaitsForHost() const {
  return std::any_of(details_.stages.begin(), details_.stages.end(),
                     [](const StageTime& stage) { return stage.activation_transfer_seconds > 0; });
}

absl::Status PlanEvaluator::Evaluate(const Parallelism& parallelism, EvaluatedPlan& evaluated, size_t max_mappings) {
  absl::StatusOr<std::shared_ptr<const MappingSet>> mappings =
      mappings_.Find(job_.slice, parallelism, job_.allow_idle_chips, max_mappings);
  if (!mappings.ok()) return mappings.status();
  EvaluatedPlan base;
  base.plan.parallelism = parallelism;
  base.mappings = *std::move(mappings);
  return ChooseAll(base, kNever, nullptr, evaluated).status();
}

absl::StatusOr<bool> PlanEvaluator::EvaluateBelow(double limit_seconds, const Parallelism& parallelism,
                                                  const PlanLaws& ideal, EvaluatedPlan& evaluated) {
  EvaluatedPlan base;
  base.plan.parallelism = parallelism;
  absl::Status status;
  if (PlacementSearch::Covers(job_.slice) && parallelism.mapping.empty()) {
    status = placements_.Open(parallelism);
  } else {
    absl::StatusOr<std::shared_ptr<const MappingSet>> mappings =
        mappings_.Find(job_.slice, parallelism, job_.allow_idle_chips);
    status = mappings.status();
    if (status.ok()) base.mappings = *std::move(mappings);
  }
  if (!status.ok()) return status;
  return ChooseAll(base, limit_seconds, &ideal, evaluated);
}

absl::StatusOr<bool> PlanEvaluator::ChooseAll(const EvaluatedPlan& base, double limit_seconds, const PlanLaws* ideal,
                                              EvaluatedPlan& evaluated) {
  const Parallelism& parallelism = base.plan.parallelism;
  SplitStages(*job_.model, parallelism, stages_);
  std::optional<Choice> best;
  // Which of two choices beyond the limit is faster decides what else is tried. Not known, everything is.
  bool unclear = false;
  const TrainingWorkload& workload = job_.workload;
  const bool fixed_policy = workload.remat_policy.has_value() || workload.checkpoints_per_layer > 0;
  const int64_t sequences = MicrobatchSize(workload, parallelism, 1, std::max(1, parallelism.microbatch_count));
  int32_t accumulation = workload.gradient_accumulation.value_or(1);
  // Recompute wins back no more than the wait for the host that it avoids.
  double least = 0;
  const auto attempt = [&](RematPolicy policy) {
    const Trial trial = TryPolicy(policy, accumulation, base, least, limit_seconds, ideal, best);
    unclear = unclear || trial == Trial::kUnclear;
    return trial;
  };
  while (true) {
    bool cheapest_fits = false;
    if (fixed_policy) {
      attempt(workload.remat_policy.value_or(RematPolicy::kFull));
      cheapest_fits = best && best->evaluated.fits;
    } else {
      for (RematPolicy policy : kPoliciesByRecompute) {
        if (attempt(policy) == Trial::kNotBetter || unclear) continue;
        cheapest_fits = cheapest_fits || policy == RematPolicy::kNone;
        if (workload.activation_offload) {
          // Where saved activations keep the step waiting, fewer of them may be faster.
          if (!best->below) {
            unclear = true;
            continue;
          }
          const EvaluatedPlan& found = best->evaluated;
          const StepTimes times = TimeStep(JobOf(found.plan), found.plan, *load_, found.laws(), stages_, details_);
          if (WaitsForHost()) {
            const StageTime& slowest = details_.stages[static_cast<size_t>(times.slowest_stage)];
            if (least == 0) least = times.expected_seconds - slowest.activation_transfer_seconds;
            continue;
          }
        }
        // Its successor keeps the MLP's matmuls and runs attention again: which is less depends on the sequence.
        if (policy != RematPolicy::kSaveDotWithContextExceptMlp) break;
      }
    }
    // More accumulation only pays where it saves recompute or makes the job fit.
    if (workload.gradient_accumulation.has_value() || cheapest_fits) break;
    const bool fits = best && best->evaluated.fits;
    if (fits && !unclear && best->evaluated.plan.gradient_accumulation < accumulation) break;
    if (accumulation > std::min(sequences, kMaxAccumulation) / 2 || sequences % (int64_t{accumulation} * 2) != 0) break;
    accumulation *= 2;
  }
  if (!best) return absl::InvalidArgumentError("the batch does not divide over the plan");
  if (!best->evaluated.fits) {
    Count(best->evaluated.plan);
    ChooseMapping(best->evaluated, kNever);
  }
  if (!best->below) return false;
  if (unclear) {
    const absl::StatusOr<bool> found = ChooseAll(base, kNever, ideal, evaluated);
    if (!found.ok()) return found.status();
    return evaluated.times.expected_seconds < limit_seconds;
  }
  evaluated = std::move(best->evaluated);
  return true;
}

void PlanEvaluator::Recount(const EvaluatedPlan& evaluated) {
  const TrainingJob& job = JobOf(evaluated.plan);
  SplitStages(*job.model, evaluated.plan.parallelism, stages_);
  Count(evaluated.plan);
  TimeStep(job, evaluated.plan, *load_, evaluated.laws(), stages_, details_);
}

}  // namespace sliceplan::planner
